#!/usr/bin/env python3
"""The reader without each group of its features: what a group is worth. Standard library only.

    experiments/reading/ablate.py DATA WORK

Groups are those of crates/qa/src/read/features.rs. The shipped weights of a group are set to 0, in
both tables, and nothing is fitted again: features that say nearly the same are not told apart, and
a group whose work others could learn to do looks more important than it is. Runs
`experiments/read.sh` (which says what DATA and WORK are) on the graphs with classes and prints a
table for docs/results.md: exactly right and answered otherwise. Uses `wherefore` from the PATH, or what WHEREFORE names.
"""
import collections
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SETS = {"GeoQuery": r"geoquery-(train|dev)", "Spider": r"spider-.*", "sample": r"sample-(handwritten|test)"}
LINE = re.compile(r"(\S+): (\d+) questions, right ([\d.]+) \[[^]]*\], otherwise ([\d.]+)")


def groups():
    """Features by the comment that stands above them."""
    text = open(os.path.join(ROOT, "crates/qa/src/read/features.rs"), encoding="utf-8").read()
    body = text.split("features! {", 1)[1].split("\n}", 1)[0]
    found, name = collections.OrderedDict(), ""
    for line in body.splitlines():
        line = line.strip()
        if line.startswith("//"):
            name = line.strip("/ ")
        elif line:
            found.setdefault(name, []).extend(re.findall(r"\w+", line))
    return found


def measured(data, work, weights):
    """(right, otherwise) as shares, for each set."""
    environment = dict(os.environ, WEIGHTS=weights)
    command = [os.path.join(ROOT, "experiments/read.sh"), data, work, "geoquery", "spider", "sample"]
    said = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    sums = {name: [0, 0.0, 0.0] for name in SETS}
    for run, count, right, otherwise in LINE.findall(said):
        for name, pattern in SETS.items():
            if re.fullmatch(pattern, run):
                sums[name][0] += int(count)
                sums[name][1] += int(count) * float(right)
                sums[name][2] += int(count) * float(otherwise)
    return [(right / count, otherwise / count) for count, right, otherwise in sums.values()]


def main(data, work):
    shipped = open(os.path.join(ROOT, "crates/qa/src/read/weights.toml"), encoding="utf-8").read()
    path = os.path.join(os.path.abspath(work), "ablated.toml")
    print(f"| without | features | {' | '.join(SETS)} |")
    print("|---|---|" + "---|" * len(SETS))
    for name, features in [("nothing", []), *groups().items()]:
        text = shipped
        for feature in features:
            text = re.sub(rf"^{feature} = .*$", f"{feature} = 0.0", text, flags=re.M)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        cells = [f"{right:.3f} / {otherwise:.3f}" for right, otherwise in measured(data, work, path)]
        print(f"| {name} | {len(features)} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
