"""Draft questions over the schemas of Wikidata and Freebase, for reword.py: OUT/drafts.jsonl.

    python drafts.py DATA OUT [COUNT]

A draft has a step, an English question in the words of its relation about `X`, what is known of the relation, and steps
with which it could be confused.
"""

import json
import random
import sys
from collections import defaultdict
from pathlib import Path

from graphs import freebase_roles
from pairs import overlapping, wikidata
from phrases import BACKWARD, FORWARD, Step, words

SIBLINGS = 9


def question(step):
    relation, direction, subject, obj = step
    if direction == FORWARD:
        return f"What is the {relation} of X?" if not subject else f"What is the {relation} of the {subject} X?"
    what = f"{subject} has" if subject else "things have"
    return f"Which {what} the {relation} X?"


def main():
    data, out = Path(sys.argv[1]), Path(sys.argv[2])
    most = int(sys.argv[3]) if len(sys.argv) > 3 else 6000
    rng = random.Random(3)
    drafts = []
    properties, aliases = wikidata(data)
    labels = sorted({p[0] for p in properties.values() if p[3] != "external-id"})
    near = overlapping(labels)
    for _, (label, names, description, kind) in sorted(properties.items()):
        if kind == "external-id":
            continue
        for direction in (FORWARD, BACKWARD) if kind == "wikibase-item" else (FORWARD,):
            step = Step(label, direction, None, None)
            close = rng.sample(near.get(label, []), min(5, len(near.get(label, []))))
            others = [s for s in close + rng.sample(labels, SIBLINGS - len(close)) if s != label]
            drafts.append({"family": "readings", "step": step, "says": description, "also": names[:4],
                           "siblings": [step._replace(relation=o) for o in others]})

    classes = defaultdict(list)
    for of, relation, obj in freebase_roles(data):
        if of.split(".")[0] in ("base", "user", "freebase", "common", "type", "dataworld", "pipeline"):
            continue
        classes[of].append((words(relation.split(".")[-1]), words(of.split(".")[-1]), obj))
    free = []
    for of, relations in sorted(classes.items()):
        relations = sorted(set(relations), key=str)
        for relation, subject, obj in relations:
            if "/" in relation or len(relation.split()) > 5:
                continue
            for direction in (FORWARD, BACKWARD) if obj else (FORWARD,):
                step = Step(relation, direction, subject, obj)
                others = [Step(r, direction if o else FORWARD, s, o) for r, s, o in relations if r != relation]
                rng.shuffle(others)
                free.append({"family": "freebase", "step": step, "says": "", "also": [], "siblings": others[:SIBLINGS]})
    drafts += rng.sample(free, min(len(free), max(0, most - len(drafts))))
    rng.shuffle(drafts)
    with open(out / "drafts.jsonl", "w", encoding="utf8") as f:
        for d in drafts:
            d["draft"] = question(d["step"])
            f.write(json.dumps(d) + "\n")
    print(len(drafts), "drafts,", sum(d["family"] == "freebase" for d in drafts), "over Freebase's schema")


main()
