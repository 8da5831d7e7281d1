#!/usr/bin/env bash
# The training-free walk (`--method walk`): no language model, gold topics, and for MetaQA also with
# the topics hidden.
#
#   experiments/walk.sh DATA WORK
#
# DATA is the folder of benchmarks, WORK a folder for graphs and runs. Uses `wherefore` from the
# PATH, or what WHEREFORE names. Constants were chosen on 300 questions of each of MetaQA's qa_dev
# files, words for kinship on PathQuestion's valid parts; the test parts are measured here and
# nowhere tuned on.
set -euo pipefail
data=$1 work=$2 wherefore=${WHEREFORE:-wherefore}
mkdir -p "$work"

graph() { # NAME FILE [OPTIONS]
    [ -d "$work/$1" ] || "$wherefore" load "$data/$2" "${@:3}" --out "$work/$1" --quiet
}
run() { # NAME GRAPH QUESTIONS [OPTIONS]
    printf '\n== %s\n' "$1"
    "$wherefore" eval --graph "$work/$2" --questions "$data/$3" --method walk --out "$work/runs/$1" \
        --quiet "${@:4}" | grep -E '^ +(hit@1|f1|hit) |^total'
}

graph metaqa metaqa/kb.txt --format pipe
graph freebase freebase/triples.tsv
for hops in 1 2 3; do
    run "metaqa-$hops" metaqa "metaqa/$hops-hop/qa_test.txt"
    run "metaqa-$hops-linked" metaqa "metaqa/$hops-hop/qa_test.txt" --linked
done
for set in PQ-2H:2H-kb PQ-3H:3H-kb PQL-2H:PQL2-KB PQL-3H:PQL3-KB; do
    IFS=: read -r name kb <<< "$set"
    graph "$kb" "pathquestion/$kb.txt" --format tsv
    run "$name" "$kb" "pathquestion/$name.test.txt"
done
run webqsp freebase freebase/webqsp_test.jsonl
