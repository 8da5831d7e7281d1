"""More texts for the student to follow its teacher on, without any label: OUT/texts.json.gz.

    python texts.py DATA OUT

Phrases over the schemas of Freebase and of the written wordings and over Wikidata's properties and their aliases, with
and without classes; questions of the readings that have no form, with and without their names marked; drafts in the
words of a relation.
"""

import gzip
import json
import random
import sys
from pathlib import Path

import written
from graphs import freebase_roles
from pairs import OVERNIGHT_NAMES, capitalised, wikidata
from phrases import BACKWARD, FORWARD, MARK, Step, mark, step_phrase, words


def wordings(step, rng):
    """Questions in the words of a relation."""
    relation, direction, subject, obj = step
    if direction == FORWARD:
        what = [f"what is the {relation} of {MARK}", f"{MARK} {relation}", f"{relation} of the {subject or 'thing'} {MARK}",
                f"which {obj or relation} is the {relation} of {MARK}", f"tell me {MARK}'s {relation}", f"who is {MARK}'s {relation}"]
    else:
        what = [f"which {subject or 'thing'} has the {relation} {MARK}", f"{subject or 'things'} with {relation} {MARK}",
                f"how many {subject or 'thing'}s have {MARK} as {relation}", f"list the {subject or 'thing'}s whose {relation} is {MARK}",
                f"what is {MARK} the {relation} of"]
    return rng.sample(what, 2)


def main():
    data, out = Path(sys.argv[1]), Path(sys.argv[2])
    rng = random.Random(4)
    steps, questions = set(), set()
    classes = set()
    for of, relation, obj in freebase_roles(data):
        subject = words(of.split(".")[-1])
        classes.add(subject)
        for direction in (FORWARD, BACKWARD):
            steps.add(Step(words(relation.split(".")[-1]), direction, subject, obj))
    for _, made, question, name in written.split(written.rows())[0]:
        for subject, names, obj, direction in made:
            for n in names:
                steps.add(Step(n, FORWARD, subject, obj))
                steps.add(Step(n, BACKWARD, subject, obj))
        questions.add(question)
        questions.add(question.replace(MARK, name))
    classes = sorted(classes)
    properties, _ = wikidata(data)
    for label, names, description, kind in properties.values():
        for n in [label, *names[:8]] if kind != "external-id" else [label]:
            for direction in (FORWARD, BACKWARD):
                steps.add(Step(n, direction, None, None))
                steps.add(Step(n, direction, rng.choice(classes), rng.choice(classes) if rng.random() < 0.5 else None))
    steps = sorted(steps, key=str)
    rng.shuffle(steps)
    phrases = {step_phrase(s, "mixed") for s in steps}
    for step in steps[:60000]:
        questions.update(wordings(step, rng))
    for line in open(data / "readings/sparql.jsonl", encoding="utf8"):
        d = json.loads(line)
        if d["set"] == "wwq":  # WebQuestions' own
            continue
        question = d["question"]
        questions.add(question)
        questions.add(capitalised(question, 2)[0])
    for line in open(data / "readings/overnight.tsv", encoding="utf8"):
        parts = line.rstrip("\n").split("\t")
        if parts[1] == "train":
            questions.update(mark(p, OVERNIGHT_NAMES)[0] for p in parts[2:4])
    texts = sorted(t for t in questions | phrases if len(t) < 160)
    with gzip.GzipFile(out / "texts.json.gz", "wb", mtime=0) as f:
        f.write(json.dumps(texts).encode())
    print(len(texts), "texts")


main()
