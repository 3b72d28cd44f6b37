"""Step time of `lockstep exec` with DDP against PyTorch's own DDP, on this machine.

  .cache/oracle/environment/bin/python bench/real_ddp/compare.py [MODEL] [ROUNDS]

MODEL is mlp or resnet18. Each round runs both, in turns, each with two ranks of one thread, the
same model, batch, bucket caps and optimizer; the first step is left out, and the median of the
others taken. Printed are the medians of the rounds and their ratio with the range that 95 of 100
resamplings of the rounds stay in. `./dev oracle` makes the environment.
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


def lockstep_seconds(model):
    done = subprocess.run(
        [LOCKSTEP, "exec", HERE / f"{model}.yaml", "--device", "cpu", "--format", "json"],
        capture_output=True, check=True, text=True, timeout=600,
    )  # fmt: skip
    return json.loads(done.stdout)["comparison"]["real_step_time_s"]


def torch_seconds(model):
    variables = dict(os.environ, WORLD_SIZE=str(RANKS), MASTER_ADDR="127.0.0.1")
    variables |= {"MASTER_PORT": str(free_port()), "GLOO_SOCKET_IFNAME": "lo"}
    command = [sys.executable, "-W", "ignore", HERE / "torch_ddp.py", model, str(STEPS)]
    ranks = [
        subprocess.Popen(command, env=variables | {"RANK": str(rank)}, stdout=subprocess.PIPE)
        for rank in range(RANKS)
    ]
    return float([rank.communicate(timeout=600)[0] for rank in ranks][0])


def ratio_of(rounds):
    ours, theirs = zip(*rounds)
    return statistics.median(ours) / statistics.median(theirs)


def main():
    model = sys.argv[1] if len(sys.argv) > 1 else "mlp"
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 10
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
