"""Whatever comes in, the interpreter lives, and the exception says what to do."""

import math
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import textwrap

import pytest
import wherefore
from conftest import FILMS
from wherefore import Graph, WhereforeError


def raised(code, work, *words):
    with pytest.raises(WhereforeError) as caught:
        work()
    assert caught.value.code == code
    for word in words:
        assert word in str(caught.value)


def test_what_is_no_triple_is_refused():
    raised("usage", lambda: Graph.from_triples([("a", "b")]), "no triple")
    raised("usage", lambda: Graph.from_triples([5]), "no triple")
    raised("usage", lambda: Graph.from_triples([("a", "b", None)]), "None")
    raised("usage", lambda: Graph.from_triples([("a", "b", math.nan)]), "nan")
    raised("usage", lambda: Graph.from_triples([("a", "b", b"c")]), "decode")
    raised("usage", lambda: Graph.from_triples([("a", "b", object())]), "object")
    raised("usage", lambda: Graph.from_networkx(FakeEdges()), "relation")


class FakeEdges:
    def edges(self, data):
        return [("a", "b", {})]


def test_frames_without_columns_and_empty_ones():
    pandas = pytest.importorskip("pandas")
    raised("usage", lambda: Graph.from_pandas(pandas.DataFrame()), "no column")
    frame = pandas.DataFrame({"head": ["a"], "relation": ["b"], "tail": [None]})
    raised("usage", lambda: Graph.from_pandas(frame), "no part of a triple")
    empty = pandas.DataFrame({"head": [], "relation": [], "tail": []})
    raised("usage", lambda: Graph.from_pandas(empty), "no triples")


def test_questions_that_are_none(films):
    for text in ["", "   ", "?!", "x" * 9000]:
        with pytest.raises(WhereforeError):
            films.ask(text)
    for text in [None, 5, b"Who?", ["Who?"]]:
        with pytest.raises(TypeError):
            films.ask(text)
    with pytest.raises(WhereforeError, match="cannot answer"):
        films.ask_many(["Who directed Heat?", ""])
    assert not films.ask("\x00\ud7ff who \U0001f600 directed?")


def test_settings_that_do_not_fit(films, tmp_path):
    raised("usage", lambda: films.ask("Who?", method="magic"), "magic", "read")
    with pytest.raises(WhereforeError):
        films.ask("Who?", model=tmp_path / "nothing")
    with pytest.raises(WhereforeError):
        films.ask("Who?", config=tmp_path / "nothing.toml")
    for precision in [1.5, -1.0, math.nan, math.inf]:
        with pytest.raises(WhereforeError):
            films.ask("Who directed Heat?", precision=precision)
    with pytest.raises((OverflowError, TypeError)):
        films.ask("Who directed Heat?", reading=-1)
    raised("no-such-entity", lambda: films.subgraph("Nobody"), "Nobody")
    with pytest.raises(WhereforeError):
        films._native.entity_names([10**6])


def test_graphs_that_are_not_there(tmp_path):
    with pytest.raises(WhereforeError) as caught:
        Graph.open(tmp_path / "nothing")
    assert "wherefore load" in caught.value.hint
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "graph.json").write_text("{")
    with pytest.raises(WhereforeError):
        Graph.open(tmp_path / "broken")
    with pytest.raises(WhereforeError):
        Graph.load(tmp_path / "nothing.ttl")
    with pytest.raises(WhereforeError, match="no format"):
        Graph.load(tmp_path, format="doc")
    with pytest.raises(WhereforeError):
        Graph.from_endpoint("http://127.0.0.1:9/sparql").ask("Who directed Heat?")


def test_a_closed_graph_says_so(films):
    films.close()
    raised("closed", lambda: films.ask("Who directed Heat?"), "closed", "open")
    raised("closed", lambda: films.sparql("ASK { ?s ?p ?o }"))


def test_a_graph_deleted_below_it(tmp_path):
    graph = Graph.from_triples(FILMS, tmp_path / "graph")
    shutil.rmtree(tmp_path / "graph")
    try:
        assert graph.ask("Who directed Heat?").names == ["Michael Mann"]
    except WhereforeError as error:
        assert error.message
    with pytest.raises(WhereforeError):
        graph.add([("a", "b", "c")])


def test_a_graph_that_is_there_is_not_replaced_unasked(tmp_path):
    Graph.from_triples(FILMS, tmp_path / "graph")
    with pytest.raises(WhereforeError):
        Graph.from_triples(FILMS[:1], tmp_path / "graph")
    assert len(Graph.from_triples(FILMS[:1], tmp_path / "graph", replace=True)) == 1


def _in_child(graph, results):
    try:
        graph.ask("Who directed Heat?")
        results.put("answered")
    except WhereforeError as error:
        results.put(error.code)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_process_is_told_what_to_do(films):
    films.ask_many(["Who directed Heat?"] * 4)
    fork = multiprocessing.get_context("fork")
    results = fork.Queue()
    child = fork.Process(target=_in_child, args=(films, results))
    child.start()
    assert results.get(timeout=20) == "forked"
    child.join(timeout=20)


ENDLESS = "SELECT (COUNT(*) AS ?n) WHERE { " + " ".join(f"?a{i} ?b{i} ?c{i} ." for i in range(12)) + " }"


@pytest.mark.skipif(os.name == "nt", reason="signals are others there")
@pytest.mark.parametrize(
    "work", ['graph.ask_many(["Which countries border Chad?"] * 1_000_000)', f'graph.sparql("{ENDLESS}", timeout=None)']
)
def test_control_c_ends_what_runs(work):
    code = textwrap.dedent(
        f"""
        import wherefore
        graph = wherefore.Graph.open("@world")
        try:
            print("begun", flush=True)
            {work}
        except KeyboardInterrupt:
            print("ended", flush=True)
        """
    )
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    assert child.stdout.readline() == b"begun\n"
    child.send_signal(signal.SIGINT)
    assert child.stdout.read() == b"ended\n"
    assert child.wait(timeout=20) == 0


def test_queries_are_limited(films):
    with pytest.raises(WhereforeError):
        films.sparql("SELEC")
    with pytest.raises(WhereforeError):
        films._native.sparql("ASK { ?s ?p ?o }", "doc", None, None)
    with pytest.raises(WhereforeError) as caught:
        films.sparql(ENDLESS, timeout=0.3)
    assert "time" in str(caught.value)
    assert len(films.sparql("SELECT * WHERE { ?s ?p ?o }", limit=2)) == 2


def test_answers_that_are_none(films):
    for text in ["", "{}", "[]", "null", '{"question": 5}']:
        with pytest.raises(WhereforeError):
            films.verify(text)
    with pytest.raises(ValueError):
        wherefore.Answer.from_json("{")
    with pytest.raises(TypeError):
        wherefore.Answer.from_json("{}").to_html()
