"""The other side of `cargo bench -p wherefore-graph --bench store`: the same work by pyoxigraph.

    python3 benches/pyoxigraph_side.py GRAPH.nt SEEDS.txt PAIRS.txt FOLDER

Loads GRAPH.nt with the bulk loader into FOLDER, opens it, expands two hops (both directions,
distinct triples) around each IRI of SEEDS.txt, finds all shortest paths of up to three edges
between the pairs of IRIs in PAIRS.txt, and prints one JSON object of seconds, counts and bytes.
"""

import json
import os
import sys
import time

import pyoxigraph as ox


def neighbours(store, node):
    for q in store.quads_for_pattern(node, None, None):
        yield q, q.object
    for q in store.quads_for_pattern(None, None, node):
        yield q, q.subject


def expand(store, seed, hops=2):
    triples, seen, frontier = set(), {seed}, [seed]
    for _ in range(hops):
        reached = []
        for node in frontier:
            for q, other in neighbours(store, node):
                triples.add((q.subject, q.predicate, q.object))
                if other not in seen:
                    seen.add(other)
                    reached.append(other)
        frontier = reached
    return triples


def shortest_paths(store, source, target, longest=3):
    """Triples on all shortest paths, by breadth-first layers and a walk back."""
    layers, came, seen = [[source]], {}, {source}
    while target not in seen and len(layers) <= longest and layers[-1]:
        layer = set()
        for node in layers[-1]:
            for q, other in neighbours(store, node):
                if other not in seen:
                    layer.add(other)
                    came.setdefault(other, []).append((node, (q.subject, q.predicate, q.object)))
        seen |= layer
        layers.append(list(layer))
    on_path, back = set(), [target] if target in seen else []
    while back:
        nodes, back = back, []
        for node in nodes:
            for previous, triple in came.get(node, []):
                if triple not in on_path:
                    on_path.add(triple)
                    back.append(previous)
    return on_path


def folder_bytes(path):
    return sum(os.path.getsize(os.path.join(d, f)) for d, _, files in os.walk(path) for f in files)


def main():
    graph, seeds, pairs, folder = sys.argv[1:5]
    out = {"version": ox.__version__}
    start = time.perf_counter()
    store = ox.Store(folder)
    store.bulk_load(path=graph, format=ox.RdfFormat.N_TRIPLES)
    store.flush()
    out["load_s"] = time.perf_counter() - start
    store.optimize()
    out["triples"] = len(store)
    del store
    out["bytes"] = folder_bytes(folder)
    start = time.perf_counter()
    store = ox.Store(folder)
    out["open_s"] = time.perf_counter() - start
    nodes = [ox.NamedNode(line.strip()) for line in open(seeds)]
    expand(store, nodes[0])
    start = time.perf_counter()
    out["expanded"] = sum(len(expand(store, node)) for node in nodes)
    out["expand_s"] = time.perf_counter() - start
    ends = [[ox.NamedNode(x) for x in line.split()] for line in open(pairs)]
    start = time.perf_counter()
    out["on_paths"] = sum(len(shortest_paths(store, a, b)) for a, b in ends)
    out["paths_s"] = time.perf_counter() - start
    print(json.dumps(out))


main()
