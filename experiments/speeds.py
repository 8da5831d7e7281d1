#!/usr/bin/env python3
"""Two builds of the program beside each other: store, networks, reader, decoder.

    experiments/speeds.py OLD NEW DATA WORK [--rounds 3] [--gguf FILE]

OLD and NEW are binaries, DATA the folder with metaqa/, WORK a folder for graphs and checkpoints (kept
from run to run). Each figure is the best of some rounds, in which the two take turns; what is printed
is the ratio NEW / OLD of times, below 1 where NEW is faster. The docs have the figures: docs/results.md,
"Build".
"""
import argparse
import json
import os
import re
import shutil
import subprocess
import time
from pathlib import Path


def run(binary, *arguments):
    """Seconds that a command takes, and what it prints."""
    began = time.perf_counter()
    done = subprocess.run([binary, *map(str, arguments)], capture_output=True, text=True)
    if done.returncode > 1:
        raise SystemExit(f"{binary} {' '.join(map(str, arguments))}\n{done.stderr}")
    return time.perf_counter() - began, done.stdout


def main():
    parser = argparse.ArgumentParser()
    for name in ("old", "new", "data", "work"):
        parser.add_argument(name, type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--gguf", type=Path)
    args = parser.parse_args()
    binaries = {"old": args.old.resolve(), "new": args.new.resolve()}
    work, metaqa = args.work, args.data / "metaqa"
    work.mkdir(parents=True, exist_ok=True)
    graph, questions = work / "movies", work / "questions.txt"
    if not graph.exists():
        run(binaries["old"], "load", metaqa / "kb.txt", "--out", graph, "--quiet")
        run(binaries["old"], "index", graph, "--quiet")
    lines = (metaqa / "2-hop" / "qa_dev.txt").read_text().splitlines()
    questions.write_text("\n".join(lines[:400]) + "\n")
    learn = work / "learn.txt"
    learn.write_text("\n".join(lines[400:800]) + "\n")
    for method in ("qr-gat", "distance-mlp", "pna", "gnn2r"):
        if not (work / method).exists():
            settings = ["--set", "epochs=1"] + ["--set", "sentences.epochs=1"] * (method == "gnn2r")
            run(binaries["old"], "train", method, "--graph", graph, "--questions", learn, "--format", "metaqa",
                "--out", work / method, "--quiet", *settings)

    def evaluated(*how):
        def measure(binary):
            shutil.rmtree(work / "run", ignore_errors=True)
            run(binary, "eval", "--graph", graph, "--questions", questions, "--format", "metaqa",
                "--threads", "1", "--out", work / "run", "--quiet", *how)
            metrics = json.loads((work / "run" / "metrics.json").read_text())
            return metrics["cost"]["latency_ms"]["total"]["median"]
        return measure

    def loaded(binary):
        seconds, _ = run(binary, "load", metaqa / "kb.txt", "--out", work / "again", "--replace", "--quiet")
        return 1000 * seconds

    def decoded(binary):
        seconds, _ = run(binary, "ask", graph, "who directed The Matrix", "--method", "llm+kg", "--llm", args.gguf,
                         "--no-cache", "--json")
        return 1000 * seconds

    def trained(binary):
        shutil.rmtree(work / "trained", ignore_errors=True)
        seconds, _ = run(binary, "train", "qr-gat", "--graph", graph, "--questions", learn, "--format", "metaqa",
                         "--set", "epochs=1", "--out", work / "trained", "--quiet")
        return 1000 * seconds

    measures = {"load": loaded, "read": evaluated("--method", "read"), "train qr-gat": trained}
    for method in ("qr-gat", "distance-mlp", "pna", "gnn2r"):
        measures[method] = evaluated("--model", work / method)
    if args.gguf:
        measures["decoder"] = decoded
    print(f"{'':14} {'old, ms':>10} {'new, ms':>10} {'ratio':>7}")
    for name, measure in measures.items():
        best = {side: float("inf") for side in binaries}
        for _ in range(args.rounds):
            for side, binary in binaries.items():
                best[side] = min(best[side], measure(binary))
        print(f"{name:14} {best['old']:10.2f} {best['new']:10.2f} {best['new'] / best['old']:7.2f}", flush=True)


if __name__ == "__main__":
    main()
