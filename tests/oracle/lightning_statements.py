"""The statements and expressions of a scenario's `program`, run for one rank."""

import re

import torch
import torch.distributed

STEPS = {"training_step": "train", "validation_step": "validation", "test_step": "test",
         "predict_step": "predict"}
LOG_KEYS = ("prog_bar", "logger", "on_step", "on_epoch", "reduce_fx", "sync_dist",
            "rank_zero_only", "add_dataloader_idx")


def object_of(value):
    """`Name`, {Name: {arguments}} or {Name: one argument} as (name, arguments)."""
    if isinstance(value, str):
        return value, {}
    ((name, arguments),) = value.items()
    return name, dict(arguments) if isinstance(arguments, dict) else arguments


class Batch(tuple):
    """(inputs, targets, sample numbers), as Lightning sees it, and columns beside them."""

    def __new__(cls, inputs, targets=None, samples=None, columns=None):
        # A precision plugin that has converted the parts makes a new one of their list.
        parts = inputs if targets is None else (inputs, targets, samples)
        made = super().__new__(cls, parts)
        made.columns = columns or {}
        return made

    def to(self, device):
        return self


class Return(Exception):
    """The statement `return`."""


def whole_or_tensor(function):
    return lambda value: function(value) if isinstance(value, torch.Tensor) else function(
        torch.as_tensor(value, dtype=torch.float32))


FUNCTIONS = {
    "true": True, "false": False, "full": lambda n, x: torch.full((int(n),), x), "len": len,
    "arange": torch.arange, "int": int, "float": float, "abs": abs, "concat": torch.cat,
    "mean": whole_or_tensor(lambda t: t.float().mean()), "sum": whole_or_tensor(torch.sum),
    "max": whole_or_tensor(torch.max), "min": whole_or_tensor(torch.min),
    "sqrt": whole_or_tensor(torch.sqrt),
}


def inputs_of(metric):
    """What `update` of a metric is given, in its order."""
    name = type(metric).__name__
    if name.startswith("Retrieval"):
        return ["preds", "target", "indexes"]
    if name == "MeanMetric":
        return ["preds", "weight"]
    if name in ("SumMetric", "MinMetric", "MaxMetric", "CatMetric"):
        return ["preds"]
    return ["preds", "target"]


class Names(dict):
    def __init__(self, frame, more):
        super().__init__()
        self.frame, self.more = frame, more

    def __missing__(self, name):
        if name in self.frame:
            return self.frame[name]
        if callable(self.more):
            return self.more(name)
        return self.more[name]


def evaluate(text, frame, more=None):
    """An expression; anything but a text stands for itself."""
    if not isinstance(text, str):
        return text
    names = Names(frame, lambda n: more(n) if more and n not in FUNCTIONS else FUNCTIONS[n])
    return eval(text, {"__builtins__": {}}, names)  # noqa: S307 (our own settings)


def walk(statements):
    for statement in statements:
        yield statement
        if isinstance(statement, dict):
            for key in ("then", "else", "do", "no_sync"):
                yield from walk(statement.get(key, []))
            if "toggle_model" in statement:
                yield from walk(statement["toggle_model"]["do"])


def name_of(statement):
    return statement if isinstance(statement, str) else next(iter(statement))


class Interpreter:
    def __init__(self, module, scenario, record):
        self.module, self.scenario, self.record = module, scenario, record
        self.program = scenario.get("program", {})
        self.batch = None
        self.place = {"batch_idx": 0, "dataloader_idx": 0}
        self.kept = {}
        self.given = None
        self.trainer = self.loaders = None

    # The script

    def run_main(self, trainer, loaders):
        self.trainer, self.loaders = trainer, loaders
        self.run(self.program.get("main", ["fit"]), {})

    def metrics_of(self, trainer):
        self._keep(trainer)
        return self.kept

    def _keep(self, trainer):
        self.kept.update({k: float(v) for k, v in trainer.callback_metrics.items()})

    def _stage(self, name):
        options = {"verbose": False} if name in ("validate", "test") else {}
        getattr(self.trainer, name)(self.module, **options)
        self._keep(self.trainer)

    # Hooks

    def hook(self, name):
        if name in self.program:
            try:
                self.run(self.program[name], {})
            except Return:
                pass

    def replace(self, name, arguments, more):
        """A hook that is given what it may do: the optimizer, its closure, the scheduler."""
        self.given = (name, arguments, more)
        frame = {"metric": arguments[1]} if name == "lr_scheduler_step" else {}
        try:
            self.run(self.program[name], frame)
        except Return:
            pass
        self.given = None

    def step(self, name, batch, batch_idx, dataloader_idx=0):
        self.place = {"batch_idx": batch_idx, "dataloader_idx": dataloader_idx}
        self.batch = batch
        self._note_samples(STEPS[name], batch[2].tolist(), dataloader_idx)
        self.record["hooks"].append(name)
        statements = self.program.get(name, [])
        frame = {}
        if not any(name_of(s) == "forward" for s in walk(statements)):
            self._forward(None, frame)
        try:
            self.run(statements, frame)
        except Return:
            return None
        finally:
            self.batch = None
        trains = name == "training_step"
        return frame["loss"] if trains and self.module.automatic_optimization else None

    def _note_samples(self, stage, samples, dataloader_idx):
        trainer = self.module.trainer
        stage = "sanity" if trainer.sanity_checking else stage
        passes = self.record["samples"]
        if self.place["batch_idx"] == 0:
            passes.append({"stage": stage, "epoch": trainer.current_epoch,
                           "dataloader": dataloader_idx, "batches": []})
        of_stage = [one for one in passes if one["stage"] == stage]  # validation runs within epochs
        of_stage[-1]["batches"].append(samples)

    # Statements

    def run(self, statements, frame):
        for statement in statements:
            if isinstance(statement, str):
                self._call(statement, None, frame)
            elif "if" in statement:
                taken = "then" if self.value(statement["if"], frame) else "else"
                self.run(statement.get(taken, []), frame)
            elif "repeat" in statement:
                for turn in range(int(self.value(statement["repeat"], frame))):
                    if "as" in statement:
                        frame[statement["as"]] = turn
                    self.run(statement["do"], frame)
            else:
                name = name_of(statement)
                self._call(name, statement[name], frame)

    def value(self, text, frame):
        if isinstance(text, str):
            text = re.sub(r"\bself\.", "module.own.", text)
        return evaluate(text, frame, self._name)

    def _name(self, name):
        trainer = self.module.trainer
        if name in self.place:
            return self.place[name]
        if name == "module":
            return self.module
        if name in self.module.objects:
            return self.module.objects[name]
        if self.batch is not None and name in self.batch.columns:
            return self.batch.columns[name]
        return {
            "rank": lambda: trainer.global_rank, "world_size": lambda: trainer.world_size,
            "is_global_zero": lambda: trainer.is_global_zero,
            "global_step": lambda: trainer.global_step, "epoch": lambda: trainer.current_epoch,
            "sanity_checking": lambda: trainer.sanity_checking,
            "batch_size": lambda: len(self.batch[2]),
            "num_batches": lambda: trainer.num_training_batches,
            "is_last_batch": lambda: trainer.is_last_batch,
            "callback_metrics": lambda: trainer.callback_metrics,
        }[name]()

    def _bind(self, name, value, frame):
        if name.startswith("self."):
            setattr(self.module.own, name[5:], value)
        else:
            frame[name] = value

    def _call(self, name, argument, frame):
        if name in ("fit", "validate", "test", "predict"):
            self._stage(name)
        elif name == "return":
            raise Return
        elif name == "raise":
            raise RuntimeError(argument)
        else:
            getattr(self, "_" + name)(argument, frame)

    def _let(self, argument, frame):
        for name, text in argument.items():
            self._bind(name, self.value(text, frame), frame)

    def _append(self, argument, frame):
        for name, text in argument.items():
            values = getattr(self.module.own, name.removeprefix("self."), [])
            self._bind(name, [*values, self.value(text, frame)], frame)

    def _assert(self, argument, frame):
        if not self.value(argument, frame):
            raise AssertionError(argument)

    def _forward(self, argument, frame):
        argument = argument or {}
        network = self.module.networks[argument.get("module", "")]
        inputs, targets, _ = self.batch
        output = network(inputs)
        frame[argument.get("as", "output")] = output
        frame["loss"] = torch.nn.functional.mse_loss(output, targets)

    def _backward(self, argument, frame):
        self.module.manual_backward(self.value(argument or "loss", frame))

    def _optimizer(self, name):
        made = self.module.optimizers()
        return made[self.module.optimizer_names.index(name)] if isinstance(made, list) else made

    def _given(self, hook):
        return self.given is not None and self.given[0] == hook

    def _optimizer_step(self, argument, frame):
        if self._given("optimizer_step"):
            given = self.given
            _, _, optimizer, closure = given[1]
            self.given = None  # the closure runs other hooks
            optimizer.step(closure=closure)
            self.given = given
        else:
            self._optimizer(argument).step()

    def _optimizer_closure(self, argument, frame):
        given, self.given = self.given, None
        given[1][3]()
        self.given = given

    def _clip_gradients(self, argument, frame):
        argument = argument if isinstance(argument, dict) else {"gradient_clip_val": argument}
        value = argument.get("gradient_clip_val")
        optimizer = (self.given[1][0] if self._given("configure_gradient_clipping")
                     else self._optimizer(argument.get("optimizer")))
        self.module.clip_gradients(
            optimizer, None if value is None else float(self.value(value, frame)),
            argument.get("gradient_clip_algorithm"))

    def _lr_scheduler_step(self, argument, frame):
        argument = argument if isinstance(argument, dict) else {"scheduler": argument}
        metric = argument.get("metric")
        metric = None if metric is None else float(self.value(metric, frame))
        if self._given("lr_scheduler_step"):
            scheduler, given = self.given[1]
            metric = given if metric is None else metric
        else:
            scheduler = self.module.lr_schedulers()
            if isinstance(scheduler, list):
                scheduler = scheduler[argument["scheduler"]]
        scheduler.step(*(() if metric is None else (metric,)))

    def _zero_grad(self, argument, frame):
        argument = argument if isinstance(argument, dict) else {"optimizer": argument}
        options = {k: v for k, v in argument.items() if k == "set_to_none"}
        optimizer = (self.given[1][2] if self._given("optimizer_zero_grad")
                     else self._optimizer(argument.get("optimizer")))
        optimizer.zero_grad(**options)

    def _no_sync(self, argument, frame):
        with self.module.trainer.model.no_sync():
            self.run(argument, frame)

    def _toggle_model(self, argument, frame):
        optimizer = self._optimizer(argument.get("optimizer"))
        with optimizer.toggle_model(sync_grad=bool(self.value(argument.get("sync_grad", True),
                                                              frame))):
            self.run(argument["do"], frame)

    def _log(self, argument, frame):
        options = {k: v for k, v in argument.items() if k in LOG_KEYS}
        if "batch_size" in argument:
            options["batch_size"] = int(self.value(argument["batch_size"], frame))
        self.module.log(argument["name"], self.value(argument["value"], frame), **options)

    def _log_dict(self, argument, frame):
        options = {k: v for k, v in argument.items() if k in LOG_KEYS}
        dictionary = argument["dictionary"]
        if isinstance(dictionary, str):
            values = self.value(dictionary, frame)
        else:
            values = {k: self.value(v, frame) for k, v in dictionary.items()}
        self.module.log_dict(values, **options)

    def _update(self, argument, frame):
        argument = argument if isinstance(argument, dict) else {"metric": argument}
        metric = self.value(argument["metric"], frame)
        given = {"preds": "score", "target": "target", "indexes": "indexes", "weight": 1.0}
        values = [self.value(argument.get(name, given[name]), frame)
                  for name in inputs_of(metric)]
        if "as" in argument:
            self._bind(argument["as"], metric(*values), frame)
        else:
            metric.update(*values)

    def _compute(self, argument, frame):
        argument = argument if isinstance(argument, dict) else {"metric": argument}
        value = self.value(argument["metric"], frame).compute()
        if "as" in argument:
            self._bind(argument["as"], value, frame)

    def _reset(self, argument, frame):
        self.value(argument, frame).reset()

    def _communicated(self, argument, frame):
        argument = argument if isinstance(argument, dict) else {"tensor": argument}
        return argument, self.value(argument["tensor"], frame)

    def _all_gather(self, argument, frame):
        argument, data = self._communicated(argument, frame)
        gathered = self.module.all_gather(data, sync_grads=argument.get("sync_grads", False))
        self._bind(argument["as"], gathered, frame)

    def _all_reduce(self, argument, frame):
        argument, data = self._communicated(argument, frame)
        data = data.clone() if "as" in argument else data
        operation = getattr(torch.distributed.ReduceOp, argument.get("op", "sum").upper())
        torch.distributed.all_reduce(data, operation)
        self._bind(argument.get("as", argument["tensor"]), data, frame)

    def _broadcast(self, argument, frame):
        argument, data = self._communicated(argument, frame)
        data = data.clone() if "as" in argument else data
        torch.distributed.broadcast(data, argument.get("src", 0))
        self._bind(argument.get("as", argument["tensor"]), data, frame)

    def _barrier(self, argument, frame):
        self.module.trainer.strategy.barrier()

    def _reduce_boolean_decision(self, argument, frame):
        argument = argument if isinstance(argument, dict) else {"value": argument}
        decided = self.module.trainer.strategy.reduce_boolean_decision(
            bool(self.value(argument["value"], frame)), all=argument.get("all", True))
        if "as" in argument:
            self._bind(argument["as"], decided, frame)

    def _should_stop(self, argument, frame):
        self.module.trainer.should_stop = bool(self.value(argument, frame))

    def _save_checkpoint(self, argument, frame):
        self.module.trainer.save_checkpoint("saved.ckpt")
