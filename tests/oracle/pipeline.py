"""One rank of torch.distributed.pipelining, each stage of which is wrapped for data parallelism.

Ranks lie in a mesh (pp, dp): rank r is in pipeline r mod dp. Stages are ranges of layers, wrapped by
fully_shard with modules in them, or by DistributedDataParallel.
"""

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard
from torch.distributed.pipelining import PipelineStage
from torch.distributed.pipelining.schedules import PipelineScheduleSingle, get_schedule_class
from torch.distributed.pipelining._utils import generate_stage_to_rank_mapping
from torch.nn.parallel import DistributedDataParallel

import network as networks
from sharded_strategy import Strategy, dtypes_of

IN_A_V = ("ZBVZeroBubble", "DualPipeV")
WITHOUT_LOSS = -1.0


class Pipelined(Strategy):
    family = "pipeline"
    iterates = True

    @staticmethod
    def broadcasts_state(options):
        return False

    @staticmethod
    def types(options):
        return Strategy.types(options.get("fully_shard") or {})

    def begin(self):
        options = self.options
        self.units.blocks.clear()  # those of stages follow
        ranks = options["pipeline_parallel_size"]
        self.mesh = init_device_mesh("cpu", (ranks, dist.get_world_size() // ranks),
                                     mesh_dim_names=("pp", "dp"))
        place = self.mesh.get_local_rank("pp")
        stages = options["stages"]
        style = "v" if options["schedule"] in IN_A_V else "loop"
        ranks_of = generate_stage_to_rank_mapping(ranks, len(stages), style)
        self.stages = {index: self._stage(index, *stages[index])
                       for index in range(len(stages)) if ranks_of[index] == place}
        kind = get_schedule_class(options["schedule"])
        made = list(self.stages.values())
        self.schedule = kind(
            made[0] if issubclass(kind, PipelineScheduleSingle) else made,
            options["n_microbatches"], loss_fn=self._loss,
            scale_grads=options.get("scale_grads", True))
        self.is_first = 0 in self.stages
        self.is_last = len(stages) - 1 in self.stages
        self.model = torch.nn.ModuleList(stage.submod for stage in made)

    def _stage(self, index, first, last):
        units = self.units
        before = len(units.blocks)
        module = units.part(first, last)
        module = self._wrapped(module, [block for _, block in units.blocks[before:]])
        return PipelineStage(module, index, len(self.options["stages"]), torch.device("cpu"),
                             group=self.mesh.get_group("pp"))

    def _wrapped(self, module, inside):
        options = self.options.get("fully_shard")
        if options is None:
            if self.mesh.size(1) == 1:
                return module
            return DistributedDataParallel(module, process_group=self.mesh.get_group("dp"))
        options = dict(options)
        types = options.pop("mixed_precision", None)
        if types:
            options["mp_policy"] = MixedPrecisionPolicy(**dtypes_of(types))
        for block in inside:
            fully_shard(block, mesh=self.mesh["dp"], **options)
        return fully_shard(module, mesh=self.mesh["dp"], **options)

    def _loss(self, output, target):
        output = output.to(networks.DTYPES[self.setting["dtype"]])
        return networks.loss_of(self.setting["network"], output, target)

    def iterate(self, inputs, target):
        losses = []
        self.schedule.step(*([inputs] if self.is_first else []),
                           **({"target": target, "losses": losses} if self.is_last else {}))
        return torch.stack(losses).mean().item() if self.is_last else WITHOUT_LOSS

    def optimizer(self):
        return self.make_optimizer(self.model.parameters())

    def clip(self, limit):
        """As torchtitan's clip_grad_norm_ does with stages on several ranks."""
        parameters = list(self.model.parameters())
        norm = torch.nn.utils.get_total_norm([p.grad for p in parameters if p.grad is not None])
        norm = norm.full_tensor() if hasattr(norm, "full_tensor") else norm
        norm = norm**2
        dist.all_reduce(norm, group=self.mesh.get_group("pp"))
        norm = norm**0.5
        torch.nn.utils.clip_grads_with_norm_(parameters, limit, norm)
        return norm

    def _own(self):
        own = {id(p) for p in self.model.parameters()}
        return [(name, p) for name, p in self.named() if id(p) in own]

    def shards(self):
        return {"stages": sorted(self.stages), "sharded": any(
            isinstance(stage.submod, FSDPModule) for stage in self.stages.values())}

    def gradients(self):
        return {}

    def full_parameters(self):
        return {name: p.full_tensor() if hasattr(p, "full_tensor") else p
                for name, p in self._own()}
