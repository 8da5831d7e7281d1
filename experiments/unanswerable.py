#!/usr/bin/env python3
"""Questions that a graph cannot answer, made from those that it can.

    experiments/unanswerable.py RUN TRIPLES OUT [N]

RUN is a run of `wherefore eval` over a graph; TRIPLES the graph as N-Triples, as `wherefore sparql GRAPH
'CONSTRUCT …' --results nt` writes it. From up to N (200) questions of RUN that were answered exactly
right by following relations, writes into OUT:

    removed.EXT, removed.jsonl   the triples that prove the answers, and the questions: to be asked when
                                 these are removed
    absent.EXT, absent.jsonl     all triples of some relations, and the questions that need one of them:
                                 what is left are near misses
    swapped.jsonl                to be asked over the whole graph: the topic's name replaced by that of
                                 another of the same kind (as many of the same relations as possible, at
                                 least half) of which the graph does not say what is asked

EXT is what `wherefore remove` takes: `nt`, or `tsv` for a graph of names. The questions keep their
answers (swapped ones have none): found in another way, they are no mistake, and the question does not
count.

    experiments/unanswerable.py --told RUN

tells how many questions of such a run were refused, and why. Seeded; standard library only.
"""

import collections
import json
import pathlib
import random
import re
import sys
import urllib.parse

TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
TRIPLE = re.compile(r"(<[^>]*>|_:\S+) (<[^>]*>) (.*) \.$")
COMPUTED = re.compile(r"\((?!JOIN|AND|OR|R )[A-Z]+")


def identity(term):
    """A term of N-Triples as answers have it."""
    if term.startswith("<name:"):
        return urllib.parse.unquote(term[len("<name:") : -1])
    return term[1:-1] if term.startswith("<") else term


def term(identity):
    return identity if identity.startswith(("_:", '"')) else f"<{identity}>"


def is_exact(question, line):
    gold = {(a["name"] if isinstance(a, dict) else a).casefold() for a in question["answers"]}
    return bool(gold) and gold == {a["name"].casefold() for a in line["answers"]}


def proof(line):
    used = sorted({i for a in line["answers"] for i in a["rationale"]})
    facts = [tuple(line["evidence"][i]["ids"]) for i in used]
    return [f for f in facts if f[1] != TYPE]


def tell(run):
    why = collections.Counter()
    with (run / "questions.jsonl").open() as questions, (run / "answers.jsonl").open() as answers:
        for question, line in zip(map(json.loads, questions), map(json.loads, answers)):
            exact = is_exact(question, line)
            why["in another way" if exact else line.get("refusal", "answered")] += 1
    asked = why.total() - why["in another way"]
    refused = asked - why["answered"]
    print(f"{refused} of {asked} refused, {refused / max(1, asked):.3f}  {dict(why.most_common())}")


def main():
    if sys.argv[1] == "--told":
        return tell(pathlib.Path(sys.argv[2]))
    run, triples, out = map(pathlib.Path, sys.argv[1:4])
    most = int(sys.argv[4]) if len(sys.argv) > 4 else 200
    out.mkdir(parents=True, exist_ok=True)
    draw = random.Random(0)
    graph = [TRIPLE.match(text.rstrip("\n")) for text in triples.open()]
    is_named = any("<name:" in g.group(2) for g in graph if g)
    graph = [tuple(map(identity, g.groups())) for g in graph if g]

    right = []
    questions = {}
    for text in (run / "questions.jsonl").open():
        question = json.loads(text)
        questions[question["id"]] = question
    for text in (run / "answers.jsonl").open():
        line = json.loads(text)
        question = questions.get(line["id"])
        # what is computed has an answer in any graph
        if question and is_exact(question, line) and not COMPUTED.search(line.get("logical_form") or ""):
            if proof(line) and not any(a.get("computed") for a in line["answers"]):
                right.append((question, line))
    draw.shuffle(right)
    right = right[:most]

    def remove(name, gone):
        with (out / f"{name}.{'tsv' if is_named else 'nt'}").open("w") as file:
            for fact in sorted(gone):
                if is_named:
                    file.write("\t".join(fact) + "\n")
                else:
                    file.write(" ".join(map(term, fact)) + " .\n")

    def ask(name, asked):
        with (out / f"{name}.jsonl").open("w") as file:
            file.writelines(json.dumps(question) + "\n" for question in asked)
        print(f"{name}: {len(asked)} questions")

    remove("removed", {fact for _, line in right for fact in proof(line)})
    ask("removed", [question for question, _ in right])

    relations = sorted({fact[1] for _, line in right for fact in proof(line)})
    draw.shuffle(relations)
    absent, asked = set(), []
    while relations and len(asked) < max(20, len(right) // 4):
        absent.add(relations.pop())
        asked = [q for q, line in right if any(fact[1] in absent for fact in proof(line))]
    remove("absent", {fact for fact in graph if fact[1] in absent})
    ask("absent", asked)

    has, names = collections.defaultdict(set), {}
    for head, relation, tail in graph:
        # the class itself tells what a thing is
        has[head].add((relation, tail if relation == TYPE else ">"))
        has[tail].add((relation, "<"))
    kinds = {tail for _, relation, tail in graph if relation == TYPE}
    for _, line in right:
        names.update((link["id"], link["name"]) for link in line["links"] if link["id"] not in kinds)
    swapped = []
    for question, line in right:
        text = question["question"]
        links = [l for l in line["links"] if l["mention"].casefold() in text.casefold()]
        if len(links) != 1:
            continue
        [link] = links
        own = has[link["id"]]
        used = {f[1] for f in proof(line) if link["id"] in (f[0], f[2])}
        others = []
        for other in sorted(names):
            common = len(own & has[other])
            if used and not used & {r for r, _ in has[other]} and 2 * common >= len(own):
                others.append((common / len(own | has[other]), other))
        if others:
            most = max(others)[0]
            other = draw.choice([o for alike, o in others if alike >= 0.9 * most])
            at = text.casefold().index(link["mention"].casefold())
            text = text[:at] + names[other] + text[at + len(link["mention"]) :]
            # no answer to it is known
            swapped.append({**question, "question": text, "topics": [], "answers": []})
    ask("swapped", swapped)


if __name__ == "__main__":
    main()
