"""Records what torch's DistributedDataParallel does in every setting of settings.py, what
TorchMetrics does in every setting of metric_settings.py and metric_family_settings.py, what
Lightning's Trainer does in every scenario of lightning_settings.py, and what strategies that shard
do in every setting of sharded_settings.py.

  ./dev oracle [--check] [NAME...]

Each setting runs over Gloo on loopback, one process per rank. The flight recorder says which
collectives every rank issued; losses, gradients and final state are written beside them, to
tests/data/oracle/NAME.json, of metrics to metrics/NAME.json there, of Lightning to
lightning/NAME.json, of sharding to sharded/NAME.json. With --check nothing is written: what runs
now must equal what the files hold, up to rounding where a setting is not exact (another processor
may add in a different order).
"""

import argparse
import contextlib
import datetime
import json
import math
import os
import pathlib
import platform
import signal
import socket
import sys
import tempfile
import time
import traceback
import warnings

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / "tests" / "data" / "oracle"

os.environ["TORCH_FR_BUFFER_SIZE"] = "20000"
os.environ["GLOO_SOCKET_IFNAME"] = "lo"
os.environ["TORCH_CPP_LOG_LEVEL"] = "ERROR"
warnings.filterwarnings("ignore", "Failed to initialize NumPy")

import torch  # noqa: E402
import torch.distributed  # noqa: E402
from torch.nn.parallel import DistributedDataParallel  # noqa: E402

import collectives  # noqa: E402
import hooks  # noqa: E402
import lightning_run  # noqa: E402
import metric_names  # noqa: E402
import metrics  # noqa: E402
import network as networks  # noqa: E402
import sharded  # noqa: E402
from lightning_settings import LIGHTNING_SETTINGS  # noqa: E402
from metric_family_settings import METRIC_FAMILY_SETTINGS  # noqa: E402
from metric_settings import METRIC_SETTINGS  # noqa: E402
from pipeline_settings import PIPELINE_SETTINGS  # noqa: E402
from recorded_text import agree, greatest_in, numbers_in, text_of, written  # noqa: E402
from settings import SETTINGS  # noqa: E402
from sharded_settings import SHARDED_SETTINGS  # noqa: E402
from tensor_settings import TENSOR_SETTINGS  # noqa: E402

# What Gloo says on a rank that waited: for the time limit, or until another's ended it.
WAITING_SIGNS = ("Timed out", "timeout caused pair closure", "Connection closed by peer")
NAMES = "torchmetrics-names"
# How long one rank of one setting may take.
RANK_SECONDS_MAX = 300
# What a rank of ours may raise.
RAISED = (RuntimeError, ValueError, AssertionError, AttributeError)


class RankRun:
    """One rank's training, and what there is to say about it."""

    def __init__(self, setting, rank):
        self.setting = setting
        self.rank = rank
        self.record = {"ended": "finished", "losses": [], "gradients": []}
        module = networks.Network(setting["network"])
        networks.draw_parameters(module, setting["seed"], rank)
        self.module = module.to(networks.DTYPES[setting["dtype"]])
        self.scaler = None
        if "loss_scale" in setting:
            self.scaler = torch.amp.GradScaler("cpu", **setting["loss_scale"])
            self.record["scales"] = []

    def train(self):
        setting = self.setting
        options = dict(setting["ddp"])
        joins = options.pop("join", False)
        divide = options.pop("divide_by_initial_world_size", True)
        self.hooks = hooks.Hooks(options, setting.get("ranks_per_node", setting["world_size"]))
        network = DistributedDataParallel(self.module, **options)
        self.hooks.register(network)
        trainable = [p for p in self.module.parameters() if p.requires_grad]
        optimizer = torch.optim.SGD(trainable, **setting["optimizer"])
        data = networks.DataSet(setting, setting["network"]["output"])
        join = contextlib.nullcontext()
        if joins:
            join = network.join(divide_by_initial_world_size=divide)
        with join:
            for iteration in setting["iterations"][self.rank]:
                self._iterate(network, optimizer, data, iteration)

    def _iterate(self, network, optimizer, data, iteration):
        description = self.setting["network"]
        inputs = data.inputs(iteration["samples"])
        target = data.targets(iteration["samples"])
        skipped = iteration.get("skipped_layers", [])
        if not iteration.get("training", True):
            network.eval()
            with torch.no_grad():
                loss = networks.loss_of(description, network(inputs, skipped), target)
            self.record["losses"].append(loss.item())
            network.train()
            return
        synchronises = iteration.get("synchronise", True)
        with contextlib.nullcontext() if synchronises else network.no_sync():
            with self._precision():
                loss = networks.loss_of(description, network(inputs, skipped), target)
            self.record["losses"].append(loss.item())
            loss = loss * iteration.get("loss_factor", 1)
            (self.scaler.scale(loss) if self.scaler else loss).backward()
        self.record["gradients"].append(
            {name: written(p.grad) for name, p in self.module.named_parameters() if p.requires_grad}
        )
        if iteration.get("step", True):
            self._step(optimizer)
            self.hooks.after_step(p for g in optimizer.param_groups for p in g["params"])
            optimizer.zero_grad(set_to_none=self.setting.get("set_to_none", True))

    def _step(self, optimizer):
        """In the order of Lightning's MixedPrecision."""
        if not self.scaler:
            return optimizer.step()
        scale = self.scaler.get_scale()
        self.scaler.unscale_(optimizer)
        if "clip_norm" in self.setting:
            trained = [p for group in optimizer.param_groups for p in group["params"]]
            torch.nn.utils.clip_grad_norm_(trained, self.setting["clip_norm"])
        taken = []
        handle = optimizer.register_step_post_hook(lambda *_: taken.append(True))
        self.scaler.step(optimizer)
        handle.remove()
        self.scaler.update()
        self.record["scales"].append({
            "scale": scale,
            "skipped": not taken,
            "growth_tracker": self.scaler._get_growth_tracker(),
        })

    def _precision(self):
        narrow = self.setting.get("autocast")
        return (torch.autocast("cpu", dtype=networks.DTYPES[narrow]) if narrow
                else contextlib.nullcontext())

    def finish(self):
        self.record["parameters"] = {n: written(p) for n, p in self.module.named_parameters()}
        self.record["buffers"] = {n: written(b) for n, b in self.module.named_buffers()}
        self.record["operations"] = collectives.operations()
        if not self.setting.get("values", True):
            for key in ("losses", "gradients", "parameters", "buffers"):
                del self.record[key]
        return self.record


def begin_rank(setting, rank, folder):
    torch.set_num_threads(1)
    if "scenario" in setting:  # its trainer joins the ranks
        lightning_run.environment(rank, setting["world_size"], setting["port"])
        os.chdir(folder)
        return lightning_run.LightningRun(setting, rank)
    store = torch.distributed.FileStore(str(folder / "store"), setting["world_size"])
    torch.distributed.init_process_group(
        "gloo",
        store=store,
        rank=rank,
        world_size=setting["world_size"],
        timeout=datetime.timedelta(seconds=setting.get("timeout_s", 60)),
    )
    if sharded.family_of(setting):
        if "checkpoint" in setting:
            os.chdir(folder)
        return sharded.ShardedRun(setting, rank, written)
    return (metrics.MetricRun if "metric" in setting else RankRun)(setting, rank)


def run_rank(setting, rank, folder):
    run = begin_rank(setting, rank, folder)
    try:
        run.train()
    except (Exception, SystemExit) as error:
        if "scenario" not in setting and not isinstance(error, RAISED):
            raise
        stuck = any(sign in str(error) for sign in WAITING_SIGNS)
        run.record["ended"] = "stuck" if stuck else "raised"
        if not stuck:
            run.record["message"] = str(error).split("\n")[0].split(". ")[0]
            if "scenario" in setting:
                run.record["exception"] = type(error).__name__
    with open(folder / f"{rank}.json", "w") as file:
        json.dump(run.finish(), file)
    # The others shall learn of this rank's end by their own time limit alone, as from a hang.
    if run.record["ended"] == "raised" or "scenario" in setting:
        wait_for_the_others(setting, folder)


def wait_for_the_others(setting, folder):
    limit = time.monotonic() + setting.get("timeout_s", 60) + 10
    while time.monotonic() < limit:
        if all((folder / f"{r}.json").exists() for r in range(setting["world_size"])):
            return
        time.sleep(0.05)


def start_rank(setting, rank, folder):
    process = os.fork()
    if process != 0:
        return process
    # Where no time limit of Gloo's applies, a rank that waits ends here, and the recording with it.
    signal.alarm(RANK_SECONDS_MAX)
    status = 0
    try:
        run_rank(setting, rank, folder)
    except BaseException:
        traceback.print_exc()
        status = 1
    sys.stdout.flush()
    sys.stderr.flush()
    # The process group's threads abort in a normal exit.
    os._exit(status)


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def run(setting):
    if "scenario" in setting:
        setting = {**setting, "port": free_port()}
    if sharded.family_of(setting):
        sharded.prepare(setting)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        processes = [start_rank(setting, r, folder) for r in range(setting["world_size"])]
        statuses = [os.waitpid(process, 0)[1] for process in processes]
        if setting.get("fails"):
            # Gloo ends a process whose calls do not fit; how far the others come depends on timing.
            return [{"ended": ended(folder / f"{r}.json")} for r in range(len(processes))]
        if any(statuses):
            raise SystemExit(f"oracle: a rank of {setting['name']} failed")
        return [json.loads((folder / f"{r}.json").read_text()) for r in range(len(processes))]


def ended(path):
    """A process that was ended while it wrote has left a part of its record."""
    try:
        return "finished" if json.loads(path.read_text())["ended"] == "finished" else "failed"
    except (OSError, json.JSONDecodeError):
        return "failed"


def has_bits_to_spare(value):
    """The last six bits of the mantissa are zero: nothing was rounded away on the way here."""
    mantissa, _ = math.frexp(value)
    return (mantissa * 2**47).is_integer()


def is_exact(setting, ranks):
    """Whether nothing was rounded: then no order of summation matters."""
    state = ("gradients", "parameters", "buffers")
    if sharded.family_of(setting):
        if sharded.rounds(setting) or ranks[0]["ended"] != "finished":
            return False
        state = tuple(key for key in state if key in ranks[0])
    if setting["dtype"] == "fp64":
        return all(has_bits_to_spare(n) for r in ranks for k in state for n in numbers_in(r[k]))
    if setting["dtype"] != "fp32":
        return False
    finer = run({**setting, "dtype": "fp64"})
    return all(a[key] == b[key] for a, b in zip(ranks, finer) for key in (*state, "losses"))


def recording(setting):
    ranks = run(setting)
    recorded_with = {
        "command": f"./dev oracle {setting['name']}",
        "torch": torch.__version__,
        "python": platform.python_version(),
        "backend": "gloo",
    }
    if "metric" in setting:
        recorded_with["torchmetrics"] = metrics.torchmetrics.__version__
        return {"recorded_with": recorded_with, "setting": setting, "ranks": ranks}
    if "scenario" in setting:
        recorded_with["torchmetrics"] = metrics.torchmetrics.__version__
        recorded_with["pytorch-lightning"] = lightning_run.pytorch_lightning.__version__
        return {"recorded_with": recorded_with, **setting, "ranks": ranks}
    return {
        "recorded_with": recorded_with,
        "setting": setting,
        "exact": setting.get("values", True) and is_exact(setting, ranks),
        "ranks": ranks,
    }


def same(old, new):
    """Everything but the versions; numbers up to 64 roundings where something was rounded."""
    if "scenario" in new:
        return old["scenario"] == new["scenario"] and agree(
            old["ranks"], new["ranks"], 64 * 2.0**-24)
    if new["setting"].get("fails"):
        # Which ranks a broken exchange takes down with it depends on who was faster.
        failed = [[r for r in made["ranks"] if r["ended"] == "failed"] for made in (old, new)]
        return old["setting"] == new["setting"] and all(failed)
    if "metric" in new["setting"]:
        return old["setting"] == new["setting"] and agree(old["ranks"], new["ranks"], 64 * 2.0**-24)
    if any(old[key] != new[key] for key in ("setting", "exact")):
        return False
    roundoff = 2.0**-53 if new["setting"]["dtype"] == "fp64" else 2.0**-24
    if sharded.family_of(new["setting"]):
        roundoff = sharded.roundoff(new["setting"])
    tolerance = 0.0 if new["exact"] else 64 * roundoff
    for a, b in zip(old["ranks"], new["ranks"]):
        for key in ("losses", "gradients"):
            pairs = zip(a.pop(key, []), b.pop(key, []))
            if not all(agree(x, y, tolerance * greatest_in(x)) for x, y in pairs):
                return False
        if not agree(a, b, tolerance * greatest_in(a)):
            return False
    return True


def folder_of(setting):
    if sharded.family_of(setting):
        return "sharded"
    return "metrics" if "metric" in setting else "lightning" if "scenario" in setting else ""


def record_names(only_compares):
    """What TorchMetrics exports, to torchmetrics/names.json."""
    made = {"torchmetrics": metrics.torchmetrics.__version__,
            **metric_names.names(pathlib.Path(metrics.torchmetrics.__file__).parent)}
    path = FOLDER / "torchmetrics" / "names.json"
    if only_compares:
        held = path.exists() and json.loads(path.read_text()) == made
        print(f"{NAMES}: {'holds' if held else 'DIFFERS'}", flush=True)
        return [] if held else [NAMES]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text_of(made) + "\n")
    print(f"{NAMES}: recorded", flush=True)
    return []


def main():
    parser = argparse.ArgumentParser(prog="./dev oracle")
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    parser.add_argument("names", nargs="*", help="settings; none: all and the names")
    arguments = parser.parse_args()
    settings = SETTINGS + METRIC_SETTINGS + METRIC_FAMILY_SETTINGS + LIGHTNING_SETTINGS
    settings += SHARDED_SETTINGS + TENSOR_SETTINGS + PIPELINE_SETTINGS
    unknown = set(arguments.names) - {s["name"] for s in settings} - {NAMES}
    if unknown:
        parser.error(f"no setting {', '.join(sorted(unknown))}")
    differing = []
    if not arguments.names or NAMES in arguments.names:
        differing += record_names(arguments.check)
    for setting in settings:
        if arguments.names and setting["name"] not in arguments.names:
            continue
        made = json.loads(json.dumps(recording(setting)))
        folder = FOLDER / folder_of(setting)
        path = folder / f"{setting['name']}.json"
        if arguments.check:
            held = path.exists() and same(json.loads(path.read_text()), made)
            differing += [] if held else [setting["name"]]
            print(f"{setting['name']}: {'holds' if held else 'DIFFERS'}", flush=True)
        else:
            folder.mkdir(parents=True, exist_ok=True)
            path.write_text(text_of(made) + "\n")
            how = {True: "exact", False: "rounded"}.get(made.get("exact"), "recorded")
            print(f"{setting['name']}: {how}", flush=True)
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
