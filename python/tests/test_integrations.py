"""The places where graph people already work, each against the real package."""

import doctest
import importlib

import pytest
import wherefore
from conftest import FILMS


@pytest.mark.parametrize(
    "module, needs",
    [
        ("wherefore", None),
        ("wherefore._graph", None),
        ("wherefore.rdflib", "rdflib"),
        ("wherefore.langchain", "langchain_core"),
        ("wherefore.llamaindex", "llama_index.core"),
        ("wherefore.haystack", "haystack"),
        ("wherefore.sklearn", "sklearn"),
    ],
)
def test_examples_of_the_documentation(module, needs):
    if needs:
        pytest.importorskip(needs)
    failed, tried = doctest.testmod(importlib.import_module(module))
    assert tried and not failed


def test_examples_of_the_readme():
    import pathlib

    readme = pathlib.Path(__file__).parents[1] / "README.md"
    failed, tried = doctest.testfile(str(readme), module_relative=False)
    assert tried and not failed


def test_haystack_pipelines_are_saved_and_run(films):
    haystack = pytest.importorskip("haystack")
    import haystack.core.serialization
    from wherefore.haystack import WhereforeAnswerer, WhereforeRetriever

    pipeline = haystack.Pipeline()
    pipeline.add_component("answers", WhereforeAnswerer(films))
    pipeline.add_component("triples", WhereforeRetriever(films, top_k=2))
    if hasattr(haystack.core.serialization, "allow_deserialization_module"):
        haystack.core.serialization.allow_deserialization_module("wherefore.haystack")
    again = haystack.Pipeline.loads(pipeline.dumps())
    found = again.run({"answers": {"query": "Who directed Heat?"}, "triples": {"query": "Who directed Heat?"}})
    assert found["answers"]["answers"][0].data == "Michael Mann"
    assert len(found["triples"]["documents"]) == 2
    assert found["answers"]["answers"][0].documents[0].content == "Heat -> directed by -> Michael Mann"


def test_llamaindex_says_why_there_is_no_answer(films):
    pytest.importorskip("llama_index.core")
    import asyncio

    from wherefore.llamaindex import WhereforeQueryEngine

    engine = WhereforeQueryEngine(films)
    assert str(engine.query("Who knitted Heat?")).startswith("No answer")
    response = asyncio.run(engine.aquery("Who directed Heat?"))
    assert response.source_nodes[0].text == "Heat -> directed by -> Michael Mann"
    assert response.metadata["confidence"] > 0.5


def test_the_matcher_predicts_labels():
    pytest.importorskip("sklearn")
    from sklearn.base import clone
    from wherefore.sklearn import Matcher

    matcher = clone(Matcher(least=0.1)).fit(["Heat", "Michael Mann"], [7, 8])
    assert matcher.predict(["the film Heat", "michael man", "", "nothing"]) == [7, 8, None, None]
    assert matcher.score(["Heat", "nothing"], [7, None]) == 1.0
    with pytest.raises(ValueError):
        Matcher().fit([])


langchain_tests = pytest.importorskip("langchain_tests", reason="langchain-tests is not installed")

from langchain_tests.integration_tests import RetrieversIntegrationTests, ToolsIntegrationTests  # noqa: E402
from langchain_tests.unit_tests import ToolsUnitTests  # noqa: E402
from wherefore.langchain import WhereforeRetriever, WhereforeTool  # noqa: E402


class TestLangChainRetriever(RetrieversIntegrationTests):
    @property
    def retriever_constructor(self):
        return WhereforeRetriever

    @property
    def retriever_constructor_params(self):
        return {"graph": wherefore.Graph.from_triples(FILMS)}

    @property
    def retriever_query_example(self):
        return "Who directed Heat?"


class _Tool:
    @property
    def tool_constructor(self):
        return WhereforeTool

    @property
    def tool_constructor_params(self):
        return {"graph": wherefore.Graph.from_triples(FILMS)}

    @property
    def tool_invoke_params_example(self):
        return {"question": "Who directed Heat?"}


class TestLangChainToolUnit(_Tool, ToolsUnitTests):
    pass


class TestLangChainTool(_Tool, ToolsIntegrationTests):
    pass
