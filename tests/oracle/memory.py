"""How much memory a training step of PyTorch holds: the peak of all storages, and its parts.

  ./dev oracle memory [--check] [NAME...]

The step is Lightning's with automatic optimization (forward, zero_grad, backward, optimizer), and
the third one is recorded, when gradients and states of the optimizer exist. No memory is used: the
tensors are FakeTensorMode's, and a TorchDispatchMode below it follows every storage from the
operation that makes it to its end. What autograd saves and frees is therefore PyTorch's own.

The tensors are of the CPU, because autograd runs no backward of CUDA tensors where there is no GPU.
Where a GPU takes another operation that saves something else, this file calls that operation by
name: attention is memory-efficient in fp32 and flash attention in 16 bits, dropout is
native_dropout (with a mask of bytes), optimizers are the foreach implementation, and autocast
converts the input of layer norm and log-softmax to fp32. Beyond that a GPU holds workspaces of
cuBLAS and cuDNN, and rounds every tensor up to 512 bytes; they are not in these figures.
"""

import argparse
import json
import pathlib
import sys
import weakref

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from memory_settings import SETTINGS, attend, network_of

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "data" / "oracle" / "memory"
RECORDED_STEP = 3


class Storages(TorchDispatchMode):
    """Counts the bytes of every storage that an operation made and that is still referred to."""

    def __init__(self):
        super().__init__()
        self.known = {}
        self.held = self.most = 0
        self.at_most = {}
        self.parts = lambda: {}

    def watch(self, tensor):
        storage = tensor.untyped_storage()
        key = id(storage)
        if key in self.known:
            return
        size = storage.nbytes()
        self.held += size
        self.known[key] = weakref.finalize(storage, self.forget, key, size)

    def forget(self, key, size):
        del self.known[key]
        self.held -= size

    def __torch_dispatch__(self, operation, types, arguments=(), named=None):
        made = operation(*arguments, **(named or {}))
        for each in tree_leaves(made):
            if isinstance(each, torch.Tensor):
                self.watch(each)
        if self.held > self.most:
            self.most = self.held
            self.at_most = {"operation": str(operation), **self.parts()}
        return made


def bytes_of(tensors):
    return sum({id(t.untyped_storage()): t.untyped_storage().nbytes() for t in tensors}.values())


def optimizer_of(scenario, parameters):
    (kind, arguments), = scenario["optimizer"].items()
    return getattr(torch.optim, kind)(parameters, foreach=True, **arguments)


def train(setting, storages):
    scenario = setting["scenario"]
    precision = scenario["trainer"]["precision"]
    batch_size = scenario["data"]["train"]["batch_size"]
    window = scenario["trainer"].get("accumulate_grad_batches", 1)
    network, make_batch = network_of(scenario["model"], precision)
    network.train()
    optimizer = optimizer_of(scenario, network.parameters())

    def parts():
        states = [t for state in optimizer.state.values() for t in state.values()]
        gradients = [p.grad for p in network.parameters() if p.grad is not None]
        made = {
            "parameter": bytes_of([*network.parameters(), *network.buffers()]),
            "gradient": bytes_of(gradients),
            "optimizer_state": bytes_of([t for t in states if t.dim() > 0]),
        }
        return made | {"rest": storages.held - sum(made.values())}

    def loss_of_batch():
        batch, targets = make_batch(batch_size)
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=precision == "bf16-mixed"):
            output = network(batch)
            scores = output.reshape(-1, output.shape[-1])
            # As log_softmax of CUDA's autocast, which converts its input and drops it again.
            if precision == "bf16-mixed":
                return torch.nn.functional.cross_entropy(scores.float(), targets)
            return torch.nn.functional.cross_entropy(scores, targets)

    for step in range(1, RECORDED_STEP + 1):
        if step == RECORDED_STEP:
            storages.parts = parts
            storages.most = 0
        for turn in range(window):
            loss = loss_of_batch() / window
            if turn == 0:
                optimizer.zero_grad()
            loss.backward()
            del loss
        optimizer.step()


def recording(setting):
    torch.nn.functional.scaled_dot_product_attention = attend
    storages = Storages()
    with FakeTensorMode(), storages:
        train(setting, storages)
    return {
        "name": setting["name"],
        "torch": torch.__version__,
        "how": "FakeTensorMode on the CPU, storages followed by a TorchDispatchMode",
        "stands_for": "a GPU: its attention, dropout, foreach optimizer and autocast; "
        "without workspaces of cuBLAS and cuDNN and without rounding to 512 bytes",
        "network": setting["network"],
        "scenario": setting["scenario"],
        "peak": storages.most,
        "at_peak": storages.at_most,
    }


def main():
    parser = argparse.ArgumentParser(prog="./dev oracle memory")
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    parser.add_argument("names", nargs="*", help="settings; none: all")
    arguments = parser.parse_args()
    unknown = set(arguments.names) - {s["name"] for s in SETTINGS}
    if unknown:
        parser.error(f"no setting {', '.join(sorted(unknown))}")
    differing = 0
    FOLDER.mkdir(parents=True, exist_ok=True)
    for setting in SETTINGS:
        if arguments.names and setting["name"] not in arguments.names:
            continue
        made = recording(setting)
        path = FOLDER / f"{setting['name']}.json"
        if arguments.check:
            held = path.exists() and json.loads(path.read_text()) == json.loads(json.dumps(made))
            differing += not held
            print(f"{setting['name']}: {'holds' if held else 'DIFFERS'}", flush=True)
        else:
            path.write_text(json.dumps(made, indent=1) + "\n")
            print(f"{setting['name']}: {made['peak'] / 2**20:.1f} MiB {made['at_peak']}", flush=True)
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
