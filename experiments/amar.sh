#!/usr/bin/env bash
# AMAR: logical forms written by a small language model around which an adapter is trained; ablations,
# PathQuestion and MetaQA, and what a pass costs against texts in the prompt.
#
#   experiments/amar.sh DATA WORK MODEL.gguf [SET…]
#   SET: webqsp ablations cwq pq metaqa cost; all but cwq if none
#
# DATA is the folder of benchmarks, WORK a folder for graphs, checkpoints and runs. Uses `wherefore`
# from the PATH, or what WHEREFORE names; DEVICE is where to compute (`cpu` if nothing is said), ONLY a
# pattern of names to which trainings and runs are held, EPOCHS the most passes of WebQSP's trainings (30),
# BATCH the questions of a step (16), SETTINGS further `--set KEY=VALUE` for every training.
# Choices were made on validation parts: a seeded tenth of WebQSP's and CWQ's training questions,
# PathQuestion's own, a seeded tenth of MetaQA's qa_dev. The relation retriever of the Freebase sets is
# that of experiments/forms.sh: questions that also stand in a test part are left out.
set -euo pipefail
data=$1 work=$2 llm=$3 wherefore=${WHEREFORE:-wherefore} device=${DEVICE:-cpu} only=${ONLY:-.}
epochs=${EPOCHS:-30} batch=${BATCH:-16}
read -r -a more <<< "${SETTINGS:-}"
shift 3
sets=${*:-webqsp ablations pq metaqa cost}
mkdir -p "$work/models" "$work/runs"
has() { [[ " $sets " == *" $1 "* ]]; }

graph() { # NAME FILE [OPTIONS]
    [ -d "$work/$1" ] || "$wherefore" load "$data/$2" "${@:3}" --out "$work/$1" --quiet
}
# On a card, the memory it holds while a training runs is sampled: the process's own is not told there.
card() { # NAME
    [[ $device == cuda* ]] || return 0
    while sleep 1; do
        nvidia-smi --query-gpu=memory.used --format=csv,noheader,nounits
    done > "$work/models/$1.card" 2> /dev/null
}
train() { # NAME GRAPH [OPTIONS]
    [[ $1 =~ $only ]] || return 0
    [ -d "$work/models/$1" ] && [ ! -d "$work/models/$1.training" ] && return 0
    printf '\n== train %s\n' "$1"
    card "$1" &
    local sampler=$!
    "$wherefore" train amar --graph "$work/$2" --out "$work/models/$1" --llm "$llm" --device "$device" \
        --set "batch_questions=$batch" "${more[@]}" "${@:3}" 2>&1 |
        tee "$work/models/$1.log" | grep -E '^pass|^learned|rror' || true
    kill "$sampler" 2> /dev/null || true
    wait "$sampler" 2> /dev/null || true
    [ ! -s "$work/models/$1.card" ] || printf 'card: %s MB at most\n' "$(sort -n "$work/models/$1.card" | tail -1)"
}
run() { # NAME MODEL GRAPH QUESTIONS [OPTIONS]
    [[ $1 =~ $only ]] || return 0
    [ -d "$work/models/$2" ] || return 0
    printf '\n== %s\n' "$1"
    "$wherefore" logic "$work/$3" --questions "$4" --model "$work/models/$2" --llm "$llm" \
        --device "$device" --quiet "${@:5}" | tee "$work/runs/$1.txt"
}

if has webqsp || has ablations || has cwq || has cost; then
    graph freebase freebase/triples.tsv
    # the questions of experiments/forms.sh, and of them those of WebQSP
    if [ ! -f "$work/webqsp.train.jsonl" ]; then
        python3 - "$data/freebase" "$work" <<'PY'
import json, random, sys
data, work = sys.argv[1:]
def lines(name): return [json.loads(line) for line in open(f"{data}/{name}.jsonl")]
def text(q): return "".join(c for c in q["question"].lower() if c.isalnum())
tests = {text(q) for name in ("webqsp_test", "cwq_test") for q in lines(name)}
def split(name, questions):
    kept, seen = [], set()
    for q in questions:
        if text(q) not in tests and text(q) not in seen:
            seen.add(text(q))
            kept.append(q)
    for i, q in enumerate(kept):
        q["id"] = f"{i}"
        q.pop("i", None)
    random.Random(0).shuffle(kept)
    cut = len(kept) // 10
    for part, some in (("valid", kept[:cut]), ("train", kept[cut:])):
        with open(f"{work}/{name}.{part}.jsonl", "w") as out:
            out.writelines(json.dumps(q) + "\n" for q in some)
both = lines("webqsp_train") + [q for q in lines("wq_cwq_train") if "train" in q["split"]]
split("relations", both)
# validation questions of the relation retriever and of the forms are the same ones: none is learned by either
valid = {text(json.loads(line)) for line in open(f"{work}/relations.valid.jsonl")}
for name, questions in (("webqsp", lines("webqsp_train")), ("cwq", lines("wq_cwq_train"))):
    seen = set()
    files = {part: open(f"{work}/{name}.{part}.jsonl", "w") for part in ("train", "valid")}
    for q in questions:
        if text(q) in tests or text(q) in seen or name == "cwq" and "train" not in q["split"]:
            continue
        seen.add(text(q))
        q["id"] = f"{len(seen)}"
        q.pop("i", None)
        files["valid" if text(q) in valid else "train"].write(json.dumps(q) + "\n")
PY
    fi
    [ -d "$work/models/relations" ] && [ ! -d "$work/models/relations.training" ] || "$wherefore" train relations \
        --graph "$work/freebase" --questions "$work/relations.train.jsonl" --valid "$work/relations.valid.jsonl" \
        --out "$work/models/relations" 2>&1 | grep -E '^pass|^learned|rror'
fi
webqsp() { # NAME [OPTIONS]
    train "$1" freebase --questions "$work/webqsp.train.jsonl" --valid "$work/webqsp.valid.jsonl" \
        --set "prompting.relations=$work/models/relations" --set "epochs=$epochs" "${@:2}"
    run "$1" "$1" freebase "$data/freebase/webqsp_test.jsonl"
}
if has webqsp; then
    webqsp webqsp
    run webqsp-gold-entities webqsp freebase "$data/freebase/webqsp_test.jsonl" --gold-entities
fi
if has ablations; then
    for names in context-prompt no-gate no-siamese no-self-alignment neither no-residual \
        without-entities without-relations without-subgraphs; do
        webqsp "webqsp-$names" --set "sizes.ablations=[\"$names\"]"
    done
fi
if has cwq; then
    train cwq freebase --questions "$work/cwq.train.jsonl" --valid "$work/cwq.valid.jsonl" \
        --set "prompting.relations=$work/models/relations" --set epochs=10 --set sizes.soft_prompt=16
    run cwq cwq freebase "$data/freebase/cwq_test.jsonl" --beams 15
fi
if has pq; then
    for set in PQ-2H:2H-kb:5 PQ-3H:3H-kb:3 PQL-2H:PQL2-KB:10 PQL-3H:PQL3-KB:12; do
        IFS=: read -r name kb passes <<< "$set"
        graph "$kb" "pathquestion/$kb.txt" --format tsv
        train "$name" "$kb" --questions "$data/pathquestion/$name.train.txt" \
            --valid "$data/pathquestion/$name.valid.txt" --set "epochs=$passes"
        run "$name" "$name" "$kb" "$data/pathquestion/$name.test.txt"
    done
fi
if has metaqa; then
    graph metaqa metaqa/kb.txt --format pipe
    for hops in 1 2 3; do
        # qa_dev in an order of its own: its kinds stand together with their questions
        from=$data/metaqa/$hops-hop
        for part in valid:1:300 train:1501:4500; do
            IFS=: read -r name first last <<< "$part"
            [ -f "$work/metaqa-$hops/qa_$name.txt" ] && continue
            mkdir -p "$work/metaqa-$hops"
            paste "$from/qa_dev.txt" "$from/qa_dev_qtype.txt" |
                shuf --random-source=<(yes 0) | sed -n "${first},${last}p" > "$work/metaqa-$hops/$name"
            cut -f1,2 "$work/metaqa-$hops/$name" > "$work/metaqa-$hops/qa_$name.txt"
            cut -f3 "$work/metaqa-$hops/$name" > "$work/metaqa-$hops/qa_${name}_qtype.txt"
        done
        train "metaqa-$hops" metaqa --questions "$work/metaqa-$hops/qa_train.txt" \
            --valid "$work/metaqa-$hops/qa_valid.txt" --set epochs=3
        run "metaqa-$hops" "metaqa-$hops" metaqa "$from/qa_test.txt" --limit 500
    done
fi
if has cost; then
    # one pass each over the same questions
    head -n 640 "$work/webqsp.train.jsonl" > "$work/cost.jsonl"
    head -n 32 "$work/webqsp.valid.jsonl" > "$work/cost.valid.jsonl"
    for names in '' context-prompt; do
        train "cost${names:+-$names}" freebase --questions "$work/cost.jsonl" \
            --valid "$work/cost.valid.jsonl" --set "prompting.relations=$work/models/relations" \
            --set epochs=1 --set "sizes.ablations=[${names:+\"$names\"}]"
    done
fi
