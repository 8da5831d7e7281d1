#!/usr/bin/env bash
# Method `auto`: the reader beside a trained relation-plan, or what BESIDE names (gnn2r), on each
# benchmark that has questions to train on.
#
#   experiments/auto.sh DATA WORK [train] [calibrate] [measure]
#
# All steps unless some are named; `wherefore` from the PATH, or what WHEREFORE names; JOBS trainings
# or runs side by side (1); DEVICE where networks are trained (cpu); SAMPLE questions of each part (all);
# ONLY a pattern of graphs to which it is held (all). What is there is not made again.
# Trained on training parts, confidences fitted on validation parts (WORK/auto.toml is crates/qa/src/
# auto.toml), measured on test parts with names found in the question and nothing refused for being
# unsure.
set -euo pipefail
data=$1 work=$2 wherefore=${WHEREFORE:-wherefore} jobs=${JOBS:-1} sample=${SAMPLE:-}
beside=${BESIDE:-relation-plan} only=${ONLY:-.}
models=$work/models-$beside
# `auto` is another beside each
suffix=; [ "$beside" = relation-plan ] || suffix=-$beside
shift 2
steps=${*:-train calibrate measure}
has() { [[ " $steps " == *" $1 "* ]]; }
mkdir -p "$models" "$work/runs" "$work/questions"
questions=$work/questions

graph() { # NAME FILE [OPTIONS]
    [[ $1 =~ $only ]] || return 0
    [ -d "$work/$1" ] || "$wherefore" load "$data/$2" "${@:3}" --out "$work/$1" --quiet
}
wait_for() { while [ "$(jobs -rp | wc -l)" -ge "$jobs" ]; do wait -n; done; }
train() { # GRAPH OPTIONS -- of relation-plan -- of gnn2r
    [[ $1 =~ $only ]] || return 0
    [ -d "$models/$1" ] && [ ! -d "$models/$1.training" ] && return 0
    wait_for
    local graph=$1 part=common of=() common=() plan=() gnn2r=()
    shift
    for of in "$@"; do
        case $part:$of in
            common:--) part=plan ;;
            plan:--) part=gnn2r ;;
            common:*) common+=("$of") ;;
            plan:*) plan+=("$of") ;;
            *) gnn2r+=(--set "$of") ;;
        esac
    done
    [ "$beside" = gnn2r ] && plan=("${gnn2r[@]}" --set sizes.hidden=128 --set batch_questions=32)
    "$wherefore" train "$beside" --graph "$work/$graph" --out "$models/$graph" "${common[@]}" \
        --device "${DEVICE:-cpu}" "${plan[@]}" > "$models/$graph.log" 2>&1 &
}
ask() { # NAME GRAPH QUESTIONS METHOD
    [[ $2 =~ $only ]] || return 0
    local run=$work/runs/$1-$4
    [ "$4" = auto ] && run+=$suffix
    [ -f "$run/metrics.json" ] && return 0
    wait_for
    rm -rf "$run"
    local model=(--model "$models/$2")
    [ "$4" = read ] && model=()
    "$wherefore" eval --graph "$work/$2" --questions "$3" --linked --method "$4" --precision 0 \
        "${model[@]}" --out "$run" ${sample:+--sample "$sample"} --quiet > /dev/null &
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
        -- --set growth.max_length=4 --set epochs=10 --set patience=3 \
        -- neighbourhood.hops=2 answering.trails.max_length=2 answering.candidates=10 \
        sentences.margin=0.1 neighbourhood.max_entities=1000 epochs=4 batch_triples=40000
    train metaqa --questions "$questions"/metaqa-[123].txt --valid "$questions"/metaqa-valid-[123].txt \
        -- --set epochs=8 --set valid_questions=1000 \
        -- neighbourhood.hops=3 answering.trails.max_length=3 answering.candidates=30 \
        sentences.margin=0.1 neighbourhood.max_entities=800 epochs=4 batch_triples=40000
    train wc2014 --questions "$data"/wc2014/WC-{P1,P2,C}.train.txt \
        --valid "$data"/wc2014/WC-{P1,P2,C}.valid.txt \
        -- --set epochs=6 --set valid_questions=1000 \
        -- neighbourhood.hops=2 answering.trails.max_length=2 answering.candidates=20 \
        sentences.margin=0.1 epochs=4
    for of in "${of_set[@]}"; do
        hops=${of%%H:*} hops=${hops: -1}
        train "${of#*:}" --questions "$data/pathquestion/${of%:*}.train.txt" \
            --valid "$data/pathquestion/${of%:*}.valid.txt" \
            -- --set epochs=10 \
            -- neighbourhood.hops="$hops" answering.trails.max_length="$hops" \
            answering.candidates=5 sentences.margin=0.1 epochs=16 patience=4
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
    while read -r name graph file; do ask "$name" "$graph" "$file" "$beside"; done < <(each valid)
    wait
    for graph in metaqa wc2014 2H-kb 3H-kb PQL2-KB PQL3-KB freebase; do
        [[ $graph =~ $only ]] || continue
        runs=()
        while read -r name of _; do
            [ "$of" = "$graph" ] && runs+=("$graph=$work/runs/$name-$beside")
        done < <(each valid)
        "$wherefore" calibrate "${runs[@]}" --out "$models/$graph/confidence.toml"
    done
    runs=()
    while read -r name graph file; do
        ask "$name" "$graph" "$file" auto
        [[ $graph =~ $only ]] && runs+=("$graph=$work/runs/$name-auto$suffix")
    done < <(each valid)
    wait
    "$wherefore" calibrate "${runs[@]}" --out "$work/auto.toml"
fi

if has measure; then
    while read -r name graph file; do
        for method in read "$beside" auto; do ask "$name" "$graph" "$file" "$method"; done
    done < <(each test)
    wait
fi
