#!/usr/bin/env bash
# How many questions a second the server answers: MetaQA's 1-hop test questions against its graph,
# method `auto` (METHOD names another), no language model, over the loopback address with wrk.
#
#   experiments/serve-load.sh [SECONDS]
#
# WHEREFORE_DATA names the folder of the benchmarks; WHEREFORE_BINARY another binary than the
# release build. Prints wrk's figures for 500 connections and for half of that load, what the
# server counted, and its memory every ten seconds.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-60}
data=${WHEREFORE_DATA:-../shared/data}/metaqa
binary=${WHEREFORE_BINARY:-target/release/wherefore}
work=$(mktemp -d)
trap 'kill "$server" 2>/dev/null || true; rm -r "$work"' EXIT
"$binary" load "$data/kb.txt" --format pipe --out "$work/metaqa" --quiet
cut -f 1 "$data/1-hop/qa_test.txt" | tr -d '[]' > "$work/questions.txt"
cat > "$work/ask.lua" <<'LUA'
local questions, failed = {}, 0
local escaped = { ['"'] = '\\"', ['\\'] = '\\\\' }
for line in io.lines(os.getenv("QUESTIONS")) do
  questions[#questions + 1] = '{"question":"' .. line:gsub('["\\]', escaped) .. '"}'
end
local pause = tonumber(os.getenv("PAUSE") or "0")
local at = 0
function init(arguments) math.randomseed(tonumber(tostring({}):sub(8)) or 1); at = math.random(#questions) end
function request()
  at = at % #questions + 1
  return wrk.format("POST", "/v1/ask", { ["content-type"] = "application/json" }, questions[at])
end
if pause > 0 then function delay() return pause end end
LUA
# all connections come from one address here, and stand for as many people
printf '[limits]\nconnections_per_address = 0\n' > "$work/serve.toml"
"$binary" serve --json --config "$work/serve.toml" --listen 127.0.0.1:0 --graph "metaqa=$work/metaqa" --method "${METHOD:-auto}" > "$work/started" &
server=$!
until [ -s "$work/started" ]; do sleep 0.05; done
address=$(sed 's/.*"address":"\([^"]*\)".*/\1/' "$work/started")
until curl -sf "$address/ready" > "$work/ready"; do sleep 0.05; done
resident() { awk '/VmRSS/ { printf "%d MB resident\n", $2 / 1024 }' "/proc/$server/status"; }
echo "load of the machine before: $(cut -d ' ' -f 1-3 /proc/loadavg)"
resident
export QUESTIONS="$work/questions.txt"
load() {
    echo "== $1"
    ( while sleep 10; do resident; done ) & local watch=$!
    PAUSE=$3 wrk --latency -t 2 -c "$2" -d "${seconds}s" --timeout 30s -s "$work/ask.lua" "http://$address"
    kill "$watch"
}
load "500 connections" 500 0
load "half load: 100 connections, each pausing ${HALF_PAUSE:-400} ms" 100 "${HALF_PAUSE:-400}"
curl -s "$address/metrics" | grep -E '^wherefore_(requests_total|answers_total|resident_bytes)'
