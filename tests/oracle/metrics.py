"""Runs one rank of a setting of metric_settings.py with TorchMetrics."""

import warnings

import torch
import torch.distributed
import torchmetrics
import torchmetrics.classification
import torchmetrics.regression
import torchmetrics.retrieval
import torchmetrics.text

import collectives

warnings.filterwarnings("ignore")

HOMES = (torchmetrics, torchmetrics.classification, torchmetrics.regression,
         torchmetrics.retrieval, torchmetrics.text)


def class_named(name):
    return next(getattr(home, name) for home in HOMES if hasattr(home, name))


def made(setting):
    arguments = dict(setting["arguments"])
    members = arguments.pop("metrics", None)
    if members is None:
        return class_named(setting["metric"])(**arguments)
    if isinstance(members, dict):
        members = {key: class_named(name)(**own) for key, (name, own) in members.items()}
    else:
        members = [class_named(name)(**own) for name, own in members]
    return torchmetrics.MetricCollection(members, **arguments)


def written(value):
    if isinstance(value, dict):
        return {key: written(child) for key, child in value.items()}
    if isinstance(value, (list, tuple)):
        return [written(child) for child in value]
    numbers = value.detach().to(torch.float64).reshape(-1).tolist()
    return {"shape": list(value.shape),
            "values": [n if n == n and abs(n) != float("inf") else str(n) for n in numbers]}


class MetricRun:
    def __init__(self, setting, rank):
        self.turns = setting["turns"][rank]
        self.metric = made(setting)
        self.record = {"ended": "finished", "results": []}

    def train(self):
        for name, *arguments in self.turns:
            # By position: some call them p and q.
            batch = [torch.tensor(data) for data in (arguments or [{}])[0].values()]
            if name == "update":
                self.metric.update(*batch)
            elif name == "forward":
                self.record["results"].append(written(self.metric(*batch)))
            elif name == "compute":
                self.record["results"].append(written(self.metric.compute()))
            else:
                self.metric.reset()

    def finish(self):
        self.record["operations"] = collectives.operations()
        return self.record
