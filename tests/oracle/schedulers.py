"""Records the learning rates and momenta of torch's schedulers.

  ./dev oracle schedulers [--check]

Written to tests/data/oracle/schedulers/NAME.json: for each setting the scheduler and its optimizer
as a scenario writes them, `rates` and `momenta` once it has been made and after each of its steps,
and `fails` with the exception, where a step raises one. A factor is an expression of `epoch`, which
Python and a scenario read alike. The functions that begin with `get_` are not torch's: Hugging
Face's transformers makes a LambdaLR of them, whose factors are written down here by their
documentation.
"""

import json
import math
import pathlib
import sys
import warnings

import torch
from torch.optim import lr_scheduler

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "tests" / "data" / "oracle" / "schedulers"
STEPS = 40

SGD = {"SGD": {"lr": 0.5, "momentum": 0.9}}
RMSPROP = {"RMSprop": {"lr": 0.1, "momentum": 0.5}}
ADAM = {"Adam": {"lr": 0.01}}
PLAIN = {"SGD": {"lr": 0.5}}

NAMES = {
    "pi": math.pi,
    "cos": math.cos,
    "exp": math.exp,
    "sqrt": math.sqrt,
    "min": min,
    "max": max,
    "where": lambda condition, one, other: one if condition else other,
}

WARM_THEN_COSINE = (
    "where(epoch < 5, epoch / 5, 0.5 * (1 + cos(pi * (epoch - 5) / 30)))"
)
WARM_THEN_LINEAR = "min(epoch / 10, max(0.0, (40 - epoch) / 30))"

SETTINGS = {
    "StepLR": [
        ({"step_size": 3, "gamma": 0.5}, SGD),
        ({"step_size": 10}, ADAM),
        ({"step_size": 1, "gamma": 0.9}, SGD),
    ],
    "MultiStepLR": [
        ({"milestones": [3, 7, 7, 20], "gamma": 0.5}, SGD),
        ({"milestones": [0, 4]}, ADAM),
        ({"milestones": [30, 10]}, SGD),
    ],
    "ConstantLR": [
        ({"factor": 0.25, "total_iters": 4}, SGD),
        ({}, ADAM),
        ({"factor": 0.5, "total_iters": 0}, SGD),
        ({"factor": 0.0, "total_iters": 3}, SGD),
    ],
    "LinearLR": [
        ({"start_factor": 0.1, "total_iters": 8}, SGD),
        ({}, ADAM),
        ({"start_factor": 1.0, "end_factor": 0.0, "total_iters": 30}, SGD),
    ],
    "ExponentialLR": [({"gamma": 0.9}, SGD), ({"gamma": 0.5}, ADAM), ({"gamma": 1.05}, SGD)],
    "PolynomialLR": [
        ({"total_iters": 30, "power": 2.0}, SGD),
        ({}, ADAM),
        ({"total_iters": 10, "power": 0.5}, SGD),
    ],
    "CosineAnnealingLR": [
        ({"T_max": 10}, SGD),
        ({"T_max": 7, "eta_min": 0.01}, ADAM),
        ({"T_max": 1, "eta_min": 0.1}, SGD),
    ],
    "CosineAnnealingWarmRestarts": [
        ({"T_0": 5}, SGD),
        ({"T_0": 3, "T_mult": 2, "eta_min": 0.001}, ADAM),
        ({"T_0": 1, "T_mult": 3}, SGD),
    ],
    "OneCycleLR": [
        ({"max_lr": 1.0, "total_steps": 40}, SGD),
        ({"max_lr": 0.1, "epochs": 4, "steps_per_epoch": 10, "three_phase": True}, ADAM),
        ({"max_lr": 0.1, "total_steps": 35, "anneal_strategy": "linear"}, ADAM),
        (
            {
                "max_lr": 2.0,
                "total_steps": 60,
                "pct_start": 0.25,
                "div_factor": 10.0,
                "final_div_factor": 100.0,
                "base_momentum": 0.7,
                "max_momentum": 0.8,
                "three_phase": True,
                "anneal_strategy": "linear",
            },
            PLAIN,
        ),
        ({"max_lr": 1.0, "total_steps": 10, "cycle_momentum": False}, SGD),
        ({"max_lr": 1.0, "total_steps": 20, "pct_start": 0.0}, SGD),
        ({"max_lr": 1.0, "total_steps": 2, "pct_start": 0.5}, SGD),
        ({"max_lr": 1.0, "total_steps": 40}, RMSPROP),
    ],
    "CyclicLR": [
        ({"base_lr": 0.1, "max_lr": 1.0, "step_size_up": 5}, SGD),
        (
            {
                "base_lr": 0.001,
                "max_lr": 0.01,
                "step_size_up": 4,
                "step_size_down": 7,
                "mode": "triangular2",
            },
            ADAM,
        ),
        (
            {
                "base_lr": 0.1,
                "max_lr": 1.0,
                "step_size_up": 5,
                "mode": "exp_range",
                "gamma": 0.95,
                "base_momentum": 0.6,
                "max_momentum": 0.99,
            },
            PLAIN,
        ),
        (
            {"base_lr": 0.1, "max_lr": 1.0, "step_size_up": 2.5, "cycle_momentum": False},
            SGD,
        ),
        ({"base_lr": 0.1, "max_lr": 1.0, "step_size_up": 4, "step_size_down": 0}, SGD),
    ],
    "LambdaLR": [
        ({"lr_lambda": "0.95 ** epoch"}, SGD),
        ({"lr_lambda": WARM_THEN_LINEAR}, ADAM),
        ({"lr_lambda": WARM_THEN_COSINE}, SGD),
        ({"lr_lambda": "1 / sqrt(epoch + 1)"}, SGD),
        ({"lr_lambda": "epoch // 7 + 1"}, SGD),
    ],
    "MultiplicativeLR": [
        ({"lr_lambda": "0.95"}, SGD),
        ({"lr_lambda": "1 + 1 / (epoch + 1)"}, ADAM),
        ({"lr_lambda": "exp(-epoch / 100)"}, SGD),
    ],
    "SequentialLR": [
        (
            {
                "schedulers": [
                    {"LinearLR": {"start_factor": 0.1, "total_iters": 5}},
                    {"CosineAnnealingLR": {"T_max": 25, "eta_min": 0.001}},
                ],
                "milestones": [5],
            },
            SGD,
        ),
        (
            {
                "schedulers": [
                    {"ConstantLR": {"factor": 0.1, "total_iters": 2}},
                    {"ExponentialLR": {"gamma": 0.9}},
                    {"StepLR": {"step_size": 4, "gamma": 0.5}},
                ],
                "milestones": [4, 20],
            },
            ADAM,
        ),
        (
            {
                "schedulers": [
                    {"LambdaLR": {"lr_lambda": "(epoch + 1) / 8"}},
                    {"PolynomialLR": {"total_iters": 12, "power": 2.0}},
                    {"MultiplicativeLR": {"lr_lambda": "1 / (1 + epoch)"}},
                    {"MultiStepLR": {"milestones": [0, 3], "gamma": 0.5}},
                ],
                "milestones": [8, 18, 24],
            },
            SGD,
        ),
        (
            {
                "schedulers": [
                    {"CosineAnnealingWarmRestarts": {"T_0": 4}},
                    {"CosineAnnealingWarmRestarts": {"T_0": 3, "T_mult": 2}},
                ],
                "milestones": [10],
            },
            SGD,
        ),
        (
            {
                "schedulers": [
                    {"OneCycleLR": {"max_lr": 1.0, "total_steps": 20}},
                    {"CyclicLR": {"base_lr": 0.1, "max_lr": 0.6, "step_size_up": 4}},
                ],
                "milestones": [15],
            },
            SGD,
        ),
        (
            {
                "schedulers": [
                    {"ExponentialLR": {"gamma": 0.9}},
                    {"OneCycleLR": {"max_lr": 1.0, "total_steps": 20}},
                ],
                "milestones": [5],
            },
            ADAM,
        ),
        (
            {
                "schedulers": [
                    {
                        "ChainedScheduler": {
                            "schedulers": [
                                {"ConstantLR": {"factor": 0.5, "total_iters": 3}},
                                {"ExponentialLR": {"gamma": 0.9}},
                                {"StepLR": {"step_size": 2, "gamma": 0.5}},
                                {"CosineAnnealingLR": {"T_max": 20}},
                            ]
                        }
                    },
                    {"LinearLR": {"total_iters": 6}},
                ],
                "milestones": [10],
            },
            SGD,
        ),
        (
            {
                "schedulers": [
                    {
                        "SequentialLR": {
                            "schedulers": [
                                {"LinearLR": {"total_iters": 4}},
                                {"ExponentialLR": {"gamma": 0.8}},
                            ],
                            "milestones": [4],
                        }
                    },
                    {"ConstantLR": {"factor": 0.1, "total_iters": 100}},
                ],
                "milestones": [12],
            },
            SGD,
        ),
        (
            {
                "schedulers": [
                    {"LinearLR": {"total_iters": 4}},
                    {"ChainedScheduler": {"schedulers": [{"ExponentialLR": {"gamma": 0.8}}]}},
                ],
                "milestones": [4],
            },
            SGD,
        ),
        ({"schedulers": [{"StepLR": {"step_size": 5}}], "milestones": []}, SGD),
    ],
    "ChainedScheduler": [
        (
            {
                "schedulers": [
                    {"ConstantLR": {"factor": 0.1, "total_iters": 4}},
                    {"ExponentialLR": {"gamma": 0.9}},
                ]
            },
            SGD,
        ),
        (
            {
                "schedulers": [
                    {"LinearLR": {"start_factor": 0.5, "total_iters": 8}},
                    {"CosineAnnealingLR": {"T_max": 15}},
                    {"MultiStepLR": {"milestones": [10], "gamma": 0.3}},
                ]
            },
            ADAM,
        ),
        (
            {
                "schedulers": [
                    {"MultiplicativeLR": {"lr_lambda": "0.98"}},
                    {"StepLR": {"step_size": 6, "gamma": 0.7}},
                ]
            },
            SGD,
        ),
    ],
    "get_constant_schedule_with_warmup": [
        ({"num_warmup_steps": 10}, SGD),
        ({"num_warmup_steps": 0}, ADAM),
        ({"num_warmup_steps": 50}, SGD),
    ],
    "get_linear_schedule_with_warmup": [
        ({"num_warmup_steps": 10, "num_training_steps": 35}, SGD),
        ({"num_warmup_steps": 0, "num_training_steps": 40}, ADAM),
        ({"num_warmup_steps": 4, "num_training_steps": 4}, SGD),
    ],
    "get_cosine_schedule_with_warmup": [
        ({"num_warmup_steps": 10, "num_training_steps": 35}, SGD),
        ({"num_warmup_steps": 0, "num_training_steps": 40}, ADAM),
        ({"num_warmup_steps": 5, "num_training_steps": 40, "num_cycles": 1.5}, SGD),
    ],
    "get_inverse_sqrt_schedule": [
        ({"num_warmup_steps": 10}, SGD),
        ({"num_warmup_steps": 0}, ADAM),
        ({"num_warmup_steps": 5, "timescale": 20}, SGD),
    ],
}


def factor_of(name, given):
    warm = given["num_warmup_steps"]
    total = given.get("num_training_steps", 0)

    def after(step):
        if name == "get_constant_schedule_with_warmup":
            return 1.0
        if name == "get_inverse_sqrt_schedule":
            scale = given.get("timescale", warm or 10_000)
            return 1.0 / math.sqrt((step + scale - warm) / scale)
        left = max(1, total - warm)
        if name == "get_linear_schedule_with_warmup":
            return max(0.0, (total - step) / left)
        turns = given.get("num_cycles", 0.5)
        return max(0.0, 0.5 * (1.0 + math.cos(math.pi * turns * 2.0 * ((step - warm) / left))))

    return lambda step: step / max(1, warm) if step < warm else after(step)


def scheduler_of(optimizer, name, given):
    if name.startswith("get_"):
        return lr_scheduler.LambdaLR(optimizer, factor_of(name, given))
    arguments = dict(given)
    if "lr_lambda" in arguments:
        code = compile(arguments["lr_lambda"], "lr_lambda", "eval")
        arguments["lr_lambda"] = lambda epoch: eval(code, {**NAMES, "epoch": epoch})
    if "schedulers" in arguments:
        arguments["schedulers"] = [
            scheduler_of(optimizer, *one)
            for inner in arguments["schedulers"]
            for one in inner.items()
        ]
    if name == "ChainedScheduler":
        return lr_scheduler.ChainedScheduler(**arguments)
    return getattr(lr_scheduler, name)(optimizer, **arguments)


def run(name, given, optimizer_given):
    parameter = torch.nn.Parameter(torch.zeros(1))
    ((kind, arguments),) = optimizer_given.items()
    optimizer = getattr(torch.optim, kind)([parameter], **arguments)
    record = {
        "lr_scheduler": {name: given},
        "optimizer": optimizer_given,
        "rates": [],
        "momenta": [],
    }
    group = optimizer.param_groups[0]

    def note():
        record["rates"].append(group["lr"])
        record["momenta"].append(group["betas"][0] if "betas" in group else group["momentum"])

    try:
        scheduler = scheduler_of(optimizer, name, given)
        note()
        for _ in range(STEPS):
            optimizer.step()
            scheduler.step()
            note()
    except Exception as error:  # pylint: disable=broad-except
        record["fails"] = f"{type(error).__name__}: {error}"
    return record


def main():
    check = sys.argv[1:] == ["--check"]
    if sys.argv[1:] and not check:
        sys.exit("schedulers [--check]")
    warnings.simplefilter("ignore")
    FOLDER.mkdir(parents=True, exist_ok=True)
    differing = []
    for name, settings in SETTINGS.items():
        recording = {
            "torch": torch.__version__.split("+")[0],
            "settings": [run(name, *setting) for setting in settings],
        }
        text = json.dumps(recording, separators=(",", ":")).replace('{"lr_s', '\n{"lr_s') + "\n"
        path = FOLDER / f"{name}.json"
        if not check:
            path.write_text(text)
        elif not path.exists() or path.read_text() != text:
            differing.append(name)
    if differing:
        sys.exit(f"differs from the recording: {', '.join(differing)}")


if __name__ == "__main__":
    main()
