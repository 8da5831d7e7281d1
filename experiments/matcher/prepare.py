"""The weights to begin with, small enough to travel: word rows in 8 bits, the rest in 16.

    python prepare.py OUT MINILM_FOLDER
"""

import sys
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file, save_file
from tokenizers import Tokenizer


def main():
    out, folder = Path(sys.argv[1]), Path(sys.argv[2])
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    keep = list(range(tokenizer.get_vocab_size()))
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
