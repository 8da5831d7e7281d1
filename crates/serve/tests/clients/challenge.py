"""The client of the TEXT2SPARQL challenge, unchanged: it asks, runs what it got, and evaluates.

By itself, against a server that is up and serves the sample graph as `world`:

    python crates/serve/tests/clients/challenge.py http://127.0.0.1:7878 FOLDER
"""

import json
import subprocess
import sys
from pathlib import Path

QUESTIONS = Path(__file__).parent / "text2sparql.yaml"

# Somewhat below what docs/results.md has.
LEAST_F1 = 0.90


def measured(address, folder):
    """Asks all questions; set F1, where a question without a query counts 0, and how many had one."""
    client = [sys.executable, "-c", "from text2sparql_client.cli import cli; cli()"]
    asked, gold, found, scores = (str(folder / f"t2s-{name}.json") for name in ["asked", "gold", "found", "scores"])
    endpoint = address + "/v1/graphs/world/sparql"
    files = ["--answers-db", str(folder / "t2s.db"), "--retries-log", str(folder / "t2s.log")]

    def run(*arguments):
        subprocess.run([*client, *arguments], check=True, stderr=subprocess.DEVNULL)

    run("ask", str(QUESTIONS), address + "/text2sparql", "-o", asked, "--retries", "0", "--no-cache", *files)
    run("query", str(QUESTIONS), "-e", endpoint, "-o", gold)
    run("query", str(QUESTIONS), "-a", asked, "-e", endpoint, "-o", found)
    run("evaluate", "wherefore", gold, found, "-o", scores)
    scores = json.loads(Path(scores).read_text())
    questions = json.loads(Path(gold).read_text())
    assert all(questions.values()), "a gold query gives nothing"
    # the client leaves out of its mean what has no answer at all
    values = {name: scores.get(name, {}).get("set_F", 0.0) for name in questions}
    return values, len(json.loads(Path(asked).read_text()))


def check(binary, served, folder):
    with served(binary, "--graph", "world=@world") as address:
        values, answered = measured(address, folder)
    mean = sum(values.values()) / len(values)
    print(f"text2sparql: set F1 {mean:.3f} over {len(values)} questions, {answered} of them with a query")
    assert mean >= LEAST_F1, {name: value for name, value in values.items() if value < 1}


if __name__ == "__main__":
    values, answered = measured(sys.argv[1], Path(sys.argv[2]))
    for name, value in values.items():
        print(f"{name}  {value:.3f}")
    print(f"mean {sum(values.values()) / len(values):.3f}, {answered} of {len(values)} with a query")
