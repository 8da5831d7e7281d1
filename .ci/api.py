#!/usr/bin/env python3
"""The public surface of a crate: every public item with its declaration, read off what `cargo doc` wrote.

    .ci/api.py             compares with crates/*/public-api.txt, and says what differs
    .ci/api.py --write     writes them

A line that is gone or changed breaks somebody's program: it belongs in CHANGELOG.md. Traits that every type
has (Send, From, …) and what dependencies add are left out. The pages of rustdoc differ from one compiler to
the next, so another one than the files name is not compared.
"""
import difflib
import html
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CRATES = {"qa": "wherefore", "graph": "wherefore_graph"}
ITEM = re.compile(r'<li><a href="([^"]+\.html)">')
DECLARED = re.compile(r'<pre class="rust item-decl"><code>(.*?)</code></pre>', re.S)
SECTION = re.compile(r'<h2 id="(implementations|required-methods|provided-methods|trait-implementations|synthetic-implementations|blanket-implementations|foreign-impls|implementors|variants|fields)"')
METHOD = re.compile(r'<h4 class="code-header">(.*?)</h4>', re.S)
VARIANT = re.compile(r'<section id="variant\.[^"]+" class="variant">.*?<h3 class="code-header">(.*?)</h3>', re.S)
OWN = {"implementations", "required-methods", "provided-methods"}


def text(markup):
    """Code without its markup, on one line."""
    markup = re.sub(r'<summary.*?</summary>|<span class="comment">.*?</span>', "", markup, flags=re.S)
    plain = html.unescape(re.sub(r"<[^>]+>", "", markup))
    return re.sub(r"\s+", " ", re.sub(r"/\*.*?\*/", "", plain, flags=re.S)).strip()


def surface(folder):
    lines = []
    for page in sorted(set(ITEM.findall((folder / "all.html").read_text()))):
        path = folder / page
        name = page.removesuffix(".html").replace("/", "::")
        markup = path.read_text()
        lines += [f"{name}: {text(found)}" for found in DECLARED.findall(markup)]
        lines += [f"{name}: variant {text(found)}" for found in VARIANT.findall(markup)]
        parts = SECTION.split(markup)
        for section, part in zip(parts[1::2], parts[2::2]):
            if section in OWN:
                lines += [f"{name}: {text(found)}" for found in METHOD.findall(part)]
            elif section == "trait-implementations":
                found = re.findall(r'<h3 class="code-header">(.*?)</h3>', part, re.S)
                lines += [f"{name}: {text(one)}" for one in found]
    return sorted(set(lines))


def main():
    compiler = subprocess.run(["rustc", "--version"], capture_output=True, text=True, check=True).stdout.split()[1]
    changed = False
    for folder, name in CRATES.items():
        file = ROOT / "crates" / folder / "public-api.txt"
        docs = ROOT / "target" / "doc" / name
        if not docs.exists():
            raise SystemExit(f"{docs} is not there: run `cargo doc --workspace --no-deps` first")
        now = [f"# rustc {compiler}"] + surface(docs)
        if "--write" in sys.argv[1:]:
            file.write_text("\n".join(now) + "\n")
            print(f"{file.relative_to(ROOT)}: {len(now) - 1} lines")
            continue
        before = file.read_text().splitlines()
        if before[0] != now[0]:
            print(f"skipped {file.relative_to(ROOT)}: of {before[0][2:]}, and this is {compiler}")
            continue
        difference = [line for line in difflib.unified_diff(before, now, lineterm="", n=0) if line[:1] in "+-" and line[:3] not in ("+++", "---")]
        changed |= bool(difference)
        print("\n".join(difference) if difference else f"{file.relative_to(ROOT)}: as it was")
    if changed:
        raise SystemExit("the public surface changed: if that is meant, run `.ci/api.py --write`, and say it in CHANGELOG.md")


if __name__ == "__main__":
    main()
