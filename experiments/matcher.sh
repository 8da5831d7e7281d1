#!/usr/bin/env bash
# The matcher that is shipped, and those that have not seen one family of questions.
#
#   experiments/matcher.sh DATA MINILM MPNET WORK [FOLD…]
#
# DATA is the folder of benchmarks, MINILM and MPNET folders of all-MiniLM-L6-v2 and
# all-mpnet-base-v2 (config, vocabulary, weights), WORK a folder for what is made. FOLD: `all`, or
# what is left out, joined by `+` (`families`: all graphs of the benchmarks); without one, these two.
# Writes WORK/matcher.safetensors (copy it to crates/model/data/) and
# WORK/matcher-without-FOLD.safetensors. PYTHON names an interpreter with torch, transformers, numpy
# and safetensors. Three minutes for each fold on a graphics card; hours without. Seeds are fixed;
# sums on a graphics card are not the same to the last bit from run to run. Drafts reworded by a
# language model, which changed nothing: drafts.py, then reword.py, and train again.
set -euo pipefail
data=$1 minilm=$2 mpnet=$3 work=$4 python=${PYTHON:-python3}
shift 4
folds=(${@:-all families})
here=$(cd "$(dirname "$0")/.." && pwd)
scripts=$here/experiments/matcher
# sets of texts are walked in the order of their hashes
export PYTHONHASHSEED=0
mkdir -p "$work/students"
data=$(realpath "$data") minilm=$(realpath "$minilm") mpnet=$(realpath "$mpnet") work=$(realpath "$work")
cd "$here"
"$python" "$scripts/evalset.py" "$data" "$here/data/sample" "$work"
"$python" "$scripts/pairs.py" "$data" "$work"
"$python" "$scripts/prepare.py" "$work" "$minilm"
"$python" "$scripts/texts.py" "$data" "$work"
ln -sfn "$mpnet" "$work/mpnet"
for fold in "${folds[@]}"; do
    "$python" "$scripts/final.py" "$work" "$work/students" "$fold"
    name=matcher
    [ "$fold" = all ] || name+=-without-$fold
    "$python" "$scripts/export.py" "$minilm" "$work/students/t2-$fold.safetensors" "$work/$name"
done
