#!/usr/bin/env bash
# Weights of the reader: those that are shipped, fitted on all visible questions, and one file for
# each graph left out.
#
#   experiments/read-weights.sh DATA WORK [all | geoquery | spider | sample | metaqa | freebase | wc2014]
#
# DATA is the folder of benchmarks, WORK a folder for graphs and weights. Uses `wherefore` from the
# PATH, or what WHEREFORE names. Begins with `experiments/reading/start.toml`, weights set by hand.
# Writes WORK/weights-NAME.toml, NAME being what was left out (`all`: nothing); measure it with
# WEIGHTS=… experiments/read.sh DATA WORK NAME. Questions: GeoQuery train and dev, Spider, the sample
# graph's dev and handwritten parts (each counted twice), and of the benchmarks without classes 300
# of each of MetaQA's qa_dev files, up to 200 of each valid part of PathQuestion and WC2014, and 150
# each of WebQSP's and of the pooled training questions over Freebase, those without a test part.
# PathQuestion comes from Freebase too: the two are left out together. MATCHER names one that has
# seen none of these questions (`experiments/matcher.sh`, `families`): weights are fitted with it.
set -euo pipefail
data=$1 work=$2 leave=${3:-all} wherefore=${WHEREFORE:-wherefore}
here=$(cd "$(dirname "$0")/.." && pwd)
mkdir -p "$work"

graph() { # NAME FILE [OPTIONS]
    [ -d "$work/$1" ] || "$wherefore" load "$2" "${@:3}" --out "$work/$1" --quiet
}
lines() { # COUNT FILE: so many of a file, the same ones each time
    local drawn=$work/learn-$(basename "$(dirname "$2")")-$(basename "$2")
    shuf -n "$1" --random-source=<(yes) "$2" > "$drawn"
    echo "$drawn"
}
on=()
learn() { # GROUP GRAPH QUESTIONS
    [ "$1" = "$leave" ] || on+=(--on "$work/$2" "$3")
}

graph geo "$data/geoquery/geo.ttl"
for name in car_1 concert_singer museum_visit battle_death orchestra tvshow; do
    graph "$name" "$data/spider/$name.ttl"
done
if [ ! -d "$work/world" ]; then
    xz -dc "$here/data/sample/world.ttl.xz" > "$work/world.ttl"
    graph world "$work/world.ttl"
fi
graph metaqa "$data/metaqa/kb.txt" --format pipe
for kb in 2H-kb 3H-kb PQL2-KB PQL3-KB; do
    graph "$kb" "$data/pathquestion/$kb.txt" --format tsv
done
graph wc2014 "$data/wc2014/WC2014.txt" --format tsv

for _ in 1 2; do
    learn geoquery geo "$data/geoquery/train.jsonl"
    learn geoquery geo "$data/geoquery/dev.jsonl"
    for name in car_1 concert_singer museum_visit battle_death orchestra tvshow; do
        learn spider "$name" "$data/spider/$name.jsonl"
    done
    learn sample world "$here/data/sample/dev.jsonl"
    learn sample world "$here/data/sample/handwritten.jsonl"
done
for hops in 1 2 3; do
    learn metaqa metaqa "$(lines 300 "$data/metaqa/$hops-hop/qa_dev.txt")"
done
for of in PQ-2H:2H-kb PQ-3H:3H-kb PQL-2H:PQL2-KB PQL-3H:PQL3-KB; do
    learn freebase "${of#*:}" "$(lines 200 "$data/pathquestion/${of%:*}.valid.txt")"
done
graph freebase "$data/freebase/triples.tsv"
grep -v '"split": \[[^]]*"test"' "$data/freebase/wq_cwq_train.jsonl" > "$work/wq_cwq_train.jsonl"
for file in "$data/freebase/webqsp_train.jsonl" "$work/wq_cwq_train.jsonl"; do
    learn freebase freebase "$(lines 150 "$file")"
done
for part in P1 P2 C; do
    learn wc2014 wc2014 "$(lines 200 "$data/wc2014/WC-$part.valid.txt")"
done
config=()
if [ -n "${MATCHER:-}" ]; then
    {
        echo '[matchers]'
        for name in geo car_1 concert_singer museum_visit battle_death orchestra tvshow metaqa \
            2H-kb 3H-kb PQL2-KB PQL3-KB freebase wc2014; do
            echo "$name = \"$(realpath "$MATCHER")\""
        done
    } > "$work/matchers.toml"
    config=(--config "$work/matchers.toml")
fi
"$wherefore" train read "${on[@]}" "${config[@]}" --init "$here/experiments/reading/start.toml" \
    --out "$work/weights-$leave.toml"
