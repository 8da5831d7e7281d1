"""Gold forms written by hand for a hundred questions drawn at random: how many can be expressed.

    python3 experiments/reading/forms.py WHEREFORE DATA WORK

DATA is the folder of benchmarks, WORK one with the graphs that `experiments/read.sh` loads. Runs each
form of forms-geoquery.tsv and forms-spider.tsv (question's id, form) and compares what it comes to with
the gold answers. The questions without a form are those with "major", which the graph does not say,
and one whose gold is a list of counts. Writes the questions with a right form to WORK/forms-GRAPH.jsonl,
for `wherefore train read`, which says how many have a right reading, and how many have it first.
"""
import json
import os
import subprocess
import sys

wherefore, data, work = sys.argv[1:4]
here = os.path.dirname(__file__)
spider = ["car_1", "concert_singer", "museum_visit", "battle_death", "orchestra", "tvshow"]


def plain(text):
    try:
        return f"{float(text):.6g}"
    except ValueError:
        return str(text).lower()


def names(answer):
    answer = answer if isinstance(answer, dict) else {"name": answer}
    return {plain(n) for n in [answer["name"], answer.get("id", ""), *answer.get("aliases", [])]}


asked = {}
for graph, path in [("geo", "geoquery/train")] + [(name, f"spider/{name}") for name in spider]:
    for line in open(f"{data}/{path}.jsonl"):
        question = json.loads(line)
        asked[question["id"]] = (graph, question)
right, total, kept = 0, 0, {}
for path in ["forms-geoquery.tsv", "forms-spider.tsv"]:
    for line in open(os.path.join(here, path)):
        number, form = line.rstrip("\n").split("\t")
        graph, question = asked[number]
        run = subprocess.run([wherefore, "logic", f"{work}/{graph}", form, "--json"], capture_output=True, text=True)
        came = json.loads(run.stdout or run.stderr)
        if "error" in came:
            sys.exit(f"{number}: {came['error']['message']}")
        got = came["answers"] if came.get("number") is None else [{"name": came["number"]}]
        gold = [names(a) for a in question["answers"]]
        same = len(got) == len(gold) and all(any(names(a) & g for g in gold) for a in got)
        total, right = total + 1, right + same
        if same:
            kept.setdefault(graph, []).append(question)
        else:
            print(f"{number}: {question['question']}: {[a['name'] for a in got][:5]}, gold {question['answers'][:3]}")
print(f"{right} of {total} forms come to the gold answers")
for graph, questions in kept.items():
    with open(f"{work}/forms-{graph}.jsonl", "w") as out:
        out.writelines(json.dumps(q) + "\n" for q in questions)
