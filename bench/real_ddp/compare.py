"""Step time of `lockstep exec` with DDP against PyTorch's own DDP, on this machine.

  .cache/oracle/environment/bin/python bench/real_ddp/compare.py [MODEL] [ROUNDS]

MODEL is mlp, resnet18, resnet50 or gpt2. Each round runs both, in turns, each with two ranks (on
GPUs: as many as there are GPUs, at most two), the same model, batch, bucket caps and optimizer; the
first step is left out, and the median of the others taken. On the CPU the cores are shared out among
the ranks. Printed are the medians of the rounds and their ratio with the range that 95 of 100
resamplings of the rounds stay in. `./dev oracle` makes the environment; on GPUs it is any with
PyTorch for CUDA.

Before anything is timed both sides must hold the same bytes of parameters and buffers, and
`lockstep exec` must have computed a loss: two programs that do different work have no ratio.
"""

import argparse
import json
import os
import pathlib
import random
import socket
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
LOGGED = "program={training_step: [{log: {name: train_loss, value: loss}}]}"


def arguments():
    parser = argparse.ArgumentParser(description="DDP: lockstep exec against PyTorch")
    parser.add_argument("model", nargs="?", default="mlp")
    parser.add_argument("rounds", nargs="?", type=int, default=10)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--lockstep", default=HERE.parents[1] / "build" / "bin" / "lockstep")
    return parser.parse_args()


def free_port():
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return listening.getsockname()[1]


def lockstep_exec(asked, *options):
    accelerator = "gpu" if asked.device == "cuda" else "cpu"
    command = [asked.lockstep, "exec", HERE / f"{asked.model}.yaml", "--format", "json"]
    command += ["--device", asked.device, "--skip-values", "--hang-after", "60", *options]
    command += ["--set", f"trainer.accelerator={accelerator}"]
    command += ["--set", f"trainer.devices={asked.ranks}"]
    command += ["--set", f"trainer.max_steps={asked.steps}"]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True, timeout=600)
    return json.loads(done.stdout)


def lockstep_seconds(asked):
    return lockstep_exec(asked)["comparison"]["real_step_time_s"]


def torch_run(asked):
    """Median seconds of a step, and bytes of parameters and buffers."""
    variables = dict(os.environ, WORLD_SIZE=str(asked.ranks), MASTER_ADDR="127.0.0.1")
    variables |= {"MASTER_PORT": str(free_port()), "GLOO_SOCKET_IFNAME": "lo"}
    command = [sys.executable, "-W", "ignore", HERE / "torch_ddp.py"]
    command += [asked.model, str(asked.steps), asked.device]
    ranks = [
        subprocess.Popen(command, env=variables | {"RANK": str(rank)}, stdout=subprocess.PIPE)
        for rank in range(asked.ranks)
    ]
    seconds, state = [rank.communicate(timeout=600)[0] for rank in ranks][0].split()
    return float(seconds), int(state)


def torch_seconds(asked):
    return torch_run(asked)[0]


def ensure_same_work(asked):
    done = lockstep_exec(
        asked, "--set", LOGGED, "--set", "expect=[metric train_loss > 0, no_findings]"
    )
    ours = done["ranks"][0]["memory"]["by_purpose_bytes"]["parameter"]
    theirs = torch_run(asked)[1]
    if ours != theirs:
        sys.exit(f"{asked.model}: lockstep holds {ours} bytes of parameters and buffers, "
                 f"PyTorch {theirs}")
    if not all(expectation["met"] for expectation in done["expectations"]):
        sys.exit(f"{asked.model}: lockstep exec computed no loss")


def ratio_of(rounds):
    ours, theirs = zip(*rounds)
    return statistics.median(ours) / statistics.median(theirs)


def main():
    asked = arguments()
    ensure_same_work(asked)
    rounds = []
    for number in range(asked.rounds):
        # Who goes first changes, so that neither always follows the other.
        if number % 2 == 0:
            ours, theirs = lockstep_seconds(asked), torch_seconds(asked)
        else:
            theirs, ours = torch_seconds(asked), lockstep_seconds(asked)
        rounds.append((ours, theirs))
        print(f"{1e3 * ours:8.1f} ms  {1e3 * theirs:8.1f} ms", file=sys.stderr, flush=True)
    draw = random.Random(1)
    ratios = sorted(ratio_of(draw.choices(rounds, k=asked.rounds)) for _ in range(2000))
    ours, theirs = (1e3 * statistics.median(times) for times in zip(*rounds))
    print(
        f"{asked.model} on {asked.device}, {asked.ranks} ranks: lockstep {ours:.1f} ms, "
        f"PyTorch {theirs:.1f} ms, ratio {ratio_of(rounds):.3f} "
        f"({ratios[50]:.3f} to {ratios[1949]:.3f}), {asked.rounds} rounds"
    )


main()
