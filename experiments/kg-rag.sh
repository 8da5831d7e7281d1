#!/usr/bin/env bash
# KG-RAG with a small language model on MetaQA: the method, its relations-first form and its three
# baselines on the same questions, by number of hops.
#
#   experiments/kg-rag.sh DATA WORK MODEL.gguf [QUESTIONS]
#
# DATA is the folder of benchmarks, WORK a folder for graphs and runs; 40 questions of each hop count,
# seed 0, unless more are asked for. Uses `wherefore` from the PATH, or what WHEREFORE names; ONLY is a
# pattern of names (`2-kg-rag`) to which runs are held. Runs go on where they were stopped, and
# completions are kept.
set -euo pipefail
data=$1 work=$2 model=$3 count=${4:-40} wherefore=${WHEREFORE:-wherefore} only=${ONLY:-.}
mkdir -p "$work/runs"
[ -d "$work/metaqa" ] ||
    "$wherefore" load "$data/metaqa/kb.txt" --format pipe --out "$work/metaqa" --quiet
"$wherefore" index "$work/metaqa" --triples --quiet
for hops in 1 2 3; do
    for method in kg-rag kg-rag-relations llm llm+qd llm+kg; do
        [[ $hops-$method =~ $only ]] || continue
        printf '\n== %s hops, %s\n' "$hops" "$method"
        "$wherefore" eval --graph "$work/metaqa" --questions "$data/metaqa/$hops-hop/qa_test.txt" \
            --method "$method" --llm "$model" --sample "$count" --seed 0 \
            --out "$work/runs/$hops-$method" --quiet |
            grep -E '^ +(hit@1|f1|hit) |text|tokens|calls|^total'
    done
done
