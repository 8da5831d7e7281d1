#!/usr/bin/env bash
# How far the shipped reader's confidences and refusals can be trusted, on test parts.
#
#   experiments/trust.sh DATA WORK
#
# WORK is that of experiments/read.sh, whose graphs are made where they are missing. Asks the test part
# of each benchmark (up to SAMPLE questions, 500) with the shipped weights and matcher, names found in
# the question and nothing refused for being unsure; fits confidences to all graphs but one and holds
# them against that one (`wherefore calibrate`); then makes questions that the graphs cannot answer of
# up to N of each (200) and tells how many are refused at the default threshold
# (experiments/unanswerable.sh). Uses `wherefore` from the PATH, or what WHEREFORE names.
set -euo pipefail
data=$1 work=$2 wherefore=${WHEREFORE:-wherefore} sample=${SAMPLE:-500}
here=$(cd "$(dirname "$0")/.." && pwd)
runs=$work/runs/confidence asked=$work/confidence
mkdir -p "$runs" "$asked"
given=()

graph() { # NAME FILE [OPTIONS]
    [ -d "$work/$1" ] || "$wherefore" load "${@:2}" --out "$work/$1" --quiet
}
ask() { # GROUP NAME GRAPH QUESTIONS
    cp "$here/configs/read.toml" "$asked/$1.toml"
    [ -f "$runs/$2/metrics.json" ] || {
        rm -rf "$runs/$2"
        "$wherefore" eval --graph "$work/$3" --questions "$4" --config "$asked/$1.toml" --linked \
            --precision 0 --sample "$sample" --out "$runs/$2" --quiet > /dev/null
    }
    given+=("$1=$runs/$2")
}

graph geo "$data/geoquery/geo.ttl"
cat "$data/geoquery/train.jsonl" "$data/geoquery/dev.jsonl" > "$asked/geoquery.jsonl"
ask geoquery geoquery geo "$asked/geoquery.jsonl"
for name in car_1 concert_singer museum_visit battle_death orchestra tvshow; do
    graph "$name" "$data/spider/$name.ttl"
    ask spider "spider-$name" "$name" "$data/spider/$name.jsonl"
done
if [ ! -d "$work/world" ]; then
    xz -dc "$here/data/sample/world.ttl.xz" > "$work/world.ttl"
    graph world "$work/world.ttl"
fi
ask sample sample world "$here/data/sample/test.jsonl"
graph metaqa "$data/metaqa/kb.txt" --format pipe
for hops in 1 2 3; do ask metaqa "metaqa-$hops" metaqa "$data/metaqa/$hops-hop/qa_test.txt"; done
graph wc2014 "$data/wc2014/WC2014.txt" --format tsv
for part in P1 P2 C; do ask wc2014 "wc-$part" wc2014 "$data/wc2014/WC-$part.test.txt"; done
for of in PQ-2H:2H-kb PQ-3H:3H-kb PQL-2H:PQL2-KB PQL-3H:PQL3-KB; do
    graph "${of#*:}" "$data/pathquestion/${of#*:}.txt" --format tsv
    ask freebase "${of%:*}" "${of#*:}" "$data/pathquestion/${of%:*}.test.txt"
done
graph freebase "$data/freebase/triples.tsv"
for set in webqsp cwq; do ask freebase "$set" freebase "$data/freebase/${set}_test.jsonl"; done

"$wherefore" calibrate "${given[@]}" --out "$work/trust.toml"
rm -rf "$work/unanswerable"
N=${N:-200} "$here/experiments/unanswerable.sh" "$data" "$work"
