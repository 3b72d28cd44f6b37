"""Records what torch's gradient scalers do over optimizer steps, some of which have infinite or
undefined gradients.

  ./dev oracle loss-scale [--check]

One device has torch.amp.GradScaler, two ranks over Gloo have the ShardedGradScaler of FSDP. A
parameter of four numbers gets, in every micro-batch, a gradient of whole numbers; in the steps that
a setting names one of them becomes infinite or no number. Calls are in the order of Lightning's
MixedPrecision: scale, backward, unscale_, clipping, step, update. Written to
tests/data/oracle/scaler/NAME.json, a row for each optimizer step: the scale of its backwards,
whether it was skipped, scale and growth tracker after it, and the parameter.
"""

import json
import math
import multiprocessing
import os
import pathlib
import sys

import torch
import torch.distributed as dist
from torch.distributed.fsdp.sharded_grad_scaler import ShardedGradScaler

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "tests" / "data" / "oracle" / "scaler"

DEFAULTS = {
    "steps": 24,
    "window": 1,  # micro-batches of a step
    "clip_norm": 0,
    "clip_value": 0,
    "init_scale": 65536.0,
    "growth_interval": 2000,
    "infinite": {},  # by step: which rank, in which micro-batch
    "undefined": {},
    "ranks": 1,
}


def at(*steps, rank=0, micro_batch=0):
    return {str(step): [rank, micro_batch] for step in steps}


SETTINGS = {
    "never": {},
    "first-step": {"infinite": at(0)},
    "first-three": {"infinite": at(0, 1, 2)},
    "now-and-then": {"infinite": at(3, 4, 11), "undefined": at(17)},
    "growing": {"growth_interval": 3, "infinite": at(7)},
    "growing-from-one": {"growth_interval": 1, "init_scale": 1.0, "infinite": at(5)},
    "growing-to-the-largest": {"growth_interval": 2, "init_scale": 2.0**124},
    "falling-below-one": {"init_scale": 2.0, "infinite": at(0, 1, 2, 3)},
    "falling-to-zero": {"init_scale": 2.0**-140, "infinite": at(*range(12)), "steps": 20},
    "accumulating": {"window": 3, "infinite": at(2, 9)},
    "accumulating-last": {"window": 3, "infinite": at(2, 9, micro_batch=2), "growth_interval": 4},
    "clipped-by-norm": {"clip_norm": 1.0, "infinite": at(4)},
    "clipped-by-value": {"clip_value": 0.5, "undefined": at(4, 5)},
    "sharded-never": {"ranks": 2},
    "sharded-on-one": {"ranks": 2, "infinite": at(1, 6, rank=1), "growth_interval": 5},
    "sharded-on-both": {"ranks": 2, "infinite": at(2), "undefined": at(2, rank=1)},
}


def gradient_of(setting, step, micro_batch, rank):
    values = [(step * 7 + micro_batch * 5 + rank * 3 + place) % 9 - 4.0 for place in range(4)]
    for key, number in (("infinite", math.inf), ("undefined", math.nan)):
        if setting[key].get(str(step)) == [rank, micro_batch]:
            values[1] = number
    return values


def run(setting, rank, scaler):
    parameter = torch.nn.Parameter(torch.tensor([1.0, -2.0, 3.0, 0.5]))
    optimizer = torch.optim.SGD([parameter], lr=0.125)
    rows = []
    for step in range(setting["steps"]):
        scale = scaler.get_scale()
        optimizer.zero_grad()
        for micro_batch in range(setting["window"]):
            given = torch.tensor(gradient_of(setting, step, micro_batch, rank))
            loss = (parameter * given).sum() / setting["window"]
            scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        if setting["clip_norm"]:
            torch.nn.utils.clip_grad_norm_([parameter], setting["clip_norm"])
        if setting["clip_value"]:
            torch.nn.utils.clip_grad_value_([parameter], setting["clip_value"])
        before = parameter.detach().clone()
        optimizer.stepped = False
        step_of = optimizer.step

        def noted(*arguments, **keywords):
            optimizer.stepped = True
            return step_of(*arguments, **keywords)

        optimizer.step = noted
        scaler.step(optimizer)
        optimizer.step = step_of
        scaler.update()
        assert optimizer.stepped or torch.equal(before, parameter)
        rows.append({
            "scale": scale,
            "skipped": not optimizer.stepped,
            "scale_after": scaler.get_scale(),
            "growth_tracker": scaler._get_growth_tracker(),
            "parameter": [float(number).hex() for number in parameter.detach()],
        })
    return rows


def rank_of_two(setting, rank, results):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=setting["port"])
    dist.init_process_group("gloo", rank=rank, world_size=setting["ranks"])
    scaler = ShardedGradScaler(
        device="cpu", init_scale=setting["init_scale"], growth_interval=setting["growth_interval"])
    results.put((rank, run(setting, rank, scaler)))
    dist.destroy_process_group()


def free_port():
    import socket

    with socket.socket() as end:
        end.bind(("127.0.0.1", 0))
        return str(end.getsockname()[1])


def record(name):
    setting = {**DEFAULTS, **SETTINGS[name]}
    if setting["ranks"] == 1:
        scaler = torch.amp.GradScaler(
            "cpu", init_scale=setting["init_scale"], growth_interval=setting["growth_interval"])
        return {"setting": setting, "ranks": [run(setting, 0, scaler)]}
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    with_port = {**setting, "port": free_port()}
    processes = [
        context.Process(target=rank_of_two, args=(with_port, rank, results))
        for rank in range(setting["ranks"])
    ]
    for process in processes:
        process.start()
    rows = dict(results.get(timeout=60) for _ in processes)
    for process in processes:
        process.join(timeout=60)
    return {"setting": setting, "ranks": [rows[rank] for rank in sorted(rows)]}


def main():
    check = "--check" in sys.argv[1:]
    FOLDER.mkdir(parents=True, exist_ok=True)
    different = []
    for name in SETTINGS:
        text = json.dumps({"torch": torch.__version__.split("+")[0], **record(name)}, indent=1)
        file = FOLDER / f"{name}.json"
        if check and (not file.exists() or file.read_text() != text + "\n"):
            different.append(name)
        elif not check:
            file.write_text(text + "\n")
    print(f"{len(SETTINGS)} settings, {len(different)} differ: {', '.join(different)}")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
