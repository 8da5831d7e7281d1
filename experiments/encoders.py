"""Holds our transformer encoders against sentence-transformers, and their speed against PyTorch and onnxruntime.

    python -m venv VENV && VENV/bin/pip install torch sentence-transformers onnxruntime onnx
    cargo build --release -p wherefore-model --example rows
    VENV/bin/python experiments/encoders.py parity FOLDER...            # cosine distance on 200 sentences
    VENV/bin/python experiments/encoders.py parity FOLDER --bf16
    VENV/bin/python experiments/encoders.py speed FOLDER LABELS [--rounds N]   # 2,000 labels, sides in turn

FOLDER is a model folder as sentence-transformers reads it. LABELS is a text file, one label a line (or
`id TAB label`); every 21st line is taken until there are 2,000. Both sides get the labels as they are and
may sort and batch as they like; every side runs on all cores. A round runs each side once, so that a busy
machine is busy for all; the ratio is that of the medians.
"""
import argparse, os, statistics, subprocess, sys, time

import numpy as np

ROWS = os.path.join(os.path.dirname(__file__), "..", "target", "release", "examples", "rows")
ODD = ["", " ", "a", "東京 is the capital of 日本", "Où est la bibliothèque?", "🙂 emoji 🚀", "שלום עולם", "x" * 150,
       "people.person.place_of_birth", "don't_stop", "3.14159 ± 2", "long " * 600]
WORDS = ("who what where when which directed wrote founded born died in the city country river film actor president of "
         "capital language spoken married to father mother novel team plays for award won year before after largest "
         "population album song released by university studied at 1994 2008 Paris Einstein Justin Bieber Nile").split()


def sentences(n=200):
    rng = np.random.default_rng(7)
    made = [" ".join(rng.choice(WORDS, rng.integers(2, 40))) for _ in range(n - len(ODD))]
    return ODD + made


def ours(folder, texts, repeat=1, extra=()):
    out = subprocess.run([ROWS, folder, str(repeat), *extra], input="\n".join(texts).encode() + b"\n",
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=True)
    rows = np.frombuffer(out.stdout, dtype="<f4").reshape(len(texts), -1)
    return rows, [float(x) for x in out.stderr.split()]


def parity(folders, bf16):
    from sentence_transformers import SentenceTransformer
    texts = sentences()
    for folder in folders:
        want = SentenceTransformer(folder, device="cpu").encode(texts, normalize_embeddings=True)
        got, _ = ours(folder, texts, extra=["bf16"] if bf16 else [])
        distance = 1 - (want.astype("f8") * got).sum(1)
        print(f"{os.path.basename(folder.rstrip('/'))}{' bf16' if bf16 else ''}: {len(texts)} sentences, "
              f"cosine distance max {distance.max():.2e} mean {distance.mean():.2e}")


def onnx_session(model, folder):
    import onnxruntime, torch
    path = os.path.join("/tmp", f"{os.path.basename(folder.rstrip('/'))}.onnx")
    names = ["input_ids", "attention_mask", "token_type_ids"]
    if not os.path.exists(path):
        example = {k: v for k, v in model.tokenizer("an example", return_tensors="pt").items() if k in names}
        used = [n for n in names if n in example]
        inner = model[0].auto_model.eval()

        class Plain(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.inner = inner

            def forward(self, *inputs):
                return self.inner(**dict(zip(used, inputs))).last_hidden_state

        inner.set_attn_implementation("eager")
        torch.onnx.export(Plain(), tuple(example[n] for n in used), path, input_names=used, output_names=["h"],
                          dynamic_axes={n: {0: "b", 1: "l"} for n in used + ["h"]}, dynamo=False)
        inner.set_attn_implementation("sdpa")
    return onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])


def onnx_encode(session, tokenizer, texts, batch=32):
    order = sorted(range(len(texts)), key=lambda i: len(texts[i]))
    out = [None] * len(texts)
    names = {i.name for i in session.get_inputs()}
    for start in range(0, len(order), batch):
        part = order[start:start + batch]
        enc = tokenizer([texts[i] for i in part], padding=True, truncation=True, max_length=256, return_tensors="np")
        h = session.run(["h"], {k: v for k, v in enc.items() if k in names})[0]
        mask = enc["attention_mask"][..., None]
        pooled = (h * mask).sum(1) / mask.sum(1)
        for i, row in zip(part, pooled / np.linalg.norm(pooled, axis=1, keepdims=True)):
            out[i] = row
    return np.stack(out)


def speed(folder, labels, rounds):
    import torch
    from sentence_transformers import SentenceTransformer
    lines = open(labels, encoding="utf-8").read().splitlines()
    texts = [line.split("\t")[-1] for line in lines[20::21]][:2000]
    model = SentenceTransformer(folder, device="cpu")
    session = onnx_session(model, folder)
    sides = {
        "pytorch b32": lambda: model.encode(texts, batch_size=32, normalize_embeddings=True),
        "pytorch b128": lambda: model.encode(texts, batch_size=128, normalize_embeddings=True),
        "onnxruntime b32": lambda: onnx_encode(session, model.tokenizer, texts),
        "onnxruntime b128": lambda: onnx_encode(session, model.tokenizer, texts, 128),
    }
    times = {name: [] for name in [*sides, "wherefore"]}
    for f in sides.values():
        f()
    for _ in range(rounds):
        for name, f in sides.items():
            start = time.perf_counter()
            rows = f()
            times[name].append(time.perf_counter() - start)
        got, seconds = ours(folder, texts)
        times["wherefore"].extend(seconds)
    print(f"{len(texts)} labels, {torch.get_num_threads()} threads, {rounds} rounds; "
          f"worst cosine distance {(1 - (rows * got).sum(1)).max():.1e}")
    mine = statistics.median(times["wherefore"])
    for name, seconds in times.items():
        median = statistics.median(seconds)
        print(f"{name:18} median {median:7.3f} s  least {min(seconds):7.3f} s   wherefore / it = {mine / median:.2f} "
              f"(least {min(times['wherefore']) / min(seconds):.2f})")


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("what", choices=["parity", "speed"])
    p.add_argument("arguments", nargs="+")
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--bf16", action="store_true")
    a = p.parse_args()
    if a.what == "parity":
        parity(a.arguments, a.bf16)
    else:
        speed(a.arguments[0], a.arguments[1], a.rounds)
