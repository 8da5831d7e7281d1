"""Writes a trained static matcher as a `.table` file: rows that training saw replace those of the table it began with.

    python table.py DATA STATIC.table STUDENT.safetensors OUT.table
"""

import json
import struct
import sys
from pathlib import Path

import numpy as np
import xxhash
from safetensors.numpy import load_file
from tokenizers import Tokenizer

from static_table import read_static


def main():
    data, began, student, out = sys.argv[1:5]
    rows, dim = read_static(began)
    names = {v: k for k, v in Tokenizer.from_file(f"{data}/tokenizer.json").get_vocab().items()}
    weights = load_file(student)
    table = weights["codes"].astype(np.float32) * weights["scale"][:, None]
    changed = 0
    for token, row in zip(load_file(f"{data}/base.safetensors")["ids"], table):
        if names[int(token)] in rows:
            rows[names[int(token)]] = row
            changed += 1
    raw = Path(began).read_bytes()
    size = struct.unpack("<I", raw[8:12])[0]
    header = json.loads(raw[12:12 + size])
    token_bytes = raw[12 + size:12 + size + header["token_bytes"]]
    header["name"] = "matcher"
    values = np.array([rows[t] for t in token_bytes.decode().split("\n")[:header["tokens"]]], np.float32)
    scales = (np.abs(values).max(1) / 127).astype("<f4")
    codes = np.round(values / np.maximum(scales, 1e-20)[:, None]).astype(np.int8)
    head = json.dumps(header, separators=(",", ":")).encode()
    body = b"WFTABLE1" + struct.pack("<I", len(head)) + head + token_bytes + scales.tobytes() + codes.tobytes()
    Path(out).write_bytes(body + struct.pack("<Q", xxhash.xxh3_64_intdigest(body)))
    print(f"{changed} of {len(values)} rows trained, {Path(out).stat().st_size} bytes")


if __name__ == "__main__":
    main()
