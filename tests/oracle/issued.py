"""What a rank issues, in the order in which its host issues it: collectives, and marks between them.

A dispatch mode sees every operator of the issuing thread, also those of C++ code, and on a CPU the
backward pass runs in the calling thread. A mark of a layer stands where its forward computation or
its backward computation begins.
"""

import math

import torch
import torch.distributed as dist
from torch.distributed.tensor import DTensor
from torch.utils._python_dispatch import TorchDispatchMode

TYPE_NAMES = {
    torch.float64: "fp64",
    torch.float32: "fp32",
    torch.bfloat16: "bf16",
    torch.float16: "fp16",
    torch.int64: "int64",
    torch.int32: "int32",
    torch.uint8: "uint8",
    torch.bool: "uint8",
}
# Operator: the name of the collective, and whether it takes a list of tensors for a single one.
KINDS = {
    "allreduce_": ("all_reduce", False),
    "allreduce_coalesced_": ("all_reduce", False),
    "reduce_": ("reduce", False),
    "broadcast_": ("broadcast", False),
    "allgather_": ("all_gather", True),
    "_allgather_base_": ("all_gather", False),
    "allgather_into_tensor_coalesced_": ("all_gather", False),
    "reduce_scatter_": ("reduce_scatter", True),
    "_reduce_scatter_base_": ("reduce_scatter", False),
    "reduce_scatter_tensor_coalesced_": ("reduce_scatter", False),
    "gather_": ("gather", True),
    "scatter_": ("scatter", True),
    "alltoall_": ("all_to_all", True),
    "alltoall_base_": ("all_to_all", False),
    "barrier": ("barrier", False),
    "monitored_barrier_": ("barrier", False),
    "send": ("send", False),
    "recv_": ("recv", False),
    "all_reduce": ("all_reduce", False),
    "all_reduce_": ("all_reduce", False),
    "all_gather_into_tensor": ("all_gather", False),
    "reduce_scatter_tensor": ("reduce_scatter", False),
    "broadcast": ("broadcast", False),
}
# Operators of the functional collectives' library that communicate nothing.
SILENT = ("wait_tensor", "_wrap_tensor_autograd")
REDUCING = ("all_reduce", "reduce_scatter", "reduce")
# The reduction that an operator receives is boxed and cannot be read; that of these calls can.
CALLS_WITH_REDUCTION = ("all_reduce", "reduce", "reduce_scatter", "reduce_scatter_tensor")


def tensors_in(value):
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for child in value:
            yield from tensors_in(child)


def reduction_name(operation):
    """SUM, or AVG, from an operator or from the one inside a ReduceOp."""
    return str(getattr(operation, "op", operation)).rsplit(".", 1)[-1]


class Recorder(TorchDispatchMode):
    """The operations of this rank while it is entered."""

    def __init__(self):
        super().__init__()
        self.operations = []
        self._reduction = None
        self._originals = {}
        self.marks_copies = False  # a pipeline detaches what a stage gives, and views cannot be

    def mark(self, **mark):
        self.operations.append(mark)

    def __enter__(self):
        for name in CALLS_WITH_REDUCTION:
            self._originals[name] = getattr(dist, name)
            setattr(dist, name, self._remembering(self._originals[name]))
        return super().__enter__()

    def __exit__(self, *arguments):
        for name, function in self._originals.items():
            setattr(dist, name, function)
        return super().__exit__(*arguments)

    def _remembering(self, function):
        position = 2 if function.__name__ in ("reduce", "reduce_scatter",
                                              "reduce_scatter_tensor") else 1

        def call(*positional, **named):
            operation = named.get("op")
            if operation is None and len(positional) > position:
                operation = positional[position]
            self._reduction = reduction_name(operation or dist.ReduceOp.SUM)
            try:
                return function(*positional, **named)
            finally:
                self._reduction = None

        return call

    def __torch_dispatch__(self, operator, types, arguments=(), named=None):
        if any(issubclass(kind, DTensor) for kind in types):
            return NotImplemented  # its own dispatch comes back here with plain tensors
        schema = operator._schema
        library, name = schema.name.split("::")
        if library == "c10d" or (library == "_c10d_functional" and name not in SILENT):
            names = [argument.name for argument in schema.arguments]
            self._collective(name, {**dict(zip(names, arguments)), **(named or {})})
        return operator(*arguments, **(named or {}))

    def _collective(self, name, given):
        kind, is_list = KINDS[name]
        group = self._group_of(given)
        ranks = dist.get_process_group_ranks(group)
        if kind == "barrier":
            self.operations.append({"kind": kind, "group": ranks})
            return
        sides = self._sides(kind, given, len(ranks))
        entry = {"kind": kind, **sides}
        if is_list:
            entry["form"] = "list"
        if kind in REDUCING:
            reduction = given.get("reduce_op")
            # Without a call in Python it is DDP's reducer, which sums.
            entry["reduction"] = (reduction.upper() if isinstance(reduction, str)
                                  else self._reduction or "SUM")
        if "root_rank" in given or kind == "broadcast":
            root = given["root_rank"] if "root_rank" in given else given["src"]
            entry["root"] = ranks[root]
        for peer in ("dst", "src"):
            if kind in ("send", "recv") and peer in given:
                entry["peer"] = ranks[given[peer]]
        self.operations.append({**entry, "group": ranks})

    @staticmethod
    def _group_of(given):
        if "process_group" in given:
            return dist.ProcessGroup.unbox(given["process_group"])
        return dist.distributed_c10d._resolve_process_group(given["group_name"])

    @staticmethod
    def _sides(kind, given, size):
        """Data type, and the elements that go in and come out on this rank."""
        ingoing = list(tensors_in([v for k, v in given.items() if k in (
            "tensors", "input", "inputs", "input_tensor", "input_tensors")]))
        outgoing = list(tensors_in([v for k, v in given.items() if k in (
            "output", "outputs", "output_tensor", "output_tensors")]))
        elements = sum(t.numel() for t in ingoing)
        if outgoing:
            output = sum(t.numel() for t in outgoing)
        elif kind == "all_gather":
            output = elements * size
        elif kind == "reduce_scatter":
            output = elements // size
        else:
            output = elements
        kept = (ingoing or outgoing)[0]
        return {"dtype": TYPE_NAMES[kept.dtype], "elements": elements, "output": output}


class _Mark(torch.autograd.Function):
    """Its backward runs right before the first computation of the layer's own."""

    @staticmethod
    def forward(context, value, recorder, index):
        context.recorder, context.index = recorder, index
        return value.clone() if recorder.marks_copies else value.view_as(value)

    @staticmethod
    def backward(context, gradient):
        context.recorder.mark(**{"layer": context.index, "pass": "backward"})
        return gradient, None, None


def mark_layer(recorder, layer, index):
    """Marks stand inside the layer's own call, so that hooks of whoever wraps it come before."""
    original = layer.forward

    def forward(*arguments, **named):
        recorder.mark(**{"layer": index, "pass": "forward"})
        return _Mark.apply(original(*arguments, **named), recorder, index)

    layer.forward = forward
