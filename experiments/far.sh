#!/usr/bin/env bash
# A SPARQL service across a network: Virtuoso with MetaQA's graph in a network namespace of its own,
# behind a delay each way, asked as `.ci/virtuoso` does.
#
#   experiments/far.sh [SECONDS]      0.03 if not given; needs root, iproute2, /dev/net/tun
#
# WHEREFORE_SERVICE_FRESH=1 opens the service anew for each question, so that nothing is kept.
set -euo pipefail
cd "$(dirname "$0")/.."
delay=${1:-0.03}
ip netns add far
python3 experiments/delay.py far "$delay" &
network=$!
trap 'kill $network 2> /dev/null || true; ip netns del far' EXIT
for _ in $(seq 50); do
    if ip netns exec far ip addr show far0 2> /dev/null | grep -q 10.99.7.2; then break; fi
    sleep 0.1
done
VIRTUOSO_NAMESPACE=far VIRTUOSO_HOST=10.99.7.2 .ci/virtuoso
