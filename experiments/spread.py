#!/usr/bin/env python3
"""Means and spreads over seeds of runs that experiments/seeds.sh made.

    experiments/spread.py RUNS [METRIC…]

RUNS is a folder of runs whose names end in -SEED or -SEED-REASON. Each metric as mean ± standard
deviation over seeds (n − 1), and the number of seeds.
"""
import json
import re
import statistics
import sys
from collections import defaultdict
from pathlib import Path

runs, metrics = Path(sys.argv[1]), sys.argv[2:]
metrics = metrics or ["strict.hit@1", "strict.f1", "retrieval.triple_recall@100", "retrieval.answer_recall@100"]
seen = defaultdict(lambda: defaultdict(list))
for path in sorted(runs.glob("*/metrics.json")):
    name = re.sub(r"-(\d+)(?=-candidates$|-chain-ends$|$)", "", path.parent.name)
    overall = json.loads(path.read_text())["overall"]["metrics"]
    for metric in metrics:
        if metric in overall:
            seen[name][metric].append(overall[metric]["value"])
print("| run | seeds | " + " | ".join(metrics) + " |")
print("|---" * (len(metrics) + 2) + "|")
for name, values in seen.items():
    cells = []
    for metric in metrics:
        of = values.get(metric, [])
        spread = statistics.stdev(of) if len(of) > 1 else 0.0
        cells.append(f"{statistics.mean(of):.3f} ± {spread:.3f}" if of else "–")
    print(f"| {name} | {max(map(len, values.values()))} | " + " | ".join(cells) + " |")
