"""Makes crates/model/tests/fixtures/qr_gat: a tiny QR-GAT with random weights, and its scores in PyTorch.

    python experiments/qrgat_fixture.py crates/model/tests/fixtures/qr_gat

Needs torch and safetensors. The network is written from the equations at the head of
crates/model/src/qr_gat/mod.rs and the tensor names of docs/checkpoints.md, edge by edge and without any
of the shortcuts of the Rust code: the test that reads the fixture holds both of its implementations to it.
"""

import json
import sys
from pathlib import Path

import torch
from safetensors.torch import save_file

DIM, HIDDEN, LAYERS, HEADS = 6, 8, 2, 2
SLOPE, EPSILON = 0.2, 1e-5


def random_weights():
    weights = {}
    for direction in ("forward", "backward"):
        for layer in range(1, LAYERS + 1):
            inputs = 2 * DIM + 2 if layer == 1 else HIDDEN
            shapes = {
                "w_s": (HIDDEN, inputs),
                "w_t": (HIDDEN, inputs),
                "w_e": (HIDDEN, DIM),
                "w_q": (HIDDEN, DIM),
                "w_r": (HIDDEN, DIM),
                "a": (HEADS, HIDDEN // HEADS),
                "norm.scale": (HIDDEN,),
                "norm.shift": (HIDDEN,),
            }
            for name, shape in shapes.items():
                weights[f"{direction}.{layer}.{name}"] = torch.randn(shape) * 0.5
            weights[f"{direction}.{layer}.norm.scale"] += 1
    weights["w_1"] = torch.randn(HIDDEN, 2 * DIM + 4 * HIDDEN) * 0.3
    weights["b_1"] = torch.randn(HIDDEN) * 0.3
    weights["w_2"] = torch.randn(1, HIDDEN)
    weights["b_2"] = torch.randn(1)
    return weights


def states(weights, direction, h, q, r, edges):
    """edges: (heard node j, relation, hearing node i)"""
    width = HIDDEN // HEADS
    for layer in range(1, LAYERS + 1):
        w = {name: weights[f"{direction}.{layer}.{name}"] for name in
             ("w_s", "w_t", "w_e", "w_q", "w_r", "a", "norm.scale", "norm.shift")}
        rows = []
        for i in range(len(h)):
            heard = [(j, rel) for j, rel, k in edges if k == i]
            row = torch.zeros(HEADS, width)
            if heard:
                scores = []
                for j, rel in heard:
                    u = w["w_s"] @ h[i] + w["w_t"] @ h[j] + w["w_e"] @ r[rel]
                    base = (torch.nn.functional.leaky_relu(u, SLOPE).view(HEADS, width) * w["a"]).sum(1)
                    plus = ((w["w_q"] @ q) * (w["w_r"] @ r[rel])).view(HEADS, width).sum(1)
                    scores.append(base + plus)
                alpha = torch.stack(scores).softmax(0)  # [edges, heads]
                for (j, _), weight in zip(heard, alpha):
                    row += weight[:, None] * (w["w_t"] @ h[j]).view(HEADS, width)
            rows.append(row.reshape(-1))
        h = torch.nn.functional.layer_norm(
            torch.stack(rows), (HIDDEN,), w["norm.scale"], w["norm.shift"], EPSILON)
    return h


def scores(weights, entities, relations, question, topics, triples):
    flags = torch.tensor([[0.0, 1.0] if topic else [1.0, 0.0] for topic in topics])
    h0 = torch.cat([entities, question.expand(len(entities), -1), flags], 1)
    forward = states(weights, "forward", h0, question, relations, triples)
    backward = states(weights, "backward", h0, question, relations, [(t, r, h) for h, r, t in triples])
    h = torch.cat([forward, backward], 1)
    logits = []
    for head, rel, tail in triples:
        x = torch.cat([question, h[head], relations[rel], h[tail]])
        logits.append((weights["w_2"] @ torch.relu(weights["w_1"] @ x + weights["b_1"]) + weights["b_2"]).item())
    return logits


def main():
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(7)
    weights = random_weights()
    entities, relations, question = torch.randn(9, DIM), torch.randn(3, DIM), torch.randn(DIM)
    topics = [True, False, False, False, True, False, False, False, False]
    # a hub with leaves (0), a pair joined twice (1, 2), a loop (5), a topic without edges (4), a second part (7, 8)
    triples = [(0, 0, 1), (0, 1, 2), (0, 0, 3), (0, 0, 6), (1, 2, 2), (1, 0, 2), (2, 1, 0), (5, 2, 5),
               (3, 1, 5), (5, 0, 1), (7, 2, 8)]
    config = {
        "format": 1,
        "method": "qr-gat",
        "sizes": {"dim": DIM, "hidden": HIDDEN, "layers": LAYERS, "heads": HEADS, "dropout": 0.1, "ablations": []},
        "encoder": {"name": "random", "dim": DIM},
        "seed": 7,
    }
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    save_file(weights, folder / "model.safetensors")
    graph = {
        "question": question.tolist(),
        "entities": entities.flatten().tolist(),
        "relations": relations.flatten().tolist(),
        "topics": topics,
        "triples": triples,
        "logits": scores(weights, entities, relations, question, topics, triples),
    }
    (folder / "graph.json").write_text(json.dumps(graph) + "\n")


if __name__ == "__main__":
    main()
