"""Graphs and questions from the wordings that the matcher has not seen: everyday questions with known answers.

    python everyday.py OUT

For each domain of `experiments/matcher/wordings.tsv` that is held out: OUT/NAME.ttl, a made-up graph over its classes and
relations, and OUT/NAME.jsonl, its questions with the answers of their steps ("how many" with their number). Seeds are
fixed.
"""

import json
import random
import re
import sys
from collections import defaultdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "matcher"))
import written  # noqa: E402
from phrases import FORWARD, MARK  # noqa: E402

FIRST = "Ada Boris Carla Dmitri Elena Farid Greta Hugo Ines Jonas Kaya Lena Marek Nadia Olaf Petra Quinn Rosa Sven Tilda".split()
LAST = "Abel Brandt Castro Dietz Ekman Falk Grau Holm Ivers Jansen Kovac Lund Moser Novak Orban Pohl Reiter Stern Toth Weiss".split()
EACH = 12  # things of a class, at least


def camel(words):
    head, *rest = re.sub(r"[^\w ]", " ", words).split()
    return head + "".join(w.capitalize() for w in rest)


def value(kind, rng):
    if kind == "date":
        return f'"{rng.randint(1950, 2024)}-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}"^^xsd:date'
    if kind == "text":
        return json.dumps(" ".join(rng.sample(LAST, 2)).lower())
    return f'"{rng.randint(2, 9000)}"^^xsd:integer'


def plain(term):
    return re.match(r'"(.*)"', term).group(1) if term.startswith('"') else term


def graph(rows, kinds, rng):
    """{class: names}, {relation: [(subject, object)]}, such that every question has an answer."""
    things = defaultdict(list)
    for _, steps, _, name in rows:
        of = written.ends(steps[0])[0]
        if of and not any(name in names for names in things.values()):
            things[of].append(name)
        for step in steps:
            for c in written.ends(step):
                if c:
                    things[c]  # noqa: B018
    for at, (of, names) in enumerate(sorted(things.items())):
        k = 0
        while len(names) < EACH:
            name = f"{FIRST[(k + 3 * at) % 20]} {LAST[(7 * k + at) % 20]}"
            k += 1
            if not any(name in other for other in things.values()):
                names.append(name)
    triples = {}
    for (subject, names, obj), kind in sorted(kinds.items(), key=str):
        said = []
        for s in things[subject]:
            if kind:
                said.append((s, value(kind, rng)))
            else:
                others = [t for t in things[obj] if t != s]
                said += [(s, t) for t in rng.sample(others, 1 if rng.random() < 0.75 else 2)]
        if not kind:  # each thing is said of somebody
            for o in things[obj]:
                if not any(t == o for _, t in said):
                    said.append((rng.choice([s for s in things[subject] if s != o]), o))
        triples[names] = said
    return things, triples


def follow(starts, steps, triples):
    for _, names, _, direction in steps:
        said = triples[names]
        starts = {o for s, o in said if s in starts} if direction == FORWARD else {s for s, o in said if o in starts}
    return starts


def main():
    out = Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    domains = defaultdict(list)
    for row in written.split(written.rows())[1]:
        domains[row[0]].append(row)
    kinds = defaultdict(dict)
    for domain, steps, _ in written.lines():
        for subject, names, obj, _ in steps:
            kinds[domain][subject, names, written.without_kind(obj)] = obj[1:] if obj.startswith("=") else None
    for domain, rows in sorted(domains.items()):
        rng = random.Random(domain)
        things, triples = graph(rows, kinds[domain], rng)
        name = camel(domain.split(",")[0].split(" and ")[0])
        iri, lines = {}, ["@prefix : <http://example.org/> .", "@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .",
                          "@prefix xsd: <http://www.w3.org/2001/XMLSchema#> ."]
        for of, names in sorted(things.items()):
            for n in names:
                iri[n] = f":e{len(iri)}"
                lines.append(f"{iri[n]} a :{camel(of)[0].upper() + camel(of)[1:]} ; rdfs:label {json.dumps(n, ensure_ascii=False)} .")
        for names, said in sorted(triples.items()):
            lines += [f"{iri[s]} :{camel(names[0])} {o if o.startswith(chr(34)) else iri[o]} ." for s, o in said]
        (out / f"{name}.ttl").write_text("\n".join(lines) + "\n", encoding="utf8")
        with open(out / f"{name}.jsonl", "w", encoding="utf8") as f:
            for at, (_, steps, question, topic) in enumerate(rows):
                of, to = written.ends(steps[0])[0], steps[-1]
                if of is None or topic not in things[of]:
                    continue  # asked of a value, or of a name that two classes share
                gold = follow({topic}, steps, triples)
                if not gold:
                    continue
                kind = "two steps" if len(steps) > 1 else "along" if to[3] == FORWARD else "against"
                if re.search(r"\bhow many\b", question.lower()) and not (to[3] == FORWARD and kinds[domain].get(to[:3])):
                    gold, kind = {str(len(gold))}, "count"
                f.write(json.dumps({"id": f"{name}-{at}", "question": question.replace(MARK, topic), "answers": sorted(map(plain, gold)),
                                    "kind": kind}, ensure_ascii=False) + "\n")
        print(name, sum(map(len, things.values())), "things,", sum(map(len, triples.values())), "triples")


main()
