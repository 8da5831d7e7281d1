#!/usr/bin/env bash
# Linking with the gold topics hidden: recall by mention and over one list, questions a second.
#
#   experiments/linking.sh DATA WORK
#
# DATA is the folder of benchmarks, WORK a folder for graphs. Uses `wherefore` from the PATH, or
# what WHEREFORE names. Test parts are measured here and nowhere tuned on; choices were made on
# MetaQA's qa_dev, WebQSP's train part and PathQuestion's valid parts.
set -euo pipefail
data=$1 work=$2 wherefore=${WHEREFORE:-wherefore}
mkdir -p "$work"

graph() { # NAME FILE [OPTIONS]
    [ -d "$work/$1" ] || "$wherefore" load "$data/$2" "${@:3}" --out "$work/$1" --quiet
}
measure() { # GRAPH QUESTIONS
    printf '\n== %s\n' "$2"
    "$wherefore" link "$work/$1" --questions "$data/$2" --quiet
}

graph metaqa metaqa/kb.txt --format pipe
graph freebase freebase/triples.tsv
for hops in 1 2 3; do measure metaqa metaqa/$hops-hop/qa_test.txt; done
measure freebase freebase/webqsp_test.jsonl
measure freebase freebase/cwq_test.jsonl
for set in 2H:2H-kb:PQ-2H 3H:3H-kb:PQ-3H L2:PQL2-KB:PQL-2H L3:PQL3-KB:PQL-3H; do
    IFS=: read -r name kb questions <<< "$set"
    graph "pq-$name" "pathquestion/$kb.txt" --format tsv
    measure "pq-$name" "pathquestion/$questions.test.txt"
done
