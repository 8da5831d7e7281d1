#!/usr/bin/env bash
# The baseline of docs/results.md: the `overlap` method on the test parts at hand.
#   experiments/overlap.sh DATA OUT     DATA: folder with metaqa/ and freebase/; OUT: new folder
set -euo pipefail
data=$1 out=$2
mkdir -p "$out"
wherefore() { cargo run --release --quiet -- "$@"; }
wherefore load "$data/metaqa/kb.txt" --out "$out/metaqa" --replace
wherefore load "$data/freebase/triples.tsv" --out "$out/freebase" --replace
for hops in 1 2 3; do
  wherefore eval --graph "$out/metaqa" --questions "$data/metaqa/$hops-hop/qa_test.txt" --out "$out/metaqa-$hops-hop"
done
wherefore eval --graph "$out/freebase" --questions "$data/freebase/webqsp_test.jsonl" --out "$out/webqsp"
wherefore report "$out"/metaqa-*-hop "$out/webqsp" --out "$out/report.html"
