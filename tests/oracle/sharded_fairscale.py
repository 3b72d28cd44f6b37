"""One rank's training under FairScale: OSS with ShardedDataParallel, and its own FSDP."""

import contextlib

import torch
import torch.distributed as dist

from sharded_strategy import Strategy, find_libraries, optimizer_class


class FairScale(Strategy):
    """Parameters are whole; each is reduced to, updated by, and broadcast from one rank."""

    family = "fairscale"

    @staticmethod
    def prepare():
        find_libraries()
        import fairscale.nn.data_parallel  # noqa: F401
        import fairscale.optim  # noqa: F401

    @staticmethod
    def types(options):
        narrow = options.get("reduce_fp16") or options.get("oss", {}).get("broadcast_fp16")
        return ["fp16"] if narrow else []

    def begin(self):
        from fairscale.nn.data_parallel import ShardedDataParallel
        from fairscale.optim import OSS

        arguments = dict(self.setting["optimizer"])
        kind = optimizer_class(arguments.pop("kind"))
        oss = self.options.pop("oss", {})
        # Buckets hold views of gradients, and lose them where a gradient is set to None.
        self.loses_gradients = self.options.get("reduce_buffer_size") == 0
        parameters = [p for p in self.units.root.parameters() if p.requires_grad]
        self.sharding = OSS(parameters, optim=kind, **oss, **arguments)
        self.model = ShardedDataParallel(self.units.root, self.sharding, **self.options)

    def optimizer(self):
        return self.sharding

    def step(self, optimizer):
        optimizer.step()
        self.model.zero_grad(set_to_none=self.loses_gradients)

    def clip(self, limit):
        return self.sharding.clip_grad_norm(limit)

    def state_elements(self, optimizer):
        return super().state_elements(optimizer.optim)

    def shards(self):
        names = {id(p): name for name, p in self.named()}
        partition = [[names[id(p)] for group in groups for p in group["params"]]
                     for groups in self.sharding.partition_parameters()]
        own = partition[dist.get_rank()]
        return {
            "partition": partition,
            "pieces": {name: [0, size if name in own else 0]
                       for name, size, trainable in self.original if trainable},
        }

    def gradients(self):
        """Only the owner's are those of all ranks; others keep what does not matter."""
        own = self.shards()["partition"][dist.get_rank()]
        return {name: p.grad if name in own else [] for name, p in self.named() if p.requires_grad}

    def full_parameters(self):
        return dict(self.named())


class _NoStream:
    """What FairScale asks of a CUDA stream, where there is none."""

    def wait_stream(self, other):
        pass

    def synchronize(self):
        pass


class FairScaleFsdp(Strategy):
    """Its code asks for CUDA streams where there is no CUDA: these do nothing here."""

    family = "fairscale_fsdp"

    @staticmethod
    def prepare():
        find_libraries()
        import fairscale.nn.data_parallel  # noqa: F401

    @staticmethod
    def broadcasts_state(options):
        return False

    def begin(self):
        from fairscale.nn.data_parallel import FullyShardedDataParallel

        self._replace_cuda(FullyShardedDataParallel)
        options = {**self.options, "compute_device": torch.device("cpu")}
        self.wrapped = []
        inside = {id(block): unit for unit, block in self.units.blocks}

        def wrap_children(block):
            for name, child in list(block.named_children()):
                wrap_children(child)
                if id(child) in inside:
                    wrapped = FullyShardedDataParallel(child, **options)
                    self.wrapped.append((inside[id(child)], wrapped))
                    setattr(block, name, wrapped)

        wrap_children(self.units.root)
        self.model = FullyShardedDataParallel(self.units.root, **options)
        self.wrapped.append(("root", self.model))

    @staticmethod
    def _replace_cuda(wrapper):
        stream = _NoStream()
        torch.cuda.current_stream = lambda *_: stream
        torch.cuda.stream = lambda *_: contextlib.nullcontext()
        torch.cuda.synchronize = lambda *_: None
        torch.Tensor.record_stream = lambda *_: None
        torch.Tensor.cuda = lambda tensor, *_, **__: tensor
        set_up = wrapper._setup_streams
        names = ("fp32_to_fp16", "all_gather", "post_backward")

        def set_up_without_cuda(root):
            set_up(root)
            for module in root.modules():
                if isinstance(module, wrapper):
                    module._streams = dict.fromkeys(names, stream)

        wrapper._setup_streams = set_up_without_cuda
        # Gloo wants the input of a reduce-scatter flat.
        reduce_scatter = dist._reduce_scatter_base
        dist._reduce_scatter_base = lambda output, value, group: reduce_scatter(
            output.view(-1), value.reshape(-1), group=group)

    def optimizer(self):
        return self.make_optimizer(self.model.parameters())

    def clip(self, limit):
        return self.model.clip_grad_norm_(limit)

    def _flat(self):
        """Each unit with its flat parameter; a unit without parameters has none."""
        return [(unit, p) for unit, wrapped in self.wrapped for p in wrapped.params]

    def shards(self):
        units, pieces = [], {}
        size, rank = dist.get_world_size(), dist.get_rank()
        for unit, flat in self._flat():
            at, parameters = 0, []
            for (_, module, key), elements in zip(flat._param_infos, flat._param_numels):
                name = self.name_of(module, key)
                parameters.append({"name": name, "at": at, "elements": elements})
                pieces[name] = [min(max(boundary * flat.numel() - at, 0), elements)
                                for boundary in (rank, rank + 1)]
                at += elements
            units.append({"unit": unit, "group": list(range(size)), "elements": at,
                          "padded": flat.numel() * size, "local": flat.numel(),
                          "parameters": parameters})
        return {"units": units, "pieces": pieces}

    def gradients(self):
        result, shards = {}, self.shards()
        for unit, (_, flat) in zip(shards["units"], self._flat()):
            for parameter in unit["parameters"]:
                first, end = shards["pieces"][parameter["name"]]
                at = max(parameter["at"] - dist.get_rank() * unit["local"], 0)
                result[parameter["name"]] = flat.grad[at : at + end - first] if first < end else []
        return result

    def full_parameters(self):
        with self.model.summon_full_params():
            return {name: p.detach().clone() for name, p in self.named()}
