"""The recipe of the shipped matcher, with families or sources left out or none.

    python final.py DATA OUT FOLD [FOLD ...] [--students 0,5 ...] [--teachers]

FOLD: all, or what is left out, joined by +: families, sources, or a group of them (GROUPS).

1. all-mpnet-base-v2 (DATA/mpnet), or all-MiniLM-L6-v2 with --minilm, is trained on the pairs and averaged with its first
   weights: the teacher.
2. Some of MiniLM's layers (two, its first and last, unless --students names others) are brought to the teacher's
   vectors on the texts of the pairs and on more (texts.py): the student. It learns from the pairs once more, and is
   averaged with what it was before that. With --teachers only teachers are made and measured.
"""

import argparse
import copy
import gzip
import json
import time
from pathlib import Path

import torch

from job import FAMILIES, average
from measure import measure, show
from model import Encoder, Mpnet
from train import Batches, Data, Texts, distil, fit, save_file

TEMPLATE, MARKER = "mixed", "it"
SHARE = 0.75  # of the trained weights in the teacher
GROUPS = {"families": FAMILIES, "properties": ["aliases", "descriptions"],
          "sparql": ["lcquad", "lcquad2", "qald7", "qald9", "qald10", "spinach", "wwq", "dblp-quad", "sci-qa"]}


def main():
    ask = argparse.ArgumentParser()
    ask.add_argument("data", type=Path)
    ask.add_argument("out", type=Path)
    ask.add_argument("folds", nargs="+")
    ask.add_argument("--students", nargs="+", default=["0,5"])
    ask.add_argument("--minilm", action="store_true")
    ask.add_argument("--epochs", type=int, default=12, help="of the student")
    ask.add_argument("--teachers", action="store_true")
    ask.add_argument("--tiny", action="store_true", help="a run of seconds that shows that all parts fit")
    asked = ask.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    data = Data(asked.data, device)
    size, distil_size, epochs = (16, 16, 1) if asked.tiny else (256, 1024, asked.epochs)
    if asked.tiny:
        data.pairs["items"] = data.pairs["items"][::3000]
        data.evalset["beds"] = {k: data.evalset["beds"][k] for k in ("geoquery", "pq-2h")}
        for b in data.evalset["beds"].values():
            b["items"] = b["items"][:2]
    texts = Texts(data.tokenizer, data.keep, True)
    begun = time.time()
    more = texts.encode(json.load(gzip.open(asked.data / "texts.json.gz"))[::1000 if asked.tiny else 1])

    def log(line):
        print(f"[{time.time() - begun:.0f}s] {line}", flush=True)

    def look(name, fold, model):
        result = measure(model, texts, data.evalset, TEMPLATE, MARKER, device)
        log(show(f"{name} {fold}", result))
        (asked.out / f"{name}-{fold}.json").write_text(json.dumps(result))

    for fold in asked.folds:
        leave = {x for part in fold.split("+") for x in GROUPS.get(part, [part])}
        torch.manual_seed(1)
        batches = Batches(data, texts, TEMPLATE, MARKER, leave, device, 1)
        first = Encoder(data.base, range(6)) if asked.minilm else Mpnet(asked.data / "mpnet")
        first = first.to(device).eval()
        trained = copy.deepcopy(first)
        fit(trained, batches, 1 if asked.tiny else 2, 5e-5, size, 7, device, log=log)
        teacher = average(trained, first, SHARE).eval()
        look("teacher", fold, teacher)
        if asked.teachers:
            continue
        used = torch.tensor(batches.steps_used, device=device)
        questions = torch.unique(torch.cat([batches.questions[0], batches.questions[1]]), dim=0).cpu()
        phrases = torch.unique(torch.cat([batches.phrases[w][used] for w in range(4)]), dim=0).cpu()
        ids = torch.unique(torch.cat([questions, phrases, more]), dim=0)
        for layers in asked.students:
            layers = [0] if asked.tiny else list(map(int, layers.split(",")))
            torch.manual_seed(1)
            student = Encoder(data.base, layers).to(device)
            distil(student, teacher, ids, device, epochs, 7e-4, distil_size, log=log)
            name = f"t{len(layers)}"
            look(f"{name}-distilled", fold, student)
            tuned = copy.deepcopy(student)
            fit(tuned, batches, 1, 1e-4, size, 7, device, log=log)
            tuned = average(tuned, student, 0.5).eval()
            look(name, fold, tuned)
            save_file(tuned.published(), asked.out / f"{name}-{fold}.safetensors")


if __name__ == "__main__":
    main()
