"""Starts servers and lets real clients at them; `.ci/serve` calls it with the binary."""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).parent
IMAGE = '<img src=x onerror="window.broken=1">'


@contextmanager
def served(binary, *arguments):
    """A server on a free port; its address."""
    command = [binary, "serve", "--json", "--listen", "127.0.0.1:0", *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        address = "http://" + json.loads(process.stdout.readline())["address"]
        for _ in range(600):
            try:
                urllib.request.urlopen(address + "/ready")
                break
            except OSError:
                time.sleep(0.05)
        yield address
        process.terminate()
        assert process.wait(timeout=60) == 0, "the server did not end in order"
    finally:
        process.kill()


def load(binary, folder, name, lines):
    """A graph folder of these triples."""
    table = folder / f"{name}.tsv"
    table.write_text("".join("\t".join(line) + "\n" for line in lines))
    out = folder / name
    subprocess.run([binary, "load", table, "--out", out, "--quiet"], check=True, stdout=subprocess.DEVNULL)
    return f"{name}={out}"


def large():
    """Two hundred triples around one topic, many of them with long names."""
    for i in range(120):
        yield "The Grand Exhibition", "shows", f"Painting number {i:03} of the northern school"
    for i in range(80):
        yield f"Painting number {i:03} of the northern school", "painted by", f"Painter {i % 17:02} the Elder"


def evaluated(binary, folder):
    """A folder with one run."""
    questions = folder / "questions.jsonl"
    lines = [
        {"question": "Who is the mascot of the San Francisco Giants?", "topics": ["San Francisco Giants"], "answers": ["Lou Seal"]},
        {"question": "Who coaches the Kansas City Royals?", "topics": ["Kansas City Royals"], "answers": ["Ned Yost"]},
    ]
    questions.write_text("".join(json.dumps(line) + "\n" for line in lines))
    runs = folder / "runs"
    subprocess.run([binary, "eval", "--quiet", "--graph", "@toy", "--questions", questions, "--out", runs / "walk"],
                   check=True, stdout=subprocess.DEVNULL)
    return runs


def main():
    binary = str(Path(sys.argv[1]).resolve())
    has = importlib.util.find_spec
    passed, skipped = [], []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        graphs = ["--graph", "@toy", "--graph", load(binary, folder, "large", large()),
                  "--graph", load(binary, folder, "html", [(IMAGE, "drawn by", "<b>Bold</b>"), (IMAGE, "kept in", "Museum")])]
        wide = folder / "wide.toml"
        wide.write_text('max_evidence = 200\nretrieve = { kind = "similarity" }\nselect = { kind = "top-k", k = 200 }\n')
        script = folder / "script.jsonl"
        script.write_text(json.dumps({"text": "Thought: it is one step.\n1. Who is the mascot of the San Francisco Giants?\n<END>\nans: Lou Seal"}))
        steps = folder / "steps.toml"
        steps.write_text(f'llm = "script:{script}"\nretrieve = {{ kind = "similarity" }}\nreason = {{ kind = "steps" }}\n')
        config = folder / "serve.toml"
        config.write_text('default_method = "read"\n[methods.read]\nmethod = "read"\n'
                          f'[methods.wide]\nconfig = "{wide}"\n[methods.steps]\nconfig = "{steps}"\n')
        graphs += ["--config", str(config)]
        folders = ["--runs", str(evaluated(binary, folder)), "--feedback", str(folder / "feedback")]
        with served(binary, *graphs, *folders) as address:
            browser = shutil.which("chromium") or shutil.which("chromium-browser")
            if has("playwright") and browser:
                import browser as page
                import tour
                page.check(address, browser, folder)
                passed.append("browser")
                tour.check(binary, served, browser, folder)
                passed.append("tour")
            else:
                skipped.append("browser (needs playwright and Chromium)")
            for package in ["openai", "mcp"]:
                if has(package):
                    import clients
                    getattr(clients, f"check_{package}")(address, binary)
                    passed.append(package)
                else:
                    skipped.append(f"{package} (not installed)")
            if has("text2sparql_client"):
                import challenge
                challenge.check(binary, served, folder)
                passed.append("text2sparql")
            else:
                skipped.append("text2sparql (not installed)")
            node, folder_of_node = shutil.which("node"), Path(sys.executable).parent.parent
            if node and (folder_of_node / "node_modules" / "openai").is_dir():
                subprocess.run([node, HERE / "openai.mjs", address, folder_of_node], check=True)
                passed.append("openai for JavaScript")
            else:
                skipped.append("openai for JavaScript (needs node and the package)")
            if has("schemathesis"):
                tool = str(Path(sys.executable).parent / "schemathesis")
                # no schema can say which names a graph has and which texts are SPARQL, so a good form may be refused
                command = [tool, "run", address + "/openapi.json", "--max-examples", "20", "--seed", "1", "--no-color",
                           "--suppress-health-check", "all", "--exclude-checks", "positive_data_acceptance"]
                subprocess.run(command, check=True, env=os.environ | {"SCHEMATHESIS_HOOKS": str(HERE / "hooks.py")})
                passed.append("schemathesis")
            else:
                skipped.append("schemathesis (not installed)")
    for what in skipped:
        print(f"skipped: {what}")
    print(f"{len(passed)} passed, 0 failed, {len(skipped)} skipped")


if __name__ == "__main__":
    sys.path.insert(0, str(HERE))
    main()
