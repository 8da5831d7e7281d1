"""Reads the graphs of the test beds and lists the paths around a thing, each with the things it leads to."""

import lzma
import re
from collections import defaultdict

from phrases import BACKWARD, FORWARD, Step, dotted, words

MAX_FRONTIER = 20000


class Graph:
    """Triples by node; classes of nodes; names of nodes."""

    def __init__(self, name):
        self.name = name
        self.out = defaultdict(lambda: defaultdict(list))
        self.into = defaultdict(lambda: defaultdict(list))
        self.classes = {}
        self.names = defaultdict(list)
        self.relations = {}  # raw name -> (words, class of subject or None, class of object or None)
        self.cache = {}
        self.ranges = {}  # raw name -> class of object, where a schema says so

    def add(self, subject, relation, obj):
        if relation.endswith("_inverse"):
            return
        if obj not in self.out[subject][relation]:
            self.out[subject][relation].append(obj)
            self.into[obj][relation].append(subject)
        if relation not in self.relations:
            label, of, _ = dotted(relation)
            self.relations[relation] = (label, of)

    def key(self, nodes):
        return nodes

    def nameless(self, node):
        return re.match(r"[mg]\.[0-9a-z_]+$", node) is not None

    def moves(self, nodes):
        """(step, reached nodes) of all ways on from a set of nodes: one for each relation, direction, classes."""
        forward, backward = defaultdict(set), defaultdict(set)
        for node in nodes:
            here = self.classes.get(node)
            for relation, tails in self.out[node].items() if node in self.out else ():
                label, of = self.relations[relation]
                for tail in tails:
                    there = self.classes.get(tail)
                    forward[Step(label, FORWARD, here or of, there or self.ranges.get(relation))].add(tail)
            for relation, heads in self.into[node].items() if node in self.into else ():
                label, of = self.relations[relation]
                for head in heads:
                    there = self.classes.get(head)
                    backward[Step(label, BACKWARD, there or of, here or self.ranges.get(relation))].add(head)
        merged = defaultdict(set)
        for step, nodes_ in forward.items():
            merged[step] |= nodes_
        for step, nodes_ in backward.items():
            merged[step] |= nodes_
        return merged

    def around(self, node):
        """Paths of one step, and of two steps through nameless nodes: {path: answers}."""
        if node in self.cache:
            return self.cache[node]
        paths = {}
        for step, reached in self.moves([node]).items():
            paths[(step,)] = frozenset(reached)
            middle = [n for n in reached if self.nameless(n)]
            if middle:
                for second, ends in self.moves(middle[:300]).items():
                    ends = ends - {node}
                    if ends:
                        paths[(step, second)] = frozenset(ends)
        self.cache[node] = paths
        return paths

    def paths(self, node, hops, most=4000):
        """All paths of up to `hops` steps, both ways."""
        paths, front = {}, [((), frozenset([node]))]
        for _ in range(hops):
            following = []
            for path, nodes in front:
                if len(nodes) > MAX_FRONTIER:
                    continue
                for step, reached in self.moves(nodes).items():
                    longer = path + (step,)
                    if longer not in paths:
                        paths[longer] = frozenset(reached)
                        following.append((longer, paths[longer]))
                if len(paths) > most:
                    return paths
            front = following
        return paths


def f1(found, gold):
    both = len(found & gold)
    return 0.0 if not both else 2 * both / (len(found) + len(gold))


def freebase_roles(data):
    """Freebase's schema: (class, relation, class of the object in words, or None where it is a value)."""
    for line in open(data / "freebase/ontology/fb_roles", encoding="utf8"):
        of, relation, kind = line.split()[:3]
        yield of, relation, None if kind.startswith("type.") else words(kind.split(".")[-1])


def read_tsv(name, path, separator="\t"):
    graph = Graph(name)
    for line in open(path, encoding="utf8"):
        parts = line.rstrip("\n").split(separator)
        if len(parts) >= 3:
            graph.add(parts[0], parts[1], parts[2])
    return graph


def read_turtle(name, path):
    """The plain Turtle of the test beds: prefixed names, `;` and `,`, strings and numbers."""
    opener = lzma.open if str(path).endswith(".xz") else open
    text = opener(path, "rt", encoding="utf8").read()
    token = re.compile(r'"(?:[^"\\]|\\.)*"(?:@\w+|\^\^\S+)?|<[^>]*>|[;,.](?=\s|$)|[^\s;,]+')
    prefixes, graph = {}, Graph(name)
    triples, state = [], []
    tokens = token.findall(text)
    i = 0
    subject = relation = None
    while i < len(tokens):
        t = tokens[i]
        if t == "@prefix":
            prefixes[tokens[i + 1]] = tokens[i + 2].strip("<>")
            i += 4
            continue
        if t == ".":
            subject = relation = None
        elif t == ";":
            relation = None
        elif t == ",":
            pass
        elif subject is None:
            subject = t
        elif relation is None:
            relation = t
        else:
            triples.append((subject, relation, t))
        i += 1

    def local(t):
        if t.startswith('"'):
            return re.sub(r'"(@\w+|\^\^\S+)?$', "", t[1:]).replace('\\"', '"')
        return t.split(":", 1)[-1] if ":" in t and not t.startswith("<") else t

    classes, labels = {}, {}
    for s, r, o in triples:
        if r in ("a", "rdf:type"):
            classes[local(s)] = local(o)
        elif r == "rdfs:label":
            labels.setdefault(local(s), local(o))
            graph.names[local(o).lower()].append(local(s))
        elif r == "skos:altLabel":
            graph.names[local(o).lower()].append(local(s))
    for c in set(classes.values()):  # a class is no topic
        for name in (labels.get(c, c), c):
            graph.names.pop(name.lower(), None)
    for s, r, o in triples:
        if r in ("a", "rdf:type", "rdfs:label", "skos:altLabel") or r.startswith("rdfs:"):
            continue
        graph.add(local(s), local(r), local(o))
        if o.startswith('"'):
            graph.names[local(o).lower()].append(local(o))
    graph.classes = {s: words(labels.get(c, c)) for s, c in classes.items()}
    graph.labels = labels
    return graph
