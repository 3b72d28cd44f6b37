"""What saving a checkpoint issues under a strategy that shards, and what each rank writes.

Lightning's own strategy does what Trainer.save_checkpoint asks of it. Its model and optimizer are those that
the family has wrapped, because its own setup insists on GPUs.
"""

import pathlib
import re

import torch
import torch.distributed as dist
from torch.distributed.checkpoint import FileSystemReader

# Relative to a folder that all ranks are in, so that its pickle has the same size every time.
PATH = "model.ckpt"


def lightning_strategy(family, asked):
    from lightning_fabric.plugins.environments import LightningEnvironment
    from pytorch_lightning import strategies

    classes = {"fsdp1": "FSDPStrategy", "fsdp2": "ModelParallelStrategy", "zero1": "DDPStrategy",
               "deepspeed": "DeepSpeedStrategy"}
    made = getattr(strategies, classes[family])(**asked)
    environment = LightningEnvironment()
    environment.set_global_rank(dist.get_rank())
    environment.set_world_size(dist.get_world_size())
    made.cluster_environment = environment
    return made


def copy_to_the_host():
    """On the CPU nothing moves, and FullyShardedDataParallel would free what it has just offloaded."""
    from torch.distributed.fsdp._flat_param import FlatParamHandle

    moved = FlatParamHandle.flat_param_to

    def flat_param_to(handle, *arguments):
        handle.flat_param.data = handle.flat_param.data.clone()
        moved(handle, *arguments)

    FlatParamHandle.flat_param_to = flat_param_to


def save(strategy, optimizer, setting, module):
    """CheckpointConnector.dump_checkpoint and Trainer.save_checkpoint, as far as ranks meet."""
    copy_to_the_host()
    lightning = lightning_strategy(strategy.family, setting["checkpoint"])
    lightning._lightning_module = module
    lightning.model = strategy.model
    checkpoint = {"state_dict": lightning.lightning_module_state_dict()}
    checkpoint["optimizer_states"] = [lightning.optimizer_state(optimizer)]
    lightning.save_checkpoint(checkpoint, PATH)
    lightning.barrier("Trainer.save_checkpoint")


# Which rank has written a file: as DeepSpeed and torch.distributed.checkpoint name them.
RANK_IN_NAME = (re.compile(r"zero_pp_rank_(\d+)_"), re.compile(r"__(\d+)_\d+\.distcp"))


def written_by(rank):
    """Elements of parameters and optimizer state in the files of a rank, and their bytes.

    Numbers alone (counters of steps, scales) are left out.
    """
    path = pathlib.Path(PATH)
    files = [path] if path.is_file() else [f for f in path.rglob("*") if f.is_file()]
    own = [f for f in files if owner_of(f) == rank]
    parts = elements_by_file(path) if (path / ".metadata").exists() else {}
    elements = sum(parts[f.name] if f.name in parts else elements_in(f) for f in own)
    return {"files": sorted(f.name for f in own), "elements": elements,
            "bytes": sum(f.stat().st_size for f in own)}


def owner_of(file):
    for pattern in RANK_IN_NAME:
        found = pattern.search(file.name)
        if found:
            return int(found.group(1))
    return 0


def elements_by_file(path):
    metadata = FileSystemReader(path).read_metadata()
    elements = {}
    for index, info in metadata.storage_data.items():
        tensor = metadata.state_dict_metadata[index.fqn]
        count = 0
        if getattr(tensor, "size", None):
            count = next(c.sizes.numel() for c in tensor.chunks if c.offsets == index.offset)
        elements[info.relative_path] = elements.get(info.relative_path, 0) + count
    return elements


def elements_in(file):
    if file.suffix not in (".pt", ".ckpt"):
        return 0
    tensors = tensors_in(torch.load(file, map_location="cpu", weights_only=False))
    return sum(tensor.numel() for tensor in tensors if tensor.dim() > 0)


def tensors_in(value):
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, dict):
        for child in value.values():
            yield from tensors_in(child)
    elif isinstance(value, (list, tuple)):
        for child in value:
            yield from tensors_in(child)
