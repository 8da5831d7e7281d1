"""A retriever and a tool for LangChain.

>>> import wherefore
>>> from wherefore.langchain import WhereforeRetriever, WhereforeTool
>>> films = wherefore.Graph.from_triples([("Heat", "directed_by", "Michael Mann")])
>>> WhereforeRetriever(graph=films).invoke("Who directed Heat?")[0].page_content
'Heat -> directed by -> Michael Mann'
>>> print(WhereforeTool(graph=films).invoke("Who directed Heat?"))
Michael Mann
because: Heat -> directed by -> Michael Mann
"""

from __future__ import annotations

from typing import Any, List, Optional, Type

from langchain_core.callbacks import CallbackManagerForRetrieverRun, CallbackManagerForToolRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.tools import BaseTool
from pydantic import BaseModel, ConfigDict, Field

from ._graph import Graph


class WhereforeRetriever(BaseRetriever):
    """The triples that bear on a question, one a document, best first."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    graph: Graph
    """The graph that is asked."""
    k: int = 20
    """Triples at most."""
    method: Optional[str] = None
    """As of :meth:`wherefore.Graph.retrieve`."""
    model: Optional[str] = None
    """A checkpoint."""

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, k: Optional[int] = None, **_: Any
    ) -> List[Document]:
        found = self.graph.retrieve(query, self.k if k is None else k, method=self.method, model=self.model)
        return [
            Document(
                page_content=" -> ".join(one.triple),
                metadata={"ids": list(one.ids), "score": one.score, "verified": one.verified},
            )
            for one in found
        ]


class _Asked(BaseModel):
    question: str = Field(description="The question, in plain language, naming the things it is about")


class WhereforeTool(BaseTool):
    """Answers a question from the graph, with the triples that prove it."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    graph: Graph
    """The graph that is asked."""
    name: str = "ask_knowledge_graph"
    description: str = (
        "Answers a question in plain language from a knowledge graph, with the triples that prove the answer, "
        "or says why the graph does not answer it."
    )
    args_schema: Type[BaseModel] = _Asked
    precision: Optional[float] = None
    """Share of answers that are to be right."""

    def _run(self, question: str, run_manager: Optional[CallbackManagerForToolRun] = None) -> str:
        answer = self.graph.ask(question, precision=self.precision)
        if not answer:
            return f"No answer: {answer.reason}"
        lines = [", ".join(answer.names)]
        proof = {one.triple for entity in answer.answers for one in entity.because}
        lines += [f"because: {' -> '.join(triple)}" for triple in sorted(proof)]
        return "\n".join(lines)
