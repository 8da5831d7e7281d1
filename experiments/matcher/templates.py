"""What all-MiniLM-L6-v2 and the static table do as they are, for each template and marker.

    python templates.py DATA STATIC.table
"""

import sys

import torch

from measure import Texts, measure, show
from model import Encoder, Static
from train import Data


def main():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    data = Data(sys.argv[1], device)
    models = {"minilm": Encoder(data.base, range(6)), "static": Static(data.static(sys.argv[2]))}
    for kind, model in models.items():
        model = model.to(device).eval()
        texts = Texts(data.tokenizer, data.keep, model.specials)
        for template in ["issue", "plain", "whose", "both", "answer", "mixed", "bare"]:
            for marker in ["it", "none", "x", "mask", "unused"] if template == "issue" else ["it", "none"]:
                print(show(f"{kind} {template} {marker}", measure(model, texts, data.evalset, template, marker, device)), flush=True)
        for template in ("both", "plain"):
            whole = measure(model, texts, data.evalset, template, "it", device, whole=True)
            print(show(f"{kind} {template} it, whole paths", whole), flush=True)


main()
