"""The scenarios that are run with Lightning's Trainer, by name: each a file that `lockstep` reads.

`$one`, `$two` and `$three` stand for the trainer's arguments of so many ranks; what every scenario
begins with is added here. Numbers that decide something come from `values`, whole or halves, so
that no order of summation matters.
"""

from lightning_callback_settings import CALLBACKS
from lightning_log_settings import LOGS
from lightning_loop_settings import LOOPS
from lightning_optimization_settings import OPTIMIZATION

HEADER = """\
version: 1
versions: {lightning: "2.6", torch: "2.11", torchmetrics: "1.9"}
seed_everything: 7
"""
MODEL = "model: {input: [4], layers: [{Linear: [4, 2]}], loss: MSELoss}\n"
OPTIMIZER = "optimizer: {SGD: {lr: 0.125}}\n"


def arguments_of(devices):
    return f"accelerator: cpu, strategy: ddp, devices: {devices}, enable_checkpointing: false"


def scenario(text):
    text = text.lstrip("\n")
    text = text.replace("$one", "accelerator: cpu, devices: 1, enable_checkpointing: false")
    text = text.replace("$two", arguments_of(2)).replace("$three", arguments_of(3))
    model = "" if "\nmodel:" in "\n" + text else MODEL
    optimizer = "" if "\noptimizer:" in "\n" + text else OPTIMIZER
    return (HEADER + model + optimizer + text).splitlines()


def world_size_of(text):
    return 1 if "$one" in text else 3 if "$three" in text else 2


LIGHTNING_SETTINGS = [
    {"name": name, "world_size": world_size_of(text), "scenario": scenario(text)}
    for group in (LOOPS, LOGS, OPTIMIZATION, CALLBACKS)
    for name, text in group.items()
]
