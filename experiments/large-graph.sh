#!/usr/bin/env bash
# How load, disk, memory, retrieval and SPARQL grow with the graph: docs/results.md, "Large graphs".
#   experiments/large-graph.sh OUT [MILLIONS...]     1, 10 and 100 million triples if none are given
#   MEMORY=2G experiments/large-graph.sh OUT 100     each command within 2 GiB, page cache included
# Graphs have Zipf degrees (crates/graph/examples/generate.rs). 1,000 questions are asked about heads
# of triples drawn evenly, so that a hub is asked about as often as it has triples; once with nothing
# of the graph in the page cache, once more with what is there by then. Needs GNU time, python3, and
# of disk about 250 bytes a triple while it loads; a graph is removed when it is measured (KEEP=1
# keeps it, and loads none that is there). WHEREFORE and GENERATE name binaries that are built
# already, LOAD_MEMORY what the load is told to keep to (a half of MEMORY, or 4G).
set -euo pipefail
cd "$(dirname "$0")/.."
out=$1
shift
sizes=("$@")
if [ ${#sizes[@]} -eq 0 ]; then sizes=(1 10 100); fi
mkdir -p "$out"
if [ -z "${WHEREFORE:-}" ]; then cargo build --release -p wherefore-cli; fi
if [ -z "${GENERATE:-}" ]; then cargo build --release -p wherefore-graph --example generate; fi
wherefore=${WHEREFORE:-$PWD/target/release/wherefore}
generate=${GENERATE:-$PWD/target/release/examples/generate}
questions=${QUESTIONS:-1000}
source experiments/within.sh
if [ -n "${MEMORY:-}" ]; then
    load_memory=${LOAD_MEMORY:-$(($(numfmt --from=iec "$MEMORY") / 2))}
else
    load_memory=${LOAD_MEMORY:-4G}
fi
load_now() { cut -d' ' -f1 /proc/loadavg; }

for millions in "${sizes[@]}"; do
    graph=$out/$millions
    echo "== $millions million triples${MEMORY:+ within $MEMORY}, $(date -u +%F), load average $(load_now)"
    count=$((millions * 1000000))
    if [ ! -f "$graph.nt" ] && [ ! -f "$graph.jsonl" -o ! -f "$graph/graph.json" ]; then
        "$generate" "$count" nt > "$graph.nt"
    fi
    if [ -f "$graph.nt" ]; then
        python3 experiments/large-graph.py questions "$graph.nt" "$questions" > "$graph.jsonl"
        forget "$graph.nt"
        within /usr/bin/time -o "$graph.load" -f "{\"load_s\": %e, \"load_cpu_s\": [%U, %S], \"load_kb\": %M, \"lines\": $count, \"load_average\": $(load_now)}" \
            "$wherefore" load "$graph.nt" --memory "$load_memory" --out "$graph" --replace --quiet
        cat "$graph.load"
        if [ -z "${KEEP:-}" ]; then rm "$graph.nt"; fi
    fi
    # one question at a time, so that none waits for another
    sync
    forget "$graph"/*/*
    for run in cold warm; do
        rm -rf "$graph.$run"
        RAYON_NUM_THREADS=1 within /usr/bin/time -o "$graph.$run.ask" -f "{\"ask_s\": %e, \"ask_kb\": %M, \"ask_load_average\": $(load_now)}" \
            "$wherefore" eval --graph "$graph" --questions "$graph.jsonl" --method read --threads 1 \
            --out "$graph.$run" --quiet > /dev/null
    done
    "$wherefore" info "$graph" --json --relations 1 > "$graph.info"
    python3 experiments/large-graph.py queries "$graph.info" > "$graph.queries"
    while IFS=$'\t' read -r name query; do
        for run in cold warm; do
            if [ "$run" = cold ]; then forget "$graph"/*/*; fi
            if within /usr/bin/time -o "$graph.time" -f '%e %M' \
                "$wherefore" sparql "$graph" "$query" --timeout 600 --memory "$load_memory" --results tsv > "$graph.rows" 2> "$graph.error"; then
                echo "$name, $run: $(cut -d' ' -f1 "$graph.time") s, $(($(cut -d' ' -f2 "$graph.time") / 1024)) MB resident, $(($(wc -l < "$graph.rows") - 1)) rows"
            else
                echo "$name, $run: $(head -1 "$graph.error")"
            fi
        done
    done < "$graph.queries" | tee "$graph.sparql"
    within_report
    python3 experiments/large-graph.py measure "$graph" "$millions" | tee "$graph.json"
    if [ -z "${KEEP:-}" ]; then rm -rf "$graph"; fi
done
python3 experiments/large-graph.py chart "$out"/*[0-9].json > "$out/large-graphs.svg"
python3 experiments/large-graph.py table "$out"/*[0-9].json
echo "chart: $out/large-graphs.svg"
