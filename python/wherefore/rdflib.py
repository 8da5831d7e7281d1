"""A graph folder as a read-only store of `rdflib`, whose own SPARQL and serializers run on it.

>>> import rdflib, wherefore
>>> from wherefore.rdflib import WhereforeStore
>>> films = wherefore.Graph.from_triples([("Heat", "directed_by", "Michael Mann")])
>>> graph = rdflib.Graph(store=WhereforeStore(films))
>>> len(graph)
1
>>> print(graph.serialize(format="nt").strip())
<name:Heat> <name:directed_by> <name:Michael%20Mann> .

Names that are no IRIs are written with the scheme `name:`, as in `wherefore sparql`. A text and the same text
as an `xsd:string` are one term, as RDF 1.1 has it; `rdflib`'s own store keeps them apart.
"""

from __future__ import annotations

from typing import Any, Iterator, Optional, Tuple, Union

from rdflib.graph import Graph as RdfGraph
from rdflib.namespace import XSD
from rdflib.store import Store
from rdflib.term import BNode, Literal, Node, URIRef

from ._graph import Graph, PathLike

_BATCH = 1024


def _told(term: Optional[Node]) -> Any:
    if term is None:
        return None
    if isinstance(term, Literal):
        # since RDF 1.1 a text without a datatype is an xsd:string
        datatype = None if term.datatype in (None, XSD.string) else str(term.datatype)
        return ("literal", str(term), term.language, datatype)
    if isinstance(term, BNode):
        return ("blank", str(term), None, None)
    if isinstance(term, URIRef):
        return ("iri", str(term), None, None)
    # variables, formulas and paths: nothing of the kind is in the store
    return ("other", str(term), None, None)


def _term(told: Any) -> Node:
    kind, text, language, datatype = told
    if kind == "literal":
        return Literal(text, lang=language, datatype=None if datatype is None else URIRef(datatype))
    return BNode(text) if kind == "blank" else URIRef(text)


class WhereforeStore(Store):
    """The triples of a graph folder. Changes are made with :meth:`wherefore.Graph.add`."""

    context_aware = False
    formula_aware = False
    transaction_aware = False
    graph_aware = False

    def __init__(self, graph: Union[Graph, PathLike, None] = None, identifier: Any = None) -> None:
        self._graph: Optional[Graph] = None
        self._prefixes: dict = {}
        super().__init__(identifier=identifier)
        if graph is not None:
            self._graph = graph if isinstance(graph, Graph) else Graph.open(graph)

    def open(self, configuration: Any, create: Optional[bool] = False) -> Optional[int]:
        """Opens the graph folder that is named."""
        self._graph = Graph.open(configuration)
        return 1

    def close(self, commit_pending_transaction: bool = False) -> None:
        if self._graph is not None:
            self._graph.close()

    def _native(self) -> Any:
        if self._graph is None:
            raise ValueError("no graph is open: `WhereforeStore(graph)`, or `open(path)`")
        return self._graph._native

    def triples(self, triple_pattern: Any, context: Optional[RdfGraph] = None) -> Iterator[Tuple[Any, Any]]:
        pattern = tuple(_told(term) for term in triple_pattern)
        found = self._native().matching(pattern)
        while True:
            batch = found.batch(_BATCH)
            if not batch:
                return
            for head, relation, tail in batch:
                yield (_term(head), _term(relation), _term(tail)), self._contexts(context)

    @staticmethod
    def _contexts(context: Optional[RdfGraph]) -> Iterator[Optional[RdfGraph]]:
        yield context

    def __len__(self, context: Optional[RdfGraph] = None) -> int:
        counts = self._native().counts()
        return counts[0] if counts else 0

    def _read_only(self, *_: Any, **__: Any) -> None:
        raise TypeError("the store is read-only; `wherefore.Graph.add` and `remove` change the graph")

    add = _read_only  # type: ignore[assignment]
    addN = _read_only  # type: ignore[assignment]
    remove = _read_only  # type: ignore[assignment]

    # prefixes are kept for as long as the store is open

    def bind(self, prefix: str, namespace: URIRef, override: bool = True) -> None:
        bound = self.prefix(namespace)
        if bound is not None and override:
            del self._prefixes[bound]
        if bound is None or override:
            if override or prefix not in self._prefixes:
                self._prefixes[prefix] = namespace

    def namespace(self, prefix: str) -> Optional[URIRef]:
        return self._prefixes.get(prefix)

    def prefix(self, namespace: URIRef) -> Optional[str]:
        return next((name for name, bound in self._prefixes.items() if bound == namespace), None)

    def namespaces(self) -> Iterator[Tuple[str, URIRef]]:
        return iter(list(self._prefixes.items()))
