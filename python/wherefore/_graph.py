"""A knowledge graph that is asked in plain language."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Sequence, Tuple, Union

from . import _wherefore
from ._answer import Answer, Evidence, Verification
from ._errors import WhereforeError

PathLike = Union[str, "os.PathLike[str]"]


@dataclass(frozen=True)
class Link:
    """A mention in a question, and the entity that it was taken for."""

    mention: str
    name: str
    id: str
    score: float
    how: str


@dataclass(frozen=True)
class Retrieved:
    """Triples with scores, for a language model of your own."""

    question: str
    triples: Tuple[Evidence, ...]
    notes: Tuple[str, ...] = ()

    def __iter__(self) -> Iterator[Evidence]:
        return iter(self.triples)

    def __len__(self) -> int:
        return len(self.triples)

    def text(self) -> str:
        """One triple a line: ``head -> relation -> tail``."""
        return "\n".join(" -> ".join(one.triple) for one in self.triples)


class Rows(Sequence[Dict[str, str]]):
    """The results of a SPARQL query: rows by variable, or ``boolean`` of an ASK."""

    def __init__(self, data: Dict[str, Any]) -> None:
        self.variables: List[str] = data.get("head", {}).get("vars", [])
        self.boolean: Optional[bool] = data.get("boolean")
        self.bindings: List[Dict[str, Dict[str, str]]] = data.get("results", {}).get("bindings", [])

    def __getitem__(self, at):  # type: ignore[no-untyped-def]
        if isinstance(at, slice):
            return [self._row(one) for one in self.bindings[at]]
        return self._row(self.bindings[at])

    @staticmethod
    def _row(binding: Dict[str, Dict[str, str]]) -> Dict[str, str]:
        return {name: term["value"] for name, term in binding.items()}

    def __len__(self) -> int:
        return len(self.bindings)

    def __bool__(self) -> bool:
        return self.boolean if self.boolean is not None else bool(self.bindings)

    def to_pandas(self):  # type: ignore[no-untyped-def]
        """The rows as a ``pandas.DataFrame``."""
        import pandas

        return pandas.DataFrame(list(self), columns=self.variables)

    def __repr__(self) -> str:
        if self.boolean is not None:
            return f"<Rows: {self.boolean}>"
        return f"<Rows: {len(self)} of {', '.join(self.variables)}>"


@dataclass(frozen=True)
class Subgraph:
    """A neighbourhood as NumPy arrays.

    ``edge_index`` has a row of heads and a row of tails, as places in ``entities`` (PyG's
    convention; ``dgl.graph((s.edge_index[0], s.edge_index[1]))`` for DGL). ``relations`` has one
    relation id for each edge, ``distance`` the hops of each entity from the nearest seed.
    """

    entities: Any
    edge_index: Any
    relations: Any
    distance: Any
    notes: Tuple[str, ...]
    _graph: "Graph"

    def names(self) -> List[str]:
        """What the entities are called."""
        return self._graph._native.entity_names(self.entities.tolist())

    def relation_names(self) -> List[str]:
        """What all relations of the graph are called, by their ids."""
        return self._graph._native.relation_names()

    def __repr__(self) -> str:
        return f"<Subgraph: {len(self.entities)} entities, {len(self.relations)} edges>"


def _path(path: PathLike) -> str:
    return os.fspath(path)


def _value(value: Any) -> str:
    """A head, relation or tail as text."""
    if isinstance(value, str):
        return value
    if value is None or isinstance(value, float) and value != value:
        raise WhereforeError(
            f"{value!r} is no part of a triple",
            "usage",
            hint="leave out triples that lack something: `frame.dropna()`",
        )
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (bytes, bytearray)):
        raise WhereforeError(f"{value!r} is bytes", "usage", hint="decode it: `value.decode()`")
    if hasattr(value, "isoformat"):
        text = value.isoformat()
        # a pandas timestamp without a time is a day
        return text[:10] if text.endswith("T00:00:00") else text
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, (int, float)):
        return repr(value)
    raise WhereforeError(
        f"{value!r} of the type `{type(value).__name__}` is no part of a triple",
        "usage",
        hint="heads and relations are texts; tails are texts, numbers or dates",
    )


def _lines(triples: Iterable[Any]) -> Tuple[str, bool]:
    """Triples as JSON lines, and whether some tails are no texts."""
    lines, typed = [], False
    for triple in triples:
        try:
            head, relation, tail = triple
        except (TypeError, ValueError):
            raise WhereforeError(
                f"{triple!r} is no triple", "usage", hint="a triple is (head, relation, tail)"
            ) from None
        typed = typed or not isinstance(tail, str)
        lines.append(json.dumps([_value(head), _value(relation), _value(tail)]))
    return "\n".join(lines) + "\n" if lines else "", typed


class Graph:
    """A knowledge graph: a folder that :meth:`load` or ``wherefore load`` built, a SPARQL service, or
    one of the built-in ones, ``@world`` and ``@toy``.

    >>> with Graph.open("@world") as world:
    ...     world.ask("What is the capital of Peru?").names
    ['Lima']

    It may be used by several threads; work on it releases the interpreter's lock. A process that was
    forked has to open it again.
    """

    def __init__(self, native: Any, path: str, folder: Optional["tempfile.TemporaryDirectory[str]"] = None) -> None:
        self._native = native
        self.path = path
        self._folder = folder

    # making one

    @classmethod
    def open(cls, path: PathLike) -> "Graph":
        """Opens a graph folder, or ``@world`` and ``@toy``, or a service by its address or its file."""
        name = _path(path)
        return cls(_wherefore.Graph(name, sys.executable, False), name)

    @classmethod
    def from_endpoint(cls, address: str, *, trust: bool = False) -> "Graph":
        """Asks a SPARQL service as if its graph were here; ``trust`` agrees to the programs and keys that
        a service file names, as ``wherefore trust`` does for good."""
        return cls(_wherefore.Graph(address, sys.executable, trust), address)

    @classmethod
    def load(
        cls,
        files: Union[PathLike, Sequence[PathLike]],
        path: Optional[PathLike] = None,
        *,
        format: Optional[str] = None,
        columns: Optional[Tuple[str, str, str]] = None,
        typed: bool = False,
        wide: bool = False,
        name_column: Optional[str] = None,
        split: Optional[str] = None,
        class_name: Optional[str] = None,
        replace: bool = False,
    ) -> "Graph":
        """Builds a graph folder from RDF files, tables, workbooks or databases, as ``wherefore load`` does,
        and opens it.

        With ``wide`` each row is one thing: ``name_column`` names it, ``split`` stands between several values
        of a cell, ``class_name`` says what the rows are (what the file is called, if left out). Without
        ``path`` the folder is a temporary one and goes with the graph. Malformed lines are passed over with
        a warning.
        """
        if not wide and (name_column, split, class_name) != (None, None, None):
            raise WhereforeError("`name_column`, `split` and `class_name` go with `wide=True`", "usage")
        all_files = [files] if isinstance(files, (str, os.PathLike)) else list(files)
        folder = None
        if path is None:
            folder = tempfile.TemporaryDirectory(prefix="wherefore-")
            path = os.path.join(folder.name, "graph")
        rows = (name_column and str(name_column), split, class_name) if wide else None
        table = (columns and tuple(map(str, columns)), typed, rows)
        notes = _wherefore.load([_path(file) for file in all_files], _path(path), format, table, replace)
        for note in notes:
            warnings.warn(note, stacklevel=2)
        return cls(_wherefore.Graph(_path(path), sys.executable, False), _path(path), folder)

    @classmethod
    def from_triples(cls, triples: Iterable[Any], path: Optional[PathLike] = None, *, replace: bool = False) -> "Graph":
        """A graph of (head, relation, tail). Tails that are numbers or dates become literals."""
        text, typed = _lines(triples)
        if not text:
            raise WhereforeError("there are no triples", "usage", hint="a graph needs at least one")
        with tempfile.TemporaryDirectory(prefix="wherefore-") as folder:
            file = Path(folder, "triples.jsonl")
            file.write_text(text, encoding="utf-8")
            return cls.load(file, path, typed=typed, replace=replace)

    @classmethod
    def from_pandas(
        cls,
        frame: Any,
        head: str = "head",
        relation: str = "relation",
        tail: str = "tail",
        path: Optional[PathLike] = None,
        *,
        replace: bool = False,
    ) -> "Graph":
        """A graph of a ``pandas.DataFrame`` with one triple a row."""
        missing = [name for name in (head, relation, tail) if name not in getattr(frame, "columns", ())]
        if missing:
            raise WhereforeError(
                f"the frame has no column {', '.join(map(repr, missing))}",
                "usage",
                hint="name the columns: `Graph.from_pandas(frame, head=…, relation=…, tail=…)`",
            )
        rows = zip(frame[head].tolist(), frame[relation].tolist(), frame[tail].tolist())
        return cls.from_triples(rows, path, replace=replace)

    @classmethod
    def from_networkx(
        cls, graph: Any, relation: str = "relation", path: Optional[PathLike] = None, *, replace: bool = False
    ) -> "Graph":
        """A graph of the edges of a ``networkx`` graph; ``relation`` names the edges' attribute."""

        def triples() -> Iterator[Tuple[Any, Any, Any]]:
            for head, tail, data in graph.edges(data=True):
                if relation not in data:
                    raise WhereforeError(
                        f"the edge from {head!r} to {tail!r} has no attribute {relation!r}",
                        "usage",
                        hint="name the attribute that holds the relation: `relation=…`",
                    )
                yield _value(head), data[relation], _value(tail)

        return cls.from_triples(triples(), path, replace=replace)

    @classmethod
    def from_rdflib(cls, graph: Any, path: Optional[PathLike] = None, *, replace: bool = False) -> "Graph":
        """A graph of an ``rdflib.Graph``."""
        with tempfile.TemporaryDirectory(prefix="wherefore-") as folder:
            file = os.path.join(folder, "triples.nt")
            graph.serialize(destination=file, format="nt", encoding="utf-8")
            return cls.load(file, path, replace=replace)

    # asking

    @staticmethod
    def _how(
        method: Optional[str], model: Optional[PathLike], config: Optional[PathLike], llm: Optional[str]
    ) -> Tuple[Optional[str], Optional[str], Optional[str], Optional[str]]:
        return (None if config is None else _path(config), method, None if model is None else _path(model), llm)

    def ask(
        self,
        question: str,
        *,
        method: Optional[str] = None,
        model: Optional[PathLike] = None,
        config: Optional[PathLike] = None,
        llm: Optional[str] = None,
        topics: Sequence[str] = (),
        reading: int = 0,
        precision: Optional[float] = None,
        coverage: Optional[float] = None,
        follow: Optional[Answer] = None,
    ) -> Answer:
        """Answers a question, or says in ``reason`` why not.

        ``method``, ``model``, ``config`` and ``llm`` are as on the command line; ``topics`` are names of
        entities it is about; ``reading`` takes one of the ``alternatives``; ``precision`` is how many of the
        answers that are given are to be right, 0 gives them all; ``follow`` is the answer before, for
        questions such as *And its population?*
        """
        said = (list(topics), reading, precision, coverage)
        before = None if follow is None else follow.to_json()
        return Answer(self._native.ask(question, self._how(method, model, config, llm), said, before))

    def ask_many(
        self,
        questions: Iterable[str],
        *,
        method: Optional[str] = None,
        model: Optional[PathLike] = None,
        config: Optional[PathLike] = None,
        llm: Optional[str] = None,
        precision: Optional[float] = None,
        progress: Union[bool, Callable[[int], Any]] = False,
    ) -> List[Answer]:
        """Answers questions on all cores, in order. ``progress=True`` shows a bar; a function is called
        with how many are done. Ctrl-C ends it."""
        texts = list(questions)
        tell: Optional[Callable[[int], Any]] = progress if callable(progress) else None
        if progress is True and texts:
            tell = _bar(len(texts))
        said = ([], 0, precision, None)
        answers = self._native.ask_many(texts, self._how(method, model, config, llm), said, tell)
        return [Answer(one) for one in answers]

    def retrieve(
        self,
        question: str,
        k: Optional[int] = 100,
        *,
        method: Optional[str] = None,
        model: Optional[PathLike] = None,
        config: Optional[PathLike] = None,
        topics: Sequence[str] = (),
    ) -> Retrieved:
        """The triples that bear on a question, best first: for a language model of your own."""
        method = method or (None if model or config else "similarity")
        how = self._how(method, model, config, None)
        found = json.loads(self._native.retrieve(question, k, how, (list(topics), 0, None, None)))
        return Retrieved(question, tuple(map(Evidence._of, found["evidence"])), tuple(found.get("notes", ())))

    def link(self, question: str) -> List[Link]:
        """The entities that a question is about, the best candidate of each mention first."""
        report = json.loads(self._native.link(question, self._how(None, None, None, None)))
        return [
            Link(mention["mention"], one["name"], one["id"], one["score"], one["how"])
            for mention in report["mentions"]
            for one in mention["candidates"]
        ]

    def sparql(self, query: str, *, timeout: Optional[float] = 60.0, limit: Optional[int] = None) -> Rows:
        """Runs a SPARQL SELECT or ASK query, in a process of its own with a limit of memory.

        >>> world = Graph.open("@world")
        >>> rows = world.sparql("SELECT ?c WHERE { ?c rdfs:label 'Peru'@en }")
        >>> len(rows)
        1
        """
        return Rows(json.loads(self._native.sparql(query, "json", timeout, limit)))

    def construct(self, query: str, *, timeout: Optional[float] = 60.0, limit: Optional[int] = None) -> str:
        """Runs a SPARQL CONSTRUCT or DESCRIBE query; N-Triples."""
        return self._native.sparql(query, "nt", timeout, limit).decode()

    def subgraph(
        self, seeds: Union[str, Sequence[str], None] = None, *, hops: int = 2, max_triples: int = 200_000
    ) -> Subgraph:
        """The neighbourhood of entities as NumPy arrays; the whole graph without ``seeds``."""
        import numpy

        named = [seeds] if isinstance(seeds, str) else list(seeds or ())
        *buffers, notes = self._native.subgraph(named, hops, max_triples)
        # arrays over the buffers themselves
        entities, edges, relations, distance = (numpy.frombuffer(one, dtype=numpy.int64) for one in buffers)
        return Subgraph(entities, edges.reshape(2, -1), relations, distance, tuple(notes), self)

    def verify(self, answer: Union[Answer, str]) -> Verification:
        """Checks everything that an answer says against this graph."""
        text = answer.to_json() if isinstance(answer, Answer) else answer
        found = json.loads(self._native.verify(text))
        return Verification(found["holds"], tuple(found["checks"]), tuple(found["answers"]))

    # changing

    def add(self, triples: Iterable[Any]) -> Dict[str, Any]:
        """Adds triples, at once and for good; how many were new."""
        return json.loads(self._native.add(*_lines(triples)))

    def remove(self, triples: Iterable[Any]) -> Dict[str, Any]:
        """Removes triples, at once and for good; how many were there."""
        return json.loads(self._native.remove(*_lines(triples)))

    # learning

    def train(self, method: str, questions: PathLike, out: PathLike, *options: str, quiet: bool = False) -> str:
        """Trains a retriever from questions with answers into the folder ``out``: ``wherefore train``.

        ``options`` are those of the command (``"--set", "epochs=5"``). Ask with ``model=out``.
        """
        self._command("train", method, "--questions", _path(questions), "--out", _path(out), *options, quiet=quiet)
        return _path(out)

    def evaluate(self, questions: PathLike, out: PathLike, *options: str, quiet: bool = False) -> Dict[str, Any]:
        """Measures over questions with answers: ``wherefore eval``; the metrics of ``out/metrics.json``."""
        self._command("eval", "--questions", _path(questions), "--out", _path(out), *options, quiet=quiet)
        return json.loads(Path(out, "metrics.json").read_text(encoding="utf-8"))

    def _command(self, name: str, *arguments: str, quiet: bool) -> None:
        command = [sys.executable, "-m", "wherefore", name, *arguments, "--graph", self.path, "--json"]
        if quiet:
            command.append("--quiet")
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE if quiet else None)
        if done.returncode > 1:
            told = (done.stderr or b"").decode(errors="replace").strip().splitlines()
            try:
                error = json.loads(told[-1])["error"]
            except (IndexError, KeyError, ValueError):
                raise WhereforeError(f"`wherefore {name}` failed", "command", hint="the lines above tell why") from None
            raise WhereforeError(error["message"], error["code"], error.get("cause"), error.get("hint"))

    # the rest

    def __len__(self) -> int:
        """The number of triples."""
        counts = self._native.counts()
        if counts is None:
            raise TypeError("how many triples a service has is not known")
        return counts[0]

    def __bool__(self) -> bool:
        return True

    def close(self) -> None:
        """Closes the graph; a temporary folder is removed."""
        self._native.close()
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    def __enter__(self) -> "Graph":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Graph: {self.path}>"


def _bar(total: int) -> Callable[[int], None]:
    """A bar on standard error."""

    def tell(done: int) -> None:
        filled = 30 * done // total
        end = "\n" if done == total else ""
        print(f"\r{'#' * filled}{'.' * (30 - filled)} {done} of {total}", end=end, file=sys.stderr, flush=True)

    return tell
