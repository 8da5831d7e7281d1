"""A retriever and a query engine for LlamaIndex.

>>> import wherefore
>>> from wherefore.llamaindex import WhereforeQueryEngine, WhereforeRetriever
>>> films = wherefore.Graph.from_triples([("Heat", "directed_by", "Michael Mann")])
>>> WhereforeRetriever(films).retrieve("Who directed Heat?")[0].text
'Heat -> directed by -> Michael Mann'
>>> str(WhereforeQueryEngine(films).query("Who directed Heat?"))
'Michael Mann'
"""

from __future__ import annotations

from typing import Any, Iterable, List, Optional

from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.response.schema import Response
from llama_index.core.callbacks import CallbackManager
from llama_index.core.prompts.mixin import PromptMixinType
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

from ._answer import Evidence
from ._graph import Graph


def _nodes(triples: Iterable[Evidence]) -> List[NodeWithScore]:
    return [
        NodeWithScore(
            node=TextNode(text=" -> ".join(one.triple), metadata={"ids": list(one.ids), "verified": one.verified}),
            score=one.score,
        )
        for one in triples
    ]


class WhereforeRetriever(BaseRetriever):
    """The triples that bear on a question, one a node, best first."""

    def __init__(self, graph: Graph, k: int = 20, method: Optional[str] = None, model: Optional[str] = None) -> None:
        self._graph, self._k, self._method, self._model = graph, k, method, model
        super().__init__()

    def _retrieve(self, query_bundle: QueryBundle) -> List[NodeWithScore]:
        return _nodes(self._graph.retrieve(query_bundle.query_str, self._k, method=self._method, model=self._model))


class WhereforeQueryEngine(BaseQueryEngine):
    """Answers with their proof as source nodes; ``metadata`` has reading, SPARQL and confidence."""

    def __init__(self, graph: Graph, **options: Any) -> None:
        """``options`` are those of :meth:`wherefore.Graph.ask`."""
        self._graph, self._options = graph, options
        super().__init__(callback_manager=CallbackManager([]))

    def _get_prompt_modules(self) -> PromptMixinType:
        return {}

    def _query(self, query_bundle: QueryBundle) -> Response:
        answer = self._graph.ask(query_bundle.query_str, **self._options)
        text = ", ".join(answer.names) if answer else f"No answer: {answer.reason}"
        proof = {one.triple: one for entity in answer.answers for one in entity.because}
        return Response(
            response=text,
            source_nodes=_nodes(proof.values()),
            metadata={
                "reading": answer.reading,
                "sparql": answer.sparql,
                "confidence": answer.confidence,
                "refusal": answer.refusal,
            },
        )

    async def _aquery(self, query_bundle: QueryBundle) -> Response:
        import asyncio

        return await asyncio.get_running_loop().run_in_executor(None, self._query, query_bundle)
