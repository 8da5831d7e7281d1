"""Questions in plain language over your own knowledge graph, each answer proved by its triples.

>>> import wherefore
>>> graph = wherefore.Graph.from_triples([
...     ("Heat", "directed_by", "Michael Mann"),
...     ("Heat", "release_year", 1995),
...     ("Ali", "directed_by", "Michael Mann"),
... ])
>>> answer = graph.ask("Who directed Heat?")
>>> answer.names
['Michael Mann']
>>> print(answer.reading)
things that Heat is directed by
>>> answer.evidence[0].triple
('Heat', 'directed by', 'Michael Mann')
"""

from ._answer import Alternative, Answer, Entity, Evidence, Verification
from ._errors import WhereforeError
from ._graph import Graph, Link, Retrieved, Rows, Subgraph
from ._wherefore import __version__

__all__ = [
    "Alternative",
    "Answer",
    "Entity",
    "Evidence",
    "Graph",
    "Link",
    "Retrieved",
    "Rows",
    "Subgraph",
    "Verification",
    "WhereforeError",
    "__version__",
]
