#!/usr/bin/env bash
# Logical forms on Freebase: every gold form of WebQSP, CWQ and GrailQA read, written, translated to
# SPARQL and run; then the relation retriever trained, and the recall of the three aspects.
#
#   experiments/forms.sh DATA WORK [SET…]
#   SET: forms relations tuned; all but tuned if none
#
# DATA is the folder of benchmarks, WORK a folder for graphs and checkpoints. Uses `wherefore` from
# the PATH, or what WHEREFORE names; DEVICE is where to compute (`cpu` if nothing is said), ENCODER the
# BERT that `tuned` fine-tunes (`minilm`), RATES the learning rates it tries, of which the best on
# validation questions counts. The retriever learns from WebQSP's and CWQ's training questions, those
# that also stand in a test part left out; choices were made on a tenth of them.
set -euo pipefail
data=$1/freebase work=$2 wherefore=${WHEREFORE:-wherefore} device=${DEVICE:-cpu}
shift 2
sets=${*:-forms relations}
mkdir -p "$work"
has() { [[ " $sets " == *" $1 "* ]]; }
[ -d "$work/freebase" ] || "$wherefore" load "$data/triples.tsv" --out "$work/freebase" --quiet

! has forms || for file in webqsp_train webqsp_test cwq_test grailqa_dev_1000; do
    printf '\n== forms of %s\n' "$file"
    # NOW is what the benchmarks' own SPARQL takes for it
    "$wherefore" logic "$work/freebase" --questions "$data/$file.jsonl" --now 2015-08-10
done

[ -f "$work/relations.train.jsonl" ] || python3 - "$data" "$work" <<'PY'
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
train() { # NAME [OPTIONS]
    [ -d "$work/$1" ] && [ ! -d "$work/$1.training" ] && return 0
    printf '\n== train %s\n' "$1"
    "$wherefore" train relations --graph "$work/freebase" --questions "$work/relations.train.jsonl" \
        --valid "$work/relations.valid.jsonl" --out "$work/$1" --device "$device" "${@:2}"
}
recall() { # FILE [OPTIONS]
    printf '\n== aspects of %s %s\n' "$1" "${*:2}"
    "$wherefore" logic "$work/freebase" --questions "$data/$1.jsonl" --recall "${@:2}"
}
if has relations; then
    train relations
    for file in webqsp_test cwq_test; do
        recall "$file"
        recall "$file" --model "$work/relations"
    done
fi
if has tuned; then
    for rate in ${RATES:-5e-5 1e-4 2e-4}; do
        train "tuned-$rate" --encoder "${ENCODER:-minilm}" --set tune.epochs=6 --set tune.negatives=1024 \
            --set "tune.optimiser.learning_rate=$rate" --set pairs.epochs=0
        for file in webqsp_test cwq_test; do
            recall "$file" --model "$work/tuned-$rate"
        done
    done
fi
