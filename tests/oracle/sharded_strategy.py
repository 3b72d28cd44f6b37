"""What all strategies that shard have in common when they are recorded.

A network becomes a tree of blocks, so that hooks of a wrapper fire on a unit of several layers. The
record names parameters as the network without any wrapper does.
"""

import contextlib
import pathlib
import sys

import torch
import torch.utils.checkpoint
from torch.distributed.tensor import DTensor

import network as networks


def find_libraries():
    """DeepSpeed and FairScale lie beside the environment, where nothing else looks for them."""
    folder = str(pathlib.Path(sys.prefix).parent / "sharding")
    if folder not in sys.path:
        sys.path.append(folder)


class Block(torch.nn.Sequential):
    """A range of layers as a module of its own, so that a wrapper's hooks fire on it."""

    def __init__(self, children, ranges, skipped):
        super().__init__()
        for name, child in children:
            self.add_module(name, child)
        self._ranges = ranges
        self._skipped = skipped

    def forward(self, value):
        for child, (first, last) in zip(self, self._ranges):
            if not self._skipped.issuperset(range(first, last + 1)):
                twice = self.training and getattr(child, "is_called_twice", False)
                value = run_twice(child, value) if twice else child(value)
        return value


def optimizer_class(name):
    """Of torch.optim, or Lamb of the package torch-optimizer."""
    if name != "Lamb":
        return getattr(torch.optim, name)
    find_libraries()
    from torch_optimizer import Lamb

    return Lamb


def run_twice(function, value):
    return torch.utils.checkpoint.checkpoint(function, value, use_reentrant=False)


def checkpoint(block, by):
    """Its forward keeps nothing, and runs again in the backward."""
    if by == "fairscale":
        from fairscale.nn import checkpoint_wrapper

        checkpoint_wrapper(block)
    elif by == "call":  # with the hooks of the module itself
        block.is_called_twice = True
    else:
        forward = block.forward
        block.forward = lambda value: run_twice(forward, value)


class Units:
    """The network cut into blocks: `blocks` has each unit's range with its module, inner first.

    `checkpointed` are ranges that are blocks, too, and whose forward runs again in the backward.
    """

    def __init__(self, network, units, checkpointed=(), by="torch"):
        self.layers = list(network.named_children())
        self.skipped = set()
        self.blocks = []
        self._wrapped = {tuple(unit) for unit in units}
        self._checkpointed = {tuple(segment) for segment in checkpointed}
        self._by = by
        self.root = self.part(0, len(self.layers) - 1)

    def part(self, first, last):
        """A range of layers with the units in it as a block."""
        ranges = sorted(self._wrapped | self._checkpointed, key=lambda u: (u[0], -u[1]))
        inside = [u for u in ranges if first <= u[0] and u[1] <= last]
        return self._block(first, last, inside)

    def _block(self, first, last, inside):
        children, ranges, index = [], [], first
        while index <= last:
            unit = next((u for u in inside if u[0] == index), None)
            if unit is None:
                children.append(self.layers[index])
                ranges.append((index, index))
                index += 1
                continue
            below = [u for u in inside if u != unit and u[0] >= unit[0] and u[1] <= unit[1]]
            block = self._block(*unit, below)
            if unit in self._checkpointed:
                checkpoint(block, self._by)
            if unit in self._wrapped:
                self.blocks.append((list(unit), block))
            children.append((f"{unit[0]}-{unit[1]}", block))
            ranges.append(unit)
            index = unit[1] + 1
        return Block(children, ranges, self.skipped)


def dtypes_of(names):
    return {key: networks.DTYPES[name] if name in networks.DTYPES else name
            for key, name in names.items() if name is not None}


class Strategy:
    """What the families share; `begin` makes the model and `optimizer` what trains it."""

    # Whether the same setting can be run once more in fp64, to see if it rounds.
    computes_in_fp64 = True
    # Whether forward and backward of a batch are one call, `iterate`.
    iterates = False

    @staticmethod
    def prepare():
        """Imports what this family needs and others do not."""

    @staticmethod
    def broadcasts_state(options):
        """Whether construction makes the state of all ranks equal to rank 0's."""
        return True

    @staticmethod
    def types(options):
        """The types of mixed precision."""
        return [t for t in (options.get("mixed_precision") or {}).values() if t in networks.DTYPES]

    def __init__(self, setting, module, recorder):
        self.setting = setting
        self.recorder = recorder
        self.options = dict(setting[self.family])
        # Wrappers put other modules in between and other parameters in: layers stay.
        self.names = {id(m): name for name, m in module.named_modules()}
        self.original = [(name, p.numel(), p.requires_grad)
                         for name, p in module.named_parameters()]
        self.modules = list(module.modules())
        checkpointed = setting.get("checkpointed", {})
        self.units = Units(module, self.options.pop("units", []),
                           checkpointed.get("segments", []), checkpointed.get("by"))

    def name_of(self, module, parameter):
        name = self.names[id(module)]
        return f"{name}.{parameter}" if name else parameter

    def named(self):
        return [
            (self.name_of(module, key), parameter)
            for module in self.modules
            for key, parameter in module.named_parameters(recurse=False)
        ]

    def make_optimizer(self, parameters):
        arguments = dict(self.setting["optimizer"])
        kind = optimizer_class(arguments.pop("kind"))
        return kind([p for p in parameters if p.requires_grad], **arguments)

    @contextlib.contextmanager
    def accumulating(self, synchronises):
        with contextlib.nullcontext() if synchronises else self.model.no_sync():
            yield

    def forward(self, inputs):
        return self.model(inputs)

    def backward(self, loss, factor):
        (loss * factor).backward()

    def step(self, optimizer):
        """Returns the norm of the gradients where the step itself computes it."""
        optimizer.step()
        optimizer.zero_grad()

    def saved_optimizer(self, optimizer):
        """What Lightning holds as its optimizer."""
        return optimizer

    def end_micro_batch(self):
        """After a backward pass that no optimizer step follows."""

    def clip(self, limit):
        return torch.nn.utils.clip_grad_norm_(self.model.parameters(), limit)

    def state_elements(self, optimizer):
        """Steps are counters of torch's, not state of the algorithm."""
        return sum(
            local(value).numel()
            for state in optimizer.state.values()
            for key, value in state.items()
            if isinstance(value, torch.Tensor) and key != "step"
        )


def local(tensor):
    return tensor.to_local() if isinstance(tensor, DTensor) else tensor
