"""Questions that a run answered right, changed: a nonsense word put before a noun, a real one that
narrows it, or politeness around the question. Prints JSON lines; `id` keeps that of the question.

    python3 experiments/reading/variants.py nonsense|modifier|polite QUESTIONS.jsonl RUN COUNT SEED
"""
import json
import pathlib
import random
import re
import sys

NONSENSE = ["blorpy", "frimbly", "quoxic", "zandish", "snorfed", "plimmy", "grundly", "wexlike", "tovian", "mibsome"]
MODIFIERS = ["wooden", "haunted", "purple", "abandoned", "illegal", "wealthy", "ancient", "polluted", "friendly", "imaginary"]
POLITE = ["Could you please tell me: {}", "Hi, I would like to know: {}", "Please tell me, {}", "I was wondering, {} Thanks!", "Can you tell me {}"]


def lowered(text):
    first, _, rest = text.partition(" ")
    return f"{first.lower()} {rest}"


def main():
    how, questions, run, count, seed = sys.argv[1:]
    draw = random.Random(int(seed))
    with open(questions) as lines:
        asked = {q["id"]: q for q in map(json.loads, lines)}
    with open(pathlib.Path(run) / "answers.jsonl") as lines:
        answered = [a for a in map(json.loads, lines) if a["answers"] and a.get("logical_form")]
    draw.shuffle(answered)
    made = 0
    for answer in answered:
        if made == int(count):
            break
        text = asked[answer["id"]]["question"]
        if how == "polite":
            text = draw.choice(POLITE).format(lowered(text))
        else:
            # before a noun that a question word or an article picks
            place = re.search(r"\b(which|what|how many|the)\s+(?=[a-z]{4,})", text, re.I)
            if place is None:
                continue
            word = draw.choice(NONSENSE if how == "nonsense" else MODIFIERS)
            text = f"{text[:place.end()]}{word} {text[place.end():]}"
        made += 1
        print(json.dumps({"id": answer["id"], "question": text, "answers": [], "kind": answer["logical_form"]}))


main()
