"""Rewords the drafts with a language model, and keeps what two judges take for the draft's step: OUT/reworded.jsonl.

    python reword.py OUT MODEL_FOLDER MODEL.gguf          OUT: what drafts.py and prepare.py wrote; a graphics card

Judge 1: all-MiniLM-L6-v2 as it is; the phrase of the step is among the nearest three of all phrases beside it.
Judge 2: the language model chooses the step's meaning among four, in two orders, right in both.
Neither is the reader or the matcher, which would keep only what they can read already.
"""

import json
import random
import re
import sys
import time
from collections import Counter
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from measure import Texts, batched
from model import Encoder
from phrases import FORWARD, MARK, Step, step_phrase
from train import Data

SHOWN = [
    ("What is the place of birth of X?", "where the subject was born",
     ["Where was X born?", "Which town does X come from?", "X was born in what place?", "where does X hail from"]),
    ("Which things have the manufacturer X?", "maker of the product",
     ["What does X make?", "Which products were built by X?", "things produced by X", "Name everything that X manufactures."]),
    ("What is the duration of the concert X?", "",
     ["How long does X last?", "How long did X go on for?", "What is the running time of X?", "length of X"]),
    ("Which employment has the employer X?", "",
     ["Who works for X?", "Who is on X's payroll?", "List the people employed at X.", "Whom has X hired?"]),
]
TEMPERATURE, LINES, SIZE = 0.8, 4, 384


def asking(tokenizer, draft):
    turns = [{"role": "system", "content": "You rewrite questions the way ordinary people would ask them. Use everyday words instead of the words of the question, keep its meaning, and keep the name X."}]
    def ask(question, says):
        return f"Question: {question}" + (f"\nMeaning: {says}" if says else "") + f"\nWrite {LINES} other wordings, one a line."
    for question, says, lines in SHOWN:
        turns += [{"role": "user", "content": ask(question, says)}, {"role": "assistant", "content": "\n".join(lines)}]
    turns.append({"role": "user", "content": ask(draft["draft"], draft["says"])})
    return tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)


def lines_of(text, draft):
    out = []
    for line in text.split("\n"):
        line = re.sub(r"^\s*(?:\d+[.)]|[-*])\s*", "", line).strip().strip('"')
        if not 6 <= len(line) <= 120 or len(re.findall(r"\bX\b", line)) != 1 or not line.isascii():
            continue
        if line.lower().rstrip("?.") != draft.lower().rstrip("?.") and line not in out:
            out.append(line)
    return out[:LINES]


def choice(tokenizer, question, options):
    listed = "\n".join(f"{letter}) {o}" for letter, o in zip("ABCD", options))
    turns = [{"role": "user", "content": f"What does this question ask for?\nQuestion: {question}\n{listed}\nAnswer with one letter."}]
    return tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)


def told(step):
    relation, direction, subject, obj = step
    if direction == FORWARD:
        return f"the {relation} of X"
    return f"{subject or 'things'} whose {relation} is X"


@torch.no_grad()
def main():
    out, folder, name = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
    begun = time.time()
    device = torch.device("cuda")
    tokenizer = AutoTokenizer.from_pretrained(folder, gguf_file=name)
    tokenizer.padding_side = "left"
    model = AutoModelForCausalLM.from_pretrained(folder, gguf_file=name, dtype=torch.bfloat16).to(device).eval()
    print(f"loaded after {time.time() - begun:.0f} s", flush=True)
    drafts = [json.loads(line) for line in open(out / "drafts.jsonl", encoding="utf8")]
    torch.manual_seed(5)
    order = sorted(range(len(drafts)), key=lambda i: len(drafts[i]["draft"]) + len(drafts[i]["says"]))
    for k in range(0, len(order), SIZE):
        some = order[k:k + SIZE]
        given = tokenizer([asking(tokenizer, drafts[i]) for i in some], return_tensors="pt", padding=True).to(device)
        made = model.generate(**given, max_new_tokens=72, do_sample=True, temperature=TEMPERATURE, top_p=0.95, top_k=0)
        for i, text in zip(some, tokenizer.batch_decode(made[:, given["input_ids"].shape[1]:], skip_special_tokens=True)):
            drafts[i]["made"] = lines_of(text, drafts[i]["draft"])
    counts = Counter(made=sum(len(d["made"]) for d in drafts))
    print(f"{counts['made']} wordings after {time.time() - begun:.0f} s", flush=True)

    # judge 1
    data = Data(out, device)
    encoder = Encoder(data.base, range(6)).to(device).eval()
    texts = Texts(data.tokenizer, data.keep, True)
    asked = [(i, q) for i, d in enumerate(drafts) for q in d["made"]]
    said = batched(encoder, texts.encode([re.sub(r"\bX\b", MARK, q) for _, q in asked]), "question", device)
    first = []
    for (i, _), v in zip(asked, said):
        d = drafts[i]
        if "phrases" not in d:
            steps = [Step(*d["step"])] + [Step(*s) for s in d["siblings"]]
            d["phrases"] = batched(encoder, texts.encode([step_phrase(s, "mixed") for s in steps]), "phrase", device)
        scores = d["phrases"] @ v
        first.append(bool((scores[1:] > scores[0]).sum() < 3))
    counts["judge 1"] = sum(first)

    # judge 2
    rng = random.Random(9)
    letters = torch.tensor([tokenizer.encode(l, add_special_tokens=False)[0] for l in "ABCD"], device=device)
    prompts, right = [], []
    for i, question in asked:
        d = drafts[i]
        others = [told(Step(*s)) for s in rng.sample(d["siblings"], min(2, len(d["siblings"])))]
        step = Step(*d["step"])
        turned = told(step._replace(direction=1 - step.direction))
        options = [told(step), turned, *others]
        for _ in range(2):
            rng.shuffle(options)
            prompts.append(choice(tokenizer, question, options))
            right.append(options.index(told(step)))
    chosen = torch.zeros(len(prompts), dtype=torch.long)
    order = sorted(range(len(prompts)), key=lambda i: len(prompts[i]))
    for k in range(0, len(order), 512):
        some = order[k:k + 512]
        given = tokenizer([prompts[i] for i in some], return_tensors="pt", padding=True).to(device)
        logits = model(**given, logits_to_keep=1).logits[:, -1]
        chosen[some] = logits[:, letters].argmax(1).cpu()
    both = [int(chosen[2 * k]) == right[2 * k] and int(chosen[2 * k + 1]) == right[2 * k + 1] for k in range(len(asked))]
    counts["judge 2"] = sum(both)
    for (i, question), a, b in zip(asked, first, both):
        if a and b:
            drafts[i].setdefault("kept", []).append(question)
            counts["kept"] += 1
    with open(out / "reworded.jsonl", "w", encoding="utf8") as f:
        for d in drafts:
            if d.get("kept"):
                f.write(json.dumps({k: d[k] for k in ("family", "step", "siblings", "kept")}) + "\n")
    print(dict(counts), f"{time.time() - begun:.0f} s", flush=True)
    for d in rng.sample(drafts, 25):
        print(d["draft"], "|", d["made"], "|", d.get("kept"), flush=True)


main()
