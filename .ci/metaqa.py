#!/usr/bin/env python3
"""MetaQA's lines as N-Triples: an IRI and a label for each name."""
import sys
from urllib.parse import quote
BASE, LABEL = "http://metaqa.example/", "<http://www.w3.org/2000/01/rdf-schema#label>"
seen = set()
for line in open(sys.argv[1], encoding="utf-8"):
    head, relation, tail = line.rstrip("\n").split("|")
    iris = [f"<{BASE}entity/{quote(name, safe='')}>" for name in (head, tail)]
    print(f"{iris[0]} <{BASE}relation/{relation}> {iris[1]} .")
    for name, iri in zip((head, tail), iris):
        if name not in seen:
            seen.add(name)
            text = name.replace("\\", "\\\\").replace('"', '\\"')
            print(f'{iri} {LABEL} "{text}"@en .')
