"""The two kinds of matcher: static token vectors (S) and the first layers of a BERT encoder (T).

Both turn a list of token ids into a unit vector. A form's vector is the unit sum of its steps' vectors.
"""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class Static(nn.Module):
    """v = unit(sum of e_t) over the tokens of a text; the weight of a token is the length of its row."""

    specials = False

    def __init__(self, table):
        super().__init__()
        self.table = nn.Parameter(table.clone())

    def forward(self, ids, side=None):
        return F.normalize((self.table[ids] * (ids > 0)[..., None]).sum(1), dim=-1)

    def coded(self):
        """8 bits a number, a scale for each row."""
        table = self.table.detach().float().cpu()
        scale = table.abs().amax(1).clamp(min=1e-12) / 127
        return {"codes": (table / scale[:, None]).round().to(torch.int8), "scale": scale}


class Weighted(Static):
    """Static vectors with a weight for each token, one for questions and one for phrases."""

    def __init__(self, table):
        super().__init__(table)
        self.question_weight = nn.Parameter(torch.zeros(len(table)))
        self.phrase_weight = nn.Parameter(torch.zeros(len(table)))

    def forward(self, ids, side):
        weight = self.question_weight if side == "question" else self.phrase_weight
        w = weight[ids].exp() * (ids > 0)
        return F.normalize((self.table[ids] * w[..., None]).sum(1), dim=-1)


class Layer(nn.Module):
    def __init__(self, dim=384, heads=12, inner=1536):
        super().__init__()
        self.heads = heads
        self.q, self.k, self.v, self.o = (nn.Linear(dim, dim) for _ in range(4))
        self.n1, self.n2 = nn.LayerNorm(dim, 1e-12), nn.LayerNorm(dim, 1e-12)
        self.up, self.down = nn.Linear(dim, inner), nn.Linear(inner, dim)

    def forward(self, x, mask, drop):
        b, n, d = x.shape
        split = lambda y: y.view(b, n, self.heads, d // self.heads).transpose(1, 2)
        y = F.scaled_dot_product_attention(split(self.q(x)), split(self.k(x)), split(self.v(x)), attn_mask=mask)
        y = self.o(y.transpose(1, 2).reshape(b, n, d))
        x = self.n1(x + F.dropout(y, drop, self.training))
        return self.n2(x + F.dropout(self.down(F.gelu(self.up(x))), drop, self.training))


class Encoder(nn.Module):
    """BERT with mean pooling, as all-MiniLM-L6-v2, with the layers that were chosen."""

    specials = True
    names = {"q": "attention.self.query", "k": "attention.self.key", "v": "attention.self.value",
             "o": "attention.output.dense", "n1": "attention.output.LayerNorm", "up": "intermediate.dense",
             "down": "output.dense", "n2": "output.LayerNorm"}

    def __init__(self, weights, layers, drop=0.0):
        super().__init__()
        self.drop, self.chosen = drop, layers
        get = lambda n: weights[n].float()
        words = get("embeddings.word_embeddings.weight")
        self.words = nn.Embedding.from_pretrained(words.clone(), freeze=True)
        place = get("embeddings.position_embeddings.weight")[:128] + get("embeddings.token_type_embeddings.weight")[0]
        self.place = nn.Parameter(place.clone())
        self.norm = nn.LayerNorm(words.shape[1], 1e-12)
        self.norm.load_state_dict({"weight": get("embeddings.LayerNorm.weight"), "bias": get("embeddings.LayerNorm.bias")})
        self.layers = nn.ModuleList()
        for index in layers:
            layer = Layer(words.shape[1])
            layer.load_state_dict({f"{short}.{part}": get(f"encoder.layer.{index}.{long}.{part}")
                                   for short, long in self.names.items() for part in ("weight", "bias")})
            self.layers.append(layer)

    def states(self, ids, kind=0.0):
        """A vector for each token; padding is id 0 at the end. `kind` is added to the word vectors."""
        x = self.norm(self.words(ids) + self.place[:ids.shape[1]] + kind)
        x = F.dropout(x, self.drop, self.training)
        mask = (ids > 0)[:, None, None, :]
        for layer in self.layers:
            x = layer(x, mask, self.drop)
        return x

    def forward(self, ids, side=None):
        """The mean is over all tokens, [CLS] and [SEP] included."""
        x = self.states(ids)
        w = (ids > 0)[..., None].to(x.dtype)
        return F.normalize((x * w).sum(1) / w.sum(1), dim=-1)

    def published(self):
        """Weights under the usual names."""
        out = {"embeddings.position_embeddings.weight": self.place, "embeddings.LayerNorm.weight": self.norm.weight,
               "embeddings.LayerNorm.bias": self.norm.bias}
        for i, layer in enumerate(self.layers):
            for short, long in self.names.items():
                module = getattr(layer, short)
                out[f"encoder.layer.{i}.{long}.weight"] = module.weight
                out[f"encoder.layer.{i}.{long}.bias"] = module.bias
        return {k: v.detach().half().cpu().contiguous() for k, v in out.items()}


class Mpnet(nn.Module):
    """all-mpnet-base-v2 as a teacher. Its vocabulary is BERT's, moved by four: it takes the same ids."""

    specials = True

    def __init__(self, folder):
        from safetensors.torch import load_file
        from transformers import MPNetConfig, MPNetModel

        super().__init__()
        config = MPNetConfig.from_json_file(f"{folder}/config.json")
        config.hidden_dropout_prob = config.attention_probs_dropout_prob = 0.0
        self.model = MPNetModel(config, add_pooling_layer=False)
        weights = {k.removeprefix("mpnet."): v.float() for k, v in load_file(f"{folder}/model.safetensors").items()}
        missing, _ = self.model.load_state_dict(weights, strict=False)
        assert all("position_ids" in name for name in missing), missing
        self.model.embeddings.requires_grad_(False)

    def forward(self, ids, side=None):
        present = ids > 0
        own = torch.where(present, ids + 4, 1)
        own = torch.where(ids == 101, 0, torch.where(ids == 102, 2, own))  # [CLS], [SEP]
        x = self.model(own, attention_mask=present.long()).last_hidden_state
        w = present[..., None].to(x.dtype)
        return F.normalize((x * w).sum(1) / w.sum(1), dim=-1)


class Mapped(Weighted):
    """Static vectors that stay as they are; learned are a weight for each token and a linear map for each side."""

    def __init__(self, table):
        super().__init__(table)
        self.table.requires_grad_(False)
        self.question_map = nn.Parameter(torch.eye(table.shape[1]))
        self.phrase_map = nn.Parameter(torch.eye(table.shape[1]))

    def forward(self, ids, side):
        weight = self.question_weight if side == "question" else self.phrase_weight
        w = weight[ids].exp() * (ids > 0)
        total = (self.table[ids] * w[..., None]).sum(1)
        return F.normalize(total @ (self.question_map if side == "question" else self.phrase_map), dim=-1)


class Late(Weighted):
    """Late interaction over static vectors: each token of one side meets the nearest of the other.

    score = a * sum_q w_q max_p e_q.e_p / sum_q w_q  +  (1 - a) * the same from the form's side
    """

    def __init__(self, table):
        super().__init__(table)
        self.balance = nn.Parameter(torch.zeros(()))

    def late(self, questions, forms, tokens):
        """`questions` [n, t] ids, `forms` [n, m, k] steps, `tokens` [steps, l] ids -> [n, m]."""
        n, m, k = forms.shape
        ids = tokens[forms.clamp(min=0)] * (forms >= 0)[..., None]
        ids = ids.reshape(n, m, -1)
        ids = ids.sort(-1, descending=True).values
        ids = ids[..., :int((ids > 0).sum(-1).max())]
        unit = F.normalize(self.table, dim=-1)
        q, p = unit[questions], unit[ids]  # [n, t, d], [n, m, l, d]
        sim = torch.einsum("ntd,nmld->nmtl", q, p)
        qw = self.question_weight[questions].exp() * (questions > 0)
        pw = self.phrase_weight[ids].exp() * (ids > 0)
        sim_q = sim.masked_fill((ids == 0)[:, :, None, :], -1).amax(-1)  # [n, m, t]
        sim_p = sim.masked_fill((questions == 0)[:, None, :, None], -1).amax(-2)  # [n, m, l]
        a = torch.sigmoid(self.balance)
        from_q = (sim_q * qw[:, None]).sum(-1) / qw.sum(-1)[:, None].clamp(min=1e-6)
        from_p = (sim_p * pw).sum(-1) / pw.sum(-1).clamp(min=1e-6)
        return a * from_q + (1 - a) * from_p


class Gated(Encoder):
    """An encoder whose forms tell the step that gives the answer from those before it."""

    def __init__(self, *args, **kw):
        super().__init__(*args, **kw)
        self.gate = nn.Parameter(torch.ones(2, self.words.weight.shape[1]))


def form_vectors(steps, forms, gate=None):
    """`steps` [n, d] unit vectors, `forms` [m, k] indices with -1 for none -> [m, d].

    `gate` [2, d]: row 0 for the last step of a form (it gives the answer), row 1 for the others.
    """
    there = forms >= 0
    v = steps[forms.clamp(min=0)] * there[..., None]
    if gate is not None:
        last = there & (torch.arange(forms.shape[1], device=forms.device)[None] == there.sum(1, keepdim=True) - 1)
        v = v * torch.where(last[..., None], gate[0], gate[1])
    return F.normalize(v.sum(1), dim=-1)
