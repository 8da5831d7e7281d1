"""The recipe of the shipped matcher, with a family left out or none.

    python final.py DATA OUT FOLD [FOLD ...]       FOLD: all, or families joined by +

1. all-MiniLM-L6-v2 is trained on the pairs and averaged with its first weights: the teacher.
2. Its first and last layer are brought to the teacher's vectors on the texts of the pairs: T.
3. The token table that the program ships is brought to the teacher's vectors in the same way, trained on the pairs for
   one epoch, and averaged with what it was before that: S.
"""

import copy
import json
import os
import sys
import time
from pathlib import Path

import torch

from job import average
from measure import measure, show
from model import Encoder, Static
from train import Batches, Data, Texts, distil, fit, save_file

TEMPLATE, MARKER = "mixed", "it"
SHARE = 0.75  # of the trained weights in the teacher
LAYERS = [0, 5]
TINY = os.environ.get("TINY")
DEADLINE = time.time() + float(os.environ.get("SECONDS_LEFT", "1e9"))


def main():
    folder, out = Path(sys.argv[1]), Path(sys.argv[2])
    out.mkdir(parents=True, exist_ok=True)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    data = Data(folder, device)
    size, distil_size, epochs = (16, 16, 1) if TINY else (256, 1024, 20)
    if TINY:
        data.pairs["items"] = data.pairs["items"][::3000]
        data.evalset["beds"] = {k: data.evalset["beds"][k] for k in ("geoquery", "pq-2h")}
        for b in data.evalset["beds"].values():
            b["items"] = b["items"][:2]
    table = data.static("crates/model/data/static.table")
    texts = {kind: Texts(data.tokenizer, data.keep, kind) for kind in (True, False)}
    begun, results, kept = time.time(), {}, {}

    def log(line):
        print(f"[{time.time() - begun:.0f}s] {line}", flush=True)

    def look(name, fold, model):
        result = measure(model, texts[model.specials], data.evalset, TEMPLATE, MARKER, device)
        log(show(f"{name} {fold}", result))
        results[f"{name} {fold}"] = result
        (out / "results.json").write_text(json.dumps(results))

    for fold in sys.argv[3:]:
        if time.time() > DEADLINE - 60:
            log(f"no time for {fold}")
            break
        leave = set() if fold == "all" else set(fold.split("+"))
        torch.manual_seed(1)
        batches = Batches(data, texts[True], TEMPLATE, MARKER, leave, device, 1)
        first = Encoder(data.base, range(1 if TINY else 6)).to(device).eval()
        trained = copy.deepcopy(first)
        scale = fit(trained, batches, 1 if TINY else 2, 5e-5, size, 7, device, log=log)
        look("t6", fold, trained)
        teacher = average(trained, first, SHARE).eval()
        look("t6avg", fold, teacher)
        used = torch.tensor(batches.steps_used, device=device)
        questions = torch.unique(torch.cat([batches.questions[0], batches.questions[1]]), dim=0).cpu()
        phrases = torch.unique(torch.cat([batches.phrases[w][used] for w in range(4)]), dim=0).cpu()
        ids = torch.cat([questions, phrases])
        torch.manual_seed(1)
        student = Encoder(data.base, [0] if TINY else LAYERS).to(device)
        distil(student, teacher, ids, device, epochs, 7e-4, distil_size, log=log)
        look("t2", fold, student)
        save_file(student.published(), out / f"t2-{fold}.safetensors")
        kept[fold] = teacher, ids
        del batches, trained, first

    for fold, (teacher, ids) in kept.items():
        if time.time() > DEADLINE - 45:
            log(f"no time for S {fold}")
            break
        leave = set() if fold == "all" else set(fold.split("+"))
        torch.manual_seed(1)
        student = Static(table).to(device)
        distil(student, teacher, ids, device, epochs, 3e-3, distil_size, log=log)
        look("s-distilled", fold, student)
        batches = Batches(data, texts[False], TEMPLATE, MARKER, leave, device, 1)
        trained = copy.deepcopy(student)
        fit(trained, batches, 1, 1e-3, size, 7, device, bf16=False, log=log)
        look("s-trained", fold, trained)
        student = average(trained, student, 0.5).eval()
        look("s", fold, student)
        save_file(student.coded(), out / f"s-{fold}.safetensors")
    log("done")


main()
