#!/usr/bin/env bash
# The figures of README.md, made again one after the other, and what was skipped.
#
#   experiments/all.sh DATA WORK [STEP…]
#   STEP: read plan gnn2r amar store large readme; all if none
#
#   read    experiments/read.sh, graphs with classes and without: the tables under "How good"
#   plan    experiments/reg.sh … metaqa: relation-plan
#   gnn2r   experiments/gnn2r.sh … pq metaqa freebase
#   amar    experiments/amar.sh … webqsp, around the language model that LLM names
#   store   cargo bench --bench store beside pyoxigraph, with the interpreter that PYTHON names
#   large   experiments/large-graph.sh with 52 million triples
#   readme  whether README.md says what docs/results.md says
#
# DATA is the folder of benchmarks, WORK a folder for graphs, checkpoints and runs; a log of each step
# lies in WORK/logs. `wherefore` from the PATH, or what WHEREFORE names. What a step needs and is not
# there skips it. The figures go into docs/results.md by hand, with commit and date, and from there
# into README.md (`experiments/readme.py`). Trainings take hours on two cores; DEVICE=cuda shortens them.
set -uo pipefail
data=$1 work=$2
shift 2
steps=${*:-read plan gnn2r amar store large readme}
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$work/logs"
summary=()
failed=0

step() { # NAME COMMAND…
    [[ " $steps " == *" $1 "* ]] || return 0
    local name=$1 begun=$SECONDS
    shift
    printf '\n== %s: %s\n' "$name" "$*"
    if "$@" 2>&1 | tee "$work/logs/$name.log"; then
        summary+=("$name: done in $((SECONDS - begun)) s")
    else
        summary+=("$name: FAILED after $((SECONDS - begun)) s, see $work/logs/$name.log")
        failed=1
    fi
}
skip() { # NAME WHY
    [[ " $steps " == *" $1 "* ]] && summary+=("$1: skipped ($2)")
}
has() { [ -e "$data/$1" ]; }

if has geoquery && has metaqa; then step read "$here/read.sh" "$data" "$work/read"; else skip read "no geoquery and metaqa in $data"; fi
if has metaqa; then step plan "$here/reg.sh" "$data" "$work/reg" metaqa; else skip plan "no metaqa in $data"; fi
if has pathquestion && has freebase; then
    step gnn2r "$here/gnn2r.sh" "$data" "$work/gnn2r" pq metaqa freebase
else
    skip gnn2r "no pathquestion and freebase in $data"
fi
if [ -z "${LLM:-}" ]; then
    skip amar "LLM names no language model"
elif has freebase; then
    step amar "$here/amar.sh" "$data" "$work/amar" "$LLM" webqsp
else
    skip amar "no freebase in $data"
fi
if ! command -v cargo > /dev/null; then
    skip store "no cargo"
elif "${PYTHON:-python3}" -c 'import pyoxigraph' 2> /dev/null; then
    step store cargo bench --manifest-path "$here/../Cargo.toml" -p wherefore-graph --bench store -- 1000000
else
    skip store "no pyoxigraph (PYTHON names the interpreter that has it)"
fi
free=$(df --output=avail -k "$work" | tail -1)
if [ "$free" -gt 20000000 ]; then
    step large "$here/large-graph.sh" "$work/large" 52
else
    skip large "less than 20 GB free in $work"
fi
step readme "$here/readme.py" --check

printf '\n'
printf '%s\n' "${summary[@]}"
exit $failed
