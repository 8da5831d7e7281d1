#!/usr/bin/env bash
# GNN2R without a language model: both steps trained on each benchmark, answers and rationales on the
# test part, ablations, robustness, and the time of each phase.
#
#   experiments/gnn2r.sh DATA WORK [SET…]
#   SET: pq grouped wc metaqa freebase fast ablations robustness freebase13 speed; all if none
#
# DATA is the folder of benchmarks, WORK a folder for graphs, checkpoints and runs. Uses `wherefore`
# from the PATH, or what WHEREFORE names; ENCODER is the encoder (`static` if none is named), DEVICE where
# it is trained (`cpu` if nothing is said), ONLY a pattern of names to which trainings and runs are held,
# so that several can go side by side. Choices
# were made on validation parts: PathQuestion's and WC2014's own, every tenth line of MetaQA's qa_dev,
# a seeded tenth of Freebase's training questions. The test parts are measured here alone.
set -euo pipefail
data=$1 work=$2 wherefore=${WHEREFORE:-wherefore} encoder=${ENCODER:-static} device=${DEVICE:-cpu} only=${ONLY:-.}
shift 2
sets=${*:-pq grouped wc metaqa freebase fast ablations robustness freebase13 speed}
mkdir -p "$work"
has() { [[ " $sets " == *" $1 "* ]]; }

graph() { # NAME FILE [OPTIONS]
    [ -d "$work/$1" ] || "$wherefore" load "$data/$2" "${@:3}" --out "$work/$1" --quiet
}
train() { # NAME GRAPH [OPTIONS]
    [[ $1 =~ $only ]] || return 0
    [ -d "$work/models/$1" ] && [ ! -d "$work/models/$1.training" ] && return 0
    mkdir -p "$work/models"
    printf '\n== train %s\n' "$1"
    "$wherefore" train gnn2r --graph "$work/$2" --out "$work/models/$1" --encoder "$encoder" \
        --device "$device" "${@:3}" 2>&1 | tee "$work/models/$1.log" | grep -E '^pass|^learned|rror'
}
run() { # NAME MODEL GRAPH QUESTIONS [OPTIONS]
    [[ $1 =~ $only ]] || return 0
    printf '\n== %s\n' "$1"
    "$wherefore" eval --graph "$work/$3" --questions "$4" --out "$work/runs/$1" \
        ${2:+--model "$work/models/$2"} --quiet "${@:5}" | grep -E '^ +(hit@1|f1|hit|precision|recall) |rationale|^total|^retrieve'
}
# Settings of the paper: name, graph, hops, margin, candidates, second margin
pq="PQ-2H:2H-kb:2:0.5:20:0.8 PQ-3H:3H-kb:3:1.0:5:0.1 PQL-2H:PQL2-KB:2:1.0:5:0.8 PQL-3H:PQL3-KB:3:1.0:5:0.05"
# settings HOPS MARGIN CANDIDATES MARGIN'; PQ-3H has most questions, and a smaller network will do
settings() {
    printf -- '--set %s ' "neighbourhood.hops=$1" "answering.trails.max_length=$1" "margin=$2" \
        "answering.candidates=$3" "sentences.margin=$4"
}

smaller() { # NAME
    [[ $1 != PQ-3H* ]] || printf -- '--set %s ' sizes.hidden=128 batch_questions=32 epochs=16 patience=4
}

if has pq || has robustness || has freebase13 || has grouped; then
    for kb in 2H-kb 3H-kb PQL2-KB PQL3-KB; do
        graph "$kb" "pathquestion/$kb.txt" --format tsv
    done
fi
if has pq || has freebase13; then
    for set in $pq; do
        IFS=: read -r name kb hops margin n second <<< "$set"
        # shellcheck disable=SC2046
        train "$name" "$kb" --questions "$data/pathquestion/$name.train.txt" \
            --valid "$data/pathquestion/$name.valid.txt" $(settings "$hops" "$margin" "$n" "$second") \
            $(smaller "$name")
        run "$name" "$name" "$kb" "$data/pathquestion/$name.test.txt"
    done
fi
if has grouped; then
    # all questions of one gold path on one side: paths whose checksum ends in 0 are valid, in 1 test
    for set in $pq; do
        IFS=: read -r name kb hops margin n second <<< "$set"
        if [ ! -f "$work/$name.grouped.train.txt" ]; then
            for part in train valid test; do cat "$data/pathquestion/$name.$part.txt"; done |
                while IFS= read -r line; do
                    side=$(printf '%s' "${line##*$'\t'}" | cksum | cut -d' ' -f1)
                    printf '%s\t%s\n' "$((side % 10))" "$line"
                done > "$work/$name.sides"
            grep -P '^0\t' "$work/$name.sides" | cut -f2- > "$work/$name.grouped.valid.txt"
            grep -P '^1\t' "$work/$name.sides" | cut -f2- > "$work/$name.grouped.test.txt"
            grep -P '^[2-9]\t' "$work/$name.sides" | cut -f2- > "$work/$name.grouped.train.txt"
        fi
        # shellcheck disable=SC2046
        train "$name-grouped" "$kb" --questions "$work/$name.grouped.train.txt" \
            --valid "$work/$name.grouped.valid.txt" $(settings "$hops" "$margin" "$n" "$second") \
            $(smaller "$name")
        run "$name-grouped" "$name-grouped" "$kb" "$work/$name.grouped.test.txt"
    done
fi
if has wc; then
    graph WC2014 wc2014/WC2014.txt --format tsv
    for set in WC-P1:1 WC-P2:2 WC-C:1; do
        IFS=: read -r name hops <<< "$set"
        # shellcheck disable=SC2046
        train "$name" WC2014 --questions "$data/wc2014/$name.train.txt" \
            --valid "$data/wc2014/$name.valid.txt" $(settings "$hops" 1.0 20 0.1)
        run "$name" "$name" WC2014 "$data/wc2014/$name.test.txt"
    done
fi
if has metaqa; then
    graph metaqa metaqa/kb.txt --format pipe
    for hops in 1 2 3; do
        # every tenth line of qa_dev is left out of training, and every tenth of these judges; a half of
        # the rest, of 3 hops a quarter, is enough for nine relations
        if [ ! -f "$work/metaqa-$hops.txt" ]; then
            awk -v n=$((hops < 3 ? 2 : 4)) 'NR % 10 != 0 && NR % n == 1' "$data/metaqa/$hops-hop/qa_dev.txt" \
                > "$work/metaqa-$hops.txt"
            awk 'NR % 100 == 0' "$data/metaqa/$hops-hop/qa_dev.txt" > "$work/metaqa-valid-$hops.txt"
        fi
        # shellcheck disable=SC2046
        train "metaqa-$hops" metaqa --questions "$work/metaqa-$hops.txt" \
            --valid "$work/metaqa-valid-$hops.txt" $(settings "$hops" 1.0 30 0.1) --set epochs=6 \
            --set patience=2 --set batch_questions=32 --set sizes.hidden=128 \
            --set neighbourhood.max_entities=800 --set batch_triples=40000
        # what is asked sees more of the graph than what is learned from
        cat > "$work/metaqa-$hops.toml" <<TOML
retrieve = { kind = "gnn2r", model = "$work/models/metaqa-$hops", neighbourhood = { hops = $hops, max_entities = 4000 } }
reason = { kind = "rationale" }
TOML
        run "metaqa-$hops" "" metaqa "$data/metaqa/$hops-hop/qa_test.txt" --sample 1000 \
            --config "$work/metaqa-$hops.toml"
    done
fi
if has freebase || has ablations || has speed || has robustness; then
    graph freebase freebase/triples.tsv
fi
freebase() { # NAME QUESTIONS TEST CANDIDATES [OPTIONS]
    # shellcheck disable=SC2046
    train "$1" freebase --questions "$data/freebase/$2" $(settings 2 1.0 "$4" 0.1) \
        --set neighbourhood.max_entities=1000 --set epochs=10 --set sizes.hidden=128 \
        --set sizes.layers=2 --set batch_questions=32 --set batch_triples=40000 "${@:5}"
    run "$1" "$1" freebase "$data/freebase/$3"
}
if has freebase || has ablations || has speed; then
    freebase webqsp webqsp_train.jsonl webqsp_test.jsonl 10
fi
if has freebase; then
    freebase cwq wq_cwq_train.jsonl cwq_test.jsonl 25 --set margin=0.5
fi
# NAME MODEL GRAPH QUESTIONS STATEMENT: the questions asked of what was trained as MODEL, changed by a
# Python statement over the folder `to` and the checkpoint's description `config`
changed() {
    [[ $1 =~ $only ]] || return 0
    if [ ! -d "$work/models/$1" ]; then
        cp -r "$work/models/$2" "$work/models/$1"
        python3 - "$work/models/$1" "$5" <<'PY'
import json, pathlib, shutil, sys
to = pathlib.Path(sys.argv[1])
config = json.loads((to / "config.json").read_text())
exec(sys.argv[2])
(to / "config.json").write_text(json.dumps(config, indent=2))
PY
    fi
    run "$1" "$1" "$3" "$4" "${@:6}"
}
if has fast; then
    # shortest ways alone, the same network; whether it is as good is told by validation parts
    fast='config["training"]["answering"]["trails"]["shortest_only"] = True'
    for part in valid test; do
        for set in $pq; do
            IFS=: read -r name kb _ <<< "$set"
            [ -d "$work/models/$name" ] || continue
            questions=$data/pathquestion/$name.$part.txt
            run "$name-$part-all" "$name" "$kb" "$questions"
            changed "$name-$part-fast" "$name" "$kb" "$questions" "$fast"
        done
    done
    [ ! -d "$work/models/cwq" ] ||
        changed cwq-fast cwq freebase "$data/freebase/cwq_test.jsonl" "$fast" --sample 300
    for hops in 1 2 3; do
        [ -d "$work/models/metaqa-$hops" ] || continue
        questions=$data/metaqa/$hops-hop/qa_test.txt
        run "metaqa-$hops-all" "metaqa-$hops" metaqa "$questions" --sample 400
        changed "metaqa-$hops-fast" "metaqa-$hops" metaqa "$questions" "$fast" --sample 400
    done
fi
if has ablations; then
    for names in no-gate no-layerwise-attention no-gate,no-layerwise-attention; do
        freebase "webqsp-$names" webqsp_train.jsonl webqsp_test.jsonl 10 \
            --set "ablations=[\"${names//,/\",\"}\"]"
    done
    # the same network; only the second step differs
    webqsp=(webqsp freebase "$data/freebase/webqsp_test.jsonl")
    changed webqsp-no-fine-tuning "${webqsp[@]}" 'shutil.rmtree(to / "sentences")'
    changed webqsp-fast "${webqsp[@]}" 'config["training"]["answering"]["trails"]["shortest_only"] = True'
    # step I alone
    cat > "$work/webqsp-step-1.toml" <<TOML
retrieve = { kind = "gnn2r", model = "$work/models/webqsp", answering = { sentences = false, candidates = 10 } }
reason = { kind = "rationale" }
TOML
    run webqsp-step-1 "" freebase "$data/freebase/webqsp_test.jsonl" --config "$work/webqsp-step-1.toml"
fi
if has robustness; then
    for set in PQL-2H:PQL2-KB:2:0.8 PQL-3H:PQL3-KB:3:0.05; do
        IFS=: read -r name kb hops second <<< "$set"
        for how in removed shuffled; do
            for share in 0.25 0.5 0.75 0.95; do
                # shellcheck disable=SC2046
                train "$name-$how-$share" "$kb" --questions "$data/pathquestion/$name.train.txt" \
                    --valid "$data/pathquestion/$name.valid.txt" $(settings "$hops" 1.0 5 "$second") \
                    --set "robustness.$how=$share"
                run "$name-$how-$share" "$name-$how-$share" "$kb" "$data/pathquestion/$name.test.txt"
            done
        done
    done
fi
if has freebase13; then
    graph freebase13 freebase13/triples.tsv
    run PQ-2H-freebase13 PQ-2H freebase13 "$data/pathquestion/PQ-2H.test.txt"
fi
if has speed; then
    # the phases as `retrieve.*` among the times; one question at a time
    full=$data/freebase/webqsp_test_full_rog_subgraphs_18.jsonl
    printf '\n== speed\n'
    RAYON_NUM_THREADS=2 "$wherefore" eval --questions "$full" --model "$work/models/webqsp" --threads 1 \
        --out "$work/runs/speed" --quiet | grep -E '^retrieve|^total'
fi
