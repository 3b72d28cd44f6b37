"""Records the weights of a small network under torch's optimizers, and what the optimizers keep.

  ./dev oracle optimizers [--check]

Written to tests/data/oracle/optimizers/NAME.json: for each setting the optimizer as a scenario writes
it, and after each of 8 steps the weights of a Linear(4, 3) with its bias, whose gradients are given
numbers: (row * 5 + column * 3 + step * 7) % 11 - 5 of the weight, (row * 4 + step * 3) % 7 - 3 of the
bias, both times 1/4, some of them 0. `state` counts the elements that the optimizer keeps for each
parameter in the end, without single numbers. The types are fp32 and fp64.
"""

import json
import pathlib
import sys

import torch

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "tests" / "data" / "oracle" / "optimizers"
STEPS = 8
ROWS, COLUMNS = 3, 4

SETTINGS = {
    "SGD": [
        {"lr": 0.1},
        {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.05, "dampening": 0.25},
        {"lr": 0.1, "momentum": 0.9, "nesterov": True, "maximize": True, "weight_decay": 0.05},
    ],
    "Adam": [
        {"lr": 0.1, "weight_decay": 0.05},
        {"lr": 0.1, "amsgrad": True, "betas": [0.5, 0.6]},
        {"lr": 0.1, "maximize": True},
    ],
    "AdamW": [
        {"lr": 0.1},
        {"lr": 0.1, "amsgrad": True, "betas": [0.5, 0.6], "weight_decay": 0.25},
        {"lr": 0.1, "maximize": True, "eps": 0.001},
    ],
    "Adagrad": [
        {"lr": 0.1},
        {"lr": 0.1, "lr_decay": 0.1, "weight_decay": 0.05, "initial_accumulator_value": 0.5},
        {"lr": 0.1, "maximize": True, "eps": 0.01},
    ],
    "Adadelta": [
        {},
        {"lr": 0.5, "rho": 0.7, "eps": 0.001, "weight_decay": 0.05},
        {"lr": 0.5, "maximize": True},
    ],
    "Adamax": [
        {"lr": 0.1},
        {"lr": 0.1, "betas": [0.5, 0.6], "weight_decay": 0.05, "eps": 0.01},
        {"lr": 0.1, "maximize": True},
    ],
    "NAdam": [
        {"lr": 0.1},
        {"lr": 0.1, "betas": [0.5, 0.6], "weight_decay": 0.05, "momentum_decay": 0.1},
        {"lr": 0.1, "weight_decay": 0.05, "decoupled_weight_decay": True, "maximize": True},
    ],
    "RAdam": [
        {"lr": 0.1},
        {"lr": 0.1, "betas": [0.5, 0.9], "weight_decay": 0.05},
        {"lr": 0.1, "weight_decay": 0.05, "decoupled_weight_decay": True, "maximize": True},
    ],
    "RMSprop": [
        {"lr": 0.1},
        {"lr": 0.1, "alpha": 0.5, "momentum": 0.9, "weight_decay": 0.05},
        {"lr": 0.1, "alpha": 0.5, "centered": True, "eps": 0.01},
        {"lr": 0.1, "momentum": 0.5, "centered": True, "maximize": True, "eps": 0.01},
    ],
    "Rprop": [
        {"lr": 0.1},
        {"lr": 0.1, "etas": [0.25, 2.0], "step_sizes": [0.05, 0.3]},
        {"lr": 0.1, "maximize": True},
    ],
    "Adafactor": [
        {"lr": 0.1},
        {"lr": 0.5, "beta2_decay": -0.5, "eps": [0.01, 0.25], "d": 1.5, "weight_decay": 0.05},
        {"lr": 0.1, "maximize": True},
    ],
    "ASGD": [
        {"lr": 0.1},
        {"lr": 0.1, "lambd": 0.05, "alpha": 0.5, "t0": 3.0, "weight_decay": 0.05},
        {"lr": 0.1, "t0": 0.0, "maximize": True},
    ],
}


def gradients(step, dtype):
    row = torch.arange(ROWS).unsqueeze(1)
    column = torch.arange(COLUMNS).unsqueeze(0)
    weight = ((row * 5 + column * 3 + step * 7) % 11 - 5).to(dtype) / 4
    bias = ((torch.arange(ROWS) * 4 + step * 3) % 7 - 3).to(dtype) / 4
    return weight, bias


def run(name, given, dtype):
    weight = torch.arange(ROWS * COLUMNS, dtype=dtype).reshape(ROWS, COLUMNS) / 8 - 0.5
    bias = torch.arange(ROWS, dtype=dtype) / 4 - 0.25
    parameters = [torch.nn.Parameter(weight), torch.nn.Parameter(bias)]
    optimizer = getattr(torch.optim, name)(parameters, **given)
    steps = []
    for step in range(1, STEPS + 1):
        for parameter, gradient in zip(parameters, gradients(step, dtype)):
            parameter.grad = gradient.clone()
        optimizer.step()
        steps.append([parameter.detach().flatten().tolist() for parameter in parameters])
    state = [
        sum(each.numel() for each in optimizer.state[one].values() if each.dim() > 0)
        for one in parameters
    ]
    return {
        "optimizer": {name: given},
        "dtype": "fp32" if dtype == torch.float32 else "fp64",
        "group": len(optimizer.param_groups[0]),
        "counters": sum(1 for each in optimizer.state[parameters[0]].values() if each.dim() == 0),
        "state": state,
        "steps": steps,
    }


def main():
    check = sys.argv[1:] == ["--check"]
    if sys.argv[1:] and not check:
        sys.exit("optimizers [--check]")
    FOLDER.mkdir(parents=True, exist_ok=True)
    differing = []
    for name, settings in SETTINGS.items():
        recording = {
            "torch": torch.__version__.split("+")[0],
            "settings": [
                run(name, given, dtype)
                for given in settings
                for dtype in (torch.float32, torch.float64)
            ],
        }
        text = json.dumps(recording, separators=(",", ":")).replace('{"opt', '\n{"opt') + "\n"
        path = FOLDER / f"{name}.json"
        if not check:
            path.write_text(text)
        elif not path.exists() or path.read_text() != text:
            differing.append(name)
    if differing:
        sys.exit(f"differs from the recording: {', '.join(differing)}")


if __name__ == "__main__":
    main()
