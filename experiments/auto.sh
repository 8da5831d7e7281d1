#!/usr/bin/env bash
# Method `auto`: the reader beside a trained relation-plan, on each benchmark that has questions to
# train on.
#
#   experiments/auto.sh DATA WORK [train] [calibrate] [measure]
#
# All steps unless some are named; `wherefore` from the PATH, or what WHEREFORE names; JOBS trainings
# or runs side by side (1); SAMPLE questions of each part (all). What is there is not made again.
# Trained on training parts, confidences fitted on validation parts (WORK/auto.toml is crates/qa/src/
# auto.toml), measured on test parts with names found in the question and nothing refused for being
# unsure.
set -euo pipefail
data=$1 work=$2 wherefore=${WHEREFORE:-wherefore} jobs=${JOBS:-1} sample=${SAMPLE:-}
shift 2
steps=${*:-train calibrate measure}
has() { [[ " $steps " == *" $1 "* ]]; }
mkdir -p "$work/models" "$work/runs" "$work/questions"
questions=$work/questions

graph() { # NAME FILE [OPTIONS]
    [ -d "$work/$1" ] || "$wherefore" load "$data/$2" "${@:3}" --out "$work/$1" --quiet
}
wait_for() { while [ "$(jobs -rp | wc -l)" -ge "$jobs" ]; do wait -n; done; }
train() { # GRAPH OPTIONS: every tenth training question judges
    [ -d "$work/models/$1" ] && [ ! -d "$work/models/$1.training" ] && return 0
    wait_for
    "$wherefore" train relation-plan --graph "$work/$1" --out "$work/models/$1" "${@:2}" \
        > "$work/models/$1.log" 2>&1 &
}
ask() { # NAME GRAPH QUESTIONS METHOD
    [ -f "$work/runs/$1-$4/metrics.json" ] && return 0
    wait_for
    rm -rf "$work/runs/$1-$4"
    local model=(--model "$work/models/$2")
    [ "$4" = read ] && model=()
    "$wherefore" eval --graph "$work/$2" --questions "$3" --linked --method "$4" --precision 0 \
        "${model[@]}" --out "$work/runs/$1-$4" ${sample:+--sample "$sample"} --quiet > /dev/null &
}

graph metaqa metaqa/kb.txt --format pipe
graph wc2014 wc2014/WC2014.txt
for kb in 2H-kb 3H-kb PQL2-KB PQL3-KB; do graph "$kb" "pathquestion/$kb.txt"; done
graph freebase freebase/triples.tsv
of_set=(PQ-2H:2H-kb PQ-3H:3H-kb PQL-2H:PQL2-KB PQL-3H:PQL3-KB)

# MetaQA: every tenth line of qa_dev is left out of training, and a part of it judges
awk 'NR % 3 == 1' "$data/metaqa/1-hop/qa_train_10k.txt" > "$questions/metaqa-1.txt"
awk 'NR % 20 == 0' "$data/metaqa/1-hop/qa_dev.txt" > "$questions/metaqa-valid-1.txt"
for hops in 2 3; do
    awk -v n=$((4 * (hops - 1))) 'NR % 10 != 0 && NR % n == 1' "$data/metaqa/$hops-hop/qa_dev.txt" \
        > "$questions/metaqa-$hops.txt"
    awk 'NR % 30 == 0' "$data/metaqa/$hops-hop/qa_dev.txt" > "$questions/metaqa-valid-$hops.txt"
done
# Freebase: the last questions of the training file are left out
head -n -1000 "$data/freebase/wq_cwq_train.jsonl" > "$questions/freebase.jsonl"
tail -n 1000 "$data/freebase/wq_cwq_train.jsonl" > "$questions/freebase-valid.jsonl"

if has train; then
    train freebase --questions "$questions/freebase.jsonl" --valid "$questions/freebase-valid.jsonl" \
        --set growth.max_length=4 --set epochs=10 --set patience=3
    train metaqa --questions "$questions"/metaqa-[123].txt --valid "$questions"/metaqa-valid-[123].txt \
        --set epochs=8 --set valid_questions=1000
    train wc2014 --questions "$data"/wc2014/WC-{P1,P2,C}.train.txt \
        --valid "$data"/wc2014/WC-{P1,P2,C}.valid.txt --set epochs=6 --set valid_questions=1000
    for of in "${of_set[@]}"; do
        train "${of#*:}" --questions "$data/pathquestion/${of%:*}.train.txt" \
            --valid "$data/pathquestion/${of%:*}.valid.txt" --set epochs=10
    done
    wait
fi

each() { # PART: of every set, name, graph and questions of its valid or test part
    local metaqa wc
    for hops in 1 2 3; do
        metaqa=$data/metaqa/$hops-hop/qa_test.txt
        [ "$1" = valid ] && metaqa=$questions/metaqa-valid-$hops.txt
        echo "metaqa-$hops-$1 metaqa $metaqa"
    done
    for wc in P1 P2 C; do echo "wc-$wc-$1 wc2014 $data/wc2014/WC-$wc.$1.txt"; done
    for of in "${of_set[@]}"; do
        echo "${of%:*}-$1 ${of#*:} $data/pathquestion/${of%:*}.$1.txt"
    done
    if [ "$1" = valid ]; then
        echo "freebase-valid freebase $questions/freebase-valid.jsonl"
    else
        for set in webqsp cwq; do echo "$set-test freebase $data/freebase/${set}_test.jsonl"; done
    fi
}

if has calibrate; then
    while read -r name graph file; do ask "$name" "$graph" "$file" relation-plan; done < <(each valid)
    wait
    for graph in metaqa wc2014 2H-kb 3H-kb PQL2-KB PQL3-KB freebase; do
        runs=()
        while read -r name of _; do
            [ "$of" = "$graph" ] && runs+=("$graph=$work/runs/$name-relation-plan")
        done < <(each valid)
        "$wherefore" calibrate "${runs[@]}" --out "$work/models/$graph/confidence.toml"
    done
    runs=()
    while read -r name graph file; do
        ask "$name" "$graph" "$file" auto
        runs+=("$graph=$work/runs/$name-auto")
    done < <(each valid)
    wait
    "$wherefore" calibrate "${runs[@]}" --out "$work/auto.toml"
fi

if has measure; then
    while read -r name graph file; do
        for method in read relation-plan auto; do ask "$name" "$graph" "$file" "$method"; done
    done < <(each test)
    wait
fi
