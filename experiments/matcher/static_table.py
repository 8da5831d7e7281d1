"""Reads the static table that the program ships."""

import json
import struct
from pathlib import Path

import numpy as np


def read_static(path):
    """Rows of a `.table` file by token."""
    raw = Path(path).read_bytes()
    assert raw[:8] == b"WFTABLE1"
    size = struct.unpack("<I", raw[8:12])[0]
    header = json.loads(raw[12:12 + size])
    at = 12 + size
    tokens = raw[at:at + header["token_bytes"]].decode().split("\n")
    at += header["token_bytes"]
    n, dim = header["tokens"], header["dim"]
    scales = np.frombuffer(raw, "<f4", n, at)
    codes = np.frombuffer(raw, "i1", n * dim, at + 4 * n).reshape(n, dim)
    return dict(zip(tokens, codes * scales[:, None])), dim
