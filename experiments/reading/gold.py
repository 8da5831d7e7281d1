"""Questions with logical forms written by hand (TSV: question, form) as questions with answers.

    python3 experiments/reading/gold.py WHEREFORE GRAPH FILE.tsv > questions.jsonl
    python3 experiments/reading/gold.py --none FILE.tsv > questions.jsonl

The second is for questions without an answer, each with the word that is to be named.
"""
import json
import subprocess
import sys

if sys.argv[1] == "--none":
    for number, line in enumerate(open(sys.argv[2]), 1):
        question, word = line.rstrip("\n").split("\t")
        print(json.dumps({"id": f"none-{number}", "question": question, "answers": [], "kind": word}))
    sys.exit()
wherefore, graph, path = sys.argv[1:4]
for number, line in enumerate(open(path), 1):
    question, form = line.rstrip("\n").split("\t")
    run = subprocess.run([wherefore, "logic", graph, form, "--json"], capture_output=True, text=True)
    came = json.loads(run.stdout or run.stderr)
    if "error" in came:
        sys.exit(f"{path}, line {number}: {came['error']['message']}")
    if "truth" in came:
        answers = [{"name": "yes" if came["truth"] else "no"}]
    elif came.get("number") is not None:
        answers = [{"name": str(came["number"])}]
    else:
        answers = [{"name": a["name"], "aliases": [a["id"]] if a.get("id") else []} for a in came["answers"]]
    if not answers:
        sys.exit(f"{path}, line {number}: the form comes to nothing: {form}")
    print(json.dumps({"id": f"own-{number}", "question": question, "answers": answers}))
