"""How a run over changed questions came out: refused, and read as before.

    python3 experiments/reading/compare.py nonsense|modifier|polite CHANGED.jsonl RUN
"""
import json
import pathlib
import sys

how, changed, run = sys.argv[1:]
with open(changed) as lines:
    asked = {q["id"]: q for q in map(json.loads, lines)}
good, all_of = 0, 0
with open(pathlib.Path(run) / "answers.jsonl") as lines:
    for answer in map(json.loads, lines):
        question = asked[answer["id"]]
        all_of += 1
        refused = not answer["answers"]
        fine = refused if how != "polite" else answer.get("logical_form") == question["kind"]
        good += fine
        if not fine:
            print(f"  {question['question']}  ->  {answer.get('logical_form') or answer.get('reason', '')[:90]}")
word = "refused" if how != "polite" else "read as before"
print(f"{how}: {good} of {all_of} {word}")
