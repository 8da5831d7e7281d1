#!/usr/bin/env bash
# ReG's labels without a language model: an encoder judges which shortest paths are evidence, and every
# retriever learns from the same questions with shortest paths and with what was picked.
#
#   experiments/relabel.sh DATA WORK [STEP…]
#   STEP: margins labels train curve measure; all if none
#
#   margins   labels of the last thousand training questions by several `--within`, against relevant triples
#   labels    all training questions but these, by WITHIN (0.05)
#   train     each of METHODS with weak and with refined labels, for each of SEEDS (0)
#   curve     distance-mlp with 5, 20 and 80% of the questions, both kinds
#   measure   recall at 100, Hit@1 and F1 on WebQSP and CWQ, gold topics; label quality on WebQSP's test
#             part, which nothing is chosen by
#
# DATA is the folder of benchmarks, WORK a folder for graphs, labels, checkpoints and runs. `wherefore`
# from the PATH, or what WHEREFORE names; JUDGE the encoder that judges (matcher); DEVICE (cpu); JOBS
# trainings side by side (1). What is there is not made again.
set -euo pipefail
data=$1 work=$2 wherefore=${WHEREFORE:-wherefore} jobs=${JOBS:-1} judge=${JUDGE:-matcher} within=${WITHIN:-0.05}
read -ra seeds <<< "${SEEDS:-0}"
read -ra methods <<< "${METHODS:-distance-mlp pna pna-relations relation-plan qr-gat}"
shift 2
steps=${*:-margins labels train curve measure}
has() { [[ " $steps " == *" $1 "* ]]; }
source "$(dirname "$0")/networks.sh"
mkdir -p "$work/models" "$work/runs" "$work/labels"
name=$(basename "$judge")

[ -d "$work/freebase" ] || "$wherefore" load "$data/freebase/triples.tsv" --out "$work/freebase" --quiet
freebase_questions train valid
label() { # NAME QUESTIONS WITHIN
    "$wherefore" label --graph "$work/freebase" --questions "$2" --encoder "$judge" --within "$3" \
        --threads "$(nproc)" --out "$work/labels/$1.jsonl" --quiet
}

if has margins; then
    for margin in 0 0.02 0.05 0.1 0.2; do
        printf '\n== %s, within %s\n' "$name" "$margin"
        label "valid-$name-$margin" "$work/questions/valid.jsonl" "$margin"
    done
fi
if has labels; then label "train-$name" "$work/questions/train.jsonl" "$within"; fi

settings() { # METHOD
    case $1 in
        relation-plan) echo "--set growth.max_length=4" ;;
        *) echo "${around[*]} $(rate "$1")" ;;
    esac
}
train() { # NAME METHOD QUESTIONS SEED [OPTIONS]
    [ -d "$work/models/$1" ] && [ ! -d "$work/models/$1.training" ] && return 0
    wait_for
    # shellcheck disable=SC2046
    "$wherefore" train "$2" --graph "$work/freebase" --questions "$3" --valid "$work/questions/valid.jsonl" \
        --out "$work/models/$1" --seed "$4" --device "${DEVICE:-cpu}" $(settings "$2") \
        --set epochs="${EPOCHS:-8}" --set patience=3 "${@:5}" > "$work/models/$1.log" 2>&1 ||
        echo "failed: $work/models/$1.log" >&2 &
}
both() { # NAME METHOD QUESTIONS SEED
    train "$1-weak-$4" "$2" "$3" "$4"
    train "$1-refined-$4" "$2" "$3" "$4" --labels "$work/labels/train-$name.jsonl"
}
for seed in "${seeds[@]}"; do
    if has train; then
        for method in "${methods[@]}"; do both "$method" "$method" "$work/questions/train.jsonl" "$seed"; done
    fi
    if has curve; then
        for share in 5 20 80; do
            part=$work/questions/train-$share.jsonl
            awk -v share="$share" '(NR * 61) % 100 < share' "$work/questions/train.jsonl" > "$part"
            both "curve-$share" distance-mlp "$part" "$seed"
        done
    fi
done
wait

if has measure; then
    label "judged-$name" "$data/freebase/webqsp_test.jsonl" "$within"
    for model in "$work"/models/*-[0-9]; do
        model=$(basename "$model")
        for questions in webqsp cwq; do
            run=$work/runs/$questions-$model
            [ -f "$run/metrics.json" ] && continue
            wait_for
            rm -rf "$run"
            "$wherefore" eval --graph "$work/freebase" --questions "$data/freebase/${questions}_test.jsonl" \
                --model "$work/models/$model" --out "$run" --k 100 --quiet > "$run.log" 2>&1 || cat "$run.log" >&2 &
        done
    done
    wait
fi
