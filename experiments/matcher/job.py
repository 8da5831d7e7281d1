"""One training run from a line of JSON: trains, measures, saves.

    python job.py DATA OUT '{"name": "s-all", "kind": "static", ...}'
"""

import copy
import json
import sys
import time
from pathlib import Path

import torch

from model import Encoder, Gated, Late, Mapped, Static, Weighted
from train import Batches, Data, Texts, distil, fit, measure, save_file, show

DEFAULT = {"kind": "static", "layers": [0, 1, 2, 3, 4, 5], "template": "issue", "marker": "it", "leave": [], "epochs": 3,
           "rate": 2e-3, "batch": 256, "negatives": 7, "anchor": 0.0, "distil": 0, "distil_rate": 5e-4, "wise": [],
           "seed": 1, "save": False, "tiny": False, "scale": 20.0, "only": [], "drop": 0.0}
STATIC = {"static": Weighted, "tied": Static, "late": Late, "mapped": Mapped}
FAMILIES = ["freebase", "metaqa", "wc2014", "geoquery", "spider"]


def average(model, first, share):
    """share * trained + (1 - share) * first weights."""
    out = copy.deepcopy(model)
    with torch.no_grad():
        for p, a, b in zip(out.parameters(), model.parameters(), first.parameters()):
            p.copy_(share * a + (1 - share) * b)
    return out


def main():
    folder, out = Path(sys.argv[1]), Path(sys.argv[2])
    given = json.loads(sys.argv[3])
    unknown = set(given) - set(DEFAULT) - {"name"}
    assert not unknown, unknown
    job = {**DEFAULT, **given}
    begun = time.time()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(job["seed"])
    data = Data(folder, device)
    leave = set(FAMILIES) if job["leave"] == "all" else set(job["leave"])
    if job["tiny"]:
        data.pairs["items"] = data.pairs["items"][::1500]
        data.evalset["beds"] = {k: data.evalset["beds"][k] for k in ("geoquery", "pq-2h")}
        for b in data.evalset["beds"].values():
            b["items"] = b["items"][:2]
    if job["kind"] in STATIC:
        model = STATIC[job["kind"]](data.static("crates/model/data/static.table"))
    else:
        model = (Gated if job["kind"] == "gated" else Encoder)(data.base, job["layers"], job["drop"])
    model = model.to(device).eval()
    texts = Texts(data.tokenizer, data.keep, model.specials)
    batches = Batches(data, texts, job["template"], job["marker"], leave, device, job["seed"])
    lines = []
    def log(line):
        lines.append(f"[{job['name']}] {line}")
    log(f"{len(batches.items)} items, ready after {time.time() - begun:.0f} s")
    if job["distil"]:
        teacher = Encoder(data.base, range(6)).to(device).eval()
        used = torch.tensor(batches.steps_used, device=device)
        ids = torch.cat([batches.questions[0], batches.questions[1], *(batches.phrases[w][used] for w in range(4))]).cpu()
        ids = torch.unique(ids, dim=0)
        distil(model, teacher, ids, device, job["distil"], job["distil_rate"], size=16 if job["tiny"] else 1024, log=log)
        del teacher
        log(show("distilled only", measure(model, texts, data.evalset, job["template"], job["marker"], device)))
    first = copy.deepcopy(model)
    scale = 20.0
    if job["epochs"]:
        anchor = (first, job["anchor"]) if job["anchor"] else None
        scale = fit(model, batches, job["epochs"], job["rate"], 16 if job["tiny"] else job["batch"], job["negatives"], device,
                    scale0=job["scale"], anchor=anchor, bf16=job["kind"] not in STATIC, log=log)
    result, kept = measure(model, texts, data.evalset, job["template"], job["marker"], device, keep_scores=True)
    log(show(job["name"], result))
    for share in job["wise"]:
        log(show(f"{job['name']} averaged {share}", measure(average(model, first, share), texts, data.evalset, job["template"], job["marker"], device)))
    log(f"{time.time() - begun:.0f} s in all")
    out.mkdir(parents=True, exist_ok=True)
    (out / f"{job['name']}.json").write_text(json.dumps({"job": job, "scale": scale, "result": result}))
    if job["save"]:
        if job["kind"] in STATIC:
            save_file({k: v.detach().cpu().contiguous() for k, v in model.state_dict().items()}, out / f"{job['name']}.safetensors")
        else:
            weights = model.published()
            if hasattr(model, "gate"):
                weights["gate"] = model.gate.detach().half().cpu()
            save_file(weights, out / f"{job['name']}.safetensors")
    print("\n".join(lines), flush=True)


if __name__ == "__main__":
    main()
