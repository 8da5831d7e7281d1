#!/usr/bin/env bash
# QSRAG without a language model: QR-GAT trained on each benchmark, its recall and its answers on the
# test part, and the similarity baseline beside it.
#
#   experiments/qsrag.sh DATA WORK [SET…]          SET: metaqa pq freebase ablations; all if none
#
# DATA is the folder of benchmarks, WORK a folder for graphs, checkpoints and runs. Uses `wherefore`
# from the PATH, or what WHEREFORE names. Choices (neighbourhood, learning rate, weight of positives)
# were made on validation parts: MetaQA's qa_dev lines that training leaves out, PathQuestion's valid
# parts, a seeded tenth of Freebase's training questions. The test parts are measured here alone.
set -euo pipefail
data=$1 work=$2 wherefore=${WHEREFORE:-wherefore}
shift 2
sets=${*:-metaqa pq freebase ablations}
mkdir -p "$work"

graph() { # NAME FILE [OPTIONS]
    [ -d "$work/$1" ] || "$wherefore" load "$data/$2" "${@:3}" --out "$work/$1" --quiet
}
train() { # NAME GRAPH [OPTIONS]
    [ -d "$work/models/$1" ] && [ ! -d "$work/models/$1.training" ] && return
    mkdir -p "$work/models"
    printf '\n== train %s\n' "$1"
    "$wherefore" train qr-gat --graph "$work/$2" --out "$work/models/$1" "${@:3}" 2>&1 |
        tee "$work/models/$1.log" | grep -E '^pass|^learned|rror'
    "$wherefore" index "$work/$2" --model "$work/models/$1" --quiet
}
run() { # NAME GRAPH QUESTIONS [OPTIONS]
    printf '\n== %s\n' "$1"
    "$wherefore" eval --graph "$work/$2" --questions "$data/$3" --out "$work/runs/$1" \
        --k 50,100,200 --quiet "${@:4}" |
        grep -E '^ +(hit@1|f1|hit) |recall@|^total|^retrieve '
}
# A method with another neighbourhood: NAME KIND HOPS ENTITIES [MODEL]
config() {
    local model=
    [ $# -lt 5 ] || model="model = \"$5\""
    cat > "$work/$1.toml" <<TOML
[retrieve]
kind = "$2"
$model
[retrieve.neighbourhood]
hops = $3
max_entities = $4
[select]
kind = "top-k"
k = 100
[reason]
kind = "$([ "$2" = qr-gat ] && echo candidates || echo best-path)"
TOML
}

if [[ $sets == *metaqa* ]]; then
    graph metaqa metaqa/kb.txt --format pipe
    # a part of the questions is enough for nine relations; every tenth line of qa_dev is left out
    awk 'NR % 8 == 1' "$data/metaqa/1-hop/qa_train_10k.txt" > "$work/metaqa-1.txt"
    awk 'NR % 60 == 0' "$data/metaqa/1-hop/qa_dev.txt" > "$work/metaqa-valid-1.txt"
    for hops in 2 3; do
        awk 'NR % 10 != 0 && NR % 4 == 1' "$data/metaqa/$hops-hop/qa_dev.txt" > "$work/metaqa-$hops.txt"
        awk 'NR % 100 == 0' "$data/metaqa/$hops-hop/qa_dev.txt" > "$work/metaqa-valid-$hops.txt"
    done
    train metaqa metaqa --questions "$work"/metaqa-[123].txt --valid "$work"/metaqa-valid-[123].txt \
        --set epochs=2 --set neighbourhood.hops=3 --set neighbourhood.max_entities=800 \
        --set batch_questions=8 --set optimiser.learning_rate=0.002 --set positive_weight=10 \
        --set valid_questions=300 --set sizes.hidden=128 --set sizes.layers=3 \
        --set supervision=relation-paths
    config metaqa-qsrag qr-gat 3 2000 "$work/models/metaqa"
    config metaqa-similarity similarity 3 2000
    for hops in 1 2 3; do
        for method in qsrag similarity; do
            run "metaqa-$hops-$method" metaqa "metaqa/$hops-hop/qa_test.txt" \
                --config "$work/metaqa-$method.toml" --sample 1000
        done
    done
fi

if [[ $sets == *pq* ]]; then
    for set in PQ-2H:2H-kb:2 PQ-3H:3H-kb:3 PQL-2H:PQL2-KB:2 PQL-3H:PQL3-KB:3; do
        IFS=: read -r name kb hops <<< "$set"
        graph "$kb" "pathquestion/$kb.txt" --format tsv
        train "$name" "$kb" --questions "$data/pathquestion/$name.train.txt" \
            --valid "$data/pathquestion/$name.valid.txt" --set epochs=5 \
            --set neighbourhood.hops="$hops" --set neighbourhood.max_entities=300 \
            --set optimiser.learning_rate=0.002 --set sizes.hidden=128
        config "$name-similarity" similarity "$hops" 2000
        run "$name-qsrag" "$kb" "pathquestion/$name.test.txt" --model "$work/models/$name"
        run "$name-similarity" "$kb" "pathquestion/$name.test.txt" --config "$work/$name-similarity.toml"
    done
fi

freebase="--set neighbourhood.max_entities=700 --set batch_questions=24 --set positive_weight=10
    --set optimiser.learning_rate=0.002 --set epochs=3 --set sizes.hidden=128"
if [[ $sets == *freebase* ]]; then
    graph freebase freebase/triples.tsv
    # shellcheck disable=SC2086
    {
        train freebase-first freebase --questions "$data/freebase/wq_cwq_train.jsonl" $freebase
        # three more passes with half the learning rate
        train freebase freebase --questions "$data/freebase/wq_cwq_train.jsonl" $freebase \
            --init "$work/models/freebase-first" --set optimiser.learning_rate=0.001
    }
    for hops in 2 3; do
        config "freebase-$hops-qsrag" qr-gat "$hops" 2000 "$work/models/freebase"
        config "freebase-$hops-similarity" similarity "$hops" 2000
        for method in qsrag similarity; do
            for questions in webqsp cwq; do
                run "$questions-$hops-$method" freebase "freebase/${questions}_test.jsonl" \
                    --config "$work/freebase-$hops-$method.toml"
            done
        done
    done
fi

if [[ $sets == *ablations* ]]; then
    graph freebase freebase/triples.tsv
    ablation() { # NAME [OPTIONS]
        # shellcheck disable=SC2086
        train "webqsp-$1" freebase --questions "$data/freebase/webqsp_train.jsonl" $freebase \
            "${@:2}"
        run "webqsp-$1" freebase freebase/webqsp_test.jsonl --model "$work/models/webqsp-$1"
    }
    ablation full
    ablation no-query-init --set 'sizes.ablations=["no-query-init"]'
    ablation no-query-attn --set 'sizes.ablations=["no-query-attn"]'
    ablation no-query-score --set 'sizes.ablations=["no-query-score"]'
    ablation no-matching --set sizes.matching=false
    ablation no-steps --set sizes.steps=false
    ablation relation-paths --set supervision=relation-paths
    ablation published --set sizes.steps=false --set sizes.matching=false --set sizes.answers=false
fi
