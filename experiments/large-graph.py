#!/usr/bin/env python3
"""Questions, percentiles and chart of large-graph.sh. Standard library only."""
import json
import math
import os
import sys


def questions(path, count):
    """About heads of triples drawn evenly from the file, by the relation that they have there."""
    size = os.path.getsize(path)
    with open(path, "rb") as file:
        for i in range(count):
            file.seek(int(size * (i + 0.5) / count))
            file.readline()
            line = file.readline().decode()
            if not line:
                continue
            head, relation, _ = line.split(" ")[:3]
            name = head.strip("<>").rsplit("/", 1)[1].replace("_", " ")
            relation = relation.strip("<>").rsplit("/", 1)[1]
            print(json.dumps({
                "id": str(i),
                "question": f"what is the {relation} of {name} ?",
                "topics": [head.strip("<>")],
                "answers": [],
            }))


def queries(info):
    """SPARQL that has to do with all triples, or with the largest relation, as names and queries."""
    info = json.load(open(info))
    largest = f"<{info['relations'][0]['id']}>"
    hub = "<http://example.org/entity/" + info["highest_degree"][0].replace(" ", "_") + ">"
    top = "ORDER BY DESC(?n) LIMIT 10"
    for name, query in [
        ("triples by relation", "SELECT ?p (COUNT(*) AS ?n) WHERE { ?s ?p ?o } GROUP BY ?p"),
        ("the same, counted one by one", "SELECT ?p (COUNT(*) AS ?n) WHERE { ?s ?p ?o FILTER(true) } GROUP BY ?p"),
        ("the ten largest hubs", f"SELECT ?o (COUNT(*) AS ?n) WHERE {{ ?s ?p ?o }} GROUP BY ?o {top}"),
        ("the ten largest of a relation", f"SELECT ?o (COUNT(*) AS ?n) WHERE {{ ?s {largest} ?o }} GROUP BY ?o {top}"),
        ("neighbours of the largest hub", f"SELECT ?s WHERE {{ ?s {largest} {hub} }} LIMIT 1000"),
        ("relations of the largest hub", f"SELECT ?p (COUNT(*) AS ?n) WHERE {{ ?s ?p {hub} }} GROUP BY ?p {top}"),
    ]:
        print(f"{name}\t{query}")


def percentile(values, share):
    values = sorted(values)
    return values[min(len(values) - 1, math.ceil(share * len(values)) - 1)]


def lines_of(run):
    for name in sorted(os.listdir(run)):
        if name.endswith(".jsonl"):
            with open(os.path.join(run, name)) as file:
                for line in file:
                    yield json.loads(line)


def timings(run):
    """Milliseconds of retrieval and of the whole question, for each question of a run."""
    retrieve, total = [], []
    for line in lines_of(run):
        found = find(line, "timings_ms")
        if found:
            retrieve.append(found["retrieve"])
            total.append(found.get("total", sum(found.values())))
    return retrieve, total


def find(value, key):
    if isinstance(value, dict):
        if key in value:
            return value[key]
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            found = find(item, key)
            if found is not None:
                return found
    return None


def measure(graph, millions):
    report = {"millions": int(millions)}
    info = json.load(open(f"{graph}.info"))
    report.update(triples=info["triples"], entities=info["entities"], bytes=info["bytes"])
    report["largest_hub"] = info["highest_degree"][1]
    report.update(json.load(open(f"{graph}.load")))
    for run in ["cold", "warm"]:
        report.update({f"{run}_{k}": v for k, v in json.load(open(f"{graph}.{run}.ask")).items()})
        retrieve, total = timings(f"{graph}.{run}")
        report[f"{run}_questions"] = len(retrieve)
        for name, values in [("retrieve", retrieve), ("total", total)]:
            report[f"{run}_{name}_p50"] = percentile(values, 0.5)
            report[f"{run}_{name}_p99"] = percentile(values, 0.99)
    print(json.dumps(report))


def reports(paths):
    return sorted((json.load(open(p)) for p in paths), key=lambda r: r["millions"])


def table(paths):
    print("| triples | load | of a load | disk | of 1,000 questions | retrieval p50 / p99 | whole question p50 / p99 |")
    print("|---|---|---|---|---|---|---|")
    for r in reports(paths):
        print(f"| {r['triples']:,} | {r['load_s']:.0f} s | {r['load_kb'] / 1024:.0f} MB resident "
              f"| {r['bytes'] / 1e9:.2f} GB | {r['warm_ask_kb'] / 1024:.0f} MB resident "
              f"| {r['warm_retrieve_p50']:.2f} / {r['warm_retrieve_p99']:.1f} ms "
              f"| {r['warm_total_p50']:.2f} / {r['warm_total_p99']:.1f} ms |")


def chart(paths):
    """Milliseconds over triples, both by powers of ten."""
    rows = reports(paths)
    series = [("p99, retrieval", "warm_retrieve_p99", "#6a3d9a"), ("p50, retrieval", "warm_retrieve_p50", "#1f78b4")]
    values = [r[key] for r in rows for _, key, _ in series]
    low = math.floor(math.log10(min(values)))
    high = max(math.ceil(math.log10(max(values))), low + 1)
    width, height, left, top, bottom = 560, 360, 70, 20, 300
    xs = [left + 40 + i * (width - left - 120) / max(1, len(rows) - 1) for i in range(len(rows))]
    y = lambda ms: bottom - (math.log10(ms) - low) / (high - low) * (bottom - top)
    print(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12" fill="#555">')
    print(f'<rect width="{width}" height="{height}" fill="#fff"/>')
    for power in range(low, high + 1):
        at = y(10 ** power)
        print(f'<path d="M{left} {at:.1f}H{width - 20}" stroke="#ddd"/>')
        print(f'<text x="{left - 8}" y="{at + 4:.1f}" text-anchor="end">{10 ** power:g} ms</text>')
    for x, r in zip(xs, rows):
        print(f'<text x="{x:.1f}" y="{bottom + 20}" text-anchor="middle">{r["millions"]} million</text>')
    print(f'<text x="{(left + width) / 2:.0f}" y="{bottom + 44}" text-anchor="middle">triples</text>')
    for name, key, colour in series:
        first = rows[0][key]
        goal = [first * 1.5 ** math.log10(r["millions"] / rows[0]["millions"]) for r in rows]
        points = " ".join(f"{x:.1f},{y(v):.1f}" for x, v in zip(xs, goal))
        print(f'<polyline points="{points}" stroke="#999" stroke-dasharray="5 4" fill="none"/>')
        points = " ".join(f"{x:.1f},{y(r[key]):.1f}" for x, r in zip(xs, rows))
        print(f'<polyline points="{points}" stroke="{colour}" stroke-width="2" fill="none"/>')
        for x, r in zip(xs, rows):
            print(f'<circle cx="{x:.1f}" cy="{y(r[key]):.1f}" r="3.5" fill="{colour}"/>')
            print(f'<text x="{x:.1f}" y="{y(r[key]) - 9:.1f}" text-anchor="middle">{r[key]:.3g}</text>')
        print(f'<text x="{xs[-1] + 12:.1f}" y="{y(rows[-1][key]) + 4:.1f}" fill="{colour}">{name.split(",")[0]}</text>')
    print(f'<text x="{left}" y="{height - 6}">retrieval over 1,000 questions; dashed: 1.5 times for each ten times the triples</text>')
    print("</svg>")


if __name__ == "__main__":
    what, *rest = sys.argv[1:]
    if what == "questions":
        questions(rest[0], int(rest[1]))
    elif what == "queries":
        queries(rest[0])
    elif what == "measure":
        measure(rest[0], rest[1])
    elif what == "table":
        table(rest)
    else:
        chart(rest)
