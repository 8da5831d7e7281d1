#!/usr/bin/env bash
# The sample graph's questions: the reader, the shipped checkpoint, and how that was trained.
#
#   experiments/sample.sh WORK [train | calibrate]
#
# WORK is a folder for the graph, runs and a checkpoint; `calibrate` writes WORK/confidence.toml, what
# lies in the shipped checkpoint, from all validation questions, those among them that paths cannot
# answer. Uses `wherefore` from the PATH, or what
# WHEREFORE names. Choices were made on valid.jsonl and dev.jsonl; test.jsonl and handwritten.jsonl
# are measured here alone. The network learns paths and conjunctions: counts, comparisons and
# superlatives are no triples to find.
set -euo pipefail
work=$1 wherefore=${WHEREFORE:-wherefore}
sample=$(cd "$(dirname "$0")/../data/sample" && pwd)
mkdir -p "$work"
[ -d "$work/world" ] || "$wherefore" load "$sample/world.ttl.xz" --out "$work/world" --quiet
for part in train valid test; do
    grep -E '"kind": "(one|two|three|and)"' "$sample/$part.jsonl" > "$work/$part.jsonl"
done

if [ "${2:-}" = train ]; then
    "$wherefore" train gnn2r --graph "$work/world" --questions "$work/train.jsonl" \
        --valid "$work/valid.jsonl" --out "$work/checkpoint" --set epochs=8 --set patience=3 \
        --set neighbourhood.hops=3 --set neighbourhood.max_entities=400 --set sizes.hidden=64 \
        --set optimiser.learning_rate=0.001 --set answering.trails.max_length=3 \
        --set sentences.hidden=64 --set sentences.epochs=8 --set sentences.margin=0.1
fi

if [ "${2:-}" = calibrate ]; then
    for part in valid dev; do
        rm -rf "$work/runs/calibrate-$part"
        "$wherefore" eval --graph "$work/world" --questions "$sample/$part.jsonl" --linked --precision 0 \
            --method gnn2r --model "$sample/checkpoint" --out "$work/runs/calibrate-$part" --quiet > /dev/null
    done
    "$wherefore" calibrate "$work"/runs/calibrate-{valid,dev} --out "$work/confidence.toml"
    exit
fi

run() { # NAME QUESTIONS [OPTIONS]
    printf '\n== %s\n' "$1"
    rm -rf "$work/runs/$1"
    "$wherefore" eval --graph "$work/world" --questions "$2" --out "$work/runs/$1" --linked --quiet \
        "${@:3}" | grep -E '^ +(hit@1|f1|hit) |^total|^ +abstained|^by kind' || true
    # by kind; what cannot be answered counts as right where nothing was answered
    python3 - "$2" "$work/runs/$1/answers.jsonl" <<'PY'
import collections, json, sys
gold = {q["id"]: q for q in map(json.loads, open(sys.argv[1], encoding="utf-8"))}
right, count = collections.Counter(), collections.Counter()
for line in open(sys.argv[2], encoding="utf-8"):
    line = json.loads(line)
    question = gold[line["id"]]
    names = {a if isinstance(a, str) else a["name"] for a in question["answers"]}
    given = [a["name"] for a in line["answers"]]
    kind = question["kind"]
    count[kind] += 1
    right[kind] += (not given) if kind == "unanswerable" else bool(given and given[0] in names)
for kind in count:
    print(f"{kind:14} {right[kind]:4} of {count[kind]:4}  {right[kind] / count[kind]:.3f}")
kinds = [k for k in count if k != "unanswerable"]
print(f"{'Hit@1':14} {sum(right[k] for k in kinds):4} of {sum(count[k] for k in kinds):4}  "
      f"{sum(right[k] for k in kinds) / sum(count[k] for k in kinds):.3f}")
PY
}
run read-test "$sample/test.jsonl" --method read
run read-handwritten "$sample/handwritten.jsonl" --method read
run trained-test "$work/test.jsonl" --model "$sample/checkpoint"
run trained-handwritten "$sample/handwritten.jsonl" --model "$sample/checkpoint"
for part in test handwritten; do
    run "auto-$part" "$sample/$part.jsonl" --model "$sample/checkpoint" --method auto --precision 0
done
