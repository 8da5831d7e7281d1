#!/usr/bin/env python3
"""Writes the figures of README.md from the ledger, docs/results.md.

    experiments/readme.py            writes them
    experiments/readme.py --check    ends with status 1 where README.md says something else

A part of README.md that holds figures lies between `<!-- figures: NAME -->` and `<!-- end -->`;
its words are below, with gaps for the figures. Standard library only.
"""

import decimal
import difflib
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


class Ledger:
    """docs/results.md: its tables by heading, row and column, and what its prose says."""

    def __init__(self, text):
        self.text = {}
        heading = ""
        for line in text.splitlines():
            if line.startswith("#"):
                heading = line.lstrip("# ")
            self.text.setdefault(heading, []).append(line)

    def rows(self, heading):
        """The lines of the first table under a heading, as lists of cells."""
        rows = []
        for line in self.text[heading]:
            if line.startswith("|"):
                rows.append([cell.strip() for cell in line.strip("|").split("|")])
            elif rows:
                break
        return [row for row in rows if not all(re.fullmatch(":?-+:?", cell) for cell in row)]

    def cell(self, heading, row, column):
        header, *rows = self.rows(heading)
        found = [r for r in rows if r[0] == row]
        assert len(found) == 1, f"{heading}: {len(found)} rows are called {row!r}"
        return found[0][header.index(column) if isinstance(column, str) else column]

    def said(self, heading, pattern):
        """The groups of a pattern in the text under a heading."""
        found = re.search(pattern, "\n".join(self.text[heading]))
        assert found, f"{heading}: nothing says {pattern!r}"
        return found.groups()


def figure(cell):
    """`0.920 [0.913, 0.927]` without its interval."""
    return cell.split(" ")[0]


def hit(ledger, part):
    """Hit@1 of the reader on a graph without classes."""
    interval = r" \[[^]]*\]"
    (found,) = ledger.said("The `read` method", rf"\| {re.escape(part)} \| [\d,]+ \| ([\d.]+){interval}")
    return found


def short(text, digits=2):
    """As many digits as prose needs; a half is rounded up."""
    place = decimal.Decimal(1).scaleb(-digits)
    return str(decimal.Decimal(text).quantize(place, decimal.ROUND_HALF_UP))


def significant(text):
    """Two significant digits: 1.216 is 1.2, 0.134 is 0.13, 81.5 is 82."""
    return f"{float(f'{float(text):.2g}'):g}"


def sample(ledger):
    heading = "The `read` method"
    name = "sample graph, handwritten, "
    of, right = (ledger.cell(heading, name + "answerable", column) for column in (1, 2))
    unanswerable, refused = (ledger.cell(heading, name + "unanswerable", column) for column in (1, 4))
    refused = round(float(refused) * int(unanswerable))
    return (
        f"The sample graph's {int(of) + int(unanswerable)} questions in free language were written by "
        f"hand before any template: `read` answers {short(figure(right))} of the {of} answerable ones "
        f"exactly right and refuses {refused} of the {unanswerable} that the graph cannot answer."
    )


def reading(ledger):
    heading = "The `read` method"
    _, *rows = ledger.rows(heading)
    table = [
        "| graph with classes | questions | exactly right | answered otherwise | refused |",
        "|---|---|---|---|---|",
    ]
    for name, count, right, otherwise, refused, *_ in rows:
        cells = [name, count, figure(right), otherwise, refused]
        table.append(f"| {' | '.join(cells)} |")
    return "\n".join(table)


def benchmarks(ledger):
    read = " | ".join(hit(ledger, f"MetaQA {hops}-hop") for hops in (1, 2, 3))
    published = ledger.said("The `walk` method", r"about (\d+) / (\d+) / (\d+) on MetaQA's 1, 2 and 3 hops")
    published = " | ".join(f"0.{hits}" for hits in published)
    (size,) = ledger.said("The `walk` method", r"hops with a (\d+B) language model")
    plan = " / ".join([r"([\d.]+) \[[^]]*\]"] * 3)
    plan = " | ".join(ledger.said("ReG", f"gold topics {plan}"))
    (times,) = ledger.said("ReG", r"([\d.]+ to [\d.]+) ms a question\. Of")
    counts = [(1, "1,000"), (2, "1,000"), (3, "400")]
    network = [ledger.cell("GNN2R", f"MetaQA {h}-hop, {n} questions", "Hit@1") for h, n in counts]
    network = " | ".join(map(figure, network))
    return (
        "| | MetaQA 1 hop | 2 hops | 3 hops | ms a question (median) |\n"
        "|---|---|---|---|---|\n"
        f"| `read`, weights and matcher fitted on training questions of these graphs too | {read} | – |\n"
        f"| `relation-plan`, trained, topics given | {plan} | {times} |\n"
        f"| `gnn2r`, trained, topics given | {network} | – |\n"
        f"| KG-RAG with a {size} language model, as published | {published} | – |"
    )


def harder(ledger):
    parts = ("PQ-2H", "PQ-3H", "PQL-2H", "PQL-3H")
    paths = [hit(ledger, part) for part in parts]
    learned = [figure(ledger.cell("GNN2R", part, "Hit@1")) for part in parts]
    web = figure(ledger.cell("GNN2R", "WebQSP", "Hit@1"))
    best = r"\| SmolLM2-135M, relations by the fine-tuned bi-encoder \|(?:[^|]*\|){5} \*\*([\d.]+)%"
    (forms,) = ledger.said("Logical forms", best)
    return (
        f"On PathQuestion `read` has {short(min(paths))} to {short(max(paths))}, on WebQSP "
        f"{short(hit(ledger, 'WebQSP'))}; where neither weights nor matcher saw questions of the graph it "
        "is less ([docs/results.md](docs/results.md#the-matcher-in-the-reader)). Trained from questions and answers "
        f"alone and without a language model, `gnn2r` brings PathQuestion to {short(min(learned))} to "
        f"{short(max(learned))} and WebQSP to {short(web)} (topics given); `amar`, which writes logical "
        f"forms with a language model of 135 million weights, finds the topics by itself and has "
        f"{short(decimal.Decimal(forms) / 100)} on WebQSP's questions with a known form. All figures, with "
        "intervals and commands: [docs/results.md](docs/results.md)."
    )


def speed(ledger):
    heading = "The graph store"
    (version,) = ledger.said(heading, r"pyoxigraph ([\d.]+\d)")
    (triples,) = ledger.said(heading, r"([\d,]+) distinct triples")
    lines = [
        "Measured by `cargo bench -p wherefore-graph --bench store`, which runs pyoxigraph "
        f"{version} (RocksDB) on the same files in the same run; two shared cores, a random graph "
        f"of {triples} triples with Zipf degrees.",
        "",
        "| | wherefore | pyoxigraph | ratio |",
        "|---|---|---|---|",
    ]
    for row, name, unit in [
        ("load N-Triples, M lines/s", "load N-Triples, lines a second", " million"),
        ("on disk, B/triple", "on disk, bytes a triple", ""),
        ("2-hop expansion, M edges/s", "2-hop neighbourhoods, edges a second", " million"),
    ]:
        ours, theirs, ratio = (ledger.cell(heading, row, column) for column in (1, 2, 3))
        if unit:
            ours, theirs = significant(ours) + unit, significant(theirs) + unit
        lines.append(f"| {name} | {ours} | {theirs} | {ratio} |")
    return "\n".join(lines)


def large(ledger):
    heading = "Fifty million triples"
    (lines,) = ledger.said(heading, r"([\d,]+) lines of N-Triples")
    loading = ledger.cell(heading, "load with `--memory 4G`", 1)
    seconds, memory = re.fullmatch(r"([\d.]+) s, .*, ([\d.]+) GB resident at most", loading).groups()
    disk = re.match(r"[\d.]+", ledger.cell(heading, "on disk", 1)).group()
    asked = next(r for r in ledger.rows(heading) if r[0].startswith("`ask`"))[1]
    fastest, slowest = re.match(r"(\d+) to (\d+) ms", asked).groups()
    return (
        f"{int(lines.replace(',', '')) // 1_000_000} million lines of N-Triples load in "
        f"{float(seconds):.0f} s with `--memory 4G` ({short(memory, 1)} GB used), give a graph of "
        f"{short(disk, 1)} GiB, and questions around an entity are answered in {fastest} to "
        f"{slowest} ms. [docs/results.md](docs/results.md) has the figures with their commands, "
        "also of the methods on the benchmarks."
    )


PARTS = {
    "reading": reading,
    "sample": sample,
    "benchmarks": benchmarks,
    "harder": harder,
    "speed": speed,
    "large": large,
}


def written(readme, ledger):
    missing = set(PARTS)

    def part(found):
        missing.discard(found[1])
        return f"<!-- figures: {found[1]} -->\n{PARTS[found[1]](ledger)}\n<!-- end -->"

    readme = re.sub(r"<!-- figures: (\w+) -->\n.*?\n<!-- end -->", part, readme, flags=re.S)
    assert not missing, f"README.md has no place for {', '.join(sorted(missing))}"
    return readme


def main():
    path = ROOT / "README.md"
    readme = path.read_text(encoding="utf-8")
    ledger = Ledger((ROOT / "docs/results.md").read_text(encoding="utf-8"))
    new = written(readme, ledger)
    if sys.argv[1:] == ["--check"]:
        lines = difflib.unified_diff(
            readme.splitlines(), new.splitlines(), "README.md", "as the ledger has it", lineterm=""
        )
        print("\n".join(lines), end="")
        if new != readme:
            sys.exit("\nREADME.md and docs/results.md differ; experiments/readme.py writes the former")
    elif not sys.argv[1:]:
        path.write_text(new, encoding="utf-8")
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
