#!/usr/bin/env bash
# The reader (`--method read`): no language model, names found in the question.
#
#   experiments/read.sh DATA WORK [SET…]
#
# DATA is the folder of benchmarks, WORK a folder for graphs and runs. Uses `wherefore` from the
# PATH, or what WHEREFORE names; METHOD=similarity measures another method, WEIGHTS a file of weights that
# `experiments/read-weights.sh` wrote, MATCHER another matcher than the built-in one. Prints, for each
# set and kind of question, how many are answered exactly right (the set of answers is the gold
# set), answered otherwise, and refused; for the benchmarks without classes, Hit@1. Sets: geoquery
# spider sample own everyday others metaqa pq wc2014 freebase; all but the last unless some are named.
set -euo pipefail
data=$1 work=$2 wherefore=${WHEREFORE:-wherefore} method=${METHOD:-read}
shift 2
sets=${*:-geoquery spider sample own everyday others metaqa pq wc2014}
mkdir -p "$work"
here=$(cd "$(dirname "$0")/.." && pwd)
config=()
if [ -n "${WEIGHTS:-}${MATCHER:-}" ]; then
    sed -e "${WEIGHTS:+s|^kind = \"read\"|&\nweights = \"$WEIGHTS\"|}" \
        -e "${MATCHER:+s|^matcher = .*|matcher = \"$MATCHER\"|}" \
        "$here/configs/read.toml" > "$work/read-config.toml"
    config=(--config "$work/read-config.toml")
else
    config=(--method "$method")
fi

graph() { # NAME FILE [OPTIONS]
    [ -d "$work/$1" ] || "$wherefore" load "$2" "${@:3}" --out "$work/$1" --quiet
}
ask() { # NAME GRAPH QUESTIONS
    rm -rf "$work/runs/$method/$1"
    "$wherefore" eval --graph "$2" --questions "$3" "${config[@]}" --linked \
        --out "$work/runs/$method/$1" --quiet
}
run() { # NAME GRAPH QUESTIONS
    ask "$1" "$work/$2" "$3" > /dev/null
    python3 "$here/experiments/strict.py" "$1" "$3" "$work/runs/$method/$1"
}
hits() { # NAME GRAPH QUESTIONS
    printf '%s: ' "$1"
    ask "$1" "$work/$2" "$3" | grep -E '^ +(hit@1|f1) |^total' | tr -s ' ' | tr '\n' ' '
    echo
}
world() {
    if [ ! -d "$work/world" ]; then
        xz -dc "$here/data/sample/world.ttl.xz" > "$work/world.ttl"
        graph world "$work/world.ttl"
    fi
}

for set in $sets; do
    case $set in
    geoquery)
        graph geo "$data/geoquery/geo.ttl"
        for part in train train_cased dev dev_cased; do
            run "geoquery-$part" geo "$data/geoquery/$part.jsonl"
        done
        ;;
    spider)
        for name in car_1 concert_singer museum_visit battle_death orchestra tvshow; do
            graph "$name" "$data/spider/$name.ttl"
            run "spider-$name" "$name" "$data/spider/$name.jsonl"
        done
        ;;
    sample)
        world
        for part in handwritten dev test; do
            run "sample-$part" world "$here/data/sample/$part.jsonl"
        done
        ;;
    own) # questions of our own: sixty with forms, sixty without an answer, nonsense, politeness
        world
        graph geo "$data/geoquery/geo.ttl"
        own=$here/experiments/reading
        python3 "$own/gold.py" "$wherefore" "$work/world" "$own/sample.tsv" > "$work/own.jsonl"
        run own-sample world "$work/own.jsonl"
        python3 "$own/gold.py" --none "$own/unanswerable-geo.tsv" > "$work/none.jsonl"
        run own-unanswerable geo "$work/none.jsonl"
        for how in nonsense modifier polite; do
            for from in "sample-test world $here/data/sample/test.jsonl" \
                "geoquery-train geo $data/geoquery/train.jsonl"; do
                read -r name on questions <<< "$from"
                answered=$work/runs/$method/$name
                [ -d "$answered" ] || ask "$name" "$work/$on" "$questions" > /dev/null
                python3 "$own/variants.py" "$how" "$questions" "$answered" 50 1 > "$work/$how.jsonl"
                ask "$how-$name" "$work/$on" "$work/$how.jsonl" > /dev/null
                python3 "$own/compare.py" "$how" "$work/$how.jsonl" "$work/runs/$method/$how-$name"
            done
        done
        ;;
    everyday)
        made=$work/everyday all=$work/runs/$method/everyday
        python3 "$here/experiments/reading/everyday.py" "$made" > /dev/null
        rm -rf "$all" && mkdir -p "$all"
        for file in "$made"/*.ttl; do
            name=$(basename "$file" .ttl)
            graph "$name" "$file"
            ask "everyday-$name" "$work/$name" "$made/$name.jsonl" > /dev/null
            cat "$work/runs/$method/everyday-$name/answers.jsonl" >> "$all/answers.jsonl"
            cat "$made/$name.jsonl" >> "$all/asked.jsonl"
        done
        python3 "$here/experiments/strict.py" everyday "$all/asked.jsonl" "$all"
        ;;
    others) # questions of people who do not know the reader
        for folder in "$here"/experiments/reading/others/*/; do
            name=$(basename "$folder")
            file=$(find "$folder" -type f ! -name about.txt ! -name questions.jsonl)
            graph "others-$name" "$file"
            run "others-$name" "others-$name" "$folder/questions.jsonl"
        done
        ;;
    metaqa)
        graph metaqa "$data/metaqa/kb.txt" --format pipe
        for hops in 1 2 3; do
            hits "metaqa-$hops" metaqa "$data/metaqa/$hops-hop/qa_test.txt"
        done
        ;;
    pq)
        for of in PQ-2H:2H-kb PQ-3H:3H-kb PQL-2H:PQL2-KB PQL-3H:PQL3-KB; do
            graph "${of#*:}" "$data/pathquestion/${of#*:}.txt" --format tsv
            hits "${of%:*}" "${of#*:}" "$data/pathquestion/${of%:*}.test.txt"
        done
        ;;
    wc2014)
        graph wc2014 "$data/wc2014/WC2014.txt" --format tsv
        for part in P1 P2 C; do
            hits "WC-$part" wc2014 "$data/wc2014/WC-$part.test.txt"
        done
        ;;
    freebase)
        graph freebase "$data/freebase/triples.tsv"
        hits webqsp freebase "$data/freebase/webqsp_test.jsonl"
        hits cwq freebase "$data/freebase/cwq_test.jsonl"
        ;;
    esac
done
