#!/usr/bin/env python3
"""Of a run: how many answers are exactly right, otherwise, and refused, by kind of question.

    experiments/strict.py NAME QUESTIONS RUN

An answer is exactly right if its set of names is the gold set; numbers are compared as numbers.
Intervals are Wilson's at 95%. Standard library only.
"""

import collections
import json
import math
import pathlib
import sys


def same(a, b):
    """Whether one of some names is one of others."""
    for x in a:
        for y in b:
            if x.casefold() == y.casefold():
                return True
            try:
                if math.isclose(float(x), float(y), rel_tol=1e-6):
                    return True
            except ValueError:
                pass
    return False


def interval(right, all_of):
    if not all_of:
        return 0.0, 0.0
    z, p = 1.96, right / all_of
    middle = p + z * z / (2 * all_of)
    width = z * math.sqrt(p * (1 - p) / all_of + z * z / (4 * all_of * all_of))
    return (middle - width) / (1 + z * z / all_of), (middle + width) / (1 + z * z / all_of)


def main():
    name, questions, run = sys.argv[1:]
    with open(questions) as lines:
        gold = {q["id"]: q for q in map(json.loads, lines)}
    kinds = collections.defaultdict(collections.Counter)
    times = []
    with open(pathlib.Path(run) / "answers.jsonl") as lines:
        for answer in map(json.loads, lines):
            question = gold[answer["id"]]
            wanted = [
                [g] if isinstance(g, str) else [g["name"], *g.get("aliases", [])]
                for g in question["answers"]
            ]
            given = [[a["name"], a.get("id", a["name"])] for a in answer["answers"]]
            right = (
                bool(given)
                and all(any(same(w, g) for g in given) for w in wanted)
                and all(any(same(w, g) for w in wanted) for g in given)
            )
            kind = question.get("kind", "all") if wanted else "unanswerable"
            came = "refused" if not given else "right" if right else "otherwise"
            kinds[kind][came] += 1
            times.append(answer.get("timings_ms", {}).get("total", 0.0))
    total = collections.Counter()
    for kind, counts in sorted(kinds.items()):
        total.update(counts)
        n = sum(counts.values())
        print(f"  {kind:36} {n:5}  right {counts['right']:5}  otherwise {counts['otherwise']:4}"
              f"  refused {counts['refused']:4}")
    n = sum(total.values())
    low, high = interval(total["right"], n)
    times.sort()
    print(f"{name}: {n} questions, right {total['right'] / n:.3f} [{low:.3f}, {high:.3f}], "
          f"otherwise {total['otherwise'] / n:.3f}, refused {total['refused'] / n:.3f}, "
          f"{times[n // 2]:.1f} / {times[n * 95 // 100]:.1f} ms\n")


main()
