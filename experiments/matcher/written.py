"""Questions that were written for the matcher: `wordings.tsv`, everyday wordings over small made-up schemas.

Columns: domain, class of the subject, names of the relation (|), class of the object (`=kind` for a value), steps (`>`
along, `<` against), question with its topic in [brackets]. Where a question takes two steps, columns two to five have
two values, joined by `;`. Every fifth domain is a test bed and is never trained on.
"""

from collections import defaultdict
from pathlib import Path

from phrases import BACKWARD, FORWARD, MARK, Step

HERE = Path(__file__).parent


def lines():
    """(domain, [(subject, names, object or `=kind`, direction)], question as it is written)"""
    for line in open(HERE / "wordings.tsv", encoding="utf8"):
        domain, subjects, names, objects, ways, question = line.rstrip("\n").split("\t")
        steps = []
        for s, n, o, way in zip(*([p.strip() for p in c.split(";")] for c in (subjects, names, objects, ways))):
            steps.append((s, tuple(p.strip() for p in n.split("|")), o, FORWARD if way == ">" else BACKWARD))
        yield domain, steps, question


def without_kind(obj):
    return None if obj.startswith("=") else obj


def rows():
    """(domain, [(subject, names, object or None for a value, direction)], marked question, name)"""
    for domain, steps, question in lines():
        before, rest = question.split("[", 1)
        name, after = rest.split("]", 1)
        steps = [(s, names, without_kind(o), way) for s, names, o, way in steps]
        yield domain, steps, " ".join(f"{before}{MARK}{after}".split()), name


def held(domains):
    return set(sorted(domains)[::5])


def split(every):
    """(questions to train on, questions of the domains that are held out)"""
    every = list(every)
    out = held({r[0] for r in every})
    return [r for r in every if r[0] not in out], [r for r in every if r[0] in out]


def ends(step):
    """Classes that a step leads from and to."""
    subject, _, obj, direction = step
    return (subject, obj) if direction == FORWARD else (obj, subject)


def schemas(every):
    """domain -> {class or value that is asked about: [steps from it]}"""
    out = defaultdict(lambda: defaultdict(list))
    for domain, steps, _, _ in every:
        for subject, names, obj, _ in steps:
            for direction in (FORWARD, BACKWARD):
                step = (subject, names, obj, direction)
                if direction == BACKWARD and obj is None:
                    continue
                around = out[domain][ends(step)[0]]
                if step not in around:
                    around.append(step)
    return out


def named(steps, pick=lambda names: names[0]):
    """Steps of a question as the matcher's, each relation under one of its names."""
    return tuple(Step(pick(names), direction, subject, obj) for subject, names, obj, direction in steps)


def choices(every):
    """The held-out questions as choices among all ways of one and two steps from the topic's class."""
    schema, items = schemas(every), []
    for domain, steps, question, name in every:
        around = schema[domain][ends(steps[0])[0]]
        gold = tuple(steps)
        if len(steps) == 1 and steps[0] not in around:
            continue  # asked of a value
        ways = [(s,) for s in around]
        if len(steps) > 1:
            ways += [(s, t) for s in around for t in schema[domain][ends(s)[1]] if t[1] != s[1]]
        if gold not in ways:
            continue
        items.append({"bed": "written", "family": "written", "q": question, "names": [name], "class": None,
                      "paths": [named(w) for w in ways], "gold": [ways.index(gold)], "unsure": []})
    return items, len(every)


def add(pairs, every, flipped, rng):
    """Each question twice: with the main name of its relations and with another; against it all other steps from there."""
    schema = schemas(every)
    for domain, steps, question, name in every:
        for pick in (lambda names: names[0], lambda names: rng.choice(names[1:] or names)):
            gold = named(steps, pick)
            chosen = {n: g.relation for (_, n, _, _), g in zip(steps, gold)}
            other = lambda names: chosen.get(names, names[0])
            wrong = [flipped(gold, len(gold) - 1)]
            for at, step in enumerate(steps):
                siblings = [s for s in schema[domain][ends(step)[0]] if s[1] != step[1]]
                rng.shuffle(siblings)
                wrong += [gold[:at] + named([s], other) + gold[at + 1:] for s in siblings[:9]]
            if len(gold) > 1:
                wrong += [(g,) for g in gold]
            else:
                onward = [s for s in schema[domain].get(ends(steps[0])[1], []) if s[1] != steps[0][1]]
                wrong += [gold + named([s], other) for s in rng.sample(onward, min(1, len(onward)))]
            rng.shuffle(wrong)
            pairs.add("written", "written", question, [name], [gold], wrong)
