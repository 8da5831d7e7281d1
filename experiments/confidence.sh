#!/usr/bin/env bash
# How sure the reader is: fits crates/qa/src/read/confidence.toml.
#
#   experiments/confidence.sh DATA WORK MATCHERS
#
# DATA is the folder of benchmarks; WORK that of experiments/read.sh, with the graphs, and with the
# weights that experiments/read-weights.sh wrote for geoquery, spider, sample, metaqa and wc2014, each
# without that graph's questions; MATCHERS a folder with what experiments/matcher.sh made for the folds
# geoquery+spider, metaqa, wc2014 and freebase. Asks 200 to 500 questions of each benchmark with
# weights and a matcher that have not seen its graph; over Freebase, with the shipped weights and
# questions that they have not seen. Then some that experiments/unanswerable.sh makes
# of them: about one of eight. Uses `wherefore` from the PATH, or what WHEREFORE names. Tells how
# well each graph's confidences follow from the others', and writes WORK/confidence.toml.
set -euo pipefail
data=$1 work=$2 matchers=$3 wherefore=${WHEREFORE:-wherefore}
here=$(cd "$(dirname "$0")/.." && pwd)
runs=$work/runs/confidence asked=$work/confidence
mkdir -p "$runs" "$asked"
given=()

config() { # NAME WEIGHTS MATCHER; WEIGHTS - are the shipped ones
    sed -e "s|^matcher = .*|matcher = \"$3\"|" "$here/configs/read.toml" > "$asked/$1.toml"
    [ "$2" = - ] || sed -i "s|^kind = \"read\"|&\nweights = \"$work/weights-$2.toml\"|" "$asked/$1.toml"
}
ask() { # NAME GRAPH QUESTIONS CONFIG
    [ -f "$runs/$1/metrics.json" ] || rm -rf "$runs/$1"
    [ -d "$runs/$1" ] || "$wherefore" eval --graph "$work/$2" --questions "$3" --config "$asked/$4.toml" \
        --linked --precision 0 --out "$runs/$1" --quiet > /dev/null
    given+=("$4=$runs/$1")
}
some() { # N FILE: always the same
    shuf -n "$1" --random-source=<(yes) "$2"
}

config geoquery geoquery "$matchers/matcher-without-geoquery+spider.safetensors"
config spider spider "$matchers/matcher-without-geoquery+spider.safetensors"
config sample sample matcher
config metaqa metaqa "$matchers/matcher-without-metaqa.safetensors"
config wc2014 wc2014 "$matchers/matcher-without-wc2014.safetensors"
config freebase - "$matchers/matcher-without-freebase.safetensors"

ask geoquery geo "$data/geoquery/train.jsonl" geoquery
ask geoquery-none geo "$work/none.jsonl" geoquery
for name in car_1 concert_singer museum_visit battle_death orchestra tvshow; do
    ask "spider-$name" "$name" "$data/spider/$name.jsonl" spider
done
ask sample world "$here/data/sample/handwritten.jsonl" sample
for hops in 1 2 3; do
    tail -n +400 "$data/metaqa/$hops-hop/qa_dev.txt" > "$asked/later.txt"
    some 300 "$asked/later.txt" > "$asked/metaqa-$hops.txt"
    ask "metaqa-$hops" metaqa "$asked/metaqa-$hops.txt" metaqa
done
for part in P1 P2 C; do
    some 200 "$data/wc2014/WC-$part.train.txt" > "$asked/wc-$part.txt"
    ask "wc-$part" wc2014 "$asked/wc-$part.txt" wc2014
done
for of in PQ-2H:2H-kb PQ-3H:3H-kb PQL-2H:PQL2-KB PQL-3H:PQL3-KB; do
    some 200 "$data/pathquestion/${of%:*}.train.txt" > "$asked/${of%:*}.txt"
    ask "${of%:*}" "${of#*:}" "$asked/${of%:*}.txt" freebase
done
sed -n 600,900p "$data/freebase/webqsp_train.jsonl" > "$asked/webqsp.jsonl"
ask webqsp freebase "$asked/webqsp.jsonl" freebase
sed -n 5000,5300p "$work/wq_cwq_train.jsonl" > "$asked/cwq.jsonl"
ask cwq freebase "$asked/cwq.jsonl" freebase

# and what the graphs cannot answer
made=$work/confidence/unanswerable
PRECISION=0 N=60 MADE=$made "$here/experiments/unanswerable.sh" "$data" "$work" > "$asked/unanswerable.log"
for run in "$made"/*/run-*; do
    name=$(basename "$(dirname "$run")")
    case $name in
        geoquery) group=geoquery ;;
        spider-*) group=spider ;;
        sample) group=sample ;;
        metaqa-*) group=metaqa ;;
        wc-*) group=wc2014 ;;
        *) group=freebase ;;
    esac
    given+=("$group=$run")
done
"$wherefore" calibrate "${given[@]}" --out "$work/confidence.toml"
