"""Writes the shipped file from a trained student: 8-bit weights, the vocabulary, the sizes; and 16-bit weights.

    python export.py MINILM_FOLDER STUDENT.safetensors OUT_NAME
"""

import sys
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file, save_file


def coded(rows):
    """8 bits a number, a scale for each row: rows ~ codes * scale."""
    scale = np.maximum(np.abs(rows).max(1), 1e-12) / 127
    return np.round(rows / scale[:, None]).astype(np.int8), scale.astype(np.float32)


def main():
    folder, student, out = Path(sys.argv[1]), load_file(sys.argv[2]), sys.argv[3]
    whole = {k.removeprefix("bert."): v for k, v in load_file(folder / "model.safetensors").items()}
    words = whole["embeddings.word_embeddings.weight"]  # not trained: the same rows for every student
    codes, scale = coded(words)
    plain = {k: v.astype(np.float32) for k, v in student.items()}
    plain["embeddings.word_embeddings.weight"] = codes * scale[:, None]
    # the one token type is added to the positions
    plain["embeddings.token_type_embeddings.weight"] = np.zeros((2, words.shape[1]), np.float32)
    save_file({k: v.astype(np.float16) for k, v in plain.items()}, f"{out}.f16.safetensors")
    small = {"embeddings.word_embeddings.codes": codes, "embeddings.word_embeddings.scale": scale}
    for name, value in student.items():
        value = value.astype(np.float32)
        if value.ndim == 2 and "encoder" in name:
            stem = name.removesuffix(".weight")
            small[stem + ".codes"], small[stem + ".scale"] = coded(value)
        elif name not in small:
            small[name] = value
    small["vocabulary"] = np.frombuffer((folder / "vocab.txt").read_bytes().rstrip(b"\n"), np.uint8)
    said = {"format": "wherefore-matcher-1", "name": "matcher", "language": "en", "heads": "12", "max_tokens": "40"}
    save_file(small, f"{out}.safetensors", metadata=said)
    for name in (f"{out}.f16.safetensors", f"{out}.safetensors"):
        print(name, Path(name).stat().st_size)


if __name__ == "__main__":
    main()
