#!/usr/bin/env python3
"""A session of the program as an animated picture: docs/pictures/terminal.svg.

    experiments/recording.py WHEREFORE OUT.svg

Runs the commands below for real, in a terminal of its own, and draws what they print: each command is
typed, its output appears at once, and the picture scrolls. Colours are the terminal's own.
"""
import os
import pty
import re
import subprocess
import sys
import tempfile
from html import escape
from pathlib import Path

COLUMNS, ROWS = 92, 30
LINE, CHARACTER, FONT = 18, 8.0, 13.3
SECONDS_A_KEY = 0.045
NO_BREAK = "\u00a0"  # plain ones are lost at the beginning of a piece
# a comment, or a command and the seconds that its output stays
SCRIPT = [
    ("# a graph of the world is compiled in: ask", 0),
    ("wherefore ask @world 'Which countries border both France and Germany?'", 7),
    ("wherefore ask @world 'What is the average population of the countries of Oceania?'", 7),
    ("# what cannot be proved is refused, by the word", 0),
    ("wherefore ask @world 'Which haunted countries border Peru?'", 6),
    ("# a question may follow another", 0),
    ("wherefore ask @world 'What is the capital of Kenya?' --json > answer.json", 2),
    ("wherefore ask @world 'And its population?' --follow answer.json", 7),
    ("# a saved answer is checked against the graph; a changed one does not hold", 0),
    ("wherefore verify answer.json --graph @world", 5),
    ("sed -i 's/Nairobi/Mombasa/' answer.json; wherefore verify answer.json --graph @world", 6),
    ("# your own table: a row is a thing", 0),
    ("cat plants.csv", 4),
    ("wherefore load plants.csv --wide --out plants", 4),
    ("wherefore ask plants 'Which plants are taller than 40?'", 7),
    ("# the query of an answer, for your own tools", 0),
    ("wherefore sparql @world --question 'Which rivers flow through Austria?'", 7),
]
PLANTS = "name,height,bed,light\nMint,45,North Bed,shade\nSage,60,South Bed,sun\nThyme,20,South Bed,sun\n"
COLOURS = {30: "#4b5563", 31: "#f87171", 32: "#4ade80", 33: "#fbbf24", 34: "#60a5fa", 35: "#c084fc",
           36: "#22d3ee", 37: "#e5e7eb", 90: "#6b7280"}


def output_of(command, folder, program):
    """What a command prints to a terminal."""
    environment = {**os.environ, "PATH": f"{program.parent}:{os.environ['PATH']}", "TERM": "xterm-256color",
                   "COLUMNS": str(COLUMNS), "LINES": str(ROWS), "HOME": str(folder)}
    ours, theirs = pty.openpty()
    subprocess.run(["stty", "cols", str(COLUMNS), "rows", str(ROWS)], stdin=theirs, check=True)
    process = subprocess.Popen(["sh", "-c", command], cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                               stdout=theirs, stderr=theirs)
    os.close(theirs)
    read = b""
    while True:
        try:
            more = os.read(ours, 1 << 16)
        except OSError:  # the other end is closed
            break
        if not more:
            break
        read += more
    process.wait()
    os.close(ours)
    text = read.decode(errors="replace").replace("\r\n", "\n")
    # bars draw over themselves: the last state of a line counts
    lines = [line.rsplit("\r", 1)[-1] for line in text.split("\n")]
    lines = (re.sub(r"\x1b\[[0-9;?]*[A-LN-Za-ln-z]", "", line) for line in lines)
    return [part for line in lines for part in wrapped(line)]


def wrapped(line):
    """A line as the terminal breaks it; styles go on in the next one."""
    parts, used, style = [""], 0, ""
    for piece in re.findall(r"\x1b\[[0-9;]*m|.", line):
        if piece.startswith("\x1b"):
            style = "" if piece == "\x1b[0m" else style + piece
        elif used == COLUMNS:
            parts.append(style)
            used = 0
        parts[-1] += piece
        used += not piece.startswith("\x1b")
    return parts


def spans(line):
    """A line as pieces of text with their style."""
    style, pieces = {}, []
    for piece in re.split(r"(\x1b\[[0-9;]*m)", line):
        found = re.fullmatch(r"\x1b\[([0-9;]*)m", piece)
        if not found:
            if piece:
                pieces.append((dict(style), piece))
            continue
        for code in (int(code or 0) for code in found[1].split(";")):
            if code == 0:
                style = {}
            elif code == 1:
                style["font-weight"] = "bold"
            elif code == 2:
                style["opacity"] = ".6"
            elif code in COLOURS:
                style["fill"] = COLOURS[code]
            elif code == 39:
                style.pop("fill", None)
            elif code == 22:
                style.pop("font-weight", None)
                style.pop("opacity", None)
    return pieces


def main():
    program, out = Path(sys.argv[1]).resolve(), Path(sys.argv[2])
    lines, scrolls, clock = [], [], 0.5  # lines: (seconds, typed seconds, text)
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        (folder / "plants.csv").write_text(PLANTS)
        for command, stays in SCRIPT:
            typed = len(command) * SECONDS_A_KEY
            colour = "\x1b[90m" if command.startswith("#") else "\x1b[1m"
            lines.append((clock, typed, f"\x1b[32m$ \x1b[0m{colour}{command}"))
            clock += typed + 0.3
            if not command.startswith("#"):
                printed = output_of(command, folder, program)
                while printed and not printed[-1].strip():
                    printed.pop()
                lines += [(clock, 0, line) for line in printed + [""]]
                clock += stays
            above = max(0, len(lines) + 1 - ROWS)
            if not scrolls or scrolls[-1][1] != above:
                scrolls.append((clock - stays, above))
    width, height = int(COLUMNS * CHARACTER) + 40, ROWS * LINE + 50
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        'role="img" aria-label="A session of Wherefore in a terminal">',
        f'<rect width="{width}" height="{height}" rx="10" fill="#111827"/>',
        '<g fill="#374151"><circle cx="22" cy="18" r="6"/><circle cx="42" cy="18" r="6"/><circle cx="62" cy="18" r="6"/></g>',
        f'<svg x="20" y="36" width="{width - 40}" height="{ROWS * LINE}"><g font-family="ui-monospace, Menlo, Consolas, monospace" '
        f'font-size="{FONT}" fill="#e5e7eb" xml:space="preserve">',
    ]
    times = "".join(f'<animateTransform attributeName="transform" type="translate" to="0 {-above * LINE}" '
                    f'begin="{at:.2f}s" dur=".2s" fill="freeze"/>' for at, above in scrolls if above)
    parts.append(times)
    for row, (at, typed, line) in enumerate(lines):
        text, used = "", 0
        for style, piece in spans(line):
            attributes = "".join(f' {name}="{value}"' for name, value in style.items())
            text += f'<tspan x="{used * CHARACTER:.0f}"{attributes}>{escape(piece).replace(" ", NO_BREAK)}</tspan>'
            used += len(piece)
        if not text:
            continue
        y = row * LINE + 14
        show = f'<set attributeName="visibility" to="visible" begin="{at:.2f}s"/>'
        clip = ""
        if typed:
            parts.append(f'<clipPath id="c{row}"><rect x="0" y="{y - 14}" height="{LINE}" width="16">'
                         f'<animate attributeName="width" from="16" to="{used * CHARACTER + 8:.0f}" begin="{at:.2f}s" '
                         f'dur="{typed:.2f}s" fill="freeze"/></rect></clipPath>')
            clip = f' clip-path="url(#c{row})"'
        parts.append(f'<text y="{y}" visibility="hidden"{clip}>{show}{text}</text>')
    parts.append("</g></svg></svg>")
    out.write_text("\n".join(parts) + "\n")
    print(f"{out}: {len(lines)} lines, {clock:.0f} s, {out.stat().st_size // 1024} KB")


if __name__ == "__main__":
    main()
