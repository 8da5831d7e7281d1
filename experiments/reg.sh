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
# to label (300); METHODS the retrievers of `freebase` (all five). A step that is done is not done again.
# Choices were made on validation parts: every tenth line of MetaQA's qa_dev, a seeded tenth of
# Freebase's training questions. The test parts are measured here alone.
set -euo pipefail
data=$1 work=$2 wherefore=${WHEREFORE:-wherefore} labels=${LABELS:-300}
shift 2
steps=${*:-metaqa speed labels freebase curve tokens answers}
mkdir -p "$work/models" "$work/runs"
has() { [[ " $steps " == *" $1 "* ]]; }
here=$(cd "$(dirname "$0")/.." && pwd)

graph() { # NAME FILE [OPTIONS]
    [ -d "$work/$1" ] || "$wherefore" load "$data/$2" "${@:3}" --out "$work/$1" --quiet
}
train() { # METHOD NAME GRAPH [OPTIONS]
    [ -d "$work/models/$2" ] && [ ! -d "$work/models/$2.training" ] && return
    printf '\n== train %s as %s\n' "$1" "$2"
    "$wherefore" train "$1" --graph "$work/$3" --out "$work/models/$2" "${@:4}" 2>&1 |
        tee "$work/models/$2.log" | grep -E '^pass|^learned|rror'
    case $1 in relation-plan) ;; *) "$wherefore" index "$work/$3" --model "$work/models/$2" --quiet ;; esac
}
run() { # NAME GRAPH QUESTIONS [OPTIONS]
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
    "$wherefore" label --graph "$work/freebase" --questions "$train_file" --sample "$labels" \
        --llm "$LLM" --out "$work/labels-train.jsonl" | tee "$work/labels-train.log"
    # judged by the test file's relevant triples; never trained on
    "$wherefore" label --graph "$work/freebase" --questions "$data/freebase/webqsp_test.jsonl" \
        --sample "$labels" --llm "$LLM" --out "$work/labels-judged.jsonl" | tee "$work/labels-judged.log"
fi

# The questions that were labelled, so that weak and refined labels are compared on the same ones.
labelled() { # FILE
    python3 - "$work/labels-train.jsonl" "$train_file" > "$1" <<'PY'
import json, sys
ids = {json.loads(line)["id"] for line in open(sys.argv[1])}
for line in open(sys.argv[2]):
    question = json.loads(line)
    if str(question.get("id", question.get("ID"))) in ids:
        sys.stdout.write(line)
PY
}
# the same for all networks over neighbourhoods, as QSRAG's were trained
settings="--set neighbourhood.max_entities=700 --set batch_questions=24 --set positive_weight=10
    --set optimiser.learning_rate=0.002"
of_method() { # METHOD: its settings
    case $1 in
        relation-plan) echo "--set growth.max_length=4 --set epochs=12 --set patience=3" ;;
        qr-gat) echo "$settings --set epochs=3 --set sizes.hidden=128" ;;
        distance-mlp) echo "$settings --set epochs=12 --set patience=4" ;;
        *) echo "$settings --set epochs=6 --set sizes.hidden=96" ;;
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
        labelled "$work/labelled.jsonl"
        # the labelled questions alone, with either kind of labels
        # shellcheck disable=SC2046
        train "$method" "$method-few-weak" freebase --questions "$work/labelled.jsonl" $(of_method "$method")
        # shellcheck disable=SC2046
        train "$method" "$method-few-refined" freebase --questions "$work/labelled.jsonl" \
            --labels "$work/labels-train.jsonl" $(of_method "$method")
        # all questions, refined labels where there are some
        # shellcheck disable=SC2046
        train "$method" "$method-refined" freebase --questions "$train_file" \
            --labels "$work/labels-train.jsonl" $(of_method "$method")
        for kind in few-weak few-refined refined; do
            measure "$method-$kind" "$work/models/$method-$kind"
        done
    done
fi

if has curve; then
    graph freebase freebase/triples.tsv
    method=${CURVE:-distance-mlp}
    source=$train_file
    if [ -f "$work/labels-train.jsonl" ]; then
        labelled "$work/labelled.jsonl"
        source=$work/labelled.jsonl
    fi
    for share in 5 20 80; do
        awk -v share="$share" '(NR * 61) % 100 < share' "$source" > "$work/curve-$share.jsonl"
        # shellcheck disable=SC2046
        train "$method" "curve-$share-weak" freebase --questions "$work/curve-$share.jsonl" $(of_method "$method")
        measure "curve-$share-weak" "$work/models/curve-$share-weak"
        [ -f "$work/labels-train.jsonl" ] || continue
        # shellcheck disable=SC2046
        train "$method" "curve-$share-refined" freebase --questions "$work/curve-$share.jsonl" \
            --labels "$work/labels-train.jsonl" $(of_method "$method")
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
