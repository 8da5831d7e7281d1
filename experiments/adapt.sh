#!/usr/bin/env bash
# `wherefore adapt` on MetaQA, WC2014 and the sample graph, before and after.
#
#   experiments/adapt.sh DATA WORK [metaqa | wc2014 | sample]…
#
# DATA is the folder of benchmarks, WORK the folder of graphs and weights that
# `experiments/read-weights.sh` made: begins with WORK/weights-NAME.toml, fitted without that graph's
# questions. Adapts without questions, and with 510 of the training or dev parts; asks the test parts (1,000
# questions of each of MetaQA's) before and after, and prints Hit@1 and F1, for the sample graph how
# many are exactly right. MATCHER names a matcher that has not seen the graph's questions; LLM a
# language model that rewords DRAFTS (300) drafts, which is one more column. Uses `wherefore` from the
# PATH, or what WHEREFORE names.
set -euo pipefail
data=$1 work=$2 wherefore=${WHEREFORE:-wherefore}
shift 2
here=$(cd "$(dirname "$0")/.." && pwd)
matcher=${MATCHER:-matcher}

config() { # WEIGHTS: a configuration of the reader
    sed -e "s|^kind = \"read\"|&\nweights = \"$1\"|" -e "s|^matcher = .*|matcher = \"$matcher\"|" \
        "$here/configs/read.toml" > "$work/adapt.toml"
}
ask() { # LABEL WEIGHTS GRAPH QUESTIONS
    config "$2"
    rm -rf "$work/runs/adapt"
    printf '%s: ' "$1"
    "$wherefore" eval --graph "$work/$3" --questions "$4" --config "$work/adapt.toml" --linked \
        --out "$work/runs/adapt" --quiet | grep -E '^ +(hit@1|f1) |^total' | tr -s ' ' | tr '\n' ' '
    echo
    if [ "$3" = world ]; then
        python3 "$here/experiments/strict.py" "$1" "$4" "$work/runs/adapt" | tail -2
    fi
}
some() { # COUNT FILE: so many of a file, the same ones each time
    local drawn=$work/adapt-$(basename "$(dirname "$2")")-$(basename "$2")
    shuf -n "$1" --random-source=<(yes) "$2" > "$drawn"
    echo "$drawn"
}
compare() { # NAME GRAPH TRAIN TEST…
    local name=$1 graph=$2 train=$3 start=$work/weights-$1.toml
    shift 3
    "$wherefore" adapt "$work/$graph" --init "$start" --set "read.matcher=$matcher" \
        --out "$work/adapted-$name"
    "$wherefore" adapt "$work/$graph" --init "$start" --set "read.matcher=$matcher" \
        --questions "$train" --out "$work/adapted-$name-questions"
    if [ -n "${LLM:-}" ]; then
        "$wherefore" adapt "$work/$graph" --init "$start" --set "read.matcher=$matcher" \
            --llm "$LLM" --drafts "${DRAFTS:-300}" --out "$work/adapted-$name-reworded"
    fi
    for test in "$@"; do
        ask "$name $(basename "$test") before" "$start" "$graph" "$test"
        ask "$name $(basename "$test") adapted" "$work/adapted-$name" "$graph" "$test"
        ask "$name $(basename "$test") adapted with questions" "$work/adapted-$name-questions" "$graph" "$test"
        if [ -n "${LLM:-}" ]; then
            ask "$name $(basename "$test") adapted with reworded drafts" "$work/adapted-$name-reworded" "$graph" "$test"
        fi
    done
}

for set in ${*:-metaqa wc2014 sample}; do
    case $set in
    metaqa)
        # of the dev parts, for there are training parts of one hop only
        : > "$work/adapt-metaqa-learn.txt"
        tests=()
        for hops in 1 2 3; do
            cat "$(some 170 "$data/metaqa/$hops-hop/qa_dev.txt")" >> "$work/adapt-metaqa-learn.txt"
            tests+=("$(some 1000 "$data/metaqa/$hops-hop/qa_test.txt")")
        done
        compare metaqa metaqa "$work/adapt-metaqa-learn.txt" "${tests[@]}"
        ;;
    wc2014)
        : > "$work/adapt-wc2014-learn.txt"
        for part in P1 P2 C; do
            cat "$(some 170 "$data/wc2014/WC-$part.train.txt")" >> "$work/adapt-wc2014-learn.txt"
        done
        compare wc2014 wc2014 "$work/adapt-wc2014-learn.txt" \
            "$data"/wc2014/WC-{P1,P2,C}.test.txt
        ;;
    sample)
        compare sample world "$here/data/sample/dev.jsonl" "$here/data/sample/handwritten.jsonl" \
            "$here/data/sample/test.jsonl"
        ;;
    *)
        echo "there is no set $set" >&2
        exit 2
        ;;
    esac
done
