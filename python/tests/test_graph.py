"""Graphs are made, asked, changed and measured."""

import json
import subprocess
import sys
import threading

import pytest
import wherefore
from conftest import FILMS


def test_a_question_is_answered_with_its_proof(films):
    answer = films.ask("Who directed Heat?")
    assert answer and len(answer) == 1
    assert answer.names == ["Michael Mann"]
    assert answer.question == "Who directed Heat?"
    (entity,) = answer.answers
    assert entity.because[0].triple == ("Heat", "directed by", "Michael Mann")
    assert entity.because[0].verified
    assert 0.5 < answer.confidence <= 1
    assert "SELECT" in answer.sparql
    assert answer.timings_ms["total"] > 0
    assert "Heat" in answer.to_html()
    assert answer._repr_html_().startswith("<iframe")
    assert repr(answer) == "<Answer: Michael Mann>"


def test_what_is_computed_is_marked(films):
    (entity,) = films.ask("How many films did Michael Mann direct?").answers
    assert (entity.name, entity.computed) == ("2", True)


def test_a_question_follows_an_answer(world):
    peru = world.ask("What is the capital of Peru?")
    after = world.ask("And its population?", follow=peru)
    assert after.answers and after.names == world.ask("What is the population of Lima?").names
    # what answers nothing has nothing to follow
    nothing = world.ask("What is the blorpy of Peru?")
    assert not world.ask("And its population?", follow=nothing)


def test_a_refusal_says_why(world):
    answer = world.ask("What is the blorpy of Peru?")
    assert not answer
    assert answer.names == [] and answer.confidence is None
    assert "blorpy" in answer.reason and answer.unused_words == ["blorpy"]
    assert answer.refusal == "words-not-used"
    assert repr(answer).startswith("<Answer: none")


def test_another_reading_can_be_taken(world):
    first = world.ask("How big is Peru?", precision=0)
    assert first.alternatives
    number = first.alternatives[0].number
    other = world.ask("How big is Peru?", reading=number)
    assert other.logical_form == first.alternatives[0].logical_form


def test_a_table_has_a_thing_in_each_row(tmp_path):
    table = tmp_path / "herbs.csv"
    table.write_text("name,height,likes\nMint,60,shade;rain\nThyme,30,sun\n")
    graph = wherefore.Graph.load(table, wide=True, split=";", class_name="herb")
    assert sorted(graph.ask("Which herbs are there?", precision=0).names) == ["Mint", "Thyme"]
    assert graph.ask("What does Mint like?").names and len(graph.ask("What does Mint like?")) == 2
    with pytest.raises(wherefore.WhereforeError, match="wide=True"):
        wherefore.Graph.load(table, class_name="herb")


def test_many_questions_keep_their_order(world):
    countries = ["Peru", "Chad", "France", "Kenya"] * 10
    seen = []
    answers = world.ask_many((f"What is the capital of {c}?" for c in countries), progress=seen.append)
    assert [one.names for one in answers] == [["Lima"], ["N'Djamena"], ["Paris"], ["Nairobi"]] * 10
    assert seen == sorted(seen) and seen[-1] == 40
    assert world.ask_many([]) == []


def test_threads_ask_side_by_side(world):
    found = []
    ask = lambda: found.append(world.ask("What is the capital of Peru?").names)  # noqa: E731
    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [["Lima"]] * 8


def test_sparql_gives_rows(films):
    rows = films.sparql("SELECT ?film WHERE { ?film :directed_by <name:Michael%20Mann> } ORDER BY ?film")
    assert list(rows) == [{"film": "name:Ali"}, {"film": "name:Heat"}]
    assert rows.variables == ["film"] and rows[-1] == {"film": "name:Heat"} and len(rows[:1]) == 1
    assert films.sparql("ASK { <name:Heat> ?p ?o }").boolean is True
    assert not films.sparql("ASK { <name:Nothing> ?p ?o }")
    assert films.construct("CONSTRUCT WHERE { <name:Ali> :directed_by ?x }").count("\n") == 1
    pandas = pytest.importorskip("pandas")
    assert list(rows.to_pandas()["film"]) == ["name:Ali", "name:Heat"]
    assert isinstance(rows.to_pandas(), pandas.DataFrame)


def test_triples_are_retrieved_for_somebody_elses_model(films):
    found = films.retrieve("Who directed Heat?", 3)
    assert len(found) == 3
    assert list(found)[0].triple == ("Heat", "directed by", "Michael Mann")
    assert found.text().splitlines()[0] == "Heat -> directed by -> Michael Mann"


def test_names_are_linked(films):
    (link,) = films.link("Who directed Blade Runer?")
    assert (link.name, link.how) == ("Blade Runner", "misspelt")


def test_neighbourhoods_are_arrays(films):
    numpy = pytest.importorskip("numpy")
    near = films.subgraph("Heat", hops=1)
    assert near.edge_index.shape == (2, 4) and near.edge_index.dtype == numpy.int64
    names, relations = near.names(), near.relation_names()
    triples = {
        (names[h], relations[r], names[t]) for h, t, r in zip(*near.edge_index.tolist(), near.relations.tolist())
    }
    assert ("Heat", "directed by", "Michael Mann") in triples
    assert near.distance.tolist()[0] == 0 and set(near.distance.tolist()) == {0, 1}
    whole = films.subgraph()
    assert whole.edge_index.shape[1] == len(films) == len(FILMS)
    # the arrays own their memory
    near.edge_index[0, 0] = 7
    assert near.edge_index.flags.writeable


def test_answers_are_saved_and_verified(films):
    text = films.ask("Who directed Heat?").to_json()
    again = wherefore.Answer.from_json(text)
    assert again.names == ["Michael Mann"] and again.to_json() == text
    assert films.verify(again) and films.verify(text).holds
    forged = films.verify(text.replace("Michael Mann", "Evil Corp"))
    assert not forged and forged.failed


def test_changes_are_seen_at_once_and_by_others(films, tmp_path):
    report = films.add([("Collateral", "directed_by", "Michael Mann"), ("Collateral", "release_year", 2004)])
    assert report["added"] == 2
    assert "Collateral" in films.ask("Which films did Michael Mann direct?").names
    other = wherefore.Graph.open(films.path)
    films.remove([("Collateral", "directed_by", "Michael Mann")])
    assert "Collateral" not in other.ask("Which films did Michael Mann direct?").names


def test_graphs_come_from_tables_and_other_packages(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(FILMS, columns=["film", "what", "value"])
    graph = wherefore.Graph.from_pandas(frame, "film", "what", "value")
    assert len(graph) == len(FILMS) and graph.ask("When was Heat released?").names == ["1995"]
    networkx = pytest.importorskip("networkx")
    edges = networkx.MultiDiGraph()
    for head, relation, tail in FILMS:
        edges.add_edge(head, tail, relation=relation)
    assert len(wherefore.Graph.from_networkx(edges)) == len(FILMS)
    rdflib = pytest.importorskip("rdflib")
    rdf = rdflib.Graph().parse(
        data='@prefix : <http://x/> . :h <http://www.w3.org/2000/01/rdf-schema#label> "Heat" ; :director :m . '
        ':m <http://www.w3.org/2000/01/rdf-schema#label> "Michael Mann" .'
    )
    assert wherefore.Graph.from_rdflib(rdf).ask("Who is the director of Heat?").names == ["Michael Mann"]
    file = tmp_path / "films.csv"
    file.write_text("film,director\n")
    file.write_text("head,relation,tail\nHeat,director,Michael Mann\n")
    kept = wherefore.Graph.load(file, tmp_path / "graph", columns=("head", "relation", "tail"))
    assert wherefore.Graph.open(tmp_path / "graph").ask("Who is the director of Heat?").names == ["Michael Mann"]
    assert len(kept) == 1


def test_a_temporary_graph_goes_with_its_object():
    import os

    graph = wherefore.Graph.from_triples(FILMS)
    folder = graph.path
    assert os.path.isdir(folder)
    graph.close()
    assert not os.path.exists(folder)
    graph.close()


def test_training_and_measuring(films, tmp_path):
    questions = tmp_path / "questions.jsonl"
    lines = []
    for film, director in [("Heat", "Michael Mann"), ("Ali", "Michael Mann"), ("Blade Runner", "Ridley Scott")]:
        for wording in ["who directed {}", "who was the director of {}", "who made the film {}", "{} is by whom"]:
            lines.append(json.dumps({"question": wording.format(film), "topics": [film], "answers": [director]}))
    questions.write_text("\n".join(lines) + "\n")
    metrics = films.evaluate(questions, tmp_path / "run", "--method", "read", quiet=True)
    assert metrics["counts"]["questions"] == 12
    model = films.train(
        "relation-plan", questions, tmp_path / "model", "--valid", str(questions), "--set", "epochs=30", quiet=True
    )
    assert films.ask("who directed Heat", model=model, precision=0).names == ["Michael Mann"]
    with pytest.raises(wherefore.WhereforeError):
        films.evaluate(tmp_path / "nothing.jsonl", tmp_path / "run2", quiet=True)


def test_the_command_comes_with_the_package():
    done = subprocess.run(
        [sys.executable, "-m", "wherefore", "ask", "@world", "What is the capital of Peru?", "--json"],
        stdout=subprocess.PIPE,
    )
    assert done.returncode == 0
    assert json.loads(done.stdout)["answers"][0]["name"] == "Lima"
    done = subprocess.run([sys.executable, "-m", "wherefore", "sparql", "@world", "ASK { ?s ?p ?o }", "--json"])
    assert done.returncode == 0
