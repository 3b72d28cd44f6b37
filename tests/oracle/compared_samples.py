"""Records what losses that compare samples are by torch's own functions.

  ./dev oracle compared-samples [--check]

InfoNCE (info-nce-pytorch without explicit negatives), open_clip's ClipLoss (with local_loss and gather_with_grad
where samples are gathered) and SigLipLoss with a fixed scale, and SupConLoss of SupContrast (contrast_mode all), each
written down by torch.nn.functional from its definition. Embeddings are [samples, 2, features] of each rank. What ranks
gather is computed in one process: each rank's loss of its own rows and the rows of all, and the gradient of the sum of
these losses, which is what the gather's backward gives each rank. Written to tests/data/oracle/compared_samples/NAME.json.
"""

import json
import pathlib
import sys

import torch
import torch.nn.functional as F

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / "tests" / "data" / "oracle" / "compared_samples"

SETTINGS = {
    "info-nce": {"loss": "InfoNCE", "ranks": 1, "samples": 4, "features": 3, "temperature": 0.1},
    "info-nce-of-one": {"loss": "InfoNCE", "ranks": 1, "samples": 1, "features": 2, "temperature": 0.5},
    "clip": {"loss": "ClipLoss", "ranks": 1, "samples": 4, "features": 3, "temperature": 0.07},
    "clip-of-each-rank": {"loss": "ClipLoss", "ranks": 2, "samples": 3, "features": 4, "temperature": 0.2},
    "clip-gathered": {"loss": "ClipLoss", "ranks": 2, "samples": 3, "features": 4, "temperature": 0.2, "gathers": True},
    "sig-lip": {"loss": "SigLipLoss", "ranks": 1, "samples": 5, "features": 3, "temperature": 0.1, "bias": -10.0},
    "sig-lip-without-bias": {"loss": "SigLipLoss", "ranks": 1, "samples": 3, "features": 2, "temperature": 1.0, "bias": 0.0},
    "sup-con": {"loss": "SupConLoss", "ranks": 1, "samples": 6, "features": 4, "temperature": 0.07, "base": 0.07, "labels": [0, 1, 0, 2, 1, 0]},
    "sup-con-alone": {"loss": "SupConLoss", "ranks": 1, "samples": 3, "features": 4, "temperature": 0.5, "base": 0.07, "labels": [0, 1, 2]},
    "sup-con-of-one-label": {"loss": "SupConLoss", "ranks": 1, "samples": 3, "features": 2, "temperature": 0.2, "base": 0.1, "labels": [4, 4, 4]},
}


def embeddings_of(setting, rank):
    drawn = torch.Generator().manual_seed(11 + rank)
    shape = (setting["samples"], 2, setting["features"])
    return torch.randint(-8, 9, shape, generator=drawn).to(torch.float64) / 4 + 0.125


def info_nce(setting, first, second, all_first, all_second, begin, labels):
    answers = torch.arange(len(first)) + begin
    return F.cross_entropy(first @ all_second.T / setting["temperature"], answers)


def clip(setting, first, second, all_first, all_second, begin, labels):
    answers = torch.arange(len(first)) + begin
    image = F.cross_entropy(first @ all_second.T / setting["temperature"], answers)
    text = F.cross_entropy(second @ all_first.T / setting["temperature"], answers)
    return (image + text) / 2


def sig_lip(setting, first, second, all_first, all_second, begin, labels):
    logits = first @ second.T / setting["temperature"] + setting["bias"]
    signs = 2 * torch.eye(len(first), dtype=logits.dtype) - 1
    return -F.logsigmoid(signs * logits).sum() / len(first)


def sup_con(setting, first, second, all_first, all_second, begin, labels):
    views = torch.cat([first, second])
    of_view = torch.tensor(labels + labels)
    others = ~torch.eye(len(views), dtype=torch.bool)
    right = (of_view[:, None] == of_view[None, :]) & others
    scores = views @ views.T / setting["temperature"]
    log_sum = torch.logsumexp(scores.masked_fill(~others, -torch.inf), 1, keepdim=True)
    means = ((scores - log_sum) * right).sum(1) / right.sum(1)
    return -(setting["temperature"] / setting["base"]) * means.mean()


LOSSES = {"InfoNCE": info_nce, "ClipLoss": clip, "SigLipLoss": sig_lip, "SupConLoss": sup_con}


def record(setting):
    ranks = [embeddings_of(setting, rank).requires_grad_(True) for rank in range(setting["ranks"])]
    views = [F.normalize(rank, dim=2) for rank in ranks]
    gathers = setting.get("gathers", False)
    losses = []
    for rank, own in enumerate(views):
        compared = torch.cat(views) if gathers else own
        begin = rank * setting["samples"] if gathers else 0
        losses.append(LOSSES[setting["loss"]](setting, own[:, 0], own[:, 1], compared[:, 0], compared[:, 1], begin,
                                              setting.get("labels")))
    sum(losses).backward()
    return {"setting": setting, "torch": torch.__version__.split("+")[0],
            "ranks": [{"embeddings": rank.detach().flatten().tolist(), "loss": loss.item(),
                       "gradient": rank.grad.flatten().tolist()} for rank, loss in zip(ranks, losses)]}


def main():
    checks = "--check" in sys.argv[1:]
    FOLDER.mkdir(parents=True, exist_ok=True)
    differ = []
    for name, setting in SETTINGS.items():
        text = json.dumps(record(setting), indent=1) + "\n"
        path = FOLDER / f"{name}.json"
        if checks and path.read_text() != text:
            differ.append(name)
        elif not checks:
            path.write_text(text)
        print(name, "differs" if name in differ else "recorded" if not checks else "holds")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
