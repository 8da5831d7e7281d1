#!/usr/bin/env bash
# How many questions that a graph cannot answer are refused: made from each benchmark's own by
# removing what proves the answers, by removing relations, and by swapping topics.
#
#   experiments/unanswerable.sh DATA WORK [SET …]
#
# WORK is that of experiments/read.sh, with the graphs, and of experiments/confidence.sh, with the
# runs that questions are taken from and the configurations (weights and matchers that have not seen
# the graph). PRECISION: as `--precision` takes it; N questions of each (200); MADE a folder for all
# this (WORK/unanswerable). Sets: geoquery spider sample metaqa wc2014 pq freebase. Uses `wherefore`
# from the PATH, or what WHEREFORE names.
set -euo pipefail
data=$1 work=$2 wherefore=${WHEREFORE:-wherefore}
shift 2
sets=${*:-geoquery spider sample metaqa wc2014 pq freebase}
here=$(cd "$(dirname "$0")/.." && pwd)
made=${MADE:-$work/unanswerable}
all='CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o }'

of() { # RUN GRAPH CONFIG
    local out=$made/$1 config=$work/confidence/$3.toml
    mkdir -p "$out"
    "$wherefore" sparql "$work/$2" "$all" --results nt > "$out/graph.nt"
    python3 "$here/experiments/unanswerable.py" "$work/runs/confidence/$1" "$out/graph.nt" "$out" "${N:-200}" > /dev/null
    rm "$out/graph.nt"
    for kind in removed absent swapped; do
        [ -s "$out/$kind.jsonl" ] || continue
        local graph=$work/$2 gone
        if [ $kind != swapped ]; then
            gone=$(find "$out" -maxdepth 1 -size +0 \( -name "$kind.nt" -o -name "$kind.tsv" \))
            [ -n "$gone" ] || continue
            graph=$out/$kind
            rm -rf "$graph"
            cp -rL "$work/$2" "$graph"
            "$wherefore" remove --graph "$graph" "$gone" --quiet > /dev/null
        fi
        rm -rf "$out/run-$kind"
        "$wherefore" eval --graph "$graph" --questions "$out/$kind.jsonl" --config "$config" --linked \
            ${PRECISION:+--precision "$PRECISION"} --out "$out/run-$kind" --quiet > /dev/null
        printf '%-22s %-8s ' "$1" "$kind"
        python3 "$here/experiments/unanswerable.py" --told "$out/run-$kind"
        [ $kind = swapped ] || rm -rf "$graph"
    done
}

for set in $sets; do
    case $set in
        geoquery) of geoquery geo geoquery ;;
        spider) for name in car_1 concert_singer tvshow; do of "spider-$name" "$name" spider; done ;;
        sample) of sample world sample ;;
        metaqa) for hops in 1 2 3; do of "metaqa-$hops" metaqa metaqa; done ;;
        wc2014) for part in P1 P2 C; do of "wc-$part" wc2014 wc2014; done ;;
        pq)
            for pair in PQ-2H:2H-kb PQ-3H:3H-kb PQL-2H:PQL2-KB PQL-3H:PQL3-KB; do
                of "${pair%:*}" "${pair#*:}" freebase
            done
            ;;
        freebase) of webqsp freebase freebase && of cwq freebase freebase ;;
        *) echo "there is no set $set" >&2 && exit 2 ;;
    esac
done
