"""What torch.distributed does over Gloo where the ranks' sizes differ: the table of
tests/unit/properties/diagnosis/gloo_outcome_test.cpp. Run with the environment of `./dev oracle`:
    .cache/oracle/environment/bin/python tests/oracle/gloo_outcomes.py
"""

import datetime
import multiprocessing
import os
import tempfile

import torch
import torch.distributed as dist

LIMIT = datetime.timedelta(seconds=5)


def full(count, value):
    return torch.full((count,), float(value))


def parts(count, number):
    return [full(count, -1) for _ in range(number)]


def call(kind, sizes, rank, world):
    own = sizes[rank]
    data = full(own, rank + 1)
    if kind == "all_reduce":
        dist.all_reduce(data)
    elif kind == "reduce":
        dist.reduce(data, 0)
    elif kind == "broadcast":
        dist.broadcast(data, 0)
    elif kind == "all_gather":
        dist.all_gather(parts(own, world), data)
    elif kind == "gather":
        dist.gather(data, parts(own, world) if rank == 0 else None, 0)
    elif kind == "scatter":
        dist.scatter(data, parts(own, world) if rank == 0 else None, 0)
    elif kind == "reduce_scatter":
        dist.reduce_scatter_tensor(full(own, 0), full(own * world, 1))
    elif kind == "all_to_all":
        dist.all_to_all_single(full(own * world, 0), full(own * world, 1))
    elif kind == "message":
        dist.send(data, 1) if rank == 0 else dist.recv(data, 0)


def child(kind, sizes, rank, store, results):
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    torch.set_num_threads(1)
    world = len(sizes)
    dist.init_process_group(
        "gloo", init_method="file://" + store, rank=rank, world_size=world, timeout=LIMIT
    )
    dist.barrier()
    try:
        call(kind, sizes, rank, world)
        results.put((rank, "completes"))
    except RuntimeError as error:
        waits = "Timed out" in str(error)
        results.put((rank, "waits" if waits else "loses_peer"))
    results.close()
    results.join_thread()
    os._exit(0)


CASES = [
    ("all_reduce", [4, 6]),
    ("all_reduce", [6, 4]),
    ("all_reduce", [4, 5]),
    ("all_reduce", [100, 200]),
    ("all_reduce", [40, 40, 60]),
    ("all_reduce", [60, 40, 40]),
    ("all_reduce", [1, 2]),
    ("broadcast", [6, 4]),
    ("broadcast", [4, 6]),
    ("broadcast", [6, 6, 4]),
    ("all_gather", [4, 6]),
    ("all_gather", [4, 4, 6]),
    ("reduce", [4, 6]),
    ("reduce", [6, 4]),
    ("gather", [4, 6]),
    ("gather", [6, 4]),
    ("scatter", [4, 6]),
    ("scatter", [6, 4]),
    ("reduce_scatter", [4, 6]),
    ("all_to_all", [4, 6]),
    ("message", [6, 4]),
    ("message", [4, 6]),
]


def main():
    fork = multiprocessing.get_context("fork")
    for kind, sizes in CASES:
        store = tempfile.mktemp()
        results = fork.Queue()
        ranks = [
            fork.Process(target=child, args=(kind, sizes, rank, store, results))
            for rank in range(len(sizes))
        ]
        for process in ranks:
            process.start()
        for process in ranks:
            process.join(20)
        outcomes = {rank: "aborts" for rank, process in enumerate(ranks) if process.exitcode == -6}
        while not results.empty():
            rank, outcome = results.get()
            outcomes.setdefault(rank, outcome)
        print(kind, sizes, [outcomes.get(rank, "?") for rank in range(len(sizes))], flush=True)


if __name__ == "__main__":
    main()
