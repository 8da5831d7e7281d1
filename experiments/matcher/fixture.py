"""Twenty texts with how their vectors begin, and twenty questions with phrases and scores, to hold another program against.

    python fixture.py DATA MODEL.safetensors OUT.json
"""

import json
import sys

import torch

from measure import batched, load
from model import form_vectors
from phrases import BACKWARD, FORWARD, MARK, Step, step_phrase

TEXTS = ["population of the state", "river with traverses the state", "place of birth of it", "it is starred actors of",
         "capital of the state, a city", "person with place of birth", "what is the population of it?",
         "which rivers run through it?", "where was it born", "what films did it act in", "Who directed it?",
         "café prices in São Paulo", "How many people live in it, it?", "date of birth of the person",
         "location of the place lived, a location", "government positions held of the politician",
         "it is plays in club of", "a", "antidisestablishmentarianism of it", "what's it 's mom 's darling ?"]
STEPS = [Step("population", FORWARD, "state", None), Step("traverses", BACKWARD, "river", "state"),
         Step("place of birth", FORWARD, "person", None), Step("starred actors", BACKWARD, None, None),
         Step("capital", FORWARD, "state", "city"), Step("directed by", FORWARD, None, None),
         Step("places lived", FORWARD, "person", None), Step("location", FORWARD, "place lived", None),
         Step("parents", FORWARD, None, None), Step("spouse", FORWARD, None, None)]
ASKED = [("how many people live in ¤?", [0]), ("how many people live in ¤?", [4]), ("what rivers run through ¤?", [1]),
         ("what rivers run through ¤?", [0]), ("where was ¤ born", [2]), ("where was ¤ born", [6, 7]),
         ("what films did ¤ act in", [3]), ("what films did ¤ act in", [5]), ("who directed ¤", [5]), ("who directed ¤", [3]),
         ("where does ¤ live now", [6, 7]), ("where does ¤ live now", [2]), ("what is the capital of ¤?", [4]),
         ("what is the capital of ¤?", [1]), ("¤ 's mom 's darling ?", [8, 9]), ("¤ 's mom 's darling ?", [9]),
         ("who directed the films ¤ acted in", [3, 5]), ("who directed the films ¤ acted in", [5]),
         ("what is the population of the capital of ¤", [4, 0]), ("what is the population of the capital of ¤", [0])]


@torch.no_grad()
def main():
    model, texts = load(sys.argv[1], sys.argv[2])
    device = torch.device("cpu")
    ids = texts.encode(TEXTS)
    vectors = batched(model, ids, "phrase", device)
    steps = batched(model, texts.encode([step_phrase(s, "mixed") for s in STEPS]), "phrase", device)
    out = {"texts": [], "scores": []}
    for text, row, vector in zip(TEXTS, ids, vectors):
        out["texts"].append({"text": text, "ids": [int(i) for i in row if i > 0], "begins": [round(float(x), 5) for x in vector[:6]]})
    for question, form in ASKED:
        q = batched(model, texts.encode([question], "it"), "question", device)[0]
        v = form_vectors(steps, torch.tensor([form]))[0]
        out["scores"].append({"question": question.replace(MARK, "it"), "phrases": [step_phrase(STEPS[s], "mixed") for s in form],
                              "score": round(float(q @ v), 5)})
    with open(sys.argv[3], "w", encoding="utf8") as f:  # one text and one question a line
        parts = [f'"{k}": [\n  ' + ",\n  ".join(json.dumps(x, ensure_ascii=False) for x in out[k]) + "\n]" for k in out]
        f.write("{" + ", ".join(parts) + "}\n")
    for s in out["scores"]:
        print(s)


main()
