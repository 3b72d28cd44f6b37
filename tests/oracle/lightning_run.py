"""Runs one rank of a scenario of lightning_settings.py under Lightning's own Trainer.

The scenario is a file that `lockstep` reads as well; lightning_program.py and
lightning_statements.py give it its meaning. Weights, samples and permutations are drawn as the
product draws them, all else is Lightning's and torch's.
"""

import datetime
import logging
import math
import os
import re
import warnings

import pytorch_lightning
import pytorch_lightning.callbacks
import torch
import torch.distributed
import yaml
from pytorch_lightning.loggers.logger import Logger
from pytorch_lightning.overrides.distributed import UnrepeatedDistributedSampler
from pytorch_lightning.strategies import DDPStrategy
from torch.utils.data import DataLoader, Dataset, DistributedSampler, IterableDataset

import collectives
import lightning_program
import lightning_statements
import metrics
import network as networks
from lightning_statements import object_of

warnings.filterwarnings("ignore")
for name in ("pytorch_lightning", "lightning_fabric"):
    logging.getLogger(name).setLevel(logging.ERROR)

DEFAULT_SAMPLES = {"train": 1024, "val": 256, "test": 256, "predict": 256}
SECONDS = {"ms": 0.001, "s": 1, "min": 60}


def scenario_of(text):
    return yaml.safe_load(text)


def seconds_of(quantity):
    number, unit = re.fullmatch(r"([\d.]+) (\w+)", quantity).groups()
    return float(number) * SECONDS[unit]


def strategy_of(scenario):
    name, arguments = object_of(scenario["trainer"].get("strategy", "auto"))
    timeout = scenario.get("process_group", {}).get("timeout", "60 s")
    arguments["timeout"] = datetime.timedelta(seconds=seconds_of(timeout))
    if name == "ddp_find_unused_parameters_true":
        arguments["find_unused_parameters"] = True
    elif name == "auto":
        return "auto"
    return DDPStrategy(**arguments)


# Permutations: DistributedSampler asks for that of seed + epoch.


def permuted(i, n, key):
    """As model/trainer/data/sampler.cpp: a four-round Feistel network, walking the cycle into 0..n-1."""
    half = ((n - 1).bit_length() + 1) // 2
    mask = (1 << half) - 1
    while True:
        left, right = i >> half, i & mask
        for turn in range(4):
            mixed = left ^ (networks.random_bits(networks.random_bits(key, turn), right) & mask)
            left, right = right, mixed
        i = left << half | right
        if i < n:
            return i


def permutation_of(seed):
    def permutation(n, generator):
        epoch = generator.initial_seed() - seed
        if not 0 <= epoch < 1000:
            raise ValueError("only DistributedSampler may shuffle in a setting")
        key = networks.random_bits(seed, epoch)
        return torch.tensor([permuted(i, n, key) for i in range(n)])

    return permutation


# Data


class Samples(Dataset):
    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        return index


class Stream(IterableDataset):
    def __init__(self, indices):
        super().__init__()
        self.indices = indices

    def __iter__(self):
        return iter(self.indices)


class Given(DistributedSampler):
    """A sampler of the user's own, which Lightning leaves alone: batches of this rank."""

    def __init__(self, indices, world_size, rank):
        super().__init__(indices, num_replicas=world_size, rank=rank)
        self.indices = indices

    def __len__(self):
        return len(self.indices)

    def __iter__(self):
        return iter(self.indices)


class Collate:
    """Batches of (inputs, targets, sample numbers), with what the columns of `values` hold."""

    def __init__(self, data_set, values):
        self.data_set = data_set
        self.values = values

    def __call__(self, samples):
        return lightning_statements.Batch(
            self.data_set.inputs(samples), self.data_set.targets(samples), torch.tensor(samples),
            {name: self._column(column, samples) for name, column in self.values.items()})

    @staticmethod
    def _column(column, samples):
        if isinstance(column, list):
            return torch.tensor([column[s] for s in samples])
        return torch.tensor([lightning_statements.evaluate(column, {"sample": s}) for s in samples])


def loader_of(scenario, stage, own, rank, world_size):
    data = scenario.get("data", {})
    common = {k: v for k, v in data.items() if k not in DEFAULT_SAMPLES}
    spec = {**common, **own}
    size = spec.get("batch_size", 8)
    indices = range(spec.get("samples", DEFAULT_SAMPLES[stage]))
    kind = spec.get("sampler", "auto")
    if "batches" in spec:
        names = {"rank": rank, "world_size": world_size, "is_global_zero": rank == 0}
        count = lightning_statements.evaluate(spec["batches"], names) * size
        indices = [k * world_size + rank for k in range(count)]
    elif spec.get("iterable") and kind == "unrepeated":
        indices = indices[rank::world_size]
    shuffle = spec.get("shuffle", stage == "train")
    options = {"batch_size": size, "drop_last": spec.get("drop_last", False)}
    options["collate_fn"] = Collate(networks.DataSet(*described(scenario)), spec.get("values", {}))
    if spec.get("iterable"):
        return DataLoader(Stream(indices), **options)
    if "batches" in spec:
        options["sampler"] = Given(indices, world_size, rank)
        return DataLoader(Samples(len(indices)), **options)
    samples = Samples(len(indices))
    if kind in ("distributed", "unrepeated"):
        made = DistributedSampler if kind == "distributed" else UnrepeatedDistributedSampler
        seed = scenario.get("seed_everything", 0)
        options["sampler"] = made(samples, world_size, rank, shuffle=shuffle, seed=seed)
        shuffle = False
    return DataLoader(samples, shuffle=shuffle, **options)


def loaders_of(scenario, stage, rank, world_size):
    data = scenario.get("data", {})
    step = {"train": "training", "val": "validation"}.get(stage, stage) + "_step"
    if stage != "train" and stage not in data and step not in scenario.get("program", {}):
        return None
    own = data.get(stage, {})
    if isinstance(own, list):
        return [loader_of(scenario, stage, one, rank, world_size) for one in own]
    return loader_of(scenario, stage, own, rank, world_size)


def layers_of(model):
    for layer in model["layers"]:
        name, arguments = object_of(layer)
        if name == "Linear" and isinstance(arguments, list):
            arguments = {"in_features": arguments[0], "out_features": arguments[1]}
        if name == "BatchNorm1d":
            arguments = {"num_features": arguments}
        yield {"kind": name, "arguments": arguments}


def described(scenario):
    """The arguments of networks.DataSet."""
    model = scenario["model"]
    model = next(iter(model["modules"].values())) if "modules" in model else model
    layers = list(layers_of(model))
    outputs = [s["arguments"]["out_features"] for s in layers if s["kind"] == "Linear"][-1]
    network = {"input": model["input"], "loss": {"kind": "MSELoss"}, "layers": layers}
    setting = {"seed": scenario["seed_everything"], "network": network, "dtype": "fp32"}
    return setting, [outputs]


def networks_of(scenario, rank):
    """Modules by name, "" where there is one; weights as torch draws them, of each rank its own."""
    model = scenario["model"]
    models = model.get("modules", {"": model})
    made = {name: networks.Network({"layers": list(layers_of(m))}) for name, m in models.items()}
    first = networks.random_bits(scenario["seed_everything"], rank)
    parameters = [p for module in made.values() for p in module.parameters()]
    owners = [m for module in made.values() for m in module.children() for _ in m.parameters()]
    with torch.no_grad():
        for index, (parameter, owner) in enumerate(zip(parameters, owners)):
            if isinstance(owner, torch.nn.BatchNorm1d):
                continue
            key = networks.random_bits(first, index)
            bound = 1 / owner.in_features**0.5
            drawn = [(2 * ((networks.random_bits(key, i) >> 11) * 2.0**-53) - 1) * bound
                     for i in range(parameter.numel())]
            numbers = torch.tensor(drawn, dtype=torch.float64)
            parameter.copy_(numbers.reshape(parameter.shape))
    return made


# What is recorded


class Memory(Logger):
    """A logger that keeps what it is given."""

    def __init__(self, record):
        super().__init__()
        self.record = record

    name = property(lambda self: "memory")
    version = property(lambda self: "0")

    def log_metrics(self, metrics, step=None):
        self.record["logger"].append([step, {k: float(v) for k, v in metrics.items()}])

    def log_hyperparams(self, *arguments, **more):
        pass


class EndWatch(pytorch_lightning.Callback):
    """The hooks that only callbacks have."""

    def __init__(self, record):
        self.record = record

    def on_exception(self, trainer, module, exception):
        self.record["hooks"].append("on_exception")

    def on_sanity_check_start(self, trainer, module):
        self.record["hooks"].append("on_sanity_check_start")

    def on_sanity_check_end(self, trainer, module):
        self.record["hooks"].append("on_sanity_check_end")


def told_of(callback):
    if isinstance(callback, pytorch_lightning.callbacks.ModelCheckpoint):
        def name(path):
            return os.path.basename(path)

        def number(score):
            return None if score is None else float(score)
        return {"best_model_path": name(callback.best_model_path),
                "best_model_score": number(callback.best_model_score),
                "kept": {name(p): float(s) for p, s in callback.best_k_models.items()},
                "last_model_path": name(callback.last_model_path)}
    if isinstance(callback, pytorch_lightning.callbacks.EarlyStopping):
        best = float(callback.best_score)
        return {"stopped_epoch": callback.stopped_epoch, "wait_count": callback.wait_count,
                "best_score": best if math.isfinite(best) else None}
    return {}


class LightningRun:
    """What record.py asks of a run: `train`, then `finish`."""

    def __init__(self, setting, rank):
        self.scenario = scenario_of("\n".join(setting["scenario"]))
        self.rank = rank
        self.record = {"ended": "finished", "hooks": [], "samples": [], "logger": [],
                       "learning_rates": []}
        self.trainer = self.module = None

    def train(self):
        scenario = self.scenario
        pytorch_lightning.seed_everything(scenario["seed_everything"], verbose=False)
        torch.randperm = permutation_of(scenario["seed_everything"])
        options = {"log_every_n_steps": 1, "enable_progress_bar": False,
                   "enable_model_summary": False, "default_root_dir": ".",
                   **scenario["trainer"], "strategy": strategy_of(scenario)}
        callbacks = [object_of(c) for c in options.pop("callbacks", [])]
        made = [getattr(pytorch_lightning.callbacks, name)(**own) for name, own in callbacks]
        watch = EndWatch(self.record)
        self.module = lightning_program.module_of(
            scenario, networks_of(scenario, self.rank), made_metrics(scenario), self.record,
            self.rank)
        self.trainer = pytorch_lightning.Trainer(
            **options, callbacks=[watch, *made], logger=Memory(self.record))
        self.module.interpreter.run_main(self.trainer, self._loaders)

    def _loaders(self, stage):
        return loaders_of(self.scenario, stage, self.rank, self.scenario["trainer"]["devices"])

    def finish(self):
        record, trainer = self.record, self.trainer
        record["operations"] = collectives.operations()
        if trainer is None:
            return record
        record["callback_metrics"] = self.module.interpreter.metrics_of(trainer)
        if "prog_bar" in str(self.scenario):
            bar = trainer.progress_bar_metrics.items()
            record["progress_bar"] = {key: float(value) for key, value in bar}
        record["global_step"] = trainer.global_step
        record["epochs"] = trainer.current_epoch
        record["should_stop"] = trainer.should_stop
        record["callbacks"] = [{type(c).__name__: told_of(c)} for c in trainer.callbacks
                               if not isinstance(c, EndWatch)]
        record["parameters"] = [p.detach().reshape(-1).to(torch.float64).tolist()
                                for p in self.module.parameters()]
        return record


def made_metrics(scenario):
    made = {}
    for name, spec in scenario.get("metrics", {}).items():
        kind, arguments = object_of(spec)
        if "metrics" in arguments:
            members = arguments["metrics"]
            arguments["metrics"] = ([object_of(member) for member in members]
                                    if isinstance(members, list) else
                                    {key: object_of(member) for key, member in members.items()})
        made[name] = metrics.made({"metric": kind, "arguments": arguments})
    return made


def environment(rank, world_size, port):
    """What makes Lightning take a process as a rank that somebody has started."""
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), NODE_RANK="0",
                      LOCAL_RANK=str(rank), WORLD_SIZE=str(world_size))
