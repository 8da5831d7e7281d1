"""First choice, recall@10 and mean reciprocal rank among the paths around a topic, for each test bed.

    python measure.py DATA MODEL.safetensors [--template T] [--marker M]      DATA: what prepare.py wrote
"""

import argparse
import gzip
import json

import numpy as np
import torch

from model import form_vectors
from phrases import MARK, Step, step_phrase

MARKERS = {"it": "it", "x": "x", "none": "", "mask": "[MASK]", "unused": "[unused1]", "this": "this"}


class Texts:
    """Tokenises once; ids are those of the cut vocabulary."""

    def __init__(self, tokenizer, keep, specials, longest=40):
        self.tokenizer, self.longest, self.specials = tokenizer, longest, specials
        self.row = np.zeros(max(keep) + 1, np.int64)
        self.row[np.asarray(keep)] = np.arange(len(keep))
        self.special = {n: int(self.row[tokenizer.token_to_id(n)]) for n in ("[CLS]", "[SEP]", "[MASK]", "[unused1]")}

    def encode(self, texts, marker="it"):
        """-> [n, longest] ids, 0 where there is none."""
        word = MARKERS[marker]
        if word.startswith("["):
            pieces, owner = [], []
            for i, t in enumerate(texts):
                parts = t.split(MARK)
                pieces += parts
                owner += [i] * len(parts)
            ids = [[] for _ in texts]
            last = -1
            for i, e in zip(owner, self.tokenizer.encode_batch(pieces, add_special_tokens=False)):
                if i == last:
                    ids[i].append(self.special[word])
                ids[i] += self.row[e.ids].tolist() if e.ids else []
                last = i
        else:
            plain = [t.replace(MARK, f" {word} ") for t in texts]
            ids = [self.row[e.ids].tolist() if e.ids else [] for e in
                   self.tokenizer.encode_batch(plain, add_special_tokens=False)]
        out = np.zeros((len(texts), self.longest), np.int64)
        for i, row in enumerate(ids):
            if self.specials:
                row = [self.special["[CLS]"], *row[:self.longest - 2], self.special["[SEP]"]]
            row = row[:self.longest]
            out[i, :len(row)] = row
        return torch.from_numpy(out)


def batched(model, ids, side, device, size=4096):
    out = []
    lengths = (ids > 0).sum(1)
    order = torch.argsort(lengths)
    for part in order.split(size):
        some = ids[part][:, :int(lengths[part].max().clamp(min=1))].to(device)
        out.append(model(some, side).float())
    back = torch.empty_like(order)
    back[order] = torch.arange(len(order))
    return torch.cat(out)[back.to(out[0].device)]


def whole_phrase(path, template):
    """A path as one text, answer first."""
    return ", ".join(step_phrase(s, template) for s in reversed(path))


def first(scores, gold):
    """1 if a right form comes first; forms of the same steps in another order score the same: a tie counts by chance."""
    best = scores[gold].max()
    wrong = scores[~gold]
    if (wrong > best + 1e-6).any():
        return 0.0
    level, golds = int((np.abs(wrong - best) <= 1e-6).sum()), int((scores[gold] >= best - 1e-6).sum())
    return golds / (golds + level)


@torch.no_grad()
def measure(model, texts, evalset, template, marker, device, whole=False, keep_scores=False):
    """{bed: (questions, first choice right, right within ten, mean reciprocal rank, first among paths of its length)}"""
    was = model.training
    model.eval()
    steps = [Step(*s) for s in evalset["steps"]]
    late, gate = hasattr(model, "late"), getattr(model, "gate", None)
    if late:
        tokens = texts.encode([step_phrase(s, template) for s in steps]).to(device)
    elif not whole:
        used = sorted({s for bed in evalset["beds"].values() for i in bed["items"] for p in i["paths"] for s in p})
        some = batched(model, texts.encode([step_phrase(steps[s], template) for s in used]), "phrase", device)
        vectors = torch.zeros(len(steps), some.shape[1], device=device)
        vectors[torch.tensor(used, device=device)] = some
    result, kept = {}, {}
    for name, bed in evalset["beds"].items():
        items = bed["items"]
        ids_of = texts.encode([i["q"] for i in items], marker)
        questions = ids_of.to(device) if late else batched(model, ids_of, "question", device)
        if whole:
            ids = {}
            for i in items:
                for p in i["paths"]:
                    ids.setdefault(tuple(p), len(ids))
            phrases = [whole_phrase([steps[s] for s in p], template) for p in ids]
            paths = batched(model, texts.encode(phrases), "phrase", device)
        right = ten = reciprocal = alike = 0.0
        for at, i in enumerate(items):
            if whole:
                form = paths[torch.tensor([ids[tuple(p)] for p in i["paths"]], device=device)]
            else:
                k = max(map(len, i["paths"]))
                forms = torch.tensor([p + [-1] * (k - len(p)) for p in i["paths"]], device=device)
                if late:
                    scores = model.late(questions[at][None], forms[None], tokens)[0].cpu().numpy()
                else:
                    form = form_vectors(vectors, forms, gate)
                    scores = (form @ questions[at]).cpu().numpy()
            if whole:
                scores = (form @ questions[at]).cpu().numpy()
            gold = np.zeros(len(scores), bool)
            gold[i["gold"]] = True
            length = np.array([len(p) for p in i["paths"]])
            right += first(scores, gold)
            of_length = length == length[gold].min()
            alike += first(scores[of_length], gold[of_length])
            rank = 1 + int((scores[~gold] > scores[gold].max() + 1e-6).sum())
            ten += rank <= 10
            reciprocal += 1 / rank
            if keep_scores:
                kept.setdefault(name, []).append((scores, gold))
        n = max(1, len(items))
        result[name] = (len(items), right / n, ten / n, reciprocal / n, alike / n)
    model.train(was)
    return (result, kept) if keep_scores else result


def show(title, result, beds=None):
    cells = " ".join(f"{name} {r[1]:.3f}/{r[2]:.2f}" + (f"/{r[4]:.2f}" if name[0] == "p" else "") for name, r in result.items() if not beds or name in beds)
    main = [result[b][1] for b in ("geoquery", "sample", "webqsp", "metaqa-1", "wc-p1", "pq-2h", "pql-2h", "pq-3h", "pql-3h", "wc-p2") if b in result]
    return f"{title:34} mean {sum(main) / len(main):.3f} | {cells}"


def load(folder, path):
    """A model as exported (whole vocabulary, f16 or 8 bits) or as a student's layers alone; and its tokens."""
    from safetensors.torch import load_file
    from tokenizers import Tokenizer

    from model import Encoder

    weights = load_file(path)
    for name in [n for n in weights if n.endswith(".codes")]:
        stem = name.removesuffix(".codes")
        weights[stem + ".weight"] = weights.pop(name).float() * weights.pop(stem + ".scale")[:, None]
    tokenizer = Tokenizer.from_file(f"{folder}/tokenizer.json")
    tokenizer.no_truncation()
    tokenizer.no_padding()
    keep = list(range(tokenizer.get_vocab_size()))
    if "embeddings.word_embeddings.weight" not in weights:
        base = load_file(f"{folder}/base.safetensors")
        keep = base["ids"].tolist()
        weights["embeddings.word_embeddings.weight"] = base["words.codes"].float() * base["words.scale"][:, None]
    weights.setdefault("embeddings.token_type_embeddings.weight", torch.zeros(2, 384))
    layers = {int(n.split(".")[2]) for n in weights if n.startswith("encoder.layer.")}
    return Encoder(weights, sorted(layers)).eval(), Texts(tokenizer, keep, True)


def calibrate(kept):
    """The temperature that makes softmax(score / t) over the candidates fit best, and how well it fits.

    Each bed counts the same. Returns t, {bed: (mean confidence of the first choice, how often it is right)}, and the
    expected calibration error over ten bins.
    """
    def loss(t):
        total = 0.0
        for rows in kept.values():
            part = 0.0
            for scores, gold in rows:
                z = scores / t
                z = z - z.max()
                part -= np.log(max(np.exp(z[gold]).sum() / np.exp(z).sum(), 1e-12))
            total += part / len(rows)
        return total

    best = min(np.geomspace(0.01, 0.3, 60), key=loss)
    confidence, right, by_bed = [], [], {}
    for bed, rows in kept.items():
        c, r = [], []
        for scores, gold in rows:
            z = np.exp((scores - scores.max()) / best)
            top = scores >= scores.max() - 1e-6  # paths that tie share the first place
            c.append(z[top].sum() / z.sum())
            r.append((top & gold).any() * (top & gold).sum() / top.sum())
        by_bed[bed] = (float(np.mean(c)), float(np.mean(r)))
        confidence += c
        right += r
    confidence, right = np.array(confidence), np.array(right)
    bins = np.minimum((confidence * 10).astype(int), 9)
    error = sum(abs(confidence[bins == b].mean() - right[bins == b].mean()) * (bins == b).mean() for b in set(bins))
    return float(best), by_bed, float(error)


def main():
    ask = argparse.ArgumentParser()
    ask.add_argument("data")
    ask.add_argument("models", nargs="+", help="MODEL, or MODEL=bed,bed to measure it on these beds alone")
    ask.add_argument("--template", default="mixed")
    ask.add_argument("--marker", default="it")
    ask.add_argument("--whole", action="store_true", help="encode whole paths instead of steps")
    ask.add_argument("--most", type=int, default=10**9, help="questions of a bed")
    asked = ask.parse_args()
    evalset = json.load(gzip.open(f"{asked.data}/evalset.json.gz"))
    kept = {}
    for given in asked.models:
        path, _, beds = given.partition("=")
        chosen = beds.split(",") if beds else list(evalset["beds"])
        some = {"steps": evalset["steps"], "beds": {b: {"items": evalset["beds"][b]["items"][:asked.most]} for b in chosen}}
        model, texts = load(asked.data, path)
        result, scores = measure(model, texts, some, asked.template, asked.marker, torch.device("cpu"), asked.whole, True)
        kept.update(scores)
        print(show(path.rsplit("/", 1)[-1], result), flush=True)
    print("temperature, (confidence, right) by bed, calibration error:", calibrate(kept))


if __name__ == "__main__":
    main()
