"""Layers that ranks compute together: parallelize_module of torch.distributed.tensor.parallel.

With several replicas the parameters are sharded over them by fully_shard, as on the mesh of
Lightning's ModelParallelStrategy.
"""

import contextlib

import torch
import torch.distributed as dist
from torch.distributed import device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, Replicate, Shard
from torch.distributed.tensor import parallel

from sharded_strategy import Strategy

# The words of a plan, which is written as users write it.
WORDS = {"Replicate": Replicate, "Shard": Shard, "None": None,
         **{name: getattr(parallel, name) for name in (
             "ColwiseParallel", "RowwiseParallel", "SequenceParallel", "PrepareModuleInput")}}


def whole(tensor):
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


class TensorParallel(Strategy):
    family = "tensor"

    @staticmethod
    def broadcasts_state(options):
        return False

    def begin(self):
        tensor = self.options["tensor_parallel_size"]
        replicas = dist.get_world_size() // tensor
        with self._groups_marked():
            mesh = dist.init_device_mesh("cpu", (replicas, tensor),
                                         mesh_dim_names=("data_parallel", "tensor_parallel"))
        plan = {name: eval(style, {"__builtins__": {}}, WORDS)
                for name, style in self.options["parallelize_plan"].items()}
        parallel.parallelize_module(self.modules[0], mesh["tensor_parallel"], plan)
        if replicas > 1:
            for _, block in self.units.blocks:
                fully_shard(block, mesh=mesh["data_parallel"])
            fully_shard(self.units.root, mesh=mesh["data_parallel"])
        self.replicas = replicas
        self.model = self.units.root

    @contextlib.contextmanager
    def _groups_marked(self):
        """Groups are made through the store, where no operator is seen."""
        make = device_mesh.new_group

        def marked(ranks=None, *arguments, **named):
            self.recorder.mark(kind="new_group", group=list(ranks))
            return make(ranks, *arguments, **named)

        device_mesh.new_group = marked
        try:
            yield
        finally:
            device_mesh.new_group = make

    @contextlib.contextmanager
    def accumulating(self, synchronises):
        if self.replicas > 1:
            self.model.set_requires_gradient_sync(synchronises)
        # Scores that stay in parts are for loss_parallel(), around the loss and its backward.
        in_parts = any("Shard(-1), use_local_output=False" in style
                       for style in self.options["parallelize_plan"].values())
        with parallel.loss_parallel() if in_parts else contextlib.nullcontext():
            yield

    def optimizer(self):
        return self.make_optimizer(self.model.parameters())

    def shards(self):
        return {"placements": {
            name: [str(p.placements), list(p.to_local().shape)] if isinstance(p, DTensor) else None
            for name, p in self.named()}}

    def clip(self, limit):
        return whole(torch.nn.utils.clip_grad_norm_(self.model.parameters(), limit))

    def gradients(self):
        return {}  # parts, or terms, which is seen in the weights

    def full_parameters(self):
        return {name: whole(p) for name, p in self.named()}
