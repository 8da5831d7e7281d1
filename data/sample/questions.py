#!/usr/bin/env python3
"""Makes the sample questions: train.jsonl, valid.jsonl, test.jsonl from templates with paraphrases, and
handwritten.jsonl, dev.jsonl and follow_ups.jsonl from the tables of that name.

    env/bin/python questions.py        after build.py; the same packages

Every question has its answers, found by running its logical form over the sample graph, and its gold paths. A
paraphrase in ten (those marked `*`) is kept out of the training part.
"""

import json
import random
import re
from collections import defaultdict
from pathlib import Path

import build

HERE = Path(__file__).parent
SEED = 12
MAX_ANSWERS = 60
MAX_PATHS = 30


class Graph:
    """The sample graph, read by label."""

    def __init__(self, world):
        self.out = defaultdict(list)
        self.into = defaultdict(list)
        self.label = {}
        self.kind = {}
        self.by_label = defaultdict(list)
        for head, relation, tail in dict.fromkeys(world.triples):
            if relation == "rdfs:label":
                self.label[head] = json.loads(tail.removesuffix("@en"))
                self.by_label[self.label[head]].append(head)
            elif relation == "rdf:type":
                self.kind[head] = tail
            if relation not in ("rdfs:label", "skos:altLabel"):
                name = relation.split(":")[1]
                self.out[(head, name)].append(tail)
                self.into[(tail, name)].append(head)

    def follow(self, ends, relation, forward):
        table = self.out if forward else self.into
        return list(dict.fromkeys(e for end in ends for e in table[(end, relation)]))

    def named(self, label):
        """The most prominent thing of that name."""
        found = self.by_label[label]
        assert found, f"nobody is called {label!r}"
        order = ["w:Country", "w:Continent", "w:Organisation", "w:River", "w:Mountain", "w:Lake", "w:Sea"]
        rank = lambda e: (order.index(self.kind[e]) if self.kind.get(e) in order else 9, -self.number(e, "population"))
        return min(found, key=rank)

    def number(self, entity, relation):
        values = self.out[(entity, relation)]
        return value(values[0]) if values else 0.0

    def shown(self, node):
        if node in self.label:
            return self.label[node]
        if node.startswith('"'):
            return json.loads(re.sub(r'(\^\^\S+|@en)$', "", node))
        return node

    def name(self, node):
        """A name as the question files have it, with the identity where the name is shared."""
        shown = self.shown(node)
        if node in self.label and len(self.by_label[shown]) > 1:
            return {"name": shown, "aliases": [node.replace("w:", build.BASE)]}
        return shown


def value(literal):
    """A literal as a number; a date counts as its year and the part of it that is over."""
    body = literal.split("^^")[0].strip('"')
    if "^^xsd:" in literal:
        parts = [int(p) for p in body.split("-")]
        year, month, day = parts + [1] * (3 - len(parts))
        return year + (month - 1) / 12 + (day - 1) / 372
    return float(body)


def parse(form):
    tokens = re.findall(r"\(|\)|\[[^\]]*\]|[^\s()]+", form)

    def read():
        token = tokens.pop(0)
        if token != "(":
            return token
        parts = []
        while tokens[0] != ")":
            parts.append(read())
        tokens.pop(0)
        return parts

    tree = read()
    assert not tokens, form
    return tree


def run(graph, tree):
    """The set that a logical form means, or the number of a COUNT."""
    if isinstance(tree, str):
        return [graph.named(tree[1:-1])]
    operator, *rest = tree
    if operator == "JOIN":
        relation, inner = rest
        forward = isinstance(relation, list)
        return graph.follow(run(graph, inner), relation[1] if forward else relation, forward)
    if operator == "AND":
        other = set(run(graph, rest[1]))
        return [e for e in run(graph, rest[0]) if e in other]
    if operator == "EXCEPT":
        other = set(run(graph, rest[1]))
        return [e for e in run(graph, rest[0]) if e not in other]
    if operator == "SUM":
        total = sum(graph.number(e, rest[1]) for e in run(graph, rest[0]))
        return [str(int(total) if total == int(total) else total)]
    if operator == "OR":
        return list(dict.fromkeys(run(graph, rest[0]) + run(graph, rest[1])))
    if operator == "COUNT":
        return [str(len(run(graph, rest[0])))]
    if operator in ("ARGMAX", "ARGMIN"):
        measured = [(graph.number(e, rest[1]), e) for e in run(graph, rest[0]) if graph.out[(e, rest[1])]]
        best = (max if operator == "ARGMAX" else min)(v for v, _ in measured)
        return [e for v, e in measured if v == best]
    if operator in ("lt", "le", "gt", "ge"):
        relation, bound = rest[0], float(rest[1])
        is_date = relation.endswith("_date")
        found = []
        for (head, name), tails in graph.out.items():
            if name != relation:
                continue
            for tail in tails:
                number = value(tail)
                number = int(number) if is_date else number  # a year is a whole
                if {"lt": number < bound, "le": number <= bound, "gt": number > bound, "ge": number >= bound}[operator]:
                    found.append(head)
        return found
    raise ValueError(tree)


def steps(tree):
    """The chain of a form made of JOINs alone: topic, [(relation, forward)]."""
    if isinstance(tree, str):
        return tree[1:-1], []
    if tree[0] != "JOIN":
        return None
    inner = steps(tree[2])
    if inner is None:
        return None
    forward = isinstance(tree[1], list)
    return inner[0], inner[1] + [(tree[1][1] if forward else tree[1], forward)]


def chains(tree):
    """Every chain of JOINs in a form that starts at something named, types aside."""
    if isinstance(tree, str):
        return []
    chain = steps(tree)
    if chain is not None:
        return [] if tree[1] == "type" else [chain]
    return [c for part in tree[1:] if isinstance(part, list) for c in chains(part)]


def topics(tree):
    if isinstance(tree, str):
        return [tree[1:-1]] if tree.startswith("[") else []
    if tree[0] == "JOIN" and tree[1] == "type":
        return []
    return [t for part in tree[1:] for t in topics(part)]


def paths(graph, chain, answers):
    topic, hops = chain
    walks = [([], graph.named(topic))]
    for relation, forward in hops:
        longer = []
        for triples, at in walks:
            for end in graph.follow([at], relation, forward):
                triple = (at, relation, end) if forward else (end, relation, at)
                longer.append((triples + [triple], end))
        walks = longer[:20000]
    kept = [t for t, end in walks if end in answers]
    return [[[graph.shown(h), r.replace("_", " "), graph.shown(t)] for h, r, t in walk] for walk in kept[:MAX_PATHS]]


def question(graph, number, words, kind, form, prefix):
    tree = parse(form)
    answers = run(graph, tree)
    wanted = set(answers)
    gold = [p for chain in chains(tree) for p in paths(graph, chain, wanted)]
    record = {"id": f"{prefix}-{number}", "question": words,
              "topics": [graph.name(graph.named(t)) for t in dict.fromkeys(topics(tree))],
              "answers": [graph.name(a) for a in answers],
              "hops": max([len(h) for _, h in chains(tree)] or [1]), "kind": kind}
    if gold:
        record["paths"] = gold
    if "(OR " not in form:  # a choice of two is no set that the published notation can write
        record["logical_form"] = form
    return record


# ---------------------------------------------------------------------------------------------- templates

FORWARD = {  # relation → how it is asked of a topic
    "capital": ["what is the capital of {x}", "which city is the capital of {x}", "name the capital of {x}", "*what is {x}'s capital"],
    "currency": ["what is the currency of {x}", "which currency is used in {x}", "what money is used in {x}", "*with which currency do people pay in {x}"],
    "official_language": ["what is the official language of {x}", "which languages are official in {x}", "which language is spoken in {x}", "*what do people speak in {x}"],
    "borders": ["which countries border {x}", "what are the neighbours of {x}", "which countries does {x} border", "*which countries share a border with {x}"],
    "continent": ["on which continent is {x}", "which continent does {x} belong to", "*what continent is {x} part of"],
    "region": ["in which region is {x}", "*which region of the world does {x} belong to"],
    "population": ["what is the population of {x}", "how many people live in {x}", "how many inhabitants does {x} have", "*how populous is {x}"],
    "area": ["what is the area of {x}", "how large is {x}", "*how many square kilometres does {x} cover"],
    "independence_date": ["when did {x} become independent", "when did {x} gain independence", "*on what date did {x} become independent"],
    "highest_point": ["what is the highest point of {x}", "*what is the highest point in {x}"],
    "calling_code": ["what is the calling code of {x}", "*which calling code does {x} have"],
    "internet_domain": ["what is the internet domain of {x}", "*which internet domain does {x} use"],
    "coastline": ["how long is the coastline of {x}", "*what is the length of the coastline of {x}"],
    "member_of": ["which organisations is {x} a member of", "*what is {x} a member of"],
    "country": ["in which country is {x}", "which country is {x} in", "*what country does {x} lie in"],
    "time_zone": ["in which time zone is {x}", "*what is the time zone of {x}"],
    "state": ["in which state is {x}", "*which state is {x} in"],
    "elevation": ["how high is {x}", "what is the elevation of {x}", "*what is the height of {x}"],
    "mountain_range": ["to which mountain range does {x} belong", "*which mountain range is {x} part of"],
    "length": ["how long is the {x}", "what is the length of the {x}"],
    "flows_through": ["which countries does the {x} flow through", "through which countries does the {x} flow", "*what countries does the {x} cross"],
    "flows_into": ["what does the {x} flow into", "where does the {x} flow into", "*into what does the {x} flow"],
    "headquarters": ["where are the headquarters of {x}", "in which city are the headquarters of {x}", "*where is {x} based"],
    "founding_date": ["when was {x} founded", "what is the founding date of {x}", "*in what year was {x} founded"],
    "city_served": ["which city does {x} serve", "*what city is served by {x}"],
    "iata_code": ["what is the IATA code of {x}"],
}
BACKWARD = {
    "capital": ["which country has the capital {x}", "{x} is the capital of which country", "of which country is {x} the capital"],
    "currency": ["which countries use the {x}", "where is the {x} the currency", "*which countries pay with the {x}"],
    "official_language": ["in which countries is {x} an official language", "which countries speak {x}", "*where is {x} spoken"],
    "member_of": ["which countries are members of {x}", "which countries belong to {x}", "*who are the members of {x}"],
    "flows_through": ["which rivers flow through {x}", "what rivers cross {x}", "*name the rivers of {x}"],
    "flows_into": ["which rivers flow into the {x}", "*what flows into the {x}"],
    "mountain_range": ["which mountains belong to the {x}", "*which mountains are part of the {x}"],
    "headquarters": ["which organisations have their headquarters in {x}", "*which organisations are based in {x}"],
    "city_served": ["which airports serve {x}", "*what airports are there in {x}"],
    "highest_point": ["of which country is {x} the highest point"],
}
# what a form means as a noun phrase: relation, forward, phrase, whether it is several things
NOUNS = [
    ("capital", True, "the capital of {x}"), ("capital", False, "the country whose capital is {x}"),
    ("borders", True, "the countries bordering {x}"), ("country", True, "the country where {x} is"),
    ("country", True, "the country of {x}"), ("headquarters", True, "the city where {x} has its headquarters"),
    ("member_of", False, "the members of {x}"), ("flows_through", True, "the countries that the {x} flows through"),
    ("highest_point", True, "the highest point of {x}"), ("official_language", False, "the countries where {x} is official"),
    ("currency", False, "the countries that use the {x}"), ("flows_through", False, "the rivers of {x}"),
]
ASKED = {  # the last step, asked of a noun phrase
    "capital": ["what is the capital of {np}", "what are the capitals of {np}"],
    "currency": ["what is the currency of {np}", "which currencies are used in {np}"],
    "official_language": ["what is the official language of {np}", "which languages are spoken in {np}"],
    "borders": ["which countries border {np}"],
    "continent": ["on which continent is {np}", "what is the continent of {np}"],
    "population": ["what is the population of {np}", "how many people live in {np}"],
    "area": ["what is the area of {np}"],
    "independence_date": ["when did {np} become independent"],
    "calling_code": ["what is the calling code of {np}"],
    "country": ["in which country is {np}"],
    "time_zone": ["what is the time zone of {np}"],
    "elevation": ["how high is {np}", "what is the elevation of {np}"],
    "mountain_range": ["to which mountain range does {np} belong"],
    "flows_into": ["what do {np} flow into"],
    "length": ["how long are {np}"],
    "highest_point": ["what is the highest point of {np}"],
}
GROUPS = [  # set, and how it is called in the plural and in the singular; {x} is a topic of that kind
    ("(AND (JOIN type [country]) (JOIN continent {X}))", "countries in {x}", "country in {x}", "Continent", ["area", "population", "independence_date", "coastline"]),
    ("(JOIN (R borders) {X})", "neighbours of {x}", "neighbour of {x}", "Country", ["area", "population"]),
    ("(JOIN member_of {X})", "members of {x}", "member of {x}", "Organisation", ["area", "population"]),
    ("(AND (JOIN type [city]) (JOIN country {X}))", "cities in {x}", "city in {x}", "Country", ["population"]),
    ("(JOIN flows_through {X})", "rivers in {x}", "river in {x}", "Country", ["length"]),
    ("(AND (JOIN type [mountain]) (JOIN country {X}))", "mountains in {x}", "mountain in {x}", "Country", ["elevation"]),
    ("(JOIN mountain_range {X})", "mountains of the {x}", "mountain of the {x}", "MountainRange", ["elevation"]),
    ("(AND (JOIN type [lake]) (JOIN country {X}))", "lakes in {x}", "lake in {x}", "Country", ["area"]),
    ("(AND (JOIN type [country]) (JOIN official_language {X}))", "countries where {x} is official", "country where {x} is official", "Language", ["area", "population"]),
    ("(AND (JOIN type [country]) (JOIN currency {X}))", "countries that use the {x}", "country that uses the {x}", "Currency", ["population"]),
    ("(JOIN type [river])", "rivers", "river", None, ["length"]),
    ("(JOIN type [mountain])", "mountains", "mountain", None, ["elevation"]),
    ("(JOIN type [country])", "countries", "country", None, ["area", "population", "independence_date", "coastline"]),
    ("(JOIN type [lake])", "lakes", "lake", None, ["area"]),
    ("(JOIN type [organisation])", "organisations", "organisation", None, ["founding_date"]),
]
MOST = {
    "area": ["what is the largest {s}", "which {s} has the largest area", "*what is the biggest {s}"],
    "population": ["which {s} has the most inhabitants", "what is the most populous {s}", "which {s} has the largest population"],
    "length": ["what is the longest {s}"], "elevation": ["what is the highest {s}", "*what is the tallest {s}"],
    "independence_date": ["which {s} became independent last"], "coastline": ["which {s} has the longest coastline"],
    "founding_date": ["which {s} was founded last", "*what is the youngest {s}"],
}
LEAST = {
    "area": ["what is the smallest {s}", "which {s} has the smallest area"],
    "population": ["which {s} has the fewest inhabitants", "which {s} has the smallest population"],
    "length": ["what is the shortest {s}"], "elevation": ["what is the lowest {s}"],
    "independence_date": ["which {s} became independent first"], "coastline": ["which {s} has the shortest coastline"],
    "founding_date": ["which {s} was founded first", "*what is the oldest {s}"],
}
BOUNDS = {
    "area": ([1000, 20000, 100000, 500000, 1000000], ["which {p} are larger than {n} square kilometres", "which {p} have an area of more than {n}"],
             ["which {p} are smaller than {n} square kilometres"]),
    "population": ([1000000, 5000000, 20000000, 50000000, 100000000], ["which {p} have more than {n} inhabitants", "which {p} have a population above {n}"],
                   ["which {p} have fewer than {n} inhabitants", "which {p} have less than {n} people"]),
    "length": ([500, 1000, 2000, 4000], ["which {p} are longer than {n} km"], ["which {p} are shorter than {n} km"]),
    "elevation": ([1000, 3000, 4500, 6000, 8000], ["which {p} are higher than {n} metres"], ["which {p} are lower than {n} metres"]),
    "independence_date": ([1850, 1945, 1960, 1975, 1990], ["which {p} became independent after {n}"], ["which {p} became independent before {n}"]),
    "founding_date": ([1900, 1950, 1975, 1990], ["which {p} were founded after {n}"], ["which {p} were founded before {n}"]),
}
VERSUS = {
    "area": ("Country", ["which is larger, {x} or {y}"], ["which is smaller, {x} or {y}"]),
    "population": ("Country", ["which has more inhabitants, {x} or {y}"], ["which has fewer inhabitants, {x} or {y}"]),
    "length": ("River", ["which is longer, the {x} or the {y}"], ["which is shorter, the {x} or the {y}"]),
    "elevation": ("Mountain", ["which is higher, {x} or {y}"], ["which is lower, {x} or {y}"]),
    "independence_date": ("Country", ["which became independent later, {x} or {y}"], ["which became independent first, {x} or {y}"]),
}


def templates(graph, random):
    by_kind = defaultdict(list)
    for entity, kind in graph.kind.items():
        # a topic must be told apart by its name
        if len(graph.by_label[graph.label[entity]]) == 1 and not re.search(r"[\[\]()/]", graph.label[entity]):
            by_kind[kind.removeprefix("w:")].append(entity)
    by_kind["City"] = [c for c in by_kind["City"] if graph.number(c, "population") > 500_000 or graph.into[(c, "capital")]]
    by_kind["Airport"] = random.sample(by_kind["Airport"], 60)
    known = {e for entities in by_kind.values() for e in entities}
    shown = lambda e: graph.label[e]
    made = []

    def offer(kind, phrases, form, **words):
        tree = parse(form)
        answers = run(graph, tree)
        if 0 < len(answers) <= MAX_ANSWERS:
            phrase = random.choice(phrases)
            text = phrase.removeprefix("*").format(**words)
            made.append((kind, text, form, phrase.startswith("*")))

    def heads(relation, forward):
        table = graph.out if forward else graph.into
        return sorted(e for e in known if table.get((e, relation)))

    def sample(entities, count):
        return random.sample(entities, min(count, len(entities)))

    for relation, phrases in FORWARD.items():
        for entity in sample(heads(relation, True), 45):
            offer("one", phrases, f"(JOIN (R {relation}) [{shown(entity)}])", x=shown(entity))
    for relation, phrases in BACKWARD.items():
        for entity in sample(heads(relation, False), 40):
            offer("one", phrases, f"(JOIN {relation} [{shown(entity)}])", x=shown(entity))

    def noun_forms(inner, forward_kind, noun):
        relation, forward, phrase = noun
        return (f"(JOIN (R {relation}) {inner})" if forward else f"(JOIN {relation} {inner})"), phrase

    two = []
    for noun in NOUNS:
        for entity in sample(heads(noun[0], noun[1]), 40):
            form, phrase = noun_forms(f"[{shown(entity)}]", None, noun)
            for relation in ASKED:
                if relation != noun[0] and run(graph, parse(f"(JOIN (R {relation}) {form})")):
                    two.append((relation, form, phrase.format(x=shown(entity))))
    for relation, form, phrase in sample(two, 950):
        offer("two", ASKED[relation], f"(JOIN (R {relation}) {form})", np=phrase)
    three = []
    for relation, form, phrase in sample(two, 4000):
        for outer in NOUNS:
            if outer[0] == relation and outer[1] and outer[0] in ("capital", "borders", "country", "highest_point"):
                bigger = f"(JOIN (R {relation}) {form})"
                np = outer[2].format(x=phrase)
                for last in ASKED:
                    if last not in (relation, "continent") and run(graph, parse(f"(JOIN (R {last}) {bigger})")):
                        three.append((last, bigger, np))
    for relation, form, phrase in sample(three, 300):
        offer("three", ASKED[relation], f"(JOIN (R {relation}) {form})", np=phrase)

    pairs = [("(JOIN (R borders) {})", "border {x}"), ("(JOIN member_of {})", "are members of {x}"),
             ("(JOIN currency {})", "use the {x}"), ("(JOIN official_language {})", "speak {x}"), ("(JOIN continent {})", "are in {x}")]
    kinds = ["Country", "Organisation", "Currency", "Language", "Continent"]
    tries = 0
    conjunctions = set()
    while len(conjunctions) < 300 and tries < 60_000:
        tries += 1
        i, j = random.randrange(5), random.randrange(5)
        a, b = random.choice(by_kind[kinds[i]]), random.choice(by_kind[kinds[j]])
        if a == b or i > j or i == j and kinds[i] in ("Continent", "Currency"):
            continue
        form = f"(AND {pairs[i][0].format('[' + shown(a) + ']')} {pairs[j][0].format('[' + shown(b) + ']')})"
        if form in conjunctions or not run(graph, parse(form)):
            continue
        conjunctions.add(form)
        first, second = pairs[i][1].format(x=shown(a)), pairs[j][1].format(x=shown(b))
        if i == j:
            verb = first[: first.index(shown(a))]
            offer("and", [f"which countries {verb}both {shown(a)} and {shown(b)}", f"*which countries {first} and also {second}"], form)
        else:
            offer("and", [f"which countries {first} and {second}", f"*which countries that {second} also {first}"], form)

    def groups(count):
        for form, plural, singular, kind, measures in GROUPS:
            entities = [None] if kind is None else sample(by_kind[kind], count)
            for entity in entities:
                topic = "" if entity is None else shown(entity)
                yield (form.replace("{X}", f"[{topic}]"), plural.format(x=topic), singular.format(x=topic), measures)

    for form, plural, _, _ in groups(40):
        if len(run(graph, parse(form))) > 0:
            offer("count", ["how many {p} are there", "*what is the number of {p}"], f"(COUNT {form})", p=plural)
    for form, plural, singular, measures in groups(40):
        for measure in measures:
            if len([e for e in run(graph, parse(form)) if graph.out[(e, measure)]]) < 2:
                continue
            if random.random() < 0.5:
                offer("superlative", MOST[measure], f"(ARGMAX {form} {measure})", s=singular)
            else:
                offer("superlative", LEAST[measure], f"(ARGMIN {form} {measure})", s=singular)
    for form, plural, _, measures in groups(30):
        for measure in measures:
            if measure not in BOUNDS:
                continue
            bounds, above, below = BOUNDS[measure]
            bound = random.choice(bounds)
            shown_bound = bound if measure.endswith("_date") else random.choice([f"{bound:,}", bound, f"{bound // 1_000_000} million" if bound >= 1_000_000 else bound])
            more = random.random() < 0.5
            offer("compare", above if more else below, f"(AND {form} ({'gt' if more else 'lt'} {measure} {bound}))", p=plural, n=shown_bound)
    for relation, (kind, more, less) in VERSUS.items():
        have = [e for e in by_kind[kind] if graph.out[(e, relation)]]
        for _ in range(30):
            a, b = random.sample(have, 2)
            if graph.number(a, relation) == graph.number(b, relation):
                continue
            top = random.random() < 0.5
            offer("compare", more if top else less, f"({'ARGMAX' if top else 'ARGMIN'} (OR [{shown(a)}] [{shown(b)}]) {relation})", x=shown(a), y=shown(b))
    return made


def main():
    graph = Graph(build.build())
    generator = random.Random(SEED)
    made = list({(text, form): (kind, text, form, held) for kind, text, form, held in templates(graph, generator)}.values())
    generator.shuffle(made)
    parts = {"train": [], "valid": [], "test": []}
    for place, (kind, text, form, held) in enumerate(made):
        part = ["valid", "test", "test"][place % 3] if held or place % 5 == 0 else "train"
        parts[part].append((kind, text + "?", form))
    for part, questions in parts.items():
        lines = [json.dumps(question(graph, i, text, kind, form, part), ensure_ascii=False) for i, (kind, text, form) in enumerate(questions)]
        (HERE / f"{part}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
        print(part, len(lines))
    for name, prefix in [("dev", "dev"), ("handwritten", "hand")]:
        by_hand(graph, name, prefix)
    follow_ups(graph)


def by_hand(graph, name, prefix):
    lines = []
    for i, line in enumerate((HERE / f"{name}.tsv").read_text(encoding="utf-8").splitlines()):
        if not line or line.startswith("#"):
            continue
        kind, text, form = line.split("\t")
        if kind == "unanswerable":
            record = {"id": f"{prefix}-{i}", "question": text, "topics": [], "answers": [], "kind": kind}
        else:
            record = question(graph, i, text, kind, form, prefix)
            assert record["answers"], (text, form)
        lines.append(json.dumps(record, ensure_ascii=False))
    (HERE / f"{name}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(name, len(lines))


def follow_ups(graph):
    lines = []
    for line in (HERE / "follow_ups.tsv").read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            continue
        kind, first, then, form = line.split("\t")
        answers = {"-": [], "yes": ["yes"], "no": ["no"]}.get(form)
        if answers is None:
            answers = [graph.shown(a) for a in run(graph, parse(form))]
            assert answers, (first, then)
        record = {"id": f"follow-{len(lines) + 1}", "kind": kind, "first": first, "follow": then, "answers": answers}
        lines.append(json.dumps(record, ensure_ascii=False))
    (HERE / "follow_ups.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("follow_ups", len(lines))


if __name__ == "__main__":
    main()
