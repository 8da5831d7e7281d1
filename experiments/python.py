"""What the Python package costs: installing it, asking through it, arrays of a large graph.

    python experiments/python.py WHEEL METAQA WORK

WHEEL is a wheel, METAQA the folder of the benchmark, WORK a folder for graphs. Run it with an
interpreter that has the wheel and NumPy. Compares `ask_many`, a loop of `ask` and the command on
1,000 MetaQA questions (the first of the 1-hop test part), each after a first question has warmed it.
"""

import os
import pathlib
import random
import resource
import subprocess
import sys
import tempfile
import time
import venv


def seconds(work):
    begun = time.perf_counter()
    made = work()
    return time.perf_counter() - begun, made


def memory():
    """Megabytes that are in use, without what is mapped from files."""
    for line in open("/proc/self/status"):
        if line.startswith("RssAnon"):
            return int(line.split()[1]) / 1024


def installed(wheel):
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        pip = [os.path.join(folder, "bin", "pip"), "install", "--quiet", "--no-index", str(wheel)]
        took, _ = seconds(lambda: subprocess.run(pip, check=True))
        files = pathlib.Path(folder).glob("lib/python*/site-packages/wherefore/**/*")
        size = sum(file.stat().st_size for file in files if file.is_file())
        code = "import wherefore; print(wherefore.Graph.open('@world').ask('What is the capital of Peru?').names)"
        first, _ = seconds(lambda: subprocess.run([os.path.join(folder, "bin", "python"), "-c", code], check=True))
        print(f"install {took:.1f} s, wheel {wheel.stat().st_size / 1e6:.1f} MB, {size / 1e6:.1f} MB on disk")
        print(f"interpreter, import, graph and first answer {first:.2f} s")


def asked(metaqa, work):
    import wherefore

    folder = work / "metaqa"
    if not folder.exists():
        wherefore.Graph.load(metaqa / "kb.txt", folder, format="pipe")
    graph = wherefore.Graph.open(folder)
    lines = (metaqa / "1-hop" / "qa_test.txt").read_text().splitlines()[:1000]
    questions = [line.split("\t")[0].replace("[", "").replace("]", "") for line in lines]
    graph.ask(questions[0])
    took, many = seconds(lambda: graph.ask_many(questions))
    print(f"ask_many        {len(questions) / took:7.1f} questions a second")
    took, one = seconds(lambda: [graph.ask(question) for question in questions])
    print(f"a loop of ask   {len(questions) / took:7.1f} questions a second")
    assert [a.names for a in many] == [a.names for a in one]
    own = sum(answer.timings_ms["total"] for answer in one) / 1000
    print(f"of a call, outside of the pipeline {1e6 * (took - own) / len(questions):.0f} microseconds")
    took, _ = seconds(lambda: [len(graph) for _ in range(1000)])
    print(f"a call that does next to nothing {1e3 * took:.1f} microseconds")
    cold = 0.0
    for question in questions[:100]:
        graph.ask(question)
        cold += seconds(lambda: len(graph))[0]
    print(f"the same right after a question {1e4 * cold:.0f} microseconds: caches are cold")
    again = graph.ask_many(questions)
    took, _ = seconds(lambda: [answer.to_json() for answer in again])
    print(f"an answer as JSON, sealed {1e6 * took / len(questions):.0f} microseconds")
    file = work / "first.txt"
    file.write_text("\n".join(lines) + "\n")
    out = work / "run"
    subprocess.run(["rm", "-rf", str(out)], check=True)
    command = [sys.executable, "-m", "wherefore", "eval", "--graph", str(folder), "--questions", str(file), "--linked"]
    took, _ = seconds(lambda: subprocess.run([*command, "--out", str(out), "--quiet"], check=True, stdout=-3))
    print(f"wherefore eval  {len(questions) / took:7.1f} questions a second, with start and report")


def arrays(work):
    import wherefore

    folder = work / "million"
    if not folder.exists():
        chance = random.Random(0)
        file = work / "million.tsv"
        with open(file, "w") as out:
            for _ in range(1_000_000):
                out.write(f"e{chance.randrange(200_000)}\tr{chance.randrange(50)}\te{chance.randrange(200_000)}\n")
        wherefore.Graph.load(file, folder)
    graph = wherefore.Graph.open(folder)
    before = memory()
    took, whole = seconds(graph.subgraph)
    made = sum(array.nbytes for array in (whole.entities, whole.edge_index, whole.relations, whole.distance)) / 2**20
    print(f"{whole.edge_index.shape[1]:,} triples as arrays: {made:.0f} MiB, memory {memory() - before:+.0f} MiB, {took:.2f} s")
    print(f"most memory of this process {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")


if __name__ == "__main__":
    wheel, metaqa, work = map(pathlib.Path, sys.argv[1:4])
    work.mkdir(parents=True, exist_ok=True)
    installed(wheel)
    asked(metaqa, work)
    arrays(work)
