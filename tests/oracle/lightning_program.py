"""The `program` of a scenario as a LightningModule with its hooks."""

import os
import signal

import pytorch_lightning
import torch

from lightning_statements import STEPS, Interpreter, object_of

# Hooks that are noted, whether or not the scenario has them. Of the steps only those that it has:
# that one exists changes what Lightning does.
NOTED = (
    "setup", "teardown", "configure_model", "on_fit_start", "on_fit_end", "on_train_start",
    "on_train_end", "on_train_epoch_start", "on_train_epoch_end", "on_train_batch_start",
    "on_train_batch_end", "on_before_zero_grad",
    "on_before_backward", "on_after_backward", "on_before_optimizer_step", "on_validation_start",
    "on_validation_end", "on_validation_epoch_start", "on_validation_epoch_end",
    "on_validation_batch_start", "on_validation_batch_end", "on_validation_model_eval",
    "on_validation_model_train", "on_test_start", "on_test_end", "on_test_epoch_start",
    "on_test_epoch_end", "on_test_batch_start", "on_test_batch_end", "on_test_model_eval",
    "on_test_model_train", "on_predict_start", "on_predict_end", "on_predict_epoch_start",
    "on_predict_epoch_end", "on_predict_batch_start", "on_predict_batch_end",
    "on_predict_model_eval", "on_predict_model_train", "on_save_checkpoint",
)

# Hooks that do something of their own, which those of the scenario replace.
REPLACED = ("optimizer_step", "optimizer_zero_grad", "configure_gradient_clipping",
            "lr_scheduler_step", "on_validation_model_zero_grad")


class Own:
    """`self.NAME` of the scenario."""


class Module(pytorch_lightning.LightningModule):
    def __init__(self, scenario, networks, objects, record, rank):
        super().__init__()
        self.signals = Signals(scenario, rank)
        self.networks = Mapped(networks)
        self.objects = objects
        for name, metric in objects.items():
            setattr(self, name, metric)
        self.own = Own()
        self.record = record
        self.scenario = scenario
        self.interpreter = Interpreter(self, scenario, record)
        program = scenario.get("program", {})
        self.automatic_optimization = program.get("automatic_optimization", True)
        self.optimizer_names = []

    def configure_optimizers(self):
        self.record["hooks"].append("configure_optimizers")
        return made_optimizers(self)


class Mapped(torch.nn.Module):
    """Networks by name, the only one by ""."""

    def __init__(self, networks):
        super().__init__()
        for name, network in networks.items():
            self.add_module(name or "network", network)

    def __getitem__(self, name):
        return getattr(self, name or "network")


def made_optimizers(module):
    scenario = module.scenario
    given = scenario["optimizer"]
    optimizers = []
    for spec in given if isinstance(given, list) else [given]:
        kind, arguments = object_of(spec)
        module.optimizer_names.append(arguments.pop("name", None))
        owner = arguments.pop("module", None)
        parameters = (module.networks[owner] if owner else module.networks).parameters()
        optimizers.append(getattr(torch.optim, kind)(parameters, **arguments))
    given = scenario.get("lr_scheduler", [])
    schedulers = []
    for spec in given if isinstance(given, list) else [given]:
        kind, arguments = object_of(spec)
        chosen = module.optimizer_names.index(arguments.pop("optimizer", module.optimizer_names[0]))
        own = {k: arguments.pop(k) for k in ("monitor", "interval", "frequency", "strict")
               if k in arguments}
        made = getattr(torch.optim.lr_scheduler, kind)(optimizers[chosen], **arguments)
        schedulers.append({"scheduler": made, **own})
    return optimizers, schedulers


class Signals:
    """The signals that the faults of a scenario send to a rank, each when its hook begins."""

    def __init__(self, scenario, rank):
        self.step = self.epoch = -1
        self.due = []
        for fault in scenario.get("faults", []):
            name, arguments = object_of(fault)
            ranks = arguments.get("ranks", [arguments.get("rank")])
            if name == "signal" and (ranks == "all" or rank in ranks):
                self.due.append(arguments)

    def arrive(self, hook, trainer):
        if hook == "on_train_batch_start":
            self.step = trainer.global_step
        elif hook == "on_train_epoch_start":
            self.epoch = trainer.current_epoch
        for fault in [f for f in self.due if f["hook"] == hook and self._has_come(f["at"])]:
            self.due.remove(fault)
            os.kill(os.getpid(), getattr(signal, fault["name"]))

    def _has_come(self, instant):
        kind, count = instant.split()
        return {"step": self.step, "epoch": self.epoch}[kind] >= int(count)


def noted_hook(name):
    def hook(self, *arguments, **more):
        self.record["hooks"].append(name)
        self.signals.arrive(name, self.trainer)
        if name in ("on_train_batch_start", "on_train_end"):
            rates = [g["lr"] for o in self.trainer.optimizers for g in o.param_groups]
            self.record["learning_rates"].append(rates)
        if name.endswith(("_model_eval", "_model_train")):
            getattr(super(self.__class__, self), name)()
        self.interpreter.hook(name)

    return hook


def replaced_hook(name):
    def hook(self, *arguments, **more):
        self.record["hooks"].append(name)
        self.signals.arrive(name, self.trainer)
        if name in self.interpreter.program:
            self.interpreter.replace(name, arguments, more)
        else:
            getattr(super(self.__class__, self), name)(*arguments, **more)

    return hook


def loader_hook(stage):
    def hook(self):
        noted_hook(stage + "_dataloader")(self)
        return self.interpreter.loaders(stage)

    return hook


def batch_hook(name):
    """Lightning asks the signature whether a hook takes the number of its loader."""

    def train_start(self, batch, batch_idx):
        self.interpreter.place = {"batch_idx": batch_idx, "dataloader_idx": 0}
        noted_hook(name)(self)

    def train_end(self, outputs, batch, batch_idx):
        train_start(self, batch, batch_idx)

    def start(self, batch, batch_idx, dataloader_idx=0):
        self.interpreter.place = {"batch_idx": batch_idx, "dataloader_idx": dataloader_idx}
        noted_hook(name)(self)

    def end(self, outputs, batch, batch_idx, dataloader_idx=0):
        start(self, batch, batch_idx, dataloader_idx)

    if "train" in name:
        return train_start if name.endswith("start") else train_end
    return start if name.endswith("start") else end


def step_hook(name):
    if name == "training_step":
        return lambda self, batch, batch_idx: self.interpreter.step(name, batch, batch_idx)

    def step(self, batch, batch_idx, dataloader_idx=0):
        return self.interpreter.step(name, batch, batch_idx, dataloader_idx)

    return step


def module_of(scenario, networks, objects, record, rank):
    """A LightningModule with the hooks of the scenario; all others only note their name."""
    program, data = scenario.get("program", {}), scenario.get("data", {})
    hooks = {}
    for name in NOTED:
        of_batch = name.endswith(("_batch_start", "_batch_end"))
        hooks[name] = batch_hook(name) if of_batch else noted_hook(name)
    for name in REPLACED:
        hooks[name] = replaced_hook(name)
    for stage in ("train", "val", "test", "predict"):
        if stage in data:
            hooks[stage + "_dataloader"] = loader_hook(stage)
    for name, stage in STEPS.items():
        stage = "val" if stage == "validation" else stage
        if name == "training_step" or name in program or stage in data:
            hooks[name] = step_hook(name)
    if "prepare_data" in program:
        hooks["prepare_data"] = noted_hook("prepare_data")
    return type("Recorded", (Module,), hooks)(scenario, networks, objects, record, rank)
