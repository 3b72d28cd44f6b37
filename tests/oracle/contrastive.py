"""Records what lightly's NTXentLoss computes and sends.

  ./dev oracle contrastive [--check]

Each rank has a batch of small embeddings [samples, 2, features], of which view 0 is out0 and view 1
is out1. Recorded are the loss, the gradient of the embeddings, and the calls of torch.distributed in
their order: [kind, elements]. Written to tests/data/oracle/contrastive/NAME.json.
"""

import importlib
import json
import multiprocessing
import os
import pathlib
import sys
import types

import torch
import torch.distributed as dist

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / "tests" / "data" / "oracle" / "contrastive"
LIGHTLY = ROOT / ".cache" / "oracle" / "lightly" / "lightly"
RANK_SECONDS_MAX = 120

SETTINGS = {
    "one-device": {"ranks": 1, "samples": 3, "features": 4},
    "one-sample": {"ranks": 1, "samples": 1, "features": 2},
    "cold": {"ranks": 1, "samples": 5, "features": 3, "temperature": 0.07},
    "without-length": {"ranks": 1, "samples": 2, "features": 2, "zero": True},
    "each-by-itself": {"ranks": 2, "samples": 3, "features": 4},
    "gathered": {"ranks": 2, "samples": 3, "features": 4, "gathers": True},
    "gathered-by-four": {"ranks": 4, "samples": 2, "features": 5, "gathers": True, "temperature": 0.2},
    "gathered-by-one": {"ranks": 1, "samples": 3, "features": 4, "gathers": True},
}


def loss_class():
    """The module alone: the package imports what nothing here needs."""
    for name in ("lightly", "lightly.loss", "lightly.models", "lightly.models.modules", "lightly.utils"):
        module = types.ModuleType(name)
        module.__path__ = [str(LIGHTLY.joinpath(*name.split(".")[1:]))]
        sys.modules[name] = module
    # Of a memory bank, which no setting has.
    sys.modules["lightly.models.utils"] = sys.modules["lightly.models"].utils = types.ModuleType("lightly.models.utils")
    return importlib.import_module("lightly.loss.ntx_ent_loss").NTXentLoss


def embeddings_of(setting, rank):
    drawn = torch.Generator().manual_seed(7 + rank)
    shape = (setting["samples"], 2, setting["features"])
    values = torch.randint(-8, 9, shape, generator=drawn).to(torch.float64) / 4
    if setting.get("zero"):
        values[0, 0] = 0
    return values


def record_rank(rank, setting, port, results):
    calls = []
    if setting["ranks"] > 1:
        os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
        dist.init_process_group("gloo", rank=rank, world_size=setting["ranks"])
        watch(calls)
    loss_of = loss_class()(temperature=setting.get("temperature", 0.5),
                           gather_distributed=setting.get("gathers", False))
    embeddings = embeddings_of(setting, rank).requires_grad_(True)
    loss = loss_of(embeddings[:, 0], embeddings[:, 1])
    loss.backward()
    results.put((rank, {"embeddings": embeddings.detach().flatten().tolist(), "loss": loss.item(),
                        "gradient": embeddings.grad.flatten().tolist(), "calls": calls}))
    if setting["ranks"] > 1:
        dist.destroy_process_group()


def watch(calls):
    all_gather, all_reduce = dist.all_gather, dist.all_reduce
    def gather(outputs, data, *others, **named):
        calls.append(["all_gather", data.numel()])
        return all_gather(outputs, data, *others, **named)
    def reduce(data, *others, **named):
        calls.append(["all_reduce", data.numel()])
        return all_reduce(data, *others, **named)
    dist.all_gather, dist.all_reduce = gather, reduce


def record(name, number):
    setting = SETTINGS[name]
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    ranks = [context.Process(target=record_rank, args=(rank, setting, 29610 + number, results))
             for rank in range(setting["ranks"])]
    for process in ranks:
        process.start()
    recorded = dict(results.get(timeout=RANK_SECONDS_MAX) for _ in ranks)
    for process in ranks:
        process.join(RANK_SECONDS_MAX)
    return {"setting": setting, "lightly": "1.6.0", "torch": torch.__version__,
            "ranks": [recorded[rank] for rank in range(setting["ranks"])]}


def main():
    checks = "--check" in sys.argv[1:]
    FOLDER.mkdir(parents=True, exist_ok=True)
    differ = []
    for number, name in enumerate(SETTINGS):
        text = json.dumps(record(name, number), indent=1) + "\n"
        path = FOLDER / f"{name}.json"
        if checks and path.read_text() != text:
            differ.append(name)
        elif not checks:
            path.write_text(text)
        print(name, "differs" if name in differ else "recorded" if not checks else "holds")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
