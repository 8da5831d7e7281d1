#!/usr/bin/env bash
# The reader (`--method read`): no training, no language model, names found in the question.
#
#   experiments/read.sh DATA WORK
#
# DATA is the folder of benchmarks, WORK a folder for graphs and runs. Uses `wherefore` from the
# PATH, or what WHEREFORE names; METHOD=walk measures another method. Prints, for each set and kind of question, how many are answered
# exactly right (the set of answers is the gold set), answered otherwise, and refused.
set -euo pipefail
data=$1 work=$2 wherefore=${WHEREFORE:-wherefore} method=${METHOD:-read}
mkdir -p "$work"
here=$(cd "$(dirname "$0")/.." && pwd)

graph() { # NAME FILE
    [ -d "$work/$1" ] || "$wherefore" load "$2" --out "$work/$1" --quiet
}
run() { # NAME GRAPH QUESTIONS
    rm -rf "$work/runs/$method/$1"
    "$wherefore" eval --graph "$work/$2" --questions "$3" --method "$method" --linked \
        --out "$work/runs/$method/$1" --quiet > /dev/null
    python3 "$here/experiments/strict.py" "$1" "$3" "$work/runs/$method/$1"
}

graph geo "$data/geoquery/geo.ttl"
for set in train train_cased dev dev_cased; do
    run "geoquery-$set" geo "$data/geoquery/$set.jsonl"
done
for name in car_1 concert_singer museum_visit battle_death orchestra tvshow; do
    graph "$name" "$data/spider/$name.ttl"
    run "spider-$name" "$name" "$data/spider/$name.jsonl"
done
if [ ! -d "$work/world" ]; then
    xz -dc "$here/data/sample/world.ttl.xz" > "$work/world.ttl"
    graph world "$work/world.ttl"
fi
for set in handwritten dev test; do
    run "sample-$set" world "$here/data/sample/$set.jsonl"
done
