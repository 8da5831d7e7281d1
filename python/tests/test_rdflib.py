"""`rdflib`'s own SPARQL and serializers over our store, beside its own store."""

import pytest
import wherefore

rdflib = pytest.importorskip("rdflib")

from wherefore.rdflib import WhereforeStore  # noqa: E402

TURTLE = """
@prefix : <http://example.org/> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
:heat a :Film ; rdfs:label "Heat"@en , "Heat, la sfida"@it ; :year 1995 ; :cast _:c1 .
_:c1 :actor :pacino ; :part "Vincent Hanna" .
:ali a :Film ; rdfs:label "Ali" ; :year 2001 ; :released "2001-12-25"^^xsd:date ; :length 157.5 .
:pacino rdfs:label "Al Pacino" ; :knows :pacino .
"""

QUERIES = [
    "SELECT ?s ?l WHERE { ?s rdfs:label ?l }",
    "SELECT ?s WHERE { ?s a :Film ; :year ?y FILTER(?y > 1999) }",
    "SELECT ?part WHERE { :heat :cast/:part ?part }",
    "SELECT ?s (COUNT(?p) AS ?n) WHERE { ?s ?p ?o } GROUP BY ?s ORDER BY DESC(?n)",
    "SELECT ?l WHERE { :heat rdfs:label ?l FILTER(LANG(?l) = 'it') }",
    "SELECT ?s ?d WHERE { ?s a :Film OPTIONAL { ?s :released ?d } }",
    "SELECT ?s WHERE { ?s :knows+ ?s }",
    "SELECT ?s WHERE { ?s a :Film MINUS { ?s :released ?d } }",
    "SELECT ?s WHERE { { ?s :year 1995 } UNION { ?s :year 2001 } }",
    "SELECT (AVG(?y) AS ?mean) WHERE { ?s :year ?y }",
    "ASK { :heat :year 1995 }",
    "ASK { :heat :year 1996 }",
    "CONSTRUCT { ?s :is ?y } WHERE { ?s :year ?y }",
    "SELECT ?s WHERE { VALUES ?s { :heat :nothing } ?s ?p ?o }",
    "SELECT ?x WHERE { :heat ^:knows|:year ?x }",
    "SELECT ?s ?o WHERE { ?s !rdfs:label ?o }",
    "SELECT DISTINCT ?p WHERE { ?s ?p ?o } ORDER BY ?p",
    "SELECT ?l WHERE { ?s rdfs:label ?l FILTER REGEX(?l, '^A') }",
]
PREFIXES = "PREFIX : <http://example.org/> PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#> "


@pytest.fixture(scope="module")
def both():
    own = rdflib.Graph().parse(data=TURTLE)
    ours = rdflib.Graph(store=WhereforeStore(wherefore.Graph.from_rdflib(own)))
    return own, ours


def rows(result):
    if result.type == "ASK":
        return bool(result.askAnswer)
    if result.type == "CONSTRUCT":
        return rdflib.compare.to_isomorphic(result.graph)
    blank = lambda term: "_" if isinstance(term, rdflib.BNode) else term  # noqa: E731
    return sorted(tuple(map(str, map(blank, row))) for row in result)


@pytest.mark.parametrize("query", QUERIES)
def test_queries_of_rdflib_give_the_same(both, query):
    import rdflib.compare  # noqa: F401

    own, ours = both
    assert rows(ours.query(PREFIXES + query)) == rows(own.query(PREFIXES + query))


@pytest.mark.parametrize("format", ["nt", "turtle", "xml", "json-ld"])
def test_serializers_of_rdflib_write_the_same(both, format):
    import rdflib.compare

    own, ours = both
    again = rdflib.Graph().parse(data=ours.serialize(format=format), format=format)
    assert rdflib.compare.isomorphic(own, again)


def test_patterns_and_sizes(both):
    own, ours = both
    assert len(ours) == len(own)
    film = rdflib.URIRef("http://example.org/heat")
    year = rdflib.URIRef("http://example.org/year")
    assert ours.value(film, year) == rdflib.Literal(1995)
    assert list(ours.subjects(year, rdflib.Literal(2001))) == [rdflib.URIRef("http://example.org/ali")]
    assert (film, None, None) in ours and (None, None, film) not in ours
    assert set(ours.predicates(film)) == set(own.predicates(film))
    assert not list(ours.triples((rdflib.Variable("x"), None, None)))
    # a text is an xsd:string
    part = rdflib.Literal("Vincent Hanna", datatype=rdflib.XSD.string)
    assert len(list(ours.triples((None, None, part)))) == 1


def test_it_is_read_only(both):
    _, ours = both
    with pytest.raises(TypeError, match="read-only"):
        ours.add((rdflib.URIRef("http://x/a"), rdflib.URIRef("http://x/b"), rdflib.URIRef("http://x/c")))
    with pytest.raises(TypeError, match="read-only"):
        ours.remove((None, None, None))


def test_a_folder_is_opened_by_its_path(tmp_path):
    wherefore.Graph.from_triples([("Heat", "directed_by", "Michael Mann")], tmp_path / "graph")
    store = WhereforeStore()
    store.open(str(tmp_path / "graph"))
    assert [str(o) for _, _, o in rdflib.Graph(store=store)] == ["name:Michael%20Mann"]
    with pytest.raises(ValueError):
        len(WhereforeStore())
