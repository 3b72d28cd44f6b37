"""One rank's training where parameters, gradients or optimizer state are shards.

The strategy's own code runs: FullyShardedDataParallel, fully_shard, ZeroRedundancyOptimizer under
DistributedDataParallel, an engine of DeepSpeed, or FairScale's wrappers.
"""

import contextlib

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import (
    BackwardPrefetch,
    FullyShardedDataParallel,
    MixedPrecision,
    MixedPrecisionPolicy,
    ShardingStrategy,
    fully_shard,
)
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel

import issued
import network as networks
import pipeline
import sharded_checkpoint
import tensor_parallel
from sharded_deepspeed import DeepSpeed
from sharded_fairscale import FairScale, FairScaleFsdp
from sharded_strategy import Strategy, dtypes_of, optimizer_class


class Fsdp1(Strategy):
    family = "fsdp1"

    @staticmethod
    def broadcasts_state(options):
        return bool(options.get("sync_module_states"))

    def begin(self):
        options = self.options
        nodes = options.pop("nodes", None)
        if nodes:
            options["process_group"] = self._hybrid_groups(nodes)
        mesh = options.pop("mesh", None)
        if mesh:
            options["device_mesh"] = init_device_mesh("cpu", tuple(mesh),
                                                      mesh_dim_names=("replicate", "shard"))
        options["sharding_strategy"] = ShardingStrategy[options["sharding_strategy"]]
        prefetch = options.get("backward_prefetch")
        options["backward_prefetch"] = BackwardPrefetch[prefetch] if prefetch else None
        if options.get("mixed_precision"):
            options["mixed_precision"] = MixedPrecision(**dtypes_of(options["mixed_precision"]))
        options["device_id"] = torch.device("cpu")
        # It refuses what NCCL could not broadcast; Gloo can.
        torch.distributed.fsdp._init_utils._check_module_states_for_sync_module_states = (
            lambda states: None)
        self.wrapped = []
        inside = {id(block): unit for unit, block in self.units.blocks}
        self._wrap_children(self.units.root, inside, options)
        self.model = FullyShardedDataParallel(self.units.root, **options)
        self.wrapped.append(("root", self.model))
        self.uses_original = options.get("use_orig_params", False)

    def _wrap_children(self, block, inside, options):
        for name, child in list(block.named_children()):
            self._wrap_children(child, inside, options)
            if id(child) in inside:
                wrapped = FullyShardedDataParallel(child, **options)
                self.wrapped.append((inside[id(child)], wrapped))
                setattr(block, name, wrapped)

    def _hybrid_groups(self, nodes):
        size = dist.get_world_size() // nodes
        rank = dist.get_rank()
        rows = [dist.new_group(list(range(n * size, (n + 1) * size))) for n in range(nodes)]
        columns = [dist.new_group(list(range(k, nodes * size, size))) for k in range(size)]
        return rows[rank // size], columns[rank % size]

    def optimizer(self):
        return self.make_optimizer(self.model.parameters())

    def clip(self, limit):
        return self.model.clip_grad_norm_(limit)

    def _handles(self):
        return [(unit, w._handle) for unit, w in self.wrapped if w._handle is not None]

    def _names_in(self, handle):
        return [self.name_of(i.module, i.param_name) for i in handle.flat_param._param_infos]

    def shards(self):
        units, pieces = [], {}
        for unit, handle in self._handles():
            flat = handle.flat_param
            ways = handle.world_size if handle.uses_sharded_strategy else 1
            parameters, at = [], 0
            names = iter(self._names_in(handle))
            for size, is_padding in zip(flat._numels_with_padding, flat._is_padding_mask):
                if not is_padding:
                    parameters.append({"name": next(names), "at": at, "elements": size})
                at += size
            units.append({
                "unit": unit,
                "group": dist.get_process_group_ranks(handle.process_group),
                "elements": flat._unpadded_unsharded_size.numel(),
                "padded": flat.numel() * ways,
                "local": flat.numel(),
                "local_padding": flat._shard_numel_padded,
                "parameters": parameters,
            })
            for name, info in zip(self._names_in(handle), flat._shard_param_infos):
                pieces[name] = ([info.intra_param_start_idx, info.intra_param_end_idx + 1]
                                if info.in_shard else [0, 0])
        return {"units": units, "pieces": pieces}

    def gradients(self):
        result = {}
        for _, handle in self._handles():
            flat = handle.flat_param
            for info, piece in zip(flat._param_infos, flat._shard_param_infos):
                name = self.name_of(info.module, info.param_name)
                if not piece.in_shard:
                    result[name] = []
                    continue
                if self.uses_original:
                    result[name] = getattr(info.module, info.param_name).grad
                elif flat.grad is None:
                    result[name] = None
                else:
                    result[name] = flat.grad.view(-1)[
                        piece.offset_in_shard : piece.offset_in_shard + piece.numel_in_shard]
        return result

    def full_parameters(self):
        with FullyShardedDataParallel.summon_full_params(self.model, writeback=False):
            return {name: parameter.detach().clone() for name, parameter in self.named()}


class Fsdp2(Strategy):
    family = "fsdp2"

    @staticmethod
    def broadcasts_state(options):
        return False

    def begin(self):
        options = self.options
        self.switches = options.pop("while_accumulating", {"requires_gradient_sync": False})
        if options.get("mixed_precision"):
            options["mp_policy"] = MixedPrecisionPolicy(**dtypes_of(options["mixed_precision"]))
        options.pop("mixed_precision", None)
        mesh = options.pop("mesh", None)
        if mesh:
            mesh = init_device_mesh("cpu", tuple(mesh), mesh_dim_names=("replicate", "shard"))
        else:
            mesh = init_device_mesh("cpu", (dist.get_world_size(),))
        self.padded = {}
        for _, block in self.units.blocks:
            fully_shard(block, mesh=mesh, **options)
        fully_shard(self.units.root, mesh=mesh, **options)
        self.model = self.units.root

    @contextlib.contextmanager
    def accumulating(self, synchronises):
        for switch, value in self.switches.items():
            value = True if synchronises else value
            if switch == "is_last_backward":
                self.model.set_is_last_backward(value)
            else:
                getattr(self.model, "set_" + switch)(value)
        yield

    def optimizer(self):
        return self.make_optimizer(self.model.parameters())

    def shards(self):
        units, pieces = [], {}
        for unit, block in [*self.units.blocks, ("root", self.units.root)]:
            group = fully_shard.state(block)._fsdp_param_group
            if group is None:
                continue
            parameters = []
            for parameter in group.fsdp_params:
                info = parameter._module_info
                name = self.name_of(info.module, info.param_name)
                piece = parameter.sharded_param
                rows = piece.shape[0]
                width = piece.numel() // max(rows, 1)
                chunk = -(-rows // group.mesh_info.shard_mesh_size)
                first = min(rows, group.mesh_info.shard_mesh_rank * chunk)
                pieces[name] = [first * width, first * width + piece.to_local().numel()]
                parameters.append({
                    "name": name,
                    "elements": piece.numel(),
                    "local": piece.to_local().numel(),
                    "local_padded": parameter._sharded_param_data.numel(),
                })
            units.append({
                "unit": unit,
                "group": dist.get_process_group_ranks(group.mesh_info.shard_process_group),
                "local_padded": sum(p["local_padded"] for p in parameters),
                "parameters": parameters,
            })
        return {"units": units, "pieces": pieces}

    def clip(self, limit):
        return torch.nn.utils.clip_grad_norm_(self.model.parameters(), limit).full_tensor()

    def gradients(self):
        return {name: None if p.grad is None else p.grad.to_local() for name, p in self.named()}

    def full_parameters(self):
        return {name: p.full_tensor() for name, p in self.named()}


class Zero1(Strategy):
    family = "zero1"

    def begin(self):
        self.model = DistributedDataParallel(self.units.root, **self.options.pop("ddp", {}))

    def optimizer(self):
        arguments = dict(self.setting["optimizer"])
        kind = optimizer_class(arguments.pop("kind"))
        self.redundancy_free = ZeroRedundancyOptimizer(
            [p for p in self.model.parameters() if p.requires_grad], optimizer_class=kind,
            **self.options, **arguments)
        return self.redundancy_free

    def state_elements(self, optimizer):
        return super().state_elements(optimizer.optim)

    def shards(self):
        names = {id(p): name for name, p in self.named()}
        partition = [
            [names[id(p)] for group in groups for p in group["params"]]
            for groups in self.redundancy_free._partition_parameters()
        ]
        own = partition[dist.get_rank()]
        return {
            "partition": partition,
            "pieces": {name: [0, size if name in own else 0]
                       for name, size, trainable in self.original if trainable},
        }

    def gradients(self):
        return {name: p.grad for name, p in self.named() if p.requires_grad}

    def full_parameters(self):
        return dict(self.named())


STRATEGIES = {kind.family: kind
              for kind in (Fsdp1, Fsdp2, Zero1, DeepSpeed, FairScale, FairScaleFsdp,
                           tensor_parallel.TensorParallel, pipeline.Pipelined)}


def family_of(setting):
    return next((family for family in STRATEGIES if family in setting), None)


def draws_as(setting, rank):
    """Where construction broadcasts the state, ranks begin with different numbers."""
    family = family_of(setting)
    return rank if STRATEGIES[family].broadcasts_state(setting[family]) else 0


def prepare(setting):
    """Before the ranks part, so that what is slow to import is imported once."""
    STRATEGIES[family_of(setting)].prepare()


class ShardedRun:
    def __init__(self, setting, rank, written):
        self.setting = setting
        self.rank = rank
        self.written = written
        self.record = {"ended": "finished", "losses": [], "gradients": []}
        module = networks.Network(setting["network"])
        networks.draw_parameters(module, setting["seed"], draws_as(setting, rank))
        module = module.to(networks.DTYPES[setting["dtype"]])
        self.recorder = issued.Recorder()
        self.recorder.marks_copies = "pipeline" in setting
        for index, layer in enumerate(module.children()):
            issued.mark_layer(self.recorder, layer, index)
        self.buffers = module.named_buffers
        self.strategy = STRATEGIES[family_of(setting)](setting, module, self.recorder)

    def train(self):
        with self.recorder:
            self._train()

    def _train(self):
        strategy = self.strategy
        strategy.begin()
        optimizer = strategy.optimizer()
        self.record["shards"] = strategy.shards()
        data = networks.DataSet(self.setting, self.setting["network"]["output"])
        step = 0
        for number, iteration in enumerate(self.setting["iterations"][self.rank]):
            self.recorder.mark(iteration=number)
            self._iterate(data, iteration)
            if not iteration.get("training", True):
                continue
            if not iteration.get("step", True):
                strategy.end_micro_batch()
                continue
            norm = None
            if "clip_norm" in self.setting:
                norm = strategy.clip(self.setting["clip_norm"])
            self.recorder.mark(step=step)
            of_step = strategy.step(optimizer)
            norm = of_step if norm is None else norm
            if norm is not None:
                self.record.setdefault("norms", []).append(float(norm))
            step += 1
        self.record["optimizer_state_elements"] = strategy.state_elements(optimizer)
        if "checkpoint" in self.setting:
            self.recorder.mark(checkpoint="begins")
            sharded_checkpoint.save(strategy, strategy.saved_optimizer(optimizer), self.setting,
                                    self.strategy.units.root)

    def _iterate(self, data, iteration):
        strategy = self.strategy
        inputs = data.inputs(iteration["samples"])
        target = data.targets(iteration["samples"])
        strategy.units.skipped.clear()
        strategy.units.skipped.update(iteration.get("skipped_layers", []))
        if not iteration.get("training", True):
            strategy.model.eval()
            with torch.no_grad():
                self.record["losses"].append(self._loss(inputs, target).item())
            strategy.model.train()
            self.record["gradients"].append(None)
            return
        if strategy.iterates:
            self.record["losses"].append(strategy.iterate(inputs, target))
            return
        synchronises = iteration.get("synchronise", True)
        with strategy.accumulating(synchronises):
            loss = self._loss(inputs, target)
            self.record["losses"].append(loss.item())
            strategy.backward(loss, iteration.get("loss_factor", 1))
        gradients = None
        if synchronises:
            gradients = {name: value if value is None or value == [] else self.written(value)
                         for name, value in strategy.gradients().items()}
        self.record["gradients"].append(gradients)

    def _loss(self, inputs, target):
        output = self.strategy.forward(inputs)
        # The loss is taken in the data's type, also where the network computes in a narrower one.
        output = output.to(networks.DTYPES[self.setting["dtype"]])
        return networks.loss_of(self.setting["network"], output, target)

    def finish(self):
        self.record["operations"] = list(self.recorder.operations)
        if self.record["ended"] == "finished" and "checkpoint" in self.setting:
            self.record["checkpoint"] = sharded_checkpoint.written_by(self.rank)
        if self.record["ended"] == "finished":
            full = self.strategy.full_parameters()
            self.record["parameters"] = {
                name: self.written(full[name]) for name, _, _ in self.strategy.original
                if name in full}
            buffers = {n: self.written(b) for n, b in self.buffers()}
            if buffers:
                self.record["buffers"] = buffers
        return self.record


def narrowest(setting):
    """The narrowest type in which anything is computed or reduced."""
    family = family_of(setting)
    types = STRATEGIES[family].types(setting[family])
    return min((networks.DTYPES[t] for t in [setting["dtype"], *types]),
               key=lambda dtype: -torch.finfo(dtype).eps)


def rounds(setting):
    """Whether it must round, or cannot be run in fp64: then there is no need to look."""
    return (setting["optimizer"]["kind"] != "SGD" or "clip_norm" in setting
            or not STRATEGIES[family_of(setting)].computes_in_fp64
            or narrowest(setting) != networks.DTYPES[setting["dtype"]])


def roundoff(setting):
    return torch.finfo(narrowest(setting)).eps / 2
