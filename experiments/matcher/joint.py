"""Does a joint reader of the last candidates pay? The matcher chooses ten, the reader one of them.

    python joint.py DATA STUDENT.safetensors OUT [--leave families] [--readers mlp maxsim joint-1 joint-2 joint-6]

Trained on the same pairs as the matcher (train.py), against each question's own wrong forms and the right ones of four
others. What is measured: the first choice among the paths around the topic, by the matcher alone, by the reader among
the matcher's first ten, and by the sum of both, whose share is chosen on pairs that were kept from training.

mlp       a network of two layers over the two vectors, their product and their difference
maxsim    each token of the question meets the nearest of the form, and the other way round
joint-N   N layers over question and form as one text
"""

import argparse
import copy
import json
import math
import time
from pathlib import Path

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

from final import GROUPS, MARKER, TEMPLATE
from measure import batched, first, load
from model import Encoder, form_vectors
from phrases import Step, step_phrase
from train import Batches, Data, Texts, trim

LAST = 10  # candidates that the reader sees
OTHERS = 4  # right forms of other questions beside a question's own wrong ones
LAYERS = {"joint-1": [0], "joint-2": [0, 5], "joint-6": range(6)}


def packed(parts):
    """[n, …] ids with gaps of zeros -> the same without gaps, as long as the longest."""
    order = torch.sort((parts == 0).to(torch.int8), dim=-1, stable=True).indices
    ids = parts.gather(-1, order)
    return ids[..., :max(1, int((ids > 0).sum(-1).max()))]


def one_text(questions, phrases):
    """`questions` [m, t], `phrases` [m, k, l] (0 for steps that are not there) -> ids, and 1 for tokens of the form."""
    tail = phrases[..., 1:].flatten(1)  # [CLS] is said once
    parts = torch.cat([questions, tail], 1)
    side = torch.cat([torch.zeros_like(questions), torch.ones_like(tail)], 1)
    order = torch.sort((parts == 0).to(torch.int8), dim=-1, stable=True).indices[:, :128]
    ids, side = parts.gather(-1, order), side.gather(-1, order)
    longest = max(1, int((ids > 0).sum(-1).max()))
    return ids[:, :longest], side[:, :longest]


class Joint(Encoder):
    """Question and form as one text; a score from [CLS] and the mean."""

    def __init__(self, weights, layers):
        super().__init__(weights, layers, drop=0.05)
        kinds = weights["embeddings.token_type_embeddings.weight"].float()
        self.kind = nn.Parameter((kinds[1] - kinds[0]).clone())
        self.head = nn.Sequential(nn.Linear(768, 384), nn.GELU(), nn.Linear(384, 1))

    def score(self, questions, phrases):
        ids, side = one_text(questions, phrases)
        x = self.states(ids, side[..., None] * self.kind)
        w = (ids > 0)[..., None].to(x.dtype)
        return self.head(torch.cat([x[:, 0], (x * w).sum(1) / w.sum(1)], -1)).squeeze(-1).float()


class MaxSim(Encoder):
    """Late interaction over the states of tokens."""

    def __init__(self, student):
        nn.Module.__init__(self)
        self.__dict__.update(copy.deepcopy(student).__dict__)
        self.scale = nn.Parameter(torch.tensor(math.log(20.0)))

    def score(self, questions, phrases):
        m, k, l = phrases.shape
        some = packed(phrases.flatten(0, 1))
        seen = some.clone()
        seen[(some == 0).all(1), 0] = 1  # a step that is not there: any token, which no one meets
        p = F.normalize(self.states(seen), dim=-1).view(m, -1, 384)
        q = F.normalize(self.states(questions), dim=-1)
        there, asked = (some > 0).view(m, -1), questions > 0
        sim = torch.einsum("mtd,mld->mtl", q, p).float()
        from_q = (sim.masked_fill(~there[:, None], -1).amax(2) * asked).sum(1) / asked.sum(1).clamp(min=1)
        from_p = (sim.masked_fill(~asked[..., None], -1).amax(1) * there).sum(1) / there.sum(1).clamp(min=1)
        return self.scale.exp() * (from_q + from_p) / 2


class Mlp(nn.Module):
    """Over the matcher's own two vectors, which stay as they are."""

    def __init__(self, student):
        super().__init__()
        self.student = copy.deepcopy(student).requires_grad_(False)
        self.net = nn.Sequential(nn.Linear(4 * 384, 256), nn.GELU(), nn.Linear(256, 1))
        nn.init.zeros_(self.net[2].weight)

    def score(self, questions, phrases):
        m, k, l = phrases.shape
        some = packed(phrases.flatten(0, 1))
        with torch.no_grad():
            q = self.student(questions).float()
            steps = self.student(some).float().nan_to_num()
            there = (some > 0).any(1).view(m, k)
            forms = torch.where(there, torch.arange(m * k, device=q.device).view(m, k), -1)
            v = form_vectors(steps, forms)
        return self.net(torch.cat([q * v, (q - v).abs(), q, v], -1)).squeeze(-1) + 20 * (q * v).sum(1)


def chosen_forms(batches, batch, generator):
    """Forms of each question, the right one first; which of them are there and are not right after all."""
    at, named, wording, forms = batch
    n = len(forms)
    other = torch.randint(1, n, (n, OTHERS), generator=generator).to(forms.device)
    other = (torch.arange(n, device=forms.device)[:, None] + other) % n
    forms = torch.cat([forms, forms[other, 0]], 1)
    relations = torch.where(forms >= 0, batches.relation[forms.clamp(min=0)], -1).sort(-1).values
    same = (relations == relations[:, :1]).all(-1)
    same[:, 0] = False
    return forms, same | (forms < 0).all(-1)


def logits_of(model, batches, batch, generator):
    at, named, wording, _ = batch
    forms, out = chosen_forms(batches, batch, generator)
    n, k, steps = forms.shape
    phrases = batches.phrases[wording[:, None, None], forms.clamp(min=0)] * (forms >= 0)[..., None]
    phrases = phrases.view(n * k, steps, -1)
    phrases = phrases[:, :, :int((phrases > 0).sum(-1).max())]
    questions = trim(batches.questions[named, at]).repeat_interleave(k, 0)
    return model.score(questions, phrases).view(n, k).masked_fill(out, -1e4)


def fit(model, batches, epochs, rate, size, device, log):
    params = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(params, rate, weight_decay=0.01)
    total = epochs * sum(1 for _ in batches.epoch(size, 7))
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, rate, total_steps=total + 20, pct_start=0.1)
    generator = torch.Generator().manual_seed(1)
    model.train()
    begun, seen, mean = time.time(), 0, 0.0
    for _ in range(epochs):
        for batch in batches.epoch(size, 7):
            if seen >= total + 19:
                break
            with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
                logits = logits_of(model, batches, batch, generator)
            loss = F.cross_entropy(logits.float(), torch.zeros(len(logits), dtype=torch.long, device=device))
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(params, 1.0)
            optimizer.step()
            schedule.step()
            seen += 1
            mean += (loss.item() - mean) / min(seen, 50) if seen % 20 == 0 else 0.0
    model.eval()
    log(f"trained: {seen} steps, loss {mean:.3f}, {time.time() - begun:.0f} s")


@torch.no_grad()
def read(model, student, texts, beds, steps, device, last=LAST):
    """{bed: [(cosines, scores of the reader or -inf where it was not asked, which are right)]}"""
    ids_of = texts.encode([step_phrase(Step(*s), TEMPLATE) for s in steps]).to(device)
    out = {}
    for name, items in beds.items():
        questions = texts.encode([i["q"] for i in items], MARKER)
        vectors = batched(student, questions, "question", device)
        rows = []
        for at, i in enumerate(items):
            k = max(map(len, i["paths"]))
            forms = torch.tensor([p + [-1] * (k - len(p)) for p in i["paths"]], device=device)
            used = torch.unique(forms[forms >= 0])
            place = torch.full((len(steps),), -1, device=device)
            place[used] = torch.arange(len(used), device=device)
            kept = batched(student, ids_of[used].cpu(), "phrase", device)
            cos = form_vectors(kept, torch.where(forms >= 0, place[forms.clamp(min=0)], -1)) @ vectors[at]
            top = torch.topk(cos, min(last, len(cos))).indices
            top = torch.nonzero(cos >= cos[top].min() - 1e-6)[:, 0][:4 * last]  # ties are all seen
            chosen = forms[top]
            phrases = ids_of[chosen.clamp(min=0)] * (chosen >= 0)[..., None]
            question = trim(questions[at:at + 1].to(device)).repeat(len(top), 1)
            score = torch.full_like(cos, -1e9)
            with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
                score[top] = model.score(question, phrases[:, :, :int((phrases > 0).sum(-1).max())]).float()
            gold = np.zeros(len(cos), bool)
            gold[i["gold"]] = True
            rows.append((cos.cpu().numpy(), score.cpu().numpy(), gold))
        out[name] = rows
    return out


def right(rows, share):
    """First choice right, by share · reader + (1 - share) · cosine / 0.032; share None: the cosine alone."""
    total = 0.0
    for cos, score, gold in rows:
        total += first(cos if share is None else np.where(score > -1e8, share * score + (1 - share) * cos / 0.032, -1e9), gold)
    return total / max(1, len(rows))


def main():
    ask = argparse.ArgumentParser()
    ask.add_argument("data", type=Path)
    ask.add_argument("student")
    ask.add_argument("out", type=Path)
    ask.add_argument("--leave", default="families")
    ask.add_argument("--readers", nargs="+", default=["mlp", "maxsim", *LAYERS])
    ask.add_argument("--epochs", type=int, default=2)
    ask.add_argument("--tiny", action="store_true", help="a run of seconds that shows that all parts fit")
    asked = ask.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    data = Data(asked.data, device)
    items = data.pairs["items"]
    if asked.tiny:
        items = items[::2000]
    leave = {x for part in asked.leave.split("+") for x in GROUPS.get(part, [part])}
    kept = [i for i in items[::5 if asked.tiny else 60] if i["f"] not in leave and i["s"] not in leave and i["w"] and i["s"] != "overnight"]
    held = {id(i) for i in kept}
    data.pairs["items"] = [i for i in items if id(i) not in held]
    steps = data.pairs["steps"]
    own = {"kept": [{"q": i["q"], "paths": [i["g"][0], *[w for w in i["w"] if w not in i["g"]]], "gold": [0]} for i in kept
                    if all(Step(*steps[s]).direction != 2 for f in [i["g"][0], *i["w"]] for s in f)][:1500]}
    most = 3 if asked.tiny else 10**9
    beds = {name: bed["items"][:most] for name, bed in data.evalset["beds"].items() if len(bed["items"]) > 20}
    student, _ = load(asked.data, asked.student)
    student = student.to(device)
    texts = Texts(data.tokenizer, data.keep, True)
    begun = time.time()

    def log(line):
        print(f"[{time.time() - begun:.0f}s] {line}", flush=True)

    torch.manual_seed(1)
    batches = Batches(data, texts, TEMPLATE, MARKER, leave, device, 1)
    for name in asked.readers:
        torch.manual_seed(1)
        model, rate = {"mlp": lambda: (Mlp(student), 1e-3), "maxsim": lambda: (MaxSim(student), 1e-4)}.get(
            name, lambda: (Joint(data.base, LAYERS[name]), 1e-4))()
        model = model.to(device)
        fit(model, batches, 1 if asked.tiny else asked.epochs, rate, 16 if asked.tiny else 256, device, log)
        rows = read(model, student, texts, own, steps, device)["kept"]
        share = max((s / 10 for s in range(1, 11)), key=lambda s: right(rows, s))
        log(f"{name}: kept pairs: cosine {right(rows, None):.3f}, reader {right(rows, 1.0):.3f}, sum {right(rows, share):.3f} at {share}")
        result = {}
        for bed, rows in read(model, student, texts, beds, data.evalset["steps"], device).items():
            result[bed] = (len(rows), right(rows, None), right(rows, 1.0), right(rows, share))
            log(f"{name} {bed:13} {len(rows):4} cosine {result[bed][1]:.3f} reader {result[bed][2]:.3f} sum {result[bed][3]:.3f}")
        (asked.out / f"{name}.json").write_text(json.dumps({"share": share, "beds": result}))


if __name__ == "__main__":
    main()
