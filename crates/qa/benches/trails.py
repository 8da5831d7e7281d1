"""The other side of trails.rs: the same ways with networkx. Cases come as JSON on standard input."""
import json
import statistics
import sys
import time

import networkx as nx

ways, build, times = 0, [], []
for case in json.load(sys.stdin):
    start = time.perf_counter()
    graph = nx.MultiGraph()
    graph.add_nodes_from(range(case["entities"]))
    graph.add_edges_from((h, t, i) for i, (h, _, t) in enumerate(case["triples"]))
    build.append(1e3 * (time.perf_counter() - start))
    runs = []
    for _ in range(3):
        start = time.perf_counter()
        found = sum(
            1
            for topic in case["topics"]
            for candidate in case["candidates"]
            if candidate != topic
            for _ in nx.all_simple_edge_paths(graph, topic, candidate, cutoff=case["length"])
        )
        runs.append(1e3 * (time.perf_counter() - start))
    ways += found
    times.append(statistics.median(runs))
print(json.dumps({"ways": ways, "build_ms": statistics.median(build), "ms": statistics.median(times)}))
