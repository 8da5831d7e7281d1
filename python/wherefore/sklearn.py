"""Entity linking with the interface of scikit-learn.

>>> from wherefore.sklearn import Matcher
>>> matcher = Matcher().fit(["Michael Mann", "Ridley Scott", "Heat"])
>>> matcher.predict(["a film by Ridley Scot", "who was in heat", "nothing of the kind"])
['Ridley Scott', 'Heat', None]
"""

from __future__ import annotations

from typing import Any, List, Optional, Sequence

from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from ._graph import Graph, Link


class Matcher(BaseEstimator):
    """Finds which of the known names a text speaks of: whole names, misspelt ones, parts of names.

    ``least`` is the least score of a link, from 0 to 1.
    """

    def __init__(self, least: float = 0.0) -> None:
        self.least = least

    def fit(self, X: Sequence[str], y: Any = None) -> "Matcher":
        """Learns the names; with ``y``, the labels that are predicted in their place."""
        names = list(X)
        if not names:
            raise ValueError("there are no names to learn")
        labels = names if y is None else list(y)
        if len(labels) != len(names):
            raise ValueError(f"there are {len(names)} names and {len(labels)} labels")
        self.labels_ = dict(zip(names, labels))
        self.graph_ = Graph.from_triples((name, "is", "a name") for name in names)
        return self

    def links(self, text: str) -> List[Link]:
        """All links of a text, the best candidate of each mention first."""
        check_is_fitted(self)
        found = self.graph_.link(text) if any(c.isalnum() for c in text) else []
        return [one for one in found if one.id in self.labels_ and one.score >= self.least]

    def predict(self, X: Sequence[str]) -> List[Optional[Any]]:
        """The label of the best link of each text; None where there is none."""
        best = (max(self.links(text), key=lambda one: one.score, default=None) for text in X)
        return [None if one is None else self.labels_[one.id] for one in best]

    def score(self, X: Sequence[str], y: Sequence[Any]) -> float:
        """The share of texts whose label is predicted."""
        right = sum(found == wanted for found, wanted in zip(self.predict(X), y))
        return right / max(len(y), 1)
