"""Token ids of all texts and the weights to begin with, cut to the tokens that occur: what training needs.

    python prepare.py OUT MINILM_FOLDER
"""

import gzip
import json
import sys
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file, save_file
from tokenizers import Tokenizer

from phrases import MARK, Step, step_phrase

TEMPLATES = ["issue", "plain", "whose", "both", "answer", "bare"]


def main():
    out, folder = Path(sys.argv[1]), Path(sys.argv[2])
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    pairs = json.load(gzip.open(out / "pairs.json.gz"))
    evalset = json.load(gzip.open(out / "evalset.json.gz"))
    used = {0, 100, 101, 102, 103, 1, 2, 3, 4}  # padding, unknown, [CLS], [SEP], [MASK], [unused0..3]
    for word in ["it", "x", "this", "thing", "one", "entity", "someone"]:
        used.add(tokenizer.token_to_id(word))
    texts = [i["q"].replace(MARK, " ") for i in pairs["items"]]
    texts += [n for i in pairs["items"] for n in i["n"]]
    for bed in evalset["beds"].values():
        texts += [i["q"].replace(MARK, " ") for i in bed["items"]]
        texts += [n for i in bed["items"] for n in i["names"]]
    for store in (pairs, evalset):
        for s in store["steps"]:
            texts += [" ".join(x for x in (s[0], s[2], s[3]) if x)]
    texts += [a for names in pairs["aliases"].values() for a in names]
    texts += [step_phrase(Step("a", d, c, c), t) for t in TEMPLATES for d in (0, 1) for c in ("b", None)]
    for encoded in tokenizer.encode_batch(texts, add_special_tokens=False):
        used.update(encoded.ids)
    keep = sorted(used)
    assert keep[0] == 0
    weights = load_file(folder / "model.safetensors")
    weights = {k.removeprefix("bert."): v for k, v in weights.items()}
    small = {k: v.astype(np.float16) for k, v in weights.items()
             if v.dtype == np.float32 and not k.startswith(("pooler", "embeddings.word", "embeddings.position"))}
    rows = weights["embeddings.word_embeddings.weight"][keep]  # 8 bits a number, a scale for each row, as shipped
    small["words.scale"] = (np.abs(rows).max(1) / 127).astype(np.float32)
    small["words.codes"] = np.round(rows / small["words.scale"][:, None]).astype(np.int8)
    small["embeddings.position_embeddings.weight"] = weights["embeddings.position_embeddings.weight"][:128].astype(np.float16)
    small["ids"] = np.array(keep, dtype=np.int32)
    save_file(small, out / "base.safetensors")
    (out / "tokenizer.json").write_bytes((folder / "tokenizer.json").read_bytes())
    print("tokens", len(keep), "bytes", (out / "base.safetensors").stat().st_size)


if __name__ == "__main__":
    main()
