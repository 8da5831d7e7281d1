"""rdflib's own SPARQL over our store beside its own store, on the W3C's query tests.

    python experiments/rdflib_store.py TESTS

TESTS is the folder of the W3C's rdf-tests (with `sparql/sparql10` and `sparql/sparql11`). Of each query
test with one default graph, both stores have to give the same. Run it with an interpreter that has
the package and rdflib.
"""

import collections
import pathlib
import signal
import sys
import warnings

import rdflib
import rdflib.compare
import wherefore
from rdflib.namespace import RDF, XSD
from wherefore.rdflib import WhereforeStore

MF = rdflib.Namespace("http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#")
QT = rdflib.Namespace("http://www.w3.org/2001/sw/DataAccess/tests/test-query#")


def tests(folder):
    for manifest in sorted(folder.rglob("manifest.ttl")):
        graph = rdflib.Graph()
        try:
            graph.parse(manifest, publicID=manifest.as_uri())
        except Exception:
            continue
        for test in sorted(graph.subjects(RDF.type, MF.QueryEvaluationTest)):
            action = graph.value(test, MF.action)
            query, data = graph.value(action, QT.query), list(graph.objects(action, QT.data))
            named = list(graph.objects(action, QT.graphData)) + list(graph.objects(action, QT.serviceData))
            if query is not None:
                yield str(test), path(query), [path(one) for one in data], bool(named)


def path(address):
    return pathlib.Path(str(address).removeprefix("file://"))


def result(graph, text, base):
    found = graph.query(text, base=base)
    if found.type == "ASK":
        return bool(found.askAnswer)
    if found.type in ("CONSTRUCT", "DESCRIBE"):
        return rdflib.compare.to_isomorphic(found.graph)
    return collections.Counter(tuple(map(shown, row)) for row in found)


def shown(term):
    return "_:" if isinstance(term, rdflib.BNode) else None if term is None else term.n3()


def without_string(rows):
    """Rows in which a text and an xsd:string are one, as RDF 1.1 has it."""
    if not isinstance(rows, collections.Counter):
        return rows
    plain = collections.Counter()
    for row, count in rows.items():
        plain[tuple(term and term.replace(f"^^<{XSD.string}>", "") for term in row)] += count
    return plain


def tried(graph, text, base):
    signal.alarm(10)
    try:
        return result(graph, text, base)
    except Exception as error:
        return type(error).__name__
    finally:
        signal.alarm(0)


def out_of_time(*_):
    raise TimeoutError


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGALRM, out_of_time)
    counts, different = collections.Counter(), []
    for suite in ("sparql10", "sparql11"):
        for name, query, data, named in tests(pathlib.Path(sys.argv[1]) / "sparql" / suite):
            if named or len(data) != 1 or not query.exists():
                counts["skipped: named graphs, services, or no single file of data"] += 1
                continue
            own = rdflib.Graph()
            try:
                own.parse(data[0], publicID=data[0].as_uri())
                text = query.read_text()
            except Exception:
                counts["skipped: rdflib does not read the data"] += 1
                continue
            if len(own) == 0:
                counts["skipped: no triples, and a graph folder needs one"] += 1
                continue
            # both have what rdflib read: it writes numbers in its own way
            ours = rdflib.Graph(store=WhereforeStore(wherefore.Graph.from_rdflib(own)))
            wanted, found = tried(own, text, query.as_uri()), tried(ours, text, query.as_uri())
            if isinstance(wanted, str) and isinstance(found, str):
                counts["skipped: rdflib does not run the query on either"] += 1
            elif wanted == found:
                counts["the same"] += 1
            elif without_string(wanted) == without_string(found):
                counts["the same but for xsd:string"] += 1
            else:
                counts["different"] += 1
                different.append((name, wanted, found))
    for what, count in counts.most_common():
        print(f"{count:5} {what}")
    for name, wanted, found in different:
        print(name, "| rdflib:", str(wanted)[:200], "| ours:", str(found)[:200])
