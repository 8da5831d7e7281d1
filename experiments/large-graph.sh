#!/usr/bin/env bash
# How load, disk, memory and retrieval grow with the graph: docs/results.md, "Large graphs".
#   experiments/large-graph.sh OUT [MILLIONS...]     1, 10 and 100 million triples if none are given
# Graphs have Zipf degrees (crates/graph/examples/generate.rs). 1,000 questions are asked about heads
# of triples drawn evenly, so that a hub is asked about as often as it has triples. Needs GNU time,
# python3, and of disk about 250 bytes a triple while it loads; a graph is removed when it is
# measured (KEEP=1 keeps it). WHEREFORE and GENERATE name binaries that are built already.
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

for millions in "${sizes[@]}"; do
    graph=$out/$millions
    echo "== $millions million triples"
    count=$((millions * 1000000))
    "$generate" "$count" nt > "$graph.nt"
    python3 experiments/large-graph.py questions "$graph.nt" "$questions" > "$graph.jsonl"
    /usr/bin/time -o "$graph.load" -f '{"load_s": %e, "load_kb": %M}' \
        "$wherefore" load "$graph.nt" --memory 4G --out "$graph" --replace --quiet
    rm "$graph.nt"
    # the first run warms the page cache for the second, which counts; one question at a time, so
    # that none waits for another
    for run in cold warm; do
        rm -rf "$graph.$run"
        RAYON_NUM_THREADS=1 /usr/bin/time -o "$graph.$run.ask" -f '{"ask_s": %e, "ask_kb": %M}' \
            "$wherefore" eval --graph "$graph" --questions "$graph.jsonl" --method read --threads 1 \
            --out "$graph.$run" --quiet > /dev/null
    done
    "$wherefore" info "$graph" --json --relations 1 > "$graph.info"
    python3 experiments/large-graph.py measure "$graph" "$millions" | tee "$graph.json"
    if [ -z "${KEEP:-}" ]; then rm -rf "$graph"; fi
done
python3 experiments/large-graph.py chart "$out"/*[0-9].json > "$out/large-graphs.svg"
python3 experiments/large-graph.py table "$out"/*[0-9].json
echo "chart: $out/large-graphs.svg"
