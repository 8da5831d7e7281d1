"""Makes the training pairs: a marked question, the form that answers it (its steps), forms that do not.

    python pairs.py DATA OUT          writes OUT/pairs.json.gz; with PYTHONHASHSEED=0 the same bytes every time

A form is the set of steps between the topics and the answer: one for a simple question, two or three for a chain, one
or two for each topic of a conjunction. No test part is read, but for leaving out questions that stand there word for
word.
"""

import gzip
import json
import random
import re
import sys
from collections import Counter, defaultdict
from pathlib import Path

import beds
import written
from graphs import f1, freebase_roles, read_tsv
from phrases import BACKWARD, FORWARD, MARK, Step, dotted, mark, words

NEGATIVES = 12


def key_of(question):
    return " ".join(re.findall(r"\w+", question.lower()))


class Pairs:
    def __init__(self, forbidden):
        self.steps, self.ids, self.items = [], {}, []
        self.forbidden, self.dropped = forbidden, 0
        self.counts = Counter()

    def step(self, step):
        if step not in self.ids:
            self.ids[step] = len(self.steps)
            self.steps.append(list(step))
        return self.ids[step]

    def add(self, source, family, question, names, gold, wrong, raw=None):
        """`gold`: forms that are right; `wrong`: forms that are not; each a sequence of steps."""
        if key_of(raw or question) in self.forbidden:
            self.dropped += 1
            return
        gold = sorted({tuple(self.step(s) for s in g) for g in gold})
        seen, bad = {tuple(sorted(g)) for g in gold}, []
        for form in wrong:
            form = tuple(self.step(s) for s in form)
            if form and tuple(sorted(form)) not in seen:
                seen.add(tuple(sorted(form)))
                bad.append(form)
        self.items.append({"s": source, "f": family, "q": question, "n": names, "g": gold[:4], "w": bad[:NEGATIVES]})
        self.counts[source] += 1


def flipped(form, at):
    step = form[at]
    return form[:at] + (step._replace(direction=1 - step.direction),) + form[at + 1:]


def mutations(form, siblings, rng):
    """Forms near a right one: a step turned round, left out, replaced, or added."""
    form, out = tuple(form), []
    at = rng.randrange(len(form))
    out.append(flipped(form, at))
    if len(form) > 1:
        out += [form[:i] + form[i + 1:] for i in range(len(form))]
    for step in rng.sample(siblings, min(len(siblings), 4)):
        if step not in form:
            out.append(form[:at] + (step,) + form[at + 1:])
    if siblings and len(form) < 3:
        step = rng.choice(siblings)
        if step not in form:
            out.append(form + (step,))
    return out


def from_choices(pairs, items, source, rng, cap=None):
    if cap and len(items) > cap:
        items = rng.sample(items, cap)
    for one in items:
        right, unsure = set(one["gold"]), set(one["unsure"])
        wrong = [p for i, p in enumerate(one["paths"]) if i not in right and i not in unsure]
        gold = [one["paths"][i] for i in one["gold"]]
        short = min(map(len, gold))
        gold = [g for g in gold if len(g) == short]
        rng.shuffle(wrong)
        near = [flipped(gold[0], len(gold[0]) - 1)]
        if near[0] in one["paths"]:
            near = []
        pairs.add(source, one["family"], one["q"], one["names"], gold, near + wrong)


def metaqa_chain(qtype):
    name = {"actor": "starred actors", "director": "directed by", "writer": "written by", "year": "release year",
            "genre": "has genre", "language": "in language", "tags": "has tags", "imdbrating": "has imdb rating",
            "imdbvotes": "has imdb votes"}
    kinds = qtype.split("_to_")
    steps = []
    for a, b in zip(kinds, kinds[1:]):
        if a == "movie":
            steps.append(Step(name[b], FORWARD, None, None))
        else:
            steps.append(Step(name[a], BACKWARD, None, None))
    return tuple(steps)


def wq_cwq(pairs, graph, data, held, objects, rng):
    for line in open(data / "freebase/wq_cwq_train.jsonl", encoding="utf8"):
        d = json.loads(line)
        if "test" in d["split"] or key_of(d["question"]) in held:
            continue
        answers, triples = set(d["answers"]), d["triples"]
        out = defaultdict(list)
        for s, r, o in triples:
            label, of, _ = dotted(r)
            out[s].append((Step(label, FORWARD, of, objects.get(r)), o))
            out[o].append((Step(label, BACKWARD, of, objects.get(r)), s))
        topics = [t for t in (d["topic_names_in_question"] or d["topic_names"]) if t in out and t not in answers]
        form, siblings = [], []
        for topic in topics:
            front, path = {topic: ()}, None
            for _ in range(3):
                following = {}
                for node, way in front.items():
                    for step, other in out[node]:
                        following.setdefault(other, way + (step,))
                ends = [w for n, w in following.items() if n in answers]
                if ends:
                    path = min(ends, key=len)
                    break
                front = following
            if path:
                form += [s for s in path if s not in form]
                moves = graph.around(topic) if topic in graph.out or topic in graph.into else {}
                siblings += sorted({p[0] for p in moves}, key=str)
        if not form or len(form) > 4:
            continue
        marked, names = mark(d["question"], topics, partial=True)
        siblings = [s for s in siblings if (s.relation, s.direction) not in {(f.relation, f.direction) for f in form}]
        wrong = mutations(form, siblings, rng) + [(s,) for s in rng.sample(siblings, min(6, len(siblings)))]
        pairs.add("wq_cwq", "freebase", marked, names, [form], wrong, d["question"])


# ---- SPARQL ----------------------------------------------------------------------------------------------------

TOKEN = re.compile(r"<[^>]*>|\"(?:[^\"\\]|\\.)*\"(?:@\w+|\^\^\S+)?|'(?:[^'\\]|\\.)*'|[?$]\w+|[\w-]*:[^\s;,{}()|/*+]*|[{}().;,]|\S+")
TYPE = {"rdf:type", "a", "wdt:P31", "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"}


def patterns(sparql):
    """Triple patterns of a query without UNION, OPTIONAL, MINUS or nested SELECT; None if it is not that plain."""
    body = re.sub(r"PREFIX\s+\S+\s+<[^>]*>", " ", sparql)
    body = re.sub(r"SERVICE\s+\S+\s*\{[^}]*\}", " ", body)
    if re.search(r"\b(UNION|OPTIONAL|MINUS|NOT EXISTS|VALUES|BIND|HAVING)\b|\bASK\b", body, re.I):
        return None
    if body.upper().count("SELECT") != 1 or body.count("{") != 1:
        return None
    head, _, rest = body.partition("{")
    inner = rest.rpartition("}")[0]
    inner = re.sub(r"FILTER\s*\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)", " ", inner, flags=re.I)
    tokens = TOKEN.findall(inner)
    triples, s, p = [], None, None
    for t in tokens:
        if t == ".":
            s = p = None
        elif t == ";":
            p = None
        elif t == ",":
            pass
        elif s is None:
            s = t
        elif p is None:
            p = t
        else:
            triples.append((s, p, t))
    answer = re.findall(r"[?$]\w+", head)
    return (triples, answer[0].replace("$", "?")) if triples and answer else None


def relation_of(p, properties):
    """(words, how the relation is used: direct, to a statement, from a statement, qualifier); None if unreadable."""
    m = re.match(r"(wdt|p|ps|pq|psv|pqv):(P\d+)$", p)
    if m:
        label = properties.get(m.group(2))
        return label and (label[0], m.group(1))
    m = re.match(r"(?:dbo|dbp|dblp|orkgp):(\w+)$", p) or re.match(r"<http://dbpedia.org/(?:ontology|property)/(\w+)>$", p)
    if m and not re.match(r"P\d+$", m.group(1)):
        return words(m.group(1)), "wdt"
    return None


def name_of(term):
    m = re.match(r"<http://dbpedia.org/resource/(.*)>$|dbr:(.*)$", term)
    if m:
        return (m.group(1) or m.group(2)).replace("_", " ")
    if term[0] in "\"'":
        return re.sub(r"[\"'](@\w+|\^\^\S+)?$", "", term[1:])
    return None


def sparql_form(sparql, properties):
    """The steps of a query, each leading towards the answer, and the names in it."""
    read = patterns(sparql)
    if not read:
        return None
    triples, answer = read
    classes, edges, same = {}, [], {}
    constants = 0
    for s, p, o in triples:
        if p in TYPE:
            m = re.match(r"dbo:(\w+)$|<http://dbpedia.org/ontology/(\w+)>$|(?:orkgc|dblp):(\w+)$", o)
            if m:
                classes[s] = words(next(g for g in m.groups() if g))
            elif o.startswith("wd:"):
                continue  # a class without a label
            continue
        if p in ("rdfs:label", "<http://www.w3.org/2000/01/rdf-schema#label>"):
            continue
        relation = relation_of(p, properties)
        if not relation:
            return None
        label, use = relation
        if use == "ps":  # the statement stands for its value
            same[s] = o
            continue
        edges.append((s, label, o))
    root = lambda n: root(same[n]) if n in same and same[n] != n else n
    edges = [(root(s), l, root(o)) for s, l, o in edges]
    answer = root(answer)
    near = defaultdict(list)
    for s, l, o in edges:
        near[s].append((l, o, FORWARD))
        near[o].append((l, s, BACKWARD))
    steps, seen, front = [], {answer}, [answer]
    while front:
        here = front.pop(0)
        for label, there, direction in near[here]:
            # walked from there to here: `here -label-> there` is backward
            s, o = (here, there) if direction == FORWARD else (there, here)
            step = Step(label, BACKWARD if direction == FORWARD else FORWARD, classes.get(s), classes.get(o))
            if there not in seen:
                seen.add(there)
                steps.append(step)
                if there.startswith("?") or there in same.values():
                    front.append(there)
    steps.reverse()  # from the topics to the answer
    if not 1 <= len(steps) <= 4:
        return None
    names = [n for s, _, o in edges for t in (s, o) if not t.startswith("?") for n in [name_of(t)] if n]
    constants = len({t for s, _, o in edges for t in (s, o) if not t.startswith("?")})
    return steps, names, constants


def capitalised(question, most):
    """Marks runs of capitalised words after the first; for questions whose entities have no names in the data."""
    runs = list(re.finditer(r"(?<!^)(?<=\s)(?:[\"'<]?[A-Z0-9][\w.'’&-]*)(?:\s+(?:of|the|de|la|and|in|for|on|von|van)?\s*[A-Z0-9][\w.'’&-]*)*", question))
    if not 0 < len(runs) <= most + 1:
        return question, []
    text, at, found = "", 0, []
    for m in runs:
        span = m.group().rstrip("?.,'")
        text += question[at:m.start()] + MARK
        at = m.start() + len(span)
        found.append(span.strip("\"'<"))
    return " ".join((text + question[at:]).split()), found


def rare_span(question, frequency, limit=4):
    """Marks the run of rare words of a lower-case question: its topic, most likely."""
    toks = [(m.start(), m.end(), m.group().lower()) for m in re.finditer(r"[\w.'’-]+", question)]
    rare = [i for i, (_, _, t) in enumerate(toks) if frequency[t] <= limit]
    if not rare or rare[-1] - rare[0] > len(rare) + 2 or rare[-1] - rare[0] > 6:
        return question, []
    s, e = toks[rare[0]][0], toks[rare[-1]][1]
    return " ".join((question[:s] + MARK + question[e:]).split()), [question[s:e]]


def wikidata(data):
    properties, aliases = {}, {}
    lines = open(data / "readings/wikidata_properties.tsv", encoding="utf8").read().split("\n")[1:]
    for line in lines:
        parts = line.split("\t")
        if len(parts) == 5 and "andbox" not in parts[2]:
            label = words(parts[2])
            names = [a for a in map(words, parts[3].split("|")) if a and a != label and len(a) < 50]
            properties[parts[0]] = (label, names, parts[4], parts[1])
            aliases[label] = names[:12]
    return properties, aliases


def overlapping(labels):
    """Relations that share a word: the near misses where no graph gives siblings."""
    by_word = defaultdict(list)
    for label in labels:
        for w in set(label.split()):
            if len(w) > 3:
                by_word[w].append(label)
    return {l: sorted({o for w in l.split() for o in by_word.get(w, ()) if o != l and len(by_word[w]) < 400}) for l in labels}


OVERNIGHT_NAMES = ["kobe bryant", "lebron james", "los angeles lakers", "cleveland cavaliers", "la lakers", "alice", "bob",
                   "brown university", "ucla", "mckinsey", "google", "new york", "beijing", "computer science", "biology",
                   "multivariate data analysis", "computational linguistics", "annals of statistics", "efron", "lakoff",
                   "thai cafe", "pizzeria juno", "rice pudding", "quiche", "weekly standup", "annual review",
                   "greenberg cafe", "central office", "123 sesame street", "900 mission ave", "midtown west",
                   "chelsea", "block 1", "block 2", "milk", "spinach", "point guard", "forward", "software engineer",
                   "program manager"]


def main():
    data, out = Path(sys.argv[1]), Path(sys.argv[2])
    rng = random.Random(11)
    forbidden = set()
    for name in ["freebase/webqsp_test.jsonl", "freebase/cwq_test.jsonl"]:
        for line in open(data / name, encoding="utf8"):
            forbidden.add(key_of(json.loads(line)["question"]))
    rows = beds.webqsp_rows(data)
    held = {key_of(r["question"]) for r in beds.held_out_webqsp(rows)}
    forbidden |= held  # kept for choices
    pairs = Pairs(forbidden)

    # graphs
    objects = {relation: obj for _, relation, obj in freebase_roles(data) if obj is not None}
    free = read_tsv("freebase", data / "freebase/triples.tsv")
    free.ranges = objects
    kept = [r for r in rows if key_of(r["question"]) not in held and r["topic_names"] and r["answers"]]
    from_choices(pairs, beds.webqsp(free, kept)[0], "webqsp", rng)
    wq_cwq(pairs, free, data, held, objects, rng)
    free.cache.clear()

    for name, kb, hops in [("PQ-2H", "2H-kb", 2), ("PQ-3H", "3H-kb", 3), ("PQL-2H", "PQL2-KB", 2),
                           ("PQL-3H", "PQL3-KB", 3)]:
        graph = read_tsv(name, data / f"pathquestion/{kb}.txt")
        items, _ = beds.chains(data, "pathquestion", graph, [f"{name}.train.txt"], hops, name.lower(), "freebase")
        from_choices(pairs, items, name.lower(), rng, 1200)

    meta = read_tsv("metaqa", data / "metaqa/kb.txt", "|")
    items, _ = beds.metaqa(meta, list(beds.metaqa_rows(data / "metaqa/1-hop/qa_train_10k.txt")))
    from_choices(pairs, items, "metaqa-1", rng, 3000)
    every = [Step(r, d, None, None) for r in sorted({words(r) for r in meta.relations}) for d in (FORWARD, BACKWARD)]
    for hop in (2, 3):
        asked = list(beds.metaqa_rows(data / f"metaqa/{hop}-hop/qa_dev.txt"))
        types = open(data / f"metaqa/{hop}-hop/qa_dev_qtype.txt").read().split()
        order = list(range(len(asked)))
        random.Random(5).shuffle(order)
        for i in order[len(order) // 10:][:2500]:  # a seeded tenth is kept for choices
            form = metaqa_chain(types[i])
            pairs.add(f"metaqa-{hop}", "metaqa", asked[i][0], [asked[i][1]], [form], mutations(form, every, rng))

    wc = read_tsv("wc2014", data / "wc2014/WC2014.txt")
    from_choices(pairs, beds.wc_p1(data, wc, "train")[0], "wc-p1", rng, 1500)
    from_choices(pairs, beds.chains(data, "wc2014", wc, ["WC-P2.train.txt"], 2, "wc-p2", "wc2014")[0], "wc-p2", rng, 600)
    every = [Step(words(r), d, None, None) for r in sorted(wc.relations) for d in (FORWARD, BACKWARD)]
    conjunctions = []
    for question, _, paths, _ in beds.path_rows(data / "wc2014/WC-C.train.txt"):
        form = tuple(dict.fromkeys(Step(r, d, None, None) for _, rels, _ in paths for r, d in beds.gold_steps(rels)))
        marked, names = mark(question.replace("_", " "), [t.replace("_", " ") for t, _, _ in paths], partial=True)
        conjunctions.append((marked, names, form))
    for marked, names, form in rng.sample(conjunctions, 600):
        pairs.add("wc-c", "wc2014", marked, names, [form], mutations(form, every, rng))

    from_choices(pairs, beds.geoquery(data)[0], "geoquery", rng)
    from_choices(pairs, beds.spider(data)[0], "spider", rng)

    written.add(pairs, written.split(written.rows())[0], flipped, rng)

    # readings
    properties, aliases = wikidata(data)
    labels = sorted({p[0] for p in properties.values() if p[3] != "external-id"})
    near = overlapping(labels)

    def unlike(form, labels=labels):
        """Near misses where there is no graph: relations that share a word, and others of the same collection."""
        out = [flipped(tuple(form), rng.randrange(len(form)))]
        for at, step in enumerate(form):
            close = near.get(step.relation, [])
            for other in rng.sample(close, min(4, len(close))) + rng.sample(labels, 2):
                swapped = tuple(form[:at]) + (step._replace(relation=other),) + tuple(form[at + 1:])
                out.append(swapped)
        if len(form) > 1:
            out += [tuple(form[:i]) + tuple(form[i + 1:]) for i in range(len(form))]
        return out

    simple = [l.split("\t") for l in open(data / "readings/simplequestions_wikidata.tsv", encoding="utf8").read().split("\n")[1:] if l]
    simple = [p for p in simple if p[0] != "test"]
    frequency = Counter(w for p in simple for w in set(re.findall(r"[\w.'’-]+", p[4].lower())))
    common = [properties["P" + p[2][1:]][0] for p in simple if "P" + p[2][1:] in properties]
    for part, subject, prop, obj, question in simple:
        backward = prop.startswith("R")
        label = properties.get("P" + prop[1:])
        if label:
            marked, names = rare_span(question, frequency)
            form = (Step(label[0], BACKWARD if backward else FORWARD, None, None),)
            pairs.add("simplequestions", "readings", marked, names, [form], unlike(form, common), question)

    topics = {key_of(r["question"]): r["topic_names"] for r in rows}
    used, forms = Counter(), []
    for line in open(data / "readings/sparql.jsonl", encoding="utf8"):
        d = json.loads(line)
        if d["graph"] in ("uniprot",):
            continue
        form = sparql_form(d["sparql"], properties)
        if not form:
            continue
        used[d["set"]] += 1
        if d["set"] == "dblp-quad" and used["dblp-quad"] > 2000:
            continue
        forms.append((d, *form))
    said = defaultdict(list)
    for d, steps, _, _ in forms:
        said[d["set"]] += [s.relation for s in steps]
    for d, steps, names, constants in forms:
        kind, question = d["set"], d["question"]
        if kind == "wwq":
            names = topics.get(key_of(question), [])
        marked, found = mark(question, names, partial=True)
        if not found and kind in ("lcquad2", "qald7", "qald10", "dblp-quad"):
            marked, found = capitalised(question, constants)
        family = "freebase" if kind == "wwq" else "readings"  # WikiWebQuestions asks WebQuestions' questions
        pairs.add(kind, family, marked, found, [steps], unlike(steps, said[kind]), question)

    # chains made of two: the topic of a simple question is described by another relation
    pool = [i for i in pairs.items if i["s"] in ("simplequestions", "lcquad", "qald9", "qald10") and i["q"].count(MARK) == 1
            and len(i["g"][0]) == 1]
    for i in rng.sample(pool, 7000):
        last = Step(*pairs.steps[i["g"][0][0]])
        label = rng.choice(common)
        direction = FORWARD if rng.random() < 0.75 else BACKWARD
        said_as = rng.choice([label] + aliases.get(label, [])[:4])
        if direction == FORWARD:
            inner = rng.choice([f"the {said_as} of {MARK}", f"{MARK}'s {said_as}"])
        else:
            inner = rng.choice([f"the thing whose {said_as} is {MARK}", f"those with {said_as} {MARK}"])
        form = (Step(label, direction, None, None), last)
        wrong = [(form[0],), (last,)] + unlike(form, common)
        pairs.add("composed", "readings", i["q"].replace(MARK, inner), i["n"], [form], wrong)

    kept = [l.split("\t") for l in open(data / "readings/overnight.tsv", encoding="utf8").read().split("\n")[1:] if l]
    for domain, part, question, canonical in rng.sample([k for k in kept if k[1] != "test"], 5000):
        q, names = mark(question, OVERNIGHT_NAMES)
        c, _ = mark(canonical, OVERNIGHT_NAMES)
        text = re.sub(r"[()]", " ", c).replace(MARK, "it")
        pairs.add("overnight", "readings", q, names, [(Step(" ".join(text.split()), 2, None, None),)], [])

    for identity, (label, names, description, kind) in sorted(properties.items()):
        if kind == "external-id":
            continue
        for alias in names[:6]:
            forward = Step(label, FORWARD, None, None)
            pairs.add("aliases", "readings", rng.choice([f"what is the {alias} of {MARK}", f"{alias} of {MARK}",
                      f"{MARK} {alias}", alias]), [], [(forward,)], unlike((forward,)))
        if description:
            pairs.add("descriptions", "readings", description[:120], [], [(Step(label, FORWARD, None, None),)],
                      unlike((Step(label, FORWARD, None, None),)))

    out.mkdir(parents=True, exist_ok=True)
    with gzip.GzipFile(out / "pairs.json.gz", "wb", mtime=0) as f:
        f.write(json.dumps({"steps": pairs.steps, "aliases": aliases, "items": pairs.items}).encode())
    print(dict(pairs.counts), "steps", len(pairs.steps), "left out as asked in a test part or kept for choices", pairs.dropped)


if __name__ == "__main__":
    main()
