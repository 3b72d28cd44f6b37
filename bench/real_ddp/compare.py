"""Step time of `lockstep exec` with DDP against PyTorch's own DDP, on this machine.

  .cache/oracle/environment/bin/python bench/real_ddp/compare.py [MODEL] [ROUNDS]

MODEL is mlp or resnet18. Each round runs both, in turns, each with two ranks of one thread, the
same model, batch, bucket caps and optimizer; the first step is left out, and the median of the
others taken. Printed are the medians of the rounds and their ratio with the range that 95 of 100
resamplings of the rounds stay in. `./dev oracle` makes the environment.

Before anything is timed both sides must hold the same bytes of parameters and buffers, and
`lockstep exec` must have computed a loss: two programs that do different work have no ratio.
"""

import json
import os
import pathlib
import random
import socket
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
LOCKSTEP = HERE.parents[1] / "build" / "bin" / "lockstep"
RANKS = 2
STEPS = 20


def free_port():
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return listening.getsockname()[1]


LOGGED = "program={training_step: [{log: {name: train_loss, value: loss}}]}"


def lockstep_exec(model, *options):
    command = [LOCKSTEP, "exec", HERE / f"{model}.yaml", "--device", "cpu", "--format", "json"]
    done = subprocess.run(
        [*command, *options], stdout=subprocess.PIPE, check=True, text=True, timeout=600
    )
    return json.loads(done.stdout)


def lockstep_seconds(model):
    return lockstep_exec(model)["comparison"]["real_step_time_s"]


def torch_run(model):
    """Median seconds of a step, and bytes of parameters and buffers."""
    variables = dict(os.environ, WORLD_SIZE=str(RANKS), MASTER_ADDR="127.0.0.1")
    variables |= {"MASTER_PORT": str(free_port()), "GLOO_SOCKET_IFNAME": "lo"}
    command = [sys.executable, "-W", "ignore", HERE / "torch_ddp.py", model, str(STEPS)]
    ranks = [
        subprocess.Popen(command, env=variables | {"RANK": str(rank)}, stdout=subprocess.PIPE)
        for rank in range(RANKS)
    ]
    seconds, state = [rank.communicate(timeout=600)[0] for rank in ranks][0].split()
    return float(seconds), int(state)


def torch_seconds(model):
    return torch_run(model)[0]


def ensure_same_work(model):
    done = lockstep_exec(
        model, "--set", LOGGED, "--set", "expect=[metric train_loss > 0, no_findings]"
    )
    ours = done["ranks"][0]["memory"]["by_purpose_bytes"]["parameter"]
    theirs = torch_run(model)[1]
    if ours != theirs:
        sys.exit(f"{model}: lockstep holds {ours} bytes of parameters and buffers, PyTorch {theirs}")
    if not all(expectation["met"] for expectation in done["expectations"]):
        sys.exit(f"{model}: lockstep exec computed no loss")


def ratio_of(rounds):
    ours, theirs = zip(*rounds)
    return statistics.median(ours) / statistics.median(theirs)


def main():
    model = sys.argv[1] if len(sys.argv) > 1 else "mlp"
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 10
    ensure_same_work(model)
    rounds = []
    for number in range(count):
        # Who goes first changes, so that neither always follows the other.
        if number % 2 == 0:
            ours, theirs = lockstep_seconds(model), torch_seconds(model)
        else:
            theirs, ours = torch_seconds(model), lockstep_seconds(model)
        rounds.append((ours, theirs))
        print(f"{1e3 * ours:8.1f} ms  {1e3 * theirs:8.1f} ms", file=sys.stderr, flush=True)
    draw = random.Random(1)
    ratios = sorted(ratio_of(draw.choices(rounds, k=count)) for _ in range(2000))
    ours, theirs = (1e3 * statistics.median(times) for times in zip(*rounds))
    print(
        f"{model}: lockstep {ours:.1f} ms, PyTorch {theirs:.1f} ms, ratio {ratio_of(rounds):.3f} "
        f"({ratios[50]:.3f} to {ratios[1949]:.3f}), {count} rounds"
    )


main()
