"""One rank's training by an engine of DeepSpeed, on the CPU.

The options of a setting are the configuration that the engine receives, less the size of the
micro-batch. The engine divides the loss by its accumulation steps itself.
"""

import contextlib
import logging
import os
import sys

import torch
import torch.distributed as dist

import network as networks
from sharded_strategy import Strategy, find_libraries


class DeepSpeed(Strategy):
    family = "deepspeed"
    computes_in_fp64 = False  # the engine insists on fp32 parameters

    @staticmethod
    def prepare():
        find_libraries()
        os.environ["DS_ACCELERATOR"] = "cpu"
        import deepspeed

        deepspeed.utils.logger.setLevel(logging.ERROR)
        # It would compile an extension for shared memory first, for minutes. Without it, its
        # collectives are those of torch.
        sys.modules["deepspeed.comm.torch"].build_shm_op = lambda: None
        # Of several gathers it awaits the last one alone, which is enough on a stream of NCCL's:
        # Gloo may finish the others later.
        gather = deepspeed.comm.all_gather_into_tensor

        def gather_and_wait(*arguments, **named):
            work = gather(*arguments, **named)
            if work is not None:
                work.wait()
            return work

        if not hasattr(gather, "waits"):
            gather_and_wait.waits = True
            deepspeed.comm.all_gather_into_tensor = gather_and_wait

    @staticmethod
    def types(options):
        return ["bf16"] if options.get("bf16", {}).get("enabled") else []

    def begin(self):
        import deepspeed

        rank, size = dist.get_rank(), dist.get_world_size()
        os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(size))
        self.stage = self.options["zero_optimization"]["stage"]
        self.base_optimizer = self.make_optimizer(self.units.root.parameters())
        config = {
            "train_micro_batch_size_per_gpu": len(self.setting["iterations"][0][0]["samples"]),
            "zero_allow_untested_optimizer": True,
            "zero_force_ds_cpu_optimizer": False,
            **self.options,
        }
        self.model, *_ = deepspeed.initialize(
            model=self.units.root, optimizer=self.base_optimizer, config=config)

    def optimizer(self):
        return self.base_optimizer

    def forward(self, inputs):
        narrow = self.types(self.options)
        return self.model(inputs.to(networks.DTYPES[narrow[0]]) if narrow else inputs)

    def accumulating(self, synchronises):
        """The engine counts micro-batches itself."""
        return contextlib.nullcontext()

    def backward(self, loss, factor):
        """A mark stands where autograd has ended and the engine goes on."""
        assert factor * self.model.gradient_accumulation_steps() == 1
        original = torch.Tensor.backward

        def marked(*arguments, **named):
            original(*arguments, **named)
            self.recorder.mark(backward="ended")

        torch.Tensor.backward = marked
        try:
            self.model.backward(loss)
        finally:
            torch.Tensor.backward = original

    def step(self, optimizer):
        self.model.step()
        return self.model.get_global_grad_norm()

    def saved_optimizer(self, optimizer):
        return self.model.optimizer

    def end_micro_batch(self):
        self.model.step()

    def state_elements(self, optimizer):
        inner = self.model.optimizer
        return super().state_elements(getattr(inner, "optimizer", inner))

    # Layout

    def _flat_groups(self):
        """Of each group of stages 1 and 2: its parameters in the order of the flat tensor."""
        names = {id(p): name for name, p in self.named()}
        for group in self.model.optimizer.round_robin_bit16_groups:
            at = 0
            parameters = []
            for parameter in group:
                parameters.append({"name": names[id(parameter)], "at": at,
                                   "elements": parameter.numel()})
                at += parameter.numel()
            yield parameters

    def shards(self):
        if self.stage == 3:
            return self._partitioned_parameters()
        if self.stage == 0:
            return {}
        inner, rank = self.model.optimizer, dist.get_rank()
        groups, pieces = [], {}
        for index, parameters in enumerate(self._flat_groups()):
            size = int(inner.partition_size[index])
            groups.append({
                "elements": sum(p["elements"] for p in parameters),
                "padded": inner.bit16_groups_flat[index].numel(),
                "local": size,
                "local_padding": inner.groups_padding[index],
                "parameters": parameters,
            })
            for parameter in parameters:
                pieces[parameter["name"]] = [
                    min(max(boundary * size - parameter["at"], 0), parameter["elements"])
                    for boundary in (rank, rank + 1)]
        return {"groups": groups, "pieces": pieces}

    def _partitioned_parameters(self):
        rank = dist.get_rank()
        names = {id(p): name for name, p in self.named()}
        parameters, pieces = [], {}
        for name, parameter in self.named():
            local = parameter.ds_tensor.ds_numel
            parameters.append({"name": name, "elements": parameter.ds_numel, "local": local,
                               "persistent": parameter.ds_persist})
            pieces[name] = [min(boundary * local, parameter.ds_numel)
                            for boundary in (rank, rank + 1)]
        sub_groups = [[names[id(p)] for p in group] for group in self.model.optimizer.fp16_groups]
        return {"parameters": parameters, "sub_groups": sub_groups, "pieces": pieces}

    # Values

    def gradients(self):
        if self.stage == 3:
            return self._partitioned_gradients()
        inner = self.model.optimizer
        if self.stage == 0:
            if hasattr(inner, "fp32_groups_gradients"):
                return {name: gradient
                        for group, gradients in zip(inner.bf16_groups, inner.fp32_groups_gradients)
                        for name, gradient in self._with_names(group, gradients)}
            return {name: p.grad for name, p in self.named()}
        result = {}
        shards = self.shards()
        for index, group in enumerate(shards["groups"]):
            if inner.cpu_offload:
                flat = inner.single_partition_of_fp32_groups[index].grad
            else:
                flat = torch.cat([g.reshape(-1) for g in inner.averaged_gradients[index]])
            for parameter in group["parameters"]:
                first, end = shards["pieces"][parameter["name"]]
                at = max(parameter["at"] - dist.get_rank() * group["local"], 0)
                result[parameter["name"]] = flat[at : at + end - first] if first < end else []
        return result

    def _with_names(self, parameters, values):
        names = {id(p): name for name, p in self.named()}
        return [(names[id(p)], value) for p, value in zip(parameters, values)]

    def _partitioned_gradients(self):
        inner = self.model.optimizer
        pieces = self._partitioned_parameters()["pieces"]
        result = {}
        for index, group in enumerate(inner.fp16_groups):
            sizes = [p.ds_tensor.ds_numel for p in group]
            if inner.offload_optimizer:
                parts = inner.fp32_partitioned_groups_flat[index].grad.split(sizes)
            else:
                parts = inner.averaged_gradients[index]
            for name, part in self._with_names(group, parts):
                first, end = pieces[name]
                result[name] = part.reshape(-1)[: end - first] if first < end else []
        return result

    def full_parameters(self):
        import deepspeed

        if self.stage != 3:
            return dict(self.named())
        with deepspeed.zero.GatheredParameters([p for _, p in self.named()]):
            return {name: parameter.detach().clone() for name, parameter in self.named()}
