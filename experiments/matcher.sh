#!/usr/bin/env bash
# The matcher that is shipped, and those that have not seen one family of questions.
#
#   experiments/matcher.sh DATA MINILM WORK [FOLD…]
#
# DATA is the folder of benchmarks, MINILM a folder of all-MiniLM-L6-v2 (config, vocabulary, weights),
# WORK a folder for what is made. FOLD: `all`, or families that are left out, joined by `+`; without
# one, all five. Writes WORK/matcher-t2.safetensors (copy it to crates/model/data/matcher.safetensors)
# and WORK/matcher-t2-without-FOLD.safetensors. PYTHON names an interpreter with torch, numpy and
# safetensors. Four minutes for each fold on a graphics card; hours without. Seeds are fixed; sums on
# a graphics card are not the same to the last bit from run to run.
set -euo pipefail
data=$1 minilm=$2 work=$3 python=${PYTHON:-python3}
shift 3
folds=(${@:-all freebase geoquery+spider metaqa wc2014})
here=$(cd "$(dirname "$0")/.." && pwd)
scripts=$here/experiments/matcher
mkdir -p "$work/students"
data=$(realpath "$data") minilm=$(realpath "$minilm") work=$(realpath "$work")
cd "$here"
"$python" "$scripts/evalset.py" "$data" "$here/data/sample" "$work"
"$python" "$scripts/pairs.py" "$data" "$work"
"$python" "$scripts/prepare.py" "$work" "$minilm"
for fold in "${folds[@]}"; do
    "$python" "$scripts/final.py" "$work" "$work/students" "$fold"
    name=matcher-t2
    [ "$fold" = all ] || name+=-without-$fold
    "$python" "$scripts/export.py" "$minilm" "$work/students/t2-$fold.safetensors" "$work/$name"
done
