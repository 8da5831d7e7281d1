"""Answers, and what proves them."""

from __future__ import annotations

import html
import json
from dataclasses import dataclass
from typing import Any, Dict, List, Optional, Tuple


@dataclass(frozen=True)
class Evidence:
    """One triple, by labels; ``ids`` are the identities in the graph."""

    head: str
    relation: str
    tail: str
    ids: Tuple[str, str, str]
    score: float
    verified: bool

    @property
    def triple(self) -> Tuple[str, str, str]:
        """Head, relation and tail."""
        return (self.head, self.relation, self.tail)

    @classmethod
    def _of(cls, given: Dict[str, Any]) -> "Evidence":
        return cls(
            given["head"], given["relation"], given["tail"], tuple(given["ids"]), given["score"], given["verified"]
        )


@dataclass(frozen=True)
class Entity:
    """One answer. ``because`` are the triples that prove it; ``computed`` values are no entities."""

    name: str
    id: str
    confidence: float
    because: Tuple[Evidence, ...]
    computed: bool = False


@dataclass(frozen=True)
class Alternative:
    """Another way to read the question: ``graph.ask(..., reading=number)`` takes it."""

    number: int
    reading: str
    share: float
    logical_form: str
    unused_words: Tuple[str, ...] = ()


class Answer:
    """What a question came to. False where there is no answer: ``reason`` then says why.

    In a notebook it draws its evidence.
    """

    __slots__ = ("_native", "_json", "_data")

    def __init__(self, native: Any = None, text: Optional[str] = None) -> None:
        self._native = native
        self._json = text
        self._data: Optional[Dict[str, Any]] = None

    @classmethod
    def from_json(cls, text: str) -> "Answer":
        """An answer that was saved by :meth:`to_json` or by ``wherefore ask --json``."""
        answer = cls(None, text)
        answer.to_dict()
        return answer

    def to_json(self) -> str:
        """As ``wherefore ask --json`` writes it, with a seal that :meth:`Graph.verify` checks."""
        if self._json is None:
            self._json = self._native.json()
        return self._json

    def to_dict(self) -> Dict[str, Any]:
        """The same as a dictionary."""
        if self._data is None:
            self._data = json.loads(self.to_json())
        return self._data

    @property
    def names(self) -> List[str]:
        """The names of the answers, best first."""
        if self._native is not None:
            return self._native.names()
        return [one["name"] for one in self.to_dict()["answers"]]

    def __bool__(self) -> bool:
        return bool(self.names)

    def __len__(self) -> int:
        return len(self.names)

    @property
    def question(self) -> str:
        return self.to_dict()["question"]

    @property
    def answers(self) -> List[Entity]:
        """The answers with their proofs, best first."""
        evidence = self.evidence
        return [
            Entity(
                one["name"],
                one["id"],
                one["confidence"],
                tuple(evidence[at] for at in one["rationale"] if at < len(evidence)),
                one.get("computed", False),
            )
            for one in self.to_dict()["answers"]
        ]

    @property
    def evidence(self) -> List[Evidence]:
        """The triples that were looked at, best first."""
        return [Evidence._of(one) for one in self.to_dict()["evidence"]]

    @property
    def confidence(self) -> Optional[float]:
        """The probability that the best answer is right; None where there is none."""
        return max((one["confidence"] for one in self.to_dict()["answers"]), default=None)

    @property
    def reading(self) -> Optional[str]:
        """How the question was read, in words."""
        return self.to_dict().get("reading")

    @property
    def logical_form(self) -> Optional[str]:
        return self.to_dict().get("logical_form")

    @property
    def sparql(self) -> Optional[str]:
        """The SPARQL that gives the same answers."""
        return self.to_dict().get("sparql")

    @property
    def reason(self) -> Optional[str]:
        """Why there is no answer."""
        return self.to_dict().get("reason")

    @property
    def refusal(self) -> Optional[str]:
        """The same as a code, such as ``words-not-used``."""
        return self.to_dict().get("refusal")

    @property
    def unused_words(self) -> List[str]:
        """Words of the question that the reading did not use."""
        return self.to_dict().get("unused_words", [])

    @property
    def alternatives(self) -> List[Alternative]:
        """Other ways to read the question, the likeliest first."""
        return [
            Alternative(
                one["number"],
                one["reading"],
                one.get("share", 0.0),
                one["logical_form"],
                tuple(one.get("unused_words", ())),
            )
            for one in self.to_dict().get("alternatives", [])
        ]

    @property
    def others(self) -> List["Answer"]:
        """Answers of other readings or of a method that contradicts, each with its own proof."""
        return [Answer(None, json.dumps(one)) for one in self.to_dict().get("others", [])]

    @property
    def table(self) -> Optional[Dict[str, Any]]:
        """``columns`` and ``rows``, where several things were asked of each answer."""
        return self.to_dict().get("table")

    @property
    def text(self) -> Optional[str]:
        """The answer in prose, where a language model wrote one."""
        return self.to_dict().get("text")

    @property
    def timings_ms(self) -> Dict[str, float]:
        """Milliseconds by stage."""
        return self.to_dict()["timings_ms"]

    @property
    def notes(self) -> List[str]:
        return self.to_dict().get("notes", [])

    def to_html(self) -> str:
        """A page with the answers and a picture of the evidence."""
        if self._native is None:
            raise TypeError("only an answer that a graph just gave can be drawn")
        return self._native.html()

    def _repr_html_(self) -> str:
        if self._native is None:
            return f"<pre>{html.escape(repr(self))}</pre>"
        page = html.escape(self.to_html(), quote=True)
        return f'<iframe srcdoc="{page}" style="width:100%;height:32em;border:0" sandbox="allow-scripts"></iframe>'

    def __repr__(self) -> str:
        if not self:
            return f"<Answer: none, {self.reason}>"
        names = self.names
        more = f" and {len(names) - 5} more" if len(names) > 5 else ""
        return f"<Answer: {', '.join(names[:5])}{more}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Answer) and self.to_json() == other.to_json()

    __hash__ = None  # type: ignore[assignment]


@dataclass(frozen=True)
class Verification:
    """Whether a saved answer still holds. True where it does; ``failed`` says what does not."""

    holds: bool
    checks: Tuple[Dict[str, Any], ...]
    answers: Tuple[Dict[str, Any], ...]

    def __bool__(self) -> bool:
        return self.holds

    @property
    def failed(self) -> List[Dict[str, Any]]:
        """The checks that failed."""
        return [one for one in self.checks if one.get("outcome") == "failed"]
