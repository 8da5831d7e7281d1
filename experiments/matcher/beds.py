"""Questions over the visible graphs as choices: a marked question, the paths around its topic, which of them are right.

A path is right if the set it leads to has the best F1 with the gold answers, at least 0.9 (or, where the gold path is
published, if it is that path). Paths with F1 of 0.5 or more are neither right nor wrong and are left out of training.
"""

import json
import random
import re
from pathlib import Path

from graphs import Graph, f1, read_tsv, read_turtle
from phrases import BACKWARD, FORWARD, MARK, Step, dotted, mark, words

RIGHT, UNSURE = 0.9, 0.5


def item(bed, family, question, found, paths, scores, topic=None, topic_class=None):
    """`paths` and their F1 with the gold answers, as one choice; None if no path is right."""
    best = max(scores, default=0.0)
    if best < RIGHT:
        return None
    return {
        "bed": bed, "family": family, "q": question, "names": found, "class": topic_class,
        "paths": paths, "gold": [i for i, s in enumerate(scores) if s >= best - 1e-9],
        "unsure": [i for i, s in enumerate(scores) if UNSURE <= s < best - 1e-9],
    }


def around_items(bed, family, graph, asked):
    """`asked`: (question, marked question, found names, candidate topics, gold answers)."""
    items, total = [], 0
    for marked_for, topics, gold in asked:
        total += 1
        best = None
        for topic in topics:
            around = graph.around(topic)
            if not around:
                continue
            paths = list(around)
            scores = [f1(graph.key(around[p]), gold) for p in paths]
            top = max(scores)
            if best is None or top > best[0]:
                best = (top, topic, paths, scores)
        if best is None:
            continue
        _, topic, paths, scores = best
        question, found = marked_for(topic)
        one = item(bed, family, question, found, paths, scores, topic, graph.classes.get(topic))
        if one:
            items.append(one)
    return items, total


def turtle_questions(graph, path):
    for line in open(path, encoding="utf8"):
        d = json.loads(line)
        gold = set()
        for a in d["answers"]:
            if isinstance(a, str):
                ids = graph.names.get(a.lower(), [])
                gold.update(ids or [a])
                continue
            uri = [x for x in [a["name"], *a.get("aliases", [])] if x.startswith("http")]
            gold.add(uri[0].rsplit("/", 1)[-1] if uri else a["name"])
        yield d, gold


def names_in(graph, question):
    """Names of the graph in the question, longest first, none inside another."""
    toks = [(m.start(), m.end()) for m in re.finditer(r"[\w'.-]+[\w!?)(]|\w", question)]
    low, hits, taken = question.lower(), [], []
    starts = sorted({m.start() for m in re.finditer(r"\b\w", low)})
    ends = sorted({m.end() for m in re.finditer(r"\w\b|[!?).]", low)})
    spans = [(s, e) for s in starts for e in ends if 0 < e - s < 60]
    for s, e in sorted(spans, key=lambda x: x[0] - x[1]):
        if low[s:e] in graph.names and all(e <= a or s >= b for a, b in taken):
            taken.append((s, e))
            hits.append((question[s:e], graph.names[low[s:e]]))
    return hits


def turtle_bed(bed, family, graph, path, kinds=None):
    asked = []
    for d, gold in turtle_questions(graph, path):
        if kinds and d["kind"] not in kinds:
            continue
        hits = names_in(graph, d["question"])
        topics = [t for _, ids in hits for t in ids]
        names = [n for n, _ in hits]
        asked.append((lambda topic, d=d, names=names: mark(d["question"], names), topics, gold))
    return around_items(bed, family, graph, asked)


def geoquery(data, part="train"):
    graph = read_turtle("geoquery", data / "geoquery/geo.ttl")
    return turtle_bed("geoquery", "geoquery", graph, data / f"geoquery/{part}_cased.jsonl", {"1 hop"})


def spider(data):
    items, total = [], 0
    for path in sorted((data / "spider").glob("*.ttl")):
        graph = read_turtle(path.stem, path)
        graph.key = lambda nodes, g=graph: {g.labels.get(n, n) for n in nodes}  # answers are given by name
        found, n = turtle_bed("spider", "spider", graph, path.with_suffix(".jsonl"),
                              {"1 hop", "multi hop", "list all", "count"})
        items += found
        total += n
    return items, total


def sample(world, questions):
    graph = read_turtle("sample", world)
    graph.key = lambda nodes: {graph.labels.get(n, n).lower() for n in nodes}  # answers are given by name
    asked = []
    for path in questions:
        for line in open(path, encoding="utf8"):
            d = json.loads(line)
            if d["kind"] != "one":
                continue
            gold = {(a if isinstance(a, str) else a["name"]).lower() for a in d["answers"]}
            topics = [i for t in d["topics"] for i in graph.names.get(t.lower(), [])]
            asked.append((lambda topic, d=d: mark(d["question"], d["topics"]), topics, gold))
    return around_items("sample", "sample", graph, asked)


def webqsp_rows(data):
    return [json.loads(l) for l in open(data / "freebase/webqsp_train.jsonl", encoding="utf8")]


def held_out_webqsp(rows, size=500, seed=7):
    """The questions of WebQSP train that are kept for choices: fixed, never trained on."""
    usable = [r for r in rows if r["topic_names"] and r["answers"]]
    return random.Random(seed).sample(usable, size)


def webqsp(graph, rows):
    asked = []
    for r in rows:
        topics = [t for t in r["topic_names"] if t in graph.out or t in graph.into]
        marked = mark(r["question"], r["topic_names"], partial=True)
        asked.append((lambda topic, m=marked: m, topics, set(r["answers"])))
    return around_items("webqsp", "freebase", graph, asked)


def metaqa_rows(path):
    for line in open(path, encoding="utf8"):
        question, answers = line.rstrip("\n").split("\t")
        topic = re.search(r"\[(.*)\]", question).group(1)
        text = re.sub(r"\[.*\]", MARK, question)
        yield text, topic, set(answers.split("|"))


def metaqa(graph, rows):
    asked = [(lambda topic, q=q, t=t: (q, [t]), [t], gold) for q, t, gold in rows]
    return around_items("metaqa-1", "metaqa", graph, asked)


def chain_bed(bed, family, graph, rows, hops, exact):
    """Choices by gold path: `rows` of (marked question, topic, gold steps as (relation, direction))."""
    items, total = [], 0
    for question, found, topic, gold in rows:
        total += 1
        key = (topic, hops)
        if key not in graph.cache:
            graph.cache[key] = list(graph.paths(topic, hops))
        paths = graph.cache[key]
        scores = [1.0 if [(s.relation, s.direction) for s in p] == gold else 0.0 for p in paths]
        one = item(bed, family, question, found, paths, scores)
        if one:
            items.append(one)
    return items, total


def path_rows(path):
    """Lines of PathQuestion and WC2014: question, answer, gold path(s)."""
    for line in open(path, encoding="utf8"):
        parts = line.rstrip("\n").split("\t")
        chains = []
        for chain in parts[2].split("*"):
            pieces = chain.split("#")
            if "<end>" in pieces:
                pieces = pieces[:pieces.index("<end>")]
            chains.append((pieces[0], pieces[1::2], pieces[2::2]))
        yield parts[0].strip(), parts[1], chains, parts


def gold_steps(relations):
    steps = []
    for r in relations:
        back = r.endswith("_inverse")
        steps.append((dotted(r[:-8] if back else r)[0], BACKWARD if back else FORWARD))
    return steps


def chains(data, folder, graph, files, hops, bed, family):
    rows = []
    for name in files:
        for question, _, paths, _ in path_rows(data / folder / name):
            if len(paths) == 1:
                topic, relations, _ = paths[0]
                marked, found = mark(question.replace("_", " "), [topic.replace("_", " ")], partial=True)
                rows.append((marked, found, topic, gold_steps(relations)))
    return chain_bed(bed, family, graph, rows, hops, True)


def wc_p1(data, graph, part):
    asked = []
    for question, answer, paths, parts in path_rows(data / f"wc2014/WC-P1.{part}.txt"):
        topic = paths[0][0]
        gold = set(parts[3].strip("/").split("/"))
        marked = mark(question.replace("_", " "), [topic.replace("_", " ")], partial=True)
        asked.append((lambda t, m=marked: m, [topic], gold))
    return around_items("wc-p1", "wc2014", graph, asked)
