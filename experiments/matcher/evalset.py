"""Writes the choices that models are measured on (no test part): evalset.json.gz.

    python evalset.py DATA SAMPLE OUT
"""

import gzip
import json
import random
import sys
from pathlib import Path

import beds
import written
from graphs import read_tsv


def main():
    data, sample, out = map(Path, sys.argv[1:4])
    made = {}
    made["geoquery"] = beds.geoquery(data)
    dev = beds.geoquery(data, "dev")
    made["geoquery-dev"] = dev
    made["spider"] = beds.spider(data)
    made["sample"] = beds.sample(sample / "world.ttl.xz", [sample / "dev.jsonl", sample / "valid.jsonl"])
    meta = read_tsv("metaqa", data / "metaqa/kb.txt", "|")
    rows = list(beds.metaqa_rows(data / "metaqa/1-hop/qa_dev.txt"))
    made["metaqa-1"] = beds.metaqa(meta, random.Random(7).sample(rows, 500))
    wc = read_tsv("wc2014", data / "wc2014/WC2014.txt")
    made["wc-p1"] = beds.wc_p1(data, wc, "valid")
    made["wc-p2"] = beds.chains(data, "wc2014", wc, ["WC-P2.valid.txt"], 2, "wc-p2", "wc2014")
    for name, kb, hops in [("PQ-2H", "2H-kb", 2), ("PQ-3H", "3H-kb", 3), ("PQL-2H", "PQL2-KB", 2),
                           ("PQL-3H", "PQL3-KB", 3)]:
        graph = read_tsv(name, data / f"pathquestion/{kb}.txt")
        items, total = beds.chains(data, "pathquestion", graph, [f"{name}.valid.txt"], hops, name.lower(), "freebase")
        if len(items) > 200:
            items = random.Random(7).sample(items, 200)
        made[name.lower()] = items, total
    free = read_tsv("freebase", data / "freebase/triples.tsv")
    made["webqsp"] = beds.webqsp(free, beds.held_out_webqsp(beds.webqsp_rows(data)))

    made["written"] = written.choices(written.split(written.rows())[1])

    steps, ids = [], {}
    def step_id(step):
        if step not in ids:
            ids[step] = len(steps)
            steps.append(list(step))
        return ids[step]

    result = {"steps": steps, "beds": {}}
    for name, (items, total) in made.items():
        packed = []
        for one in items:
            packed.append({"q": one["q"], "names": one["names"], "class": one["class"], "gold": one["gold"],
                           "paths": [[step_id(s) for s in p] for p in one["paths"]]})
        result["beds"][name] = {"items": packed, "asked": total}
        n = [len(p["paths"]) for p in packed]
        print(f"{name:14} asked {total:5} answerable {len(packed):5} candidates mean {sum(n) / max(1, len(n)):7.1f} "
              f"max {max(n, default=0):5} chance {sum(len(p['gold']) / len(p['paths']) for p in packed) / max(1, len(n)):.3f}", flush=True)
    out.mkdir(parents=True, exist_ok=True)
    with gzip.open(out / "evalset.json.gz", "wt", encoding="utf8") as f:
        json.dump(result, f)


main()
