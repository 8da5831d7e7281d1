"""Collects the short texts on which the built-in static table was trained (second stage of `distill`).

    python experiments/distill_texts.py DATA > texts.txt

DATA is the folder of benchmark data. Taken are questions of train parts, entity labels and relations of the
graphs. Left out are all test and valid parts, and also every question of WebQSP train: the relation retrieval on
which the table is measured asks those, so its figure is for questions the table has never seen.
"""
import json, os, random, sys

DATA = sys.argv[1]
rng = random.Random(1)


def lines(*path):
    with open(os.path.join(DATA, *path), encoding="utf-8") as f:
        return f.read().rstrip("\n").split("\n")  # not splitlines: labels hold odd separators


def plain(question):
    return " ".join(question.lower().replace("?", " ").split())


asked = {plain(json.loads(line)["question"]) for line in lines("freebase", "webqsp_train.jsonl")}
complex_questions = []
for line in lines("freebase", "wq_cwq_train.jsonl"):
    q = json.loads(line)
    ids = (q["webqsp_test_id"], q["cwq_test_id"], q["webqsp_train_id"])
    if q["split"] == ["train"] and ids == (None, None, None) and plain(q["question"]) not in asked:
        complex_questions.append(q["question"])
metaqa = [line.split("\t")[0].replace("[", "").replace("]", "") for line in lines("metaqa", "1-hop", "qa_train_10k.txt")]
paths = [line.split("\t")[0].replace("_", " ") for part in ("PQ-2H", "PQ-3H", "PQL-2H", "PQL-3H")
         for line in lines("pathquestion", f"{part}.train.txt")]
triples = [line.split("\t") for line in lines("freebase", "triples.tsv")]
labels = sorted({x[:120] for t in triples for x in (t[0], t[2]) if not x.startswith(("m.", "g."))})
films = sorted({line.split("\t")[-1] for line in lines("metaqa", "kb_entity_dict.txt")})
entities = sorted({line.split("\t")[1] for line in lines("fb15k-237", "entity_names.tsv")})
opened = lambda r: r.replace(".", " ").replace("/", " ").replace("_", " ")
relations = sorted({opened(t[1]) for t in triples})
relations_237 = sorted({opened(line.split("\t")[1]) for line in lines("fb15k-237", "train.txt")})

texts = (rng.sample(complex_questions, 9000) + rng.sample(metaqa, 1500) + rng.sample(paths, 1000)
         + rng.sample(labels, 6000) + rng.sample(films, 2000) + rng.sample(entities, 2500) + relations_237 + relations)
for text in texts:
    text = " ".join(text.split())
    if text:
        print(text)
