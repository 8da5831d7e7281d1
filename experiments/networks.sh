# Sourced by seeds.sh and relabel.sh: what networks over neighbourhoods of Freebase are trained with, and
# on which questions. Takes `data`, `work` and `jobs` from the script.

# the last thousand training questions are for choices
freebase_questions() { # NAME OF THE TRAINING PART, OF THE OTHER
    mkdir -p "$work/questions"
    head -n -1000 "$data/freebase/wq_cwq_train.jsonl" > "$work/questions/$1.jsonl"
    tail -n 1000 "$data/freebase/wq_cwq_train.jsonl" > "$work/questions/$2.jsonl"
}

around=(--set neighbourhood.max_entities=700 --set batch_questions=24 --set batch_triples=40000
    --set positive_weight=10)

# METHOD: learning rate and sizes
rate() {
    case $1 in
        qr-gat) echo "--set optimiser.learning_rate=0.001 --set sizes.hidden=256" ;;
        distance-mlp) echo "--set optimiser.learning_rate=0.002" ;;
        *) echo "--set optimiser.learning_rate=0.002 --set sizes.hidden=96" ;;
    esac
}

# until fewer than `jobs` run
wait_for() { while [ "$(jobs -rp | wc -l)" -ge "$jobs" ]; do wait -n; done; }
