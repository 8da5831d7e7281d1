"""The text that stands for a step of a path, and how topics are marked in a question.

A step is (relation, direction, class of the subject, class of the object); classes may be unknown (None).
Forward leads from subject to object, backward from object to subject.
"""

import re
from typing import NamedTuple, Optional

FORWARD, BACKWARD = 0, 1
MARK = "\u00a4"  # stands for a topic in a stored question


class Step(NamedTuple):
    relation: str
    direction: int
    subject: Optional[str]
    object: Optional[str]


def words(name: str) -> str:
    """Opens camelCase, underscores and punctuation: `dateOfBirth`, `date_of_birth` -> `date of birth`."""
    name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", name)
    return " ".join(re.sub(r"[^\w']+|_", " ", name.lower()).split())


def dotted(name: str):
    """`people.person.place_of_birth` -> (`place of birth`, `person`, `people`)."""
    parts = [words(p) for p in re.split(r"\.|__", name.strip("_.")) if p]
    if len(parts) >= 3 and " " not in name:
        return parts[-1], parts[-2], parts[-3]
    return words(name), None, None


def step_phrase(step: Step, template: str = "issue") -> str:
    """One step as a short English phrase."""
    relation, direction, subject, obj = step
    forward = direction == FORWARD
    if template == "issue":
        if forward:
            return f"{relation} of the {subject}" if subject else f"{relation} of it"
        return f"{subject} with {relation}" if subject else f"it is {relation} of"
    if template == "mixed":
        if forward:
            end = f", a {obj}" if obj else ""
            return f"{relation} of the {subject}{end}" if subject else f"{relation} of it{end}"
        end = f" the {obj}" if obj else ""
        return f"{subject} with {relation}{end}" if subject else f"it is {relation} of{end}"
    if template == "plain":
        if forward:
            return f"{relation} of the {subject}" if subject else relation
        return f"{subject} with {relation}" if subject else f"with {relation}"
    if template == "whose":
        if forward:
            return f"{relation} of the {subject or 'thing'}"
        return f"{subject or 'thing'} whose {relation} is the {obj or 'thing'}"
    if template == "both":
        if forward:
            end = f" is a {obj}" if obj else ""
            return f"{relation} of the {subject}{end}" if subject else f"{relation} of it{end}"
        end = f" the {obj}" if obj else " it"
        return f"{subject or 'thing'} with {relation}{end}"
    if template == "answer":  # the class of the answer first, both ways
        if forward:
            head = f"{obj}: " if obj else ""
            return head + (f"{relation} of the {subject}" if subject else f"{relation} of it")
        return f"{subject or 'thing'} with {relation}" + (f" the {obj}" if obj else " it")
    if template == "bare":
        return f"{subject} {relation}" if subject else relation
    raise ValueError(template)


def tokens_of(text: str):
    return [(m.start(), m.end(), m.group().lower()) for m in re.finditer(r"\w+", text)]


STOP = set("""the a an of in on at to is are was were be for by with and or what which who where when how did does do
has have had from it its his her their as that this many much name list all movie film book country city state
language first last new people play played best most""".split())


def mark(question: str, names, partial: bool = False):
    """Replaces each name by MARK; returns the text and the names that were found, in order of their places."""
    toks = tokens_of(question)
    spans = []
    for name in sorted(set(names), key=lambda n: -len(n)):
        base = re.sub(r"\s*\([^)]*\)\s*$", "", name.replace("_", " "))
        want = [t for _, _, t in tokens_of(base)]
        if not want:
            continue
        best = None
        sizes = range(len(want), 0, -1) if partial else [len(want)]
        for size in sizes:
            for k in range(len(want) - size + 1):
                piece = want[k:k + size]
                if size < len(want) and (all(w in STOP for w in piece) or sum(map(len, piece)) < 4):
                    continue
                for i in range(len(toks) - size + 1):
                    if [t for _, _, t in toks[i:i + size]] == piece:
                        best = (toks[i][0], toks[i + size - 1][1], name)
                        break
                if best:
                    break
            if best:
                break
        if best and all(best[1] <= s or best[0] >= e for s, e, _ in spans):
            spans.append(best)
    spans.sort()
    text, found, at = "", [], 0
    for start, end, name in spans:
        text += question[at:start] + MARK
        at = end
        found.append(name)
    text += question[at:]
    return " ".join(text.replace("_", " ").split()), found
