#!/usr/bin/env bash
# A language model over the evidence of a trained QR-GAT, on a sample of WebQSP's test questions:
# with confidence and without, top-k and adaptive; beside it the same checkpoint without a language
# model, and the language model without evidence.
#
#   experiments/language-models.sh DATA WORK CHECKPOINT MODEL.gguf [QUESTIONS [EVIDENCE_TOKENS]]
#
# DATA is the folder of benchmarks, WORK a folder for graphs and runs, CHECKPOINT what
# `wherefore train` made. Uses `wherefore` from
# the PATH, or what WHEREFORE names; ONLY is a pattern of names to which runs are held. Runs go on where
# they were stopped, and completions are kept.
set -euo pipefail
data=$1 work=$2 checkpoint=$3 model=$4 count=${5:-60} tokens=${6:-1500}
wherefore=${WHEREFORE:-wherefore} only=${ONLY:-.}
mkdir -p "$work/configs"
[ -d "$work/freebase" ] || "$wherefore" load "$data/freebase/triples.tsv" --out "$work/freebase" --quiet

retrieve="kind = \"qr-gat\"
model = \"$checkpoint\""
alone='kind = "candidates"'
asked="kind = \"single-call\"
evidence_tokens = $tokens"

run() { # NAME SELECT CONFIDENCE REASON [TOP]
    [[ $1 =~ $only ]] || return 0
    printf '%s\n[retrieve]\n%s\n[select]\n%s\n[organize]\nkind = "triples"\nconfidence = %s\n[reason]\n%s\n' \
        "${5:-}" "$retrieve" "$2" "$3" "$4" > "$work/configs/$1.toml"
    printf '\n== %s\n' "$1"
    "$wherefore" eval --graph "$work/freebase" --questions "$data/freebase/webqsp_test.jsonl" \
        --config "$work/configs/$1.toml" --sample "$count" --seed 0 --out "$work/runs/$1" --quiet |
        grep -E '^ +(hit@1|f1|hit) |tokens|^total'
}

top='kind = "top-k"
k = 100'
adaptive='kind = "nucleus"'
llm="llm = \"$model\""
run without-llm "$top" true "$alone"
run top-k-confidence "$top" true "$asked" "$llm"
run top-k-plain "$top" false "$asked" "$llm"
run adaptive-confidence "$adaptive" true "$asked" "$llm"
run adaptive-plain "$adaptive" false "$asked" "$llm"
run without-evidence "$top" true "$asked
evidence = false" "$llm
ungrounded = \"mark\""
