"""Trains a matcher on the pairs, all of them or all but one family's, and measures it.

    python train.py DATA OUT --kind static|layers --layers 0,1,2 --leave FAMILY ...
"""

import argparse
import gzip
import json
import math
import random
import re
import time
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer

from measure import Texts, batched, measure, show
from model import Encoder, Static, form_vectors
from phrases import MARK, Step, step_phrase
from static_table import read_static

# cuDNN's attention plans anew for every shape, and shapes differ from batch to batch
torch.backends.cuda.enable_cudnn_sdp(False)

# how often a source is seen in an epoch
SHARE = {"overnight": 0.5, "dblp-quad": 0.5, "sci-qa": 0.5, "aliases": 0.7, "descriptions": 0.7, "geoquery": 4.0,
         "spider": 4.0, "webqsp": 1.5, "wq_cwq": 0.5, "metaqa-1": 0.5, "metaqa-2": 0.5, "metaqa-3": 0.5, "written": 2.0}
STEPS_MOST = 4


class Data:
    def __init__(self, folder, device):
        self.folder, self.device = Path(folder), device
        self.tokenizer = Tokenizer.from_file(str(self.folder / "tokenizer.json"))
        self.tokenizer.no_truncation()
        self.tokenizer.no_padding()
        self.base = load_file(self.folder / "base.safetensors")
        self.keep = self.base["ids"].tolist()
        words = self.base.pop("words.codes").float() * self.base.pop("words.scale")[:, None]
        self.base["embeddings.word_embeddings.weight"] = words
        self.pairs = json.load(gzip.open(self.folder / "pairs.json.gz"))
        if (self.folder / "reworded.jsonl").exists():
            add_reworded(self.pairs, self.folder / "reworded.jsonl")
        self.evalset = json.load(gzip.open(self.folder / "evalset.json.gz"))

    def static(self, table):
        rows, dim = read_static(table)
        names = {v: k for k, v in self.tokenizer.get_vocab().items()}
        out = np.zeros((len(self.keep), dim), np.float32)
        for at, token in enumerate(self.keep):
            if names[token] in rows:
                out[at] = rows[names[token]]
        small = np.abs(out).sum(1) == 0
        out[small] = np.random.default_rng(1).normal(0, 0.02, (small.sum(), dim))
        return torch.from_numpy(out)


def add_reworded(pairs, path):
    """Drafts in the words of a language model that two judges took for the draft's step (reword.py)."""
    ids = {tuple(s): at for at, s in enumerate(pairs["steps"])}
    def form(step):
        if tuple(step) not in ids:
            ids[tuple(step)] = len(pairs["steps"])
            pairs["steps"].append(list(step))
        return [ids[tuple(step)]]
    for line in open(path, encoding="utf8"):
        d = json.loads(line)
        step = Step(*d["step"])
        wrong = [form(s) for s in [step._replace(direction=1 - step.direction), *d["siblings"]]]
        for question in d["kept"]:
            pairs["items"].append({"s": "reworded", "f": d["family"], "q": re.sub(r"\bX\b", MARK, question), "n": [],
                                   "g": [form(step)], "w": wrong})


class Batches:
    """Token ids of questions (marked, and with their names) and of steps in three wordings, on the device."""

    def __init__(self, data, texts, template, marker, leave, device, seed):
        items = [i for i in data.pairs["items"] if i["f"] not in leave and i["s"] not in leave]
        rng = random.Random(seed)
        self.items, self.rng, self.device = items, rng, device
        marked = [i["q"] for i in items]
        plain = []
        for i in items:
            text, names = i["q"], list(i["n"])
            while MARK in text and names:
                text = text.replace(MARK, names.pop(0), 1)
            plain.append(text)
        self.steps_used = sorted({s for i in items for f in i["g"] + i["w"] for s in f})
        self.questions = torch.stack([texts.encode(marked, marker), texts.encode(plain, marker)]).to(device)
        steps = [Step(*s) for s in data.pairs["steps"]]
        without = lambda s: s._replace(object=None)
        bare = lambda s: s._replace(object=None, subject=None)
        aliases = data.pairs["aliases"]
        def other(s):
            names = aliases.get(s.relation)
            return s._replace(relation=rng.choice(names)) if names else s
        wordings = [steps, [without(s) for s in steps], [bare(s) for s in steps], [other(s) for s in steps]]
        say = lambda s: s.relation if s.direction == 2 else step_phrase(s, template)
        self.phrases = torch.stack([texts.encode([say(s) for s in w]) for w in wordings]).to(device)
        relation = {}
        self.relation = torch.tensor([relation.setdefault((s.relation, s.direction), len(relation)) for s in steps])
        self.relation = self.relation.to(device)

    def epoch(self, size, negatives):
        """Batches of questions, most of a batch from one or two sources: their wrong forms are nearer."""
        rng, groups = self.rng, {}
        for at, i in enumerate(self.items):
            share = SHARE.get(i["s"], 1.0)
            for _ in range(int(share) + (rng.random() < share - int(share))):
                groups.setdefault(i["s"], []).append(at)
        chunks = []
        for members in groups.values():
            rng.shuffle(members)
            chunks += [members[k:k + 32] for k in range(0, len(members), 32)]
        rng.shuffle(chunks)
        flat = [a for c in chunks for a in c]
        for k in range(0, len(flat) - size // 2, size):
            chosen = flat[k:k + size]
            rows, named, wording = [], [], []
            forms = np.full((len(chosen), 1 + negatives, STEPS_MOST), -1)
            for r, at in enumerate(chosen):
                i = self.items[at]
                named.append(int(rng.random() < 0.15))
                u = rng.random()
                wording.append(0 if u < 0.55 else 1 if u < 0.75 else 2 if u < 0.9 else 3)
                gold = rng.choice(i["g"])[:STEPS_MOST]
                forms[r, 0, :len(gold)] = gold
                for c, w in enumerate(rng.sample(i["w"], min(negatives, len(i["w"])))):
                    w = w[:STEPS_MOST]
                    forms[r, 1 + c, :len(w)] = w
            yield (torch.tensor(chosen, device=self.device), torch.tensor(named, device=self.device),
                   torch.tensor(wording, device=self.device), torch.from_numpy(forms).to(self.device))


def without_specials(ids):
    """[CLS] a b [SEP] 0 0 -> a b 0 0 0"""
    out = torch.zeros_like(ids)
    n = (ids > 0).sum(1)
    out[:, :-1] = ids[:, 1:]
    out.scatter_(1, (n - 2).clamp(min=0)[:, None], 0)
    return out


def trim(ids):
    """Cut to the longest, in steps of four: fewer shapes."""
    longest = int((ids > 0).sum(1).max().clamp(min=1))
    return ids[:, :-(-longest // 4) * 4]


def loss_of(model, scale, batches, batch, anchor=None):
    at, named, wording, forms = batch
    n, k, _ = forms.shape
    question_ids = trim(batches.questions[named, at])
    if hasattr(model, "late"):
        return late_loss(model, scale, batches, question_ids, wording, forms)
    q = model(question_ids, "question").float()  # [n, d]
    # distinct (wording, step) of the batch
    there = forms >= 0
    code = torch.where(there, forms * 4 + wording[:, None, None], -1)
    distinct, inverse = torch.unique(code, return_inverse=True)
    first = int(distinct[0] == -1)
    known = distinct[first:]
    phrase_ids = trim(batches.phrases[known % 4, known // 4])
    s = model(phrase_ids, "phrase").float()
    index = (inverse - first).view(n * k, -1)
    v = form_vectors(s, torch.where(there.view(n * k, -1), index, -1), getattr(model, "gate", None))  # [n*k, d]
    logits = scale.exp() * q @ v.T  # [n, n*k]
    # forms with the same relations as the gold are not wrong, whoever brought them; empty forms are no forms
    relations = torch.where(there, batches.relation[forms.clamp(min=0)], -1).view(n * k, -1).sort(1).values
    gold = relations.view(n, k, -1)[:, 0]
    same = (gold[:, None] == relations[None]).all(-1)
    own = torch.zeros_like(same)
    own[torch.arange(n), torch.arange(n) * k] = True
    block = (same & ~own) | ~there.view(n * k, -1).any(1)[None]
    # wrong forms of one question say little about another's: only golds are shared
    shared = torch.zeros(n * k, dtype=torch.bool, device=q.device)
    shared[::k] = True
    mine = torch.arange(n * k, device=q.device)[None] // k == torch.arange(n, device=q.device)[:, None]
    block |= ~(shared[None] | mine)
    loss = F.cross_entropy(logits.masked_fill(block, -1e4), torch.arange(n, device=q.device) * k)
    # the questions' side: which question does a gold form answer
    g = v[::k]
    back = (scale.exp() * g @ q.T).masked_fill((gold[:, None] == gold[None]).all(-1) & ~torch.eye(n, dtype=torch.bool, device=q.device), -1e4)
    loss = loss + 0.3 * F.cross_entropy(back, torch.arange(n, device=q.device))
    if anchor is not None:
        first_weights, weight = anchor
        with torch.no_grad():
            q0, s0 = first_weights(question_ids, "question"), first_weights(phrase_ids, "phrase")
        loss = loss + weight * ((1 - (q * q0).sum(1)).mean() + (1 - (s * s0).sum(1)).mean())
    return loss


def late_loss(model, scale, batches, questions, wording, forms):
    n, k, m = forms.shape
    steps = batches.phrases.shape[1]
    tokens = batches.phrases.reshape(4 * steps, -1)[:, :16]
    coded = torch.where(forms >= 0, forms + wording[:, None, None] * steps, -1)
    golds = coded[:, 0][None].expand(n, n, m)
    every = torch.cat([coded, golds], 1)  # own forms, then everyone's gold
    logits = scale.exp() * model.late(questions, every, tokens)
    relations = torch.where(forms >= 0, batches.relation[forms.clamp(min=0)], -1).sort(-1).values
    all_relations = torch.cat([relations, relations[:, 0][None].expand(n, n, m)], 1)
    block = (all_relations == relations[:, :1]).all(-1)
    block[:, 0] = False
    block |= ~(every >= 0).any(-1)
    return F.cross_entropy(logits.masked_fill(block, -1e4), torch.zeros(n, dtype=torch.long, device=logits.device))


def aligned(teacher, student):
    """The teacher's vectors turned into the student's space by the nearest projection (orthogonal Procrustes)."""
    u, _, v = torch.linalg.svd(teacher.T @ student, full_matrices=False)
    return F.normalize(teacher @ (u @ v), dim=-1)


def narrowed(vectors, size):
    """Onto their principal axes, of length 1 again."""
    _, axes = torch.linalg.eigh(vectors.T @ vectors)
    return F.normalize(vectors @ axes[:, -size:], dim=-1)


def distil(model, teacher, ids, device, epochs, rate, size=1024, seed=1, sides=None, log=print):
    """Brings a smaller model to its teacher: 1 - cosine on texts; `sides`: 1 where a text is a phrase."""
    sides = torch.zeros(len(ids), dtype=torch.long) if sides is None else sides
    with torch.no_grad(), torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
        target = batched(teacher, ids, "question", device)
    with torch.no_grad():
        if model.specials:
            begun_at = batched(model, ids, "question", device)
            if target.shape[1] > begun_at.shape[1]:
                target = aligned(narrowed(target, begun_at.shape[1]), begun_at)
        if not model.specials:
            own = ids
            if teacher.specials:  # [CLS] and [SEP] mean nothing to static vectors
                own = without_specials(ids)
            target = aligned(target, batched(model, own, "question", device))
            ids = own
    sides = sides.to(device)
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], rate, weight_decay=0.01)
    steps = epochs * (len(ids) // size)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, rate, total_steps=steps + 1, pct_start=0.1)
    generator = torch.Generator().manual_seed(seed)
    ids = ids.to(device)
    lengths = (ids > 0).sum(1).cpu()
    model.train()
    done, begun = 0, time.time()
    while done < steps:
        order = torch.randperm(len(ids), generator=generator)
        order = torch.cat([c[torch.argsort(lengths[c])] for c in order.split(size * 16)])
        parts = list(order.split(size))
        random.Random(done).shuffle(parts)
        for part in parts:
            if done >= steps:
                break
            part = part.to(device)
            if model.specials:
                with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
                    v = model(trim(ids[part]), "question").float()
            else:
                v = model(trim(ids[part]), "question")
                v = torch.where(sides[part][:, None] == 1, model(trim(ids[part]), "phrase"), v)
            loss = (1 - (v * target[part]).sum(1)).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            done += 1
    model.eval()
    log(f"distilled: {steps} steps, 1 - cosine {loss.item():.4f}, {time.time() - begun:.0f} s")


def fit(model, batches, epochs, rate, size, negatives, device, scale0=20.0, anchor=None, bf16=True, log=print):
    scale = torch.nn.Parameter(torch.tensor(math.log(scale0), device=device))
    params = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW([{"params": params, "lr": rate}, {"params": [scale], "lr": 1e-3}], weight_decay=0.0)
    total = epochs * (sum(1 for _ in batches.epoch(size, negatives)))
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, [rate, 1e-3], total_steps=total + 20, pct_start=0.1)
    model.train()
    begun, seen, mean = time.time(), 0, None
    for epoch in range(epochs):
        for batch in batches.epoch(size, negatives):
            if seen >= total + 19:
                break
            with torch.autocast(device.type, torch.bfloat16, enabled=bf16 and device.type == "cuda"):
                loss = loss_of(model, scale, batches, batch, anchor)
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(params, 1.0)
            optimizer.step()
            schedule.step()
            seen += 1
            if seen % 50 == 0:
                mean = loss.item() if mean is None else 0.8 * mean + 0.2 * loss.item()
    model.eval()
    log(f"trained: {seen} steps, loss {mean if mean is None else round(mean, 4)}, scale {scale.exp().item():.1f}, {time.time() - begun:.0f} s")
    return scale.exp().item()
