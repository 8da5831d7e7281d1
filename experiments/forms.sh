#!/usr/bin/env bash
# Logical forms on Freebase: every gold form of WebQSP, CWQ and GrailQA read, written, translated to
# SPARQL and run; then the relation retriever trained, and the recall of the three aspects.
#
#   experiments/forms.sh DATA WORK
#
# DATA is the folder of benchmarks, WORK a folder for graphs and checkpoints. Uses `wherefore` from
# the PATH, or what WHEREFORE names. The retriever learns from WebQSP's and CWQ's training
# questions, those that also stand in a test part left out; choices were made on a tenth of them.
set -euo pipefail
data=$1/freebase work=$2 wherefore=${WHEREFORE:-wherefore}
mkdir -p "$work"
[ -d "$work/freebase" ] || "$wherefore" load "$data/triples.tsv" --out "$work/freebase" --quiet

for file in webqsp_train webqsp_test cwq_test grailqa_dev_1000; do
    printf '\n== forms of %s\n' "$file"
    # NOW is what the benchmarks' own SPARQL takes for it
    "$wherefore" logic "$work/freebase" --questions "$data/$file.jsonl" --now 2015-08-10
done

python3 - "$data" "$work" <<'PY'
import json, random, sys
data, work = sys.argv[1:]
def lines(name): return [json.loads(line) for line in open(f"{data}/{name}.jsonl")]
def text(q): return "".join(c for c in q["question"].lower() if c.isalnum())
tests = {text(q) for name in ("webqsp_test", "cwq_test") for q in lines(name)}
kept, seen = [], set()
for q in lines("webqsp_train") + [q for q in lines("wq_cwq_train") if "train" in q["split"]]:
    if text(q) not in tests and text(q) not in seen:
        seen.add(text(q))
        kept.append(q)
for i, q in enumerate(kept):
    q["id"] = f"{i}"
    q.pop("i", None)
random.Random(0).shuffle(kept)
cut = len(kept) // 10
for name, part in (("valid", kept[:cut]), ("train", kept[cut:])):
    with open(f"{work}/relations.{name}.jsonl", "w") as out:
        out.writelines(json.dumps(q) + "\n" for q in part)
print(f"\n{len(kept) - cut} questions to learn from, {cut} to choose by")
PY
[ -d "$work/relations" ] || "$wherefore" train relations --graph "$work/freebase" \
    --questions "$work/relations.train.jsonl" --valid "$work/relations.valid.jsonl" --out "$work/relations"
for file in webqsp_test cwq_test; do
    printf '\n== aspects of %s, relations by likeness of words\n' "$file"
    "$wherefore" logic "$work/freebase" --questions "$data/$file.jsonl" --recall
    printf '\n== aspects of %s, relations by the trained retriever\n' "$file"
    "$wherefore" logic "$work/freebase" --questions "$data/$file.jsonl" --recall --model "$work/relations"
done
