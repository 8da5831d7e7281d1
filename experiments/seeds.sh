#!/usr/bin/env bash
# Networks over neighbourhoods, trained until validation gains nothing more, with several seeds each:
# QR-GAT beside the distance network and PNA, the three ablations of QSRAG, and MetaQA.
#
#   experiments/seeds.sh DATA WORK [STEP…]         STEP: freebase ablations metaqa measure; all if none
#
# DATA is the folder of benchmarks, WORK a folder for graphs, checkpoints and runs. `wherefore` from the
# PATH, or what WHEREFORE names; SEEDS ("0 1 2"); METHODS ("qr-gat distance-mlp pna"); ENCODER (static);
# DEVICE (cpu); JOBS trainings or runs side by side (1). What is there is not made again, and a
# training that was stopped goes on. Choices are made on the last thousand training questions of
# Freebase, a tenth of WebQSP's and lines of MetaQA's qa_dev that training leaves out; test parts are
# measured here alone, with gold topics. `experiments/spread.py WORK/runs` prints means and spreads.
set -euo pipefail
data=$1 work=$2 wherefore=${WHEREFORE:-wherefore} jobs=${JOBS:-1}
read -ra seeds <<< "${SEEDS:-0 1 2}"
read -ra methods <<< "${METHODS:-qr-gat distance-mlp pna}"
encoder=${ENCODER:-static}
shift 2
steps=${*:-freebase ablations metaqa measure}
has() { [[ " $steps " == *" $1 "* ]]; }
source "$(dirname "$0")/networks.sh"
mkdir -p "$work/models" "$work/runs"
name=$(basename "$encoder")

graph() { # NAME FILE [OPTIONS]
    [ -d "$work/$1" ] || "$wherefore" load "$data/$2" "${@:3}" --out "$work/$1" --quiet
}
train() { # NAME METHOD GRAPH SEED [OPTIONS]
    local out=$work/models/$1
    [ -d "$out" ] && [ ! -d "$out.training" ] && return 0
    wait_for
    { time "$wherefore" train "$2" --graph "$work/$3" --out "$out" --seed "$4" --encoder "$encoder" \
        --device "${DEVICE:-cpu}" "${@:5}"; } > "$out.log" 2>&1 || echo "failed: $out.log" >&2 &
}

freebase_questions freebase freebase-valid
awk 'NR % 8 == 1' "$data/metaqa/1-hop/qa_train_10k.txt" > "$work/questions/metaqa-1.txt"
awk 'NR % 60 == 0' "$data/metaqa/1-hop/qa_dev.txt" > "$work/questions/metaqa-valid-1.txt"
for hops in 2 3; do
    awk 'NR % 10 != 0 && NR % 4 == 1' "$data/metaqa/$hops-hop/qa_dev.txt" \
        > "$work/questions/metaqa-$hops.txt"
    awk 'NR % 100 == 0' "$data/metaqa/$hops-hop/qa_dev.txt" > "$work/questions/metaqa-valid-$hops.txt"
done
graph freebase freebase/triples.tsv
graph metaqa metaqa/kb.txt --format pipe

for seed in "${seeds[@]}"; do
    if has freebase; then
        for method in "${methods[@]}"; do
            # shellcheck disable=SC2046
            train "freebase-$method-$name-$seed" "$method" freebase "$seed" "${around[@]}" \
                --questions "$work/questions/freebase.jsonl" --valid "$work/questions/freebase-valid.jsonl" \
                $(rate "$method") --set epochs="${EPOCHS:-12}" --set patience=3
        done
    fi
    if has ablations; then
        ablation() { # NAME [OPTIONS]
            # shellcheck disable=SC2046
            train "webqsp-$1-$name-$seed" qr-gat freebase "$seed" "${around[@]}" \
                --questions "$data/freebase/webqsp_train.jsonl" $(rate qr-gat) \
                --set epochs="${EPOCHS_WEBQSP:-20}" --set patience=5 "${@:2}"
        }
        ablation full
        for ablation in no-query-init no-query-attn no-query-score; do
            ablation "$ablation" --set "sizes.ablations=[\"$ablation\"]"
        done
    fi
    if has metaqa; then
        # shellcheck disable=SC2046
        train "metaqa-qr-gat-$name-$seed" qr-gat metaqa "$seed" "${around[@]}" \
            --questions "$work"/questions/metaqa-[123].txt \
            --valid "$work"/questions/metaqa-valid-[123].txt --set epochs="${EPOCHS_METAQA:-6}" \
            --set neighbourhood.hops=3 --set neighbourhood.max_entities=800 $(rate qr-gat) \
            --set valid_questions=300 --set sizes.layers=3 --set supervision=relation-paths
    fi
done
wait

if has measure; then
    run() { # NAME CHECKPOINT GRAPH QUESTIONS HOPS KIND [OPTIONS]; answers by candidates, and by chains
        local reason out
        for reason in candidates chain-ends; do
            out=$work/runs/$1-$reason
            [ -f "$out/metrics.json" ] && continue
            wait_for
            rm -rf "$out"
            mkdir -p "$work/configs"
            cat > "$work/configs/$1-$reason.toml" <<TOML
[retrieve]
kind = "$6"
model = "$work/models/$2"
[retrieve.neighbourhood]
hops = $5
max_entities = 2000
[select]
kind = "top-k"
k = $([ "$6" = pna ] && echo 300 || echo 100)
[organize]
kind = "chains"
max_length = 2
[reason]
kind = "$reason"
keep = 0.5
TOML
            "$wherefore" eval --graph "$work/$3" --questions "$4" --config "$work/configs/$1-$reason.toml" \
                --out "$out" --k 50,100,200 --quiet "${@:7}" > "$out.log" 2>&1 || cat "$out.log" >&2 &
        done
    }
    for model in "$work"/models/*-[0-9]; do
        model=$(basename "$model")
        kind=qr-gat
        [[ $model == *-distance-mlp-* ]] && kind=distance-mlp
        [[ $model == *-pna-* ]] && kind=pna
        case $model in
            freebase-*)
                for questions in webqsp cwq; do
                    run "$questions-$model" "$model" freebase "$data/freebase/${questions}_test.jsonl" 2 "$kind"
                done ;;
            webqsp-*) run "$model" "$model" freebase "$data/freebase/webqsp_test.jsonl" 2 "$kind" ;;
            metaqa-*)
                for hops in 1 2 3; do
                    run "metaqa-$hops-$model" "$model" metaqa "$data/metaqa/$hops-hop/qa_test.txt" 3 "$kind" \
                        --sample 1000
                done ;;
        esac
    done
    wait
fi
