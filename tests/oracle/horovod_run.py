"""Records what Horovod 0.28.1 does in every setting of horovod_settings.py.

  ./dev oracle horovod [--check] [NAME...]

Each setting runs over Gloo on loopback, one process per rank, with the calls in the order in which
Lightning's HorovodStrategy makes them. What a rank hands over is noted as it does so; what the
background threads carried out, and what they fused, is read from rank 0's HOROVOD_TIMELINE. Written
to tests/data/oracle/horovod/NAME.json.
"""

import argparse
import contextlib
import json
import os
import pathlib
import platform
import signal
import sys
import tempfile
import threading
import time
import traceback

import horovod.torch as hvd
import horovod.torch.functions as functions
import horovod.torch.optimizer as optimizers
import torch
from horovod.common.exceptions import HorovodInternalError
from horovod.runner.common.util.hosts import get_host_assignments, parse_hosts
from horovod.runner.http.http_server import RendezvousServer

import network as networks
from horovod_settings import HOROVOD_SETTINGS
from recorded_text import agree, greatest_in, text_of, written

FOLDER = pathlib.Path(__file__).resolve().parents[1] / "data" / "oracle" / "horovod"
RANK_SECONDS_MAX = 120
# A thread of its own writes the timeline, and a shutdown does not wait for it.
TIMELINE_SECONDS = 1
TYPE_NAMES = {torch.float64: "fp64", torch.float32: "fp32", torch.float16: "fp16",
              torch.int64: "int64", torch.int32: "int32", torch.uint8: "uint8"}
KINDS = {"ALLREDUCE": "all_reduce", "ALLGATHER": "all_gather", "BROADCAST": "broadcast"}


class HandedOver:
    """The calls of this rank: [kind, name, dtype, elements]."""

    def __init__(self):
        self.calls = []
        for module in (optimizers, functions):
            self._watch(module, "allreduce_async_", "all_reduce")
            self._watch(module, "broadcast_async_", "broadcast")
            self._watch(module, "broadcast_", "broadcast")
            self._watch_groups(module)

    def note(self, kind, name, tensor):
        self.calls.append([kind, name, TYPE_NAMES[tensor.dtype], tensor.numel()])

    def _watch(self, module, function, kind):
        inner = getattr(module, function, None)
        if inner is None:
            return
        # A broadcast has its root before the name.
        def call(tensor, *others, **named):
            name = named["name"] if "name" in named else others[1]
            self.note(kind, name, tensor)
            return inner(tensor, *others, **named)
        setattr(module, function, call)

    def _watch_groups(self, module):
        inner = getattr(module, "grouped_allreduce_async_", None)
        if inner is None:
            return
        def call(tensors, name, **named):
            for number, tensor in enumerate(tensors):
                self.note("all_reduce", f"{name}_{number + 1}of{len(tensors)}", tensor)
            return inner(tensors, name=name, **named)
        module.grouped_allreduce_async_ = call


class RankRun:
    """One rank, and what there is to say about it."""

    def __init__(self, setting, rank, process_sets):
        self.setting = setting
        self.rank = rank
        self.process_sets = process_sets
        self.handed_over = HandedOver()
        self.record = {}

    def train(self):
        setting = self.setting
        self.record = {"losses": [], "gradients": []}
        module = networks.Network(setting["network"])
        networks.draw_parameters(module, setting["seed"], self.rank)
        self.module = module.to(networks.DTYPES[setting["dtype"]])
        optimizer = self._optimizer()
        data = networks.DataSet(setting, setting["network"]["output"])
        for iteration in setting["iterations"][self.rank]:
            self._iterate(optimizer, data, iteration)
        hvd.join()
        self.record["parameters"] = {n: written(p) for n, p in self.module.named_parameters()}
        self.record["buffers"] = {n: written(b) for n, b in self.module.named_buffers()}

    def _optimizer(self):
        arguments = dict(self.setting["optimizer"])
        kind = getattr(torch.optim, arguments.pop("kind", "SGD"))
        trainable = [p for p in self.module.parameters() if p.requires_grad]
        optimizer = kind(trainable, **arguments)
        hvd.broadcast_parameters(self.module.state_dict(), root_rank=0)
        hvd.broadcast_optimizer_state(optimizer, root_rank=0)
        options = dict(self.setting["horovod"])
        if "num_groups" in options:
            options["groups"] = options.pop("num_groups")
        options["compression"] = getattr(hvd.Compression, options.get("compression", "none"))
        if self.process_sets:
            options["process_set"] = self._own_process_set()
        named = [(n, p) for n, p in self.module.named_parameters() if p.requires_grad]
        return hvd.DistributedOptimizer(optimizer, named_parameters=named, **options)

    def _own_process_set(self):
        """A rank of none hands over one of the others', in which it trains by itself."""
        own = [each for each in self.process_sets if each.included()]
        return (own or self.process_sets)[0]

    def _iterate(self, optimizer, data, iteration):
        description = self.setting["network"]
        inputs = data.inputs(iteration["samples"])
        target = data.targets(iteration["samples"])
        output = self.module(inputs, iteration.get("skipped_layers", []))
        loss = networks.loss_of(description, output, target)
        self.record["losses"].append(loss.item())
        (loss * iteration.get("loss_factor", 1)).backward()
        optimizer.synchronize()
        self.record["gradients"].append(
            {n: written(p.grad) for n, p in self.module.named_parameters() if p.requires_grad})
        if iteration.get("step", True):
            with optimizer.skip_synchronize():
                optimizer.step()
            optimizer.zero_grad()

    def follow_script(self):
        """The values of a tensor are its position, and 10 for each rank."""
        self.record = {"results": []}
        waiting = []
        for kind, *arguments in self.setting["script"][self.rank]:
            if kind == "wait":
                for handle in waiting:
                    self.record["results"].append(self._result_of(handle))
                waiting = []
            elif kind == "join":
                self.record["results"].append({"last_joined": hvd.join()})
            else:
                waiting.append(self._hand_over(kind, *arguments))

    def _hand_over(self, kind, name, dtype, elements, option, process_set=None):
        tensor = torch.arange(elements, dtype=networks.DTYPES[dtype]) + 10 * self.rank
        self.handed_over.note(kind, name, tensor)
        among = {} if process_set is None else {"process_set": self.process_sets[process_set]}
        if kind == "all_reduce":
            operator = {"average": hvd.Average, "sum": hvd.Sum, "min": hvd.Min, "max": hvd.Max,
                        "product": hvd.Product}[option]
            return hvd.allreduce_async(tensor, name=name, op=operator, **among)
        if kind == "broadcast":
            return hvd.broadcast_async(tensor, option, name=name, **among)
        return hvd.allgather_async(tensor, name=name, **among)

    @staticmethod
    def _result_of(handle):
        try:
            return written(hvd.synchronize(handle))
        except HorovodInternalError as error:
            return {"raised": str(error).split(":")[0].split(".")[0]}


def carried_out(timeline, calls):
    """[kind, dtype, elements, names] of each call of rank 0's background thread: tensors whose
    event begins before those of others have ended travel together."""
    text, events, at = timeline.read_text(), [], 0
    while (at := text.find("{", at)) >= 0:  # several in a line, the last of them cut off
        try:
            event, at = json.JSONDecoder().raw_decode(text, at)
        except json.JSONDecodeError:
            break
        events.append(event)
    names = {e["pid"]: e["args"]["name"] for e in events if e.get("name") == "process_name" and "name" in e.get("args", {})}
    sizes = {}  # of each call of a name, in their order
    for kind, name, dtype, elements in calls:
        sizes.setdefault((kind, name), []).append((dtype, elements))
    responses, depth, opened = [], {}, 0
    for event in events:
        pid = event.get("pid")
        if event["ph"] == "B":
            depth[pid] = depth.get(pid, 0) + 1
            if depth[pid] == 1 and event["name"] in KINDS:
                if not opened:
                    responses.append([KINDS[event["name"]], []])
                responses[-1][1].append(names[pid])
                opened += 1
                depth[pid] = 1000  # an operation, not its negotiation
        elif event["ph"] == "E":
            depth[pid] -= 1
            if depth[pid] == 999:
                depth[pid] = 0
                opened -= 1
    result = []
    for kind, whole in responses:
        # What an operation is called begins with its kind.
        short = [name.split(".", 1)[1] for name in whole]
        # A rank that has joined takes part in later calls of a name.
        of_them = [of.pop(0) if len(of) > 1 else of[0] for of in
                   (sizes.get((kind, name), [(None, 0)]) for name in short)]
        result.append([kind, of_them[0][0], sum(elements for _, elements in of_them), short])
    return result


def without_errors(rank):
    """The calls of a rank that the background thread did not refuse."""
    results = [r for r in rank.get("results", []) if "last_joined" not in r]
    refused = {at for at, result in enumerate(results) if "raised" in result}
    return [call for at, call in enumerate(rank["handed_over"]) if at not in refused]


def environment(setting, slot, port, folder):
    return {
        "HOROVOD_HOSTNAME": slot.hostname,
        "HOROVOD_RANK": str(slot.rank), "HOROVOD_SIZE": str(slot.size),
        "HOROVOD_LOCAL_RANK": str(slot.local_rank), "HOROVOD_LOCAL_SIZE": str(slot.local_size),
        "HOROVOD_CROSS_RANK": str(slot.cross_rank), "HOROVOD_CROSS_SIZE": str(slot.cross_size),
        "HOROVOD_GLOO_RENDEZVOUS_ADDR": "127.0.0.1", "HOROVOD_GLOO_RENDEZVOUS_PORT": str(port),
        "HOROVOD_CONTROLLER": "gloo", "HOROVOD_CPU_OPERATIONS": "gloo",
        "HOROVOD_GLOO_IFACE": "lo", "HOROVOD_TIMELINE": str(folder / "timeline"),
        "HOROVOD_LOG_LEVEL": "fatal", **setting["environment"],
    }


def run_rank(setting, rank, folder):
    torch.set_num_threads(1)
    process_sets = [hvd.ProcessSet(ranks) for ranks in setting.get("process_sets", [])]
    hvd.init(process_sets=process_sets)
    run = RankRun(setting, rank, process_sets)
    ended = "finished"
    write = lambda how: (folder / f"{rank}.json").write_text(json.dumps(
        {"ended": how, "handed_over": run.handed_over.calls, **run.record}))
    if "stuck_after_s" in setting:
        threading.Timer(setting["stuck_after_s"], lambda: (
            write("stuck"), time.sleep(TIMELINE_SECONDS), os._exit(0))).start()
    try:
        run.follow_script() if "script" in setting else run.train()
    except Exception as error:
        traceback.print_exc()
        ended = "raised"
        run.record["message"] = str(error).split("\n")[0].split(". ")[0]
    time.sleep(TIMELINE_SECONDS)
    hvd.shutdown()
    write(ended)


def start_rank(setting, slot, port, folder):
    process = os.fork()
    if process != 0:
        return process
    signal.alarm(RANK_SECONDS_MAX)
    status = 1
    with contextlib.suppress(BaseException):
        os.environ.update(environment(setting, slot, port, folder))
        run_rank(setting, slot.rank, folder)
        status = 0
    sys.stdout.flush()
    os._exit(status)


def recording(setting):
    server = RendezvousServer()
    port = server.start()
    size = setting["world_size"]
    slots = get_host_assignments(parse_hosts(f"localhost:{size}"), size)
    server.init(slots)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        processes = [start_rank(setting, slot, port, folder) for slot in slots]
        statuses = [os.waitpid(process, 0)[1] for process in processes]
        server.stop()
        # What is stuck is aborted by Gloo once another rank has ended.
        if any(statuses) and "stuck_after_s" not in setting:
            raise SystemExit(f"oracle: a rank of {setting['name']} failed")
        ranks = [json.loads((folder / f"{rank}.json").read_text()) for rank in range(size)]
        responses = carried_out(folder / "timeline", without_errors(ranks[0]))
    return {
        "recorded_with": {
            "command": f"./dev oracle horovod {setting['name']}", "horovod": hvd.__version__
            if hasattr(hvd, "__version__") else sys.modules["horovod"].__version__,
            "torch": torch.__version__, "python": platform.python_version(), "backend": "gloo"},
        "setting": setting, "carried_out": responses, "ranks": ranks}


def same(old, new):
    allowed = 64 * 2.0**-24 * max(1.0, greatest_in(old["ranks"]))
    return (old["setting"] == new["setting"] and old["carried_out"] == new["carried_out"]
            and agree(old["ranks"], new["ranks"], allowed))


def main():
    parser = argparse.ArgumentParser(prog="./dev oracle horovod")
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    parser.add_argument("names", nargs="*", help="settings; none: all")
    arguments = parser.parse_args()
    unknown = set(arguments.names) - {s["name"] for s in HOROVOD_SETTINGS}
    if unknown:
        parser.error(f"no setting {', '.join(sorted(unknown))}")
    differing = []
    for setting in HOROVOD_SETTINGS:
        if arguments.names and setting["name"] not in arguments.names:
            continue
        made = json.loads(json.dumps(recording(setting)))
        path = FOLDER / f"{setting['name'].removeprefix('horovod-')}.json"
        if arguments.check:
            held = path.exists() and same(json.loads(path.read_text()), made)
            differing += [] if held else [setting["name"]]
            print(f"{setting['name']}: {'holds' if held else 'DIFFERS'}", flush=True)
        else:
            FOLDER.mkdir(parents=True, exist_ok=True)
            path.write_text(text_of(made) + "\n")
            print(f"{setting['name']}: recorded", flush=True)
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
