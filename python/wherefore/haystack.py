"""Components for Haystack.

>>> import wherefore
>>> from wherefore.haystack import WhereforeAnswerer, WhereforeRetriever
>>> films = wherefore.Graph.from_triples([("Heat", "directed_by", "Michael Mann")])
>>> WhereforeRetriever(films).run(query="Who directed Heat?")["documents"][0].content
'Heat -> directed by -> Michael Mann'
>>> WhereforeAnswerer(films).run(query="Who directed Heat?")["answers"][0].data
'Michael Mann'
"""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Union

from haystack import Document, GeneratedAnswer, component, default_from_dict, default_to_dict

from ._answer import Evidence
from ._graph import Graph, PathLike


def _opened(graph: Union[Graph, PathLike]) -> Graph:
    return graph if isinstance(graph, Graph) else Graph.open(graph)


def _document(one: Evidence) -> Document:
    return Document(
        content=" -> ".join(one.triple),
        meta={"ids": list(one.ids), "verified": one.verified},
        score=one.score,
    )


@component
class WhereforeRetriever:
    """The triples that bear on a question, one a document, best first."""

    def __init__(self, graph: Union[Graph, PathLike], top_k: int = 20, method: Optional[str] = None) -> None:
        self.graph, self.top_k, self.method = _opened(graph), top_k, method

    def to_dict(self) -> Dict[str, Any]:
        return default_to_dict(self, graph=self.graph.path, top_k=self.top_k, method=self.method)

    @classmethod
    def from_dict(cls, data: Dict[str, Any]) -> "WhereforeRetriever":
        return default_from_dict(cls, data)

    @component.output_types(documents=List[Document])
    def run(self, query: str, top_k: Optional[int] = None) -> Dict[str, List[Document]]:
        found = self.graph.retrieve(query, self.top_k if top_k is None else top_k, method=self.method)
        return {"documents": [_document(one) for one in found]}


@component
class WhereforeAnswerer:
    """Answers, each with the triples that prove it; none where the graph does not answer."""

    def __init__(self, graph: Union[Graph, PathLike], precision: Optional[float] = None) -> None:
        self.graph, self.precision = _opened(graph), precision

    def to_dict(self) -> Dict[str, Any]:
        return default_to_dict(self, graph=self.graph.path, precision=self.precision)

    @classmethod
    def from_dict(cls, data: Dict[str, Any]) -> "WhereforeAnswerer":
        return default_from_dict(cls, data)

    @component.output_types(answers=List[GeneratedAnswer])
    def run(self, query: str) -> Dict[str, List[GeneratedAnswer]]:
        answer = self.graph.ask(query, precision=self.precision)
        return {
            "answers": [
                GeneratedAnswer(
                    data=entity.name,
                    query=query,
                    documents=[_document(one) for one in entity.because],
                    meta={"id": entity.id, "confidence": entity.confidence, "reading": answer.reading},
                )
                for entity in answer.answers
            ]
        }
