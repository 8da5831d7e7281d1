#!/usr/bin/env bash
# ReG: retrievers with weak and with refined labels, relation paths on MetaQA, chains against triples.
#
#   experiments/reg.sh DATA WORK [STEP…]
#   STEP: metaqa speed labels freebase curve tokens answers; all if none
#
#   metaqa    relation-plan on 1, 2 and 3 hops, no language model
#   speed     distance-mlp on 18 full-size neighbourhoods; chains of 500 triples (cargo bench)
#   labels    a language model labels LABELS training questions, and LABELS test questions whose relevant
#             triples judge it; needs LLM, and takes hours on two cores
#   freebase  distance-mlp, pna, pna-relations, relation-plan and qr-gat with weak and, where `labels`
#             was run, with refined labels; recall at 100, Hit@1 and F1 on WebQSP and CWQ
#   curve     distance-mlp with 5, 20 and 80% of the training questions, both kinds of labels
#   tokens    evidence of the same 100 triples as chains and one by one, in tokens of the prompt
#   answers   both forms read by LLM, 60 questions
#
# DATA is the folder of benchmarks, WORK a folder for graphs, checkpoints and runs. Uses `wherefore`
# from the PATH, or what WHEREFORE names; LLM is a GGUF file or URL#MODEL; LABELS the number of questions
# to label (300), by JOBS processes side by side (1); METHODS the retrievers of `freebase` (all five);
# DEVICE where networks are trained (`cpu` if nothing is said); ONLY a pattern of names to which
# trainings and runs are held, so that several can go side by side. What is done is not done again.
# Choices were made on validation parts: every tenth line of MetaQA's qa_dev, a seeded tenth of
# Freebase's training questions. The test parts are measured here alone.
set -euo pipefail
data=$1 work=$2 wherefore=${WHEREFORE:-wherefore} labels=${LABELS:-300} device=${DEVICE:-cpu} only=${ONLY:-.}
shift 2
steps=${*:-metaqa speed labels freebase curve tokens answers}
mkdir -p "$work/models" "$work/runs"
has() { [[ " $steps " == *" $1 "* ]]; }
here=$(cd "$(dirname "$0")/.." && pwd)

graph() { # NAME FILE [OPTIONS]
    [ -d "$work/$1" ] || "$wherefore" load "$data/$2" "${@:3}" --out "$work/$1" --quiet
}
train() { # METHOD NAME GRAPH [OPTIONS]
    [[ $2 =~ $only ]] || return 0
    [ -d "$work/models/$2" ] && [ ! -d "$work/models/$2.training" ] && return 0
    printf '\n== train %s as %s\n' "$1" "$2"
    "$wherefore" train "$1" --graph "$work/$3" --out "$work/models/$2" --device "$device" \
        "${@:4}" 2>&1 |
        tee "$work/models/$2.log" | grep -E '^pass|^learned|rror'
    case $1 in relation-plan) ;; *) "$wherefore" index "$work/$3" --model "$work/models/$2" --quiet ;; esac
}
run() { # NAME GRAPH QUESTIONS [OPTIONS]
    [[ $1 =~ $only ]] || return 0
    printf '\n== %s\n' "$1"
    "$wherefore" eval --graph "$work/$2" --questions "$data/$3" --out "$work/runs/$1" \
        --k 50,100,200 --quiet "${@:4}" |
        grep -E '^ +(hit@1|f1|hit) |recall@|^total|^retrieve |LLM calls'
}

if has metaqa; then
    graph metaqa metaqa/kb.txt --format pipe
    # a part of the questions is enough for nine relations
    awk 'NR % 3 == 1' "$data/metaqa/1-hop/qa_train_10k.txt" > "$work/metaqa-1.txt"
    awk 'NR % 30 == 0' "$data/metaqa/1-hop/qa_dev.txt" > "$work/metaqa-valid-1.txt"
    for hops in 2 3; do
        # every tenth line of qa_dev is left out of training, and a part of it judges
        awk -v n=$((4 * (hops - 1))) 'NR % 10 != 0 && NR % n == 1' "$data/metaqa/$hops-hop/qa_dev.txt" \
            > "$work/metaqa-$hops.txt"
        awk 'NR % 40 == 0' "$data/metaqa/$hops-hop/qa_dev.txt" > "$work/metaqa-valid-$hops.txt"
    done
    train relation-plan metaqa-plan metaqa --questions "$work"/metaqa-[123].txt \
        --valid "$work"/metaqa-valid-[123].txt --set epochs=8 --set valid_questions=1000
    for hops in 1 2 3; do
        run "metaqa-$hops-plan" metaqa "metaqa/$hops-hop/qa_test.txt" --model "$work/models/metaqa-plan"
        run "metaqa-$hops-plan-linked" metaqa "metaqa/$hops-hop/qa_test.txt" \
            --model "$work/models/metaqa-plan" --linked
    done
fi

if has speed; then
    (cd "$here" && WHEREFORE_DATA=$data cargo bench -p wherefore-model --bench distance_mlp)
    (cd "$here" && cargo bench -p wherefore --bench chains)
fi

train_file="$data/freebase/wq_cwq_train.jsonl"
if has labels; then
    graph freebase freebase/triples.tsv
    : "${LLM:?names the language model that labels}"
    label() { # NAME QUESTIONS
        [ -f "$work/labels-$1.jsonl" ] && return 0
        mkdir -p "$work/labels-$1"
        # drawn here, so that parts can be labelled side by side
        python3 - "$2" "$labels" "${JOBS:-1}" "$work/labels-$1" <<'PY'
import random, sys
path, count, jobs, out = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
lines = list(open(path))
drawn = sorted(random.Random(0).sample(range(len(lines)), min(count, len(lines))))
with open(f"{out}/questions.jsonl", "w") as file:
    file.writelines(lines[i] for i in drawn)
for job in range(jobs):
    begin, end = len(drawn) * job // jobs, len(drawn) * (job + 1) // jobs
    with open(f"{out}/part-{job:02}.jsonl", "w") as part:
        part.writelines(lines[i] for i in drawn[begin:end])
PY
        for part in "$work/labels-$1"/part-*.jsonl; do
            "$wherefore" label --graph "$work/freebase" --questions "$part" --llm "$LLM" \
                --out "${part/part-/labels-}" > "${part%.jsonl}.log" 2>&1 &
        done
        wait
        cat "$work/labels-$1"/labels-*.jsonl > "$work/labels-$1.jsonl"
        # all is there: nothing is asked again, and all is counted
        "$wherefore" label --graph "$work/freebase" --questions "$work/labels-$1/questions.jsonl" \
            --llm "$LLM" --out "$work/labels-$1.jsonl" | tee "$work/labels-$1.log"
    }
    label train "$train_file"
    # judged by the test file's relevant triples; never trained on
    label judged "$data/freebase/webqsp_test.jsonl"
fi

# the questions that were labelled, so that weak and refined labels are compared on the same ones
labelled="$work/labels-train/questions.jsonl"
# the same for all networks over neighbourhoods, as QSRAG's were trained
settings="--set neighbourhood.max_entities=700 --set batch_questions=24 --set positive_weight=10
    --set optimiser.learning_rate=0.002"
of_method() { # METHOD [few]: its settings; more passes over few questions
    case $1 in
        relation-plan) echo "--set growth.max_length=4" ;;
        qr-gat) echo "$settings --set sizes.hidden=128" ;;
        distance-mlp) echo "$settings" ;;
        *) echo "$settings --set sizes.hidden=96" ;;
    esac
    case ${2:-}$1 in
        few*) echo "--set epochs=20 --set patience=5" ;;
        relation-plan | distance-mlp) echo "--set epochs=10 --set patience=3" ;;
        *) echo "--set epochs=4" ;;
    esac
}
measure() { # NAME MODEL
    for questions in webqsp cwq; do
        run "$questions-$1" freebase "freebase/${questions}_test.jsonl" --model "$2"
    done
}

if has freebase; then
    graph freebase freebase/triples.tsv
    for method in ${METHODS:-distance-mlp pna pna-relations relation-plan qr-gat}; do
        # shellcheck disable=SC2046
        train "$method" "$method-weak" freebase --questions "$train_file" $(of_method "$method")
        measure "$method-weak" "$work/models/$method-weak"
        [ -f "$work/labels-train.jsonl" ] || continue
        # the labelled questions alone, with either kind of labels
        # shellcheck disable=SC2046
        train "$method" "$method-few-weak" freebase --questions "$labelled" $(of_method "$method" few)
        # shellcheck disable=SC2046
        train "$method" "$method-few-refined" freebase --questions "$labelled" \
            --labels "$work/labels-train.jsonl" $(of_method "$method" few)
        for kind in few-weak few-refined; do
            measure "$method-$kind" "$work/models/$method-$kind"
        done
    done
fi

if has curve; then
    graph freebase freebase/triples.tsv
    method=${CURVE:-distance-mlp}
    source=$train_file
    if [ -f "$work/labels-train.jsonl" ]; then
        source=$labelled
    fi
    for share in 5 20 80; do
        [ -f "$work/curve-$share.jsonl" ] || awk -v share="$share" '(NR * 61) % 100 < share' "$source" > "$work/curve-$share.jsonl"
        # shellcheck disable=SC2046
        train "$method" "curve-$share-weak" freebase --questions "$work/curve-$share.jsonl" \
            $(of_method "$method" few)
        measure "curve-$share-weak" "$work/models/curve-$share-weak"
        [ -f "$work/labels-train.jsonl" ] || continue
        # shellcheck disable=SC2046
        train "$method" "curve-$share-refined" freebase --questions "$work/curve-$share.jsonl" \
            --labels "$work/labels-train.jsonl" $(of_method "$method" few)
        measure "curve-$share-refined" "$work/models/curve-$share-refined"
    done
fi

# A network's best hundred triples in one of three forms: NAME MODEL KIND FORM
form() {
    case $4 in
        triples) organize='kind = "triples"' ;;
        chains) organize=$'kind = "chains"\ntokens = 0' ;;
        # nothing of the evidence is left out
        equal) organize=$'kind = "chains"\ntokens = 0\nturns = true\nleftovers = true' ;;
    esac
    cat > "$work/$1.toml" <<TOML
[retrieve]
kind = "$3"
model = "$2"
[select]
kind = "top-k"
k = 100
[organize]
$organize
[reason]
kind = "single-call"
evidence_tokens = 100000
TOML
}
if has tokens || has answers; then
    graph freebase freebase/triples.tsv
    model=${MODEL:-$work/models/qr-gat-weak}
    kind=$(grep -o '"method": *"[^"]*"' "$model/config.json" | head -1 | cut -d'"' -f4)
    # a model that says nothing: its prompts are counted in words
    echo '{"text": "ans: not available"}' > "$work/silent.jsonl"
    for name in triples chains equal; do
        form "form-$name" "$model" "$kind" "$name"
        if has tokens; then
            run "tokens-$name" freebase freebase/webqsp_test.jsonl --config "$work/form-$name.toml" \
                --llm "${LLM_TOKENS:-script:$work/silent.jsonl}" --no-cache --sample 300
        fi
        if has answers; then
            : "${LLM:?names the language model that answers}"
            run "answers-$name" freebase freebase/webqsp_test.jsonl --config "$work/form-$name.toml" \
                --llm "$LLM" --sample 60
        fi
    done
fi
