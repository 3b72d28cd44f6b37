"""What DeepSpeed reads from its drive and writes to it, under ZeRO-Infinity.

Run by hand in the environment of ./dev oracle; writes tests/data/oracle/drive/NAME.json. The handle
that does the reading and writing is replaced by one that keeps a list: DeepSpeed's own needs
libaio. Everything above it is DeepSpeed's: which tensors move, when, in what order, through which
buffers, and what it raises.
"""

import contextlib
import io
import json
import multiprocessing
import os
import pathlib
import sys
import tempfile
import types

os.environ.update(DS_ACCELERATOR="cpu", OMP_NUM_THREADS="1")

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402

from sharded_strategy import find_libraries  # noqa: E402

FOLDER = pathlib.Path(__file__).parent.parent / "data" / "oracle" / "drive"
WIDTH = 1024
BF16 = {"bf16": {"enabled": True}}


def setting(name, optimizer="SGD", steps=3, layers=3, optimizer_at=None, parameters_at=None,
            config=None, accumulate=1, **zero):
    zero = {"stage3_param_persistence_threshold": 0, "overlap_comm": False, **zero}
    if optimizer_at is not None:
        zero["offload_optimizer"] = {"device": "nvme", **optimizer_at}
    if parameters_at is not None:
        zero["offload_param"] = {"device": "nvme", **parameters_at}
    return {"name": name, "layers": layers, "width": WIDTH, "optimizer": optimizer, "steps": steps,
            "accumulate": accumulate, "world_size": 2, "zero": zero, "config": config or {}}


IN_THREE = {"sub_group_size": 500_000}
SMALL = {"buffer_size": 600_000}
PIPELINED = {"pipeline_read": True, "pipeline_write": True}

SETTINGS = [
    setting("sgd", optimizer_at={}),
    setting("momentum", "momentum", optimizer_at={}),
    setting("momentum-in-sub-groups", "momentum", optimizer_at={}, **IN_THREE),
    setting("momentum-in-bf16", "momentum", optimizer_at={}, config=BF16, **IN_THREE),
    setting("momentum-few-buffers", "momentum", optimizer_at={"buffer_count": 3}, **IN_THREE),
    setting("momentum-two-buffers", "momentum", optimizer_at={"buffer_count": 2}, **IN_THREE),
    setting("momentum-accumulating", "momentum", optimizer_at={}, steps=4, accumulate=2,
            **IN_THREE),
    setting("momentum-small-reductions", "momentum", optimizer_at={"buffer_count": 3},
            reduce_bucket_size=1_500_000),
    setting("momentum-read-ahead", "momentum", **IN_THREE,
            optimizer_at={"buffer_count": 7, "pipeline_read": True}),
    setting("momentum-written-behind", "momentum", **IN_THREE,
            optimizer_at={"buffer_count": 7, "pipeline_write": True}),
    setting("momentum-pipelined", "momentum", **IN_THREE,
            optimizer_at={"buffer_count": 9, **PIPELINED}),
    setting("momentum-pipelined-four-buffers", "momentum", **IN_THREE, optimizer_at=PIPELINED),
    setting("adam-four-buffers", "AdamW", optimizer_at={}, **IN_THREE),
    setting("adam-six-buffers", "AdamW", optimizer_at={"buffer_count": 6}, **IN_THREE),
    setting("parameters-in-host-memory", parameters_at=SMALL, config=BF16),
    setting("parameters", parameters_at={**SMALL, "max_in_cpu": 0}, config=BF16, **IN_THREE),
    setting("parameters-no-reuse", parameters_at={**SMALL, "max_in_cpu": 0}, config=BF16,
            **IN_THREE, stage3_max_reuse_distance=0, stage3_prefetch_bucket_size=1_000_000),
    setting("parameters-no-prefetch", parameters_at={**SMALL, "max_in_cpu": 0}, config=BF16,
            **IN_THREE, stage3_max_reuse_distance=0, stage3_prefetch_bucket_size=0),
    setting("parameters-partly", parameters_at={**SMALL, "max_in_cpu": 600_000}, config=BF16,
            **IN_THREE, stage3_max_reuse_distance=0, stage3_prefetch_bucket_size=0),
    setting("parameters-partly-prefetched", parameters_at={**SMALL, "max_in_cpu": 600_000},
            config=BF16, **IN_THREE, stage3_prefetch_bucket_size=1_000_000),
    setting("parameters-small-buffers", parameters_at={"buffer_size": 500_000, "max_in_cpu": 0},
            config=BF16),
    setting("parameters-one-buffer", config=BF16,
            parameters_at={**SMALL, "max_in_cpu": 0, "buffer_count": 1}),
    setting("both", "momentum", optimizer_at={}, parameters_at={**SMALL, "max_in_cpu": 0},
            config=BF16, **IN_THREE),
]

OPTIMIZERS = {
    "SGD": lambda parameters: torch.optim.SGD(parameters, lr=0.125),
    "momentum": lambda parameters: torch.optim.SGD(parameters, lr=0.125, momentum=0.5),
    "AdamW": lambda parameters: torch.optim.AdamW(parameters, lr=0.125),
}


class Handle:
    """What AsyncIOBuilder's handle does, at once and on files."""

    operations = []

    def __init__(self, **_):
        self.reads = []
        self.pending = 0

    def async_pread(self, buffer, path, _):
        self.operations.append(f"read {os.path.getsize(path)}")
        self.reads.append((buffer, path))
        self.pending += 1
        return 0

    def async_pwrite(self, buffer, path, _):
        values = buffer.contiguous().view(torch.uint8)
        self.operations.append(f"write {values.numel()}")
        pathlib.Path(path).write_bytes(values.numpy().tobytes())
        self.pending += 1
        return 0

    def wait(self):
        for buffer, path in self.reads:
            values = torch.frombuffer(bytearray(pathlib.Path(path).read_bytes()), dtype=torch.uint8)
            buffer.view(torch.uint8)[: len(values)].copy_(values)
        self.reads = []
        done, self.pending = self.pending, 0
        return done


def prepare():
    find_libraries()
    import deepspeed
    from deepspeed.runtime.swap_tensor import (
        partitioned_optimizer_swapper, partitioned_param_swapper, pipelined_optimizer_swapper)

    deepspeed.utils.logger.disabled = True
    sys.modules["deepspeed.comm.torch"].build_shm_op = lambda: None

    class Builder:
        def load(self, verbose=True):
            return types.SimpleNamespace(aio_handle=Handle)

    for module in (partitioned_optimizer_swapper, partitioned_param_swapper,
                   pipelined_optimizer_swapper):
        module.AsyncIOBuilder = Builder
    pinned = set()

    def pin(tensor, align_bytes=1):
        pinned.add(tensor.untyped_storage().data_ptr())
        return tensor

    accelerator = type(deepspeed.accelerator.get_accelerator())
    accelerator.pin_memory = lambda _, tensor, align_bytes=1: pin(tensor)
    accelerator.is_pinned = lambda _, tensor: (
        tensor.numel() > 0 and tensor.untyped_storage().data_ptr() in pinned)
    return deepspeed


def train(setting, folder):
    deepspeed = prepare()
    torch.manual_seed(0)
    width = setting["width"]
    model = torch.nn.Sequential(
        *[torch.nn.Linear(width, width, bias=False) for _ in range(setting["layers"])])
    zero = {name: {**value, "nvme_path": folder} if isinstance(value, dict) else value
            for name, value in setting["zero"].items()}
    config = {
        "train_micro_batch_size_per_gpu": 1,
        "gradient_accumulation_steps": setting["accumulate"],
        "zero_allow_untested_optimizer": True,
        "zero_force_ds_cpu_optimizer": False,
        "zero_optimization": {"stage": 3, **zero},
        **setting["config"],
    }
    with contextlib.redirect_stdout(io.StringIO()):
        engine, *_ = deepspeed.initialize(
            model=model, optimizer=OPTIMIZERS[setting["optimizer"]](model.parameters()),
            config=config)
        Handle.operations.clear()
        dtype = torch.bfloat16 if "bf16" in setting["config"] else torch.float32
        for _ in range(setting["steps"]):
            Handle.operations.append("forward")
            result = engine(torch.ones(1, width, dtype=dtype))
            Handle.operations.append("backward")
            engine.backward(result.sum())
            Handle.operations.append("step")
            engine.step()


def run_rank(setting, rank, folder, results):
    os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(setting["world_size"]))
    store = dist.FileStore(f"{folder}/store", setting["world_size"])
    dist.init_process_group("gloo", store=store, rank=rank, world_size=setting["world_size"])
    raised = ""
    try:
        train(setting, folder)
    except Exception as error:  # noqa: BLE001
        raised = f"{type(error).__name__}: {error}".rstrip(": ")
    results.put((rank, Handle.operations, raised))
    results.close()
    results.join_thread()
    os._exit(0)


def record(setting):
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    with tempfile.TemporaryDirectory() as folder:
        processes = [context.Process(target=run_rank, args=(setting, rank, folder, results))
                     for rank in range(setting["world_size"])]
        for process in processes:
            process.start()
        ranks = sorted(results.get(timeout=120) for _ in processes)
        for process in processes:
            process.join(20)
    assert ranks[0][1:] == ranks[1][1:], "both ranks do the same"
    return {"setting": setting, "operations": ranks[0][1], "raised": ranks[0][2]}


def main():
    FOLDER.mkdir(parents=True, exist_ok=True)
    for each in SETTINGS:
        if len(sys.argv) > 1 and each["name"] not in sys.argv[1:]:
            continue
        recorded = record(each)
        (FOLDER / f"{each['name']}.json").write_text(json.dumps(recorded, indent=1) + "\n")
        print(each["name"], recorded["raised"] or "ended", flush=True)


if __name__ == "__main__":
    main()
