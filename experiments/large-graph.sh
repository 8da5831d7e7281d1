#!/usr/bin/env bash
# Fifty million triples of docs/results.md: load within 4 GB, then ask and query, with resident memory.
#   experiments/large-graph.sh OUT     needs 10 GB of disk and GNU time
set -euo pipefail
out=$1
mkdir -p "$out"
cargo build --release -p wherefore-cli
cargo build --release -p wherefore-graph --example generate
wherefore=$PWD/target/release/wherefore
measured() { /usr/bin/time -f "  %e s, %M KB resident" "$@"; }
target/release/examples/generate 52000000 nt > "$out/big.nt"
measured "$wherefore" load "$out/big.nt" --memory 4G --out "$out/big" --replace
rm "$out/big.nt"
measured "$wherefore" info "$out/big" --check --relations 3
measured "$wherefore" sparql "$out/big" 'SELECT ?p (COUNT(*) AS ?n) WHERE { ?s ?p ?o } GROUP BY ?p ORDER BY DESC(?n) LIMIT 3'
"$wherefore" sparql "$out/big" 'SELECT ?s WHERE { ?s <http://example.org/relation/r150> ?o } LIMIT 400' --results csv |
  tr -d '\r' | tail -n +2 | awk 'NR % 50 == 0' |
  while read -r entity; do
    name=$(basename "$entity" | tr _ ' ')
    measured "$wherefore" ask "$out/big" "what is the r3 of $name ?" | grep about || true
  done
