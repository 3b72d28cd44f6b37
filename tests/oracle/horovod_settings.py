"""What is recorded of Horovod: one setting a file of tests/data/oracle/horovod.

Iterations are those of settings.py. `horovod` has the arguments of hvd.DistributedOptimizer, and
`environment` variables of Horovod. In place of a network a setting may have a `script`: what each
rank does by itself, ["all_reduce" | "all_gather" | "broadcast", name, dtype, elements, option] with
the operator or the root as option, ["join"], and ["wait"] for all that was handed over before. A sixth entry of a
call is the number of its set among `process_sets`, which hvd.init is given. The optimizer of a rank has the set that
the rank is in, and that of a rank of none the first one.
"""

from settings import DEEP, IMAGE, NORM, SKIPPABLE, SMALL, accumulating, even, setting, skipping, uneven

# So long that all gradients of a backward meet in one cycle of the background thread.
CYCLE = {"HOROVOD_CYCLE_TIME": "100"}
# For what no short backward holds together: scripts hand single tensors over.
LONG_CYCLE = {"HOROVOD_CYCLE_TIME": "1000"}


def trains(name, described, iterations, optimizer=None, environment=None, **horovod):
    made = setting("horovod-" + name, described, iterations)
    del made["ddp"]
    if optimizer:
        made["optimizer"] = optimizer
    return {**made, "horovod": horovod, "environment": {**CYCLE, **(environment or {})}}


def every_batch_synchronises(iterations):
    """Lightning synchronises behind every backward, also where no step follows."""
    return [[{k: v for k, v in it.items() if k != "synchronise"} for it in its]
            for its in iterations]


def script(name, *ranks):
    return {"name": "horovod-" + name, "world_size": len(ranks), "script": list(ranks),
            "environment": LONG_CYCLE}


def reduce(name, elements=3, dtype="fp32", operator="average"):
    return ["all_reduce", name, dtype, elements, operator]


def send(name, root=0, elements=3):
    return ["broadcast", name, "fp32", elements, root]


def gather(name, elements=3):
    return ["all_gather", name, "fp32", elements, None]


def in_sets(process_sets, made):
    return {**made, "process_sets": process_sets}


WAIT = ["wait"]
JOIN = ["join"]
SGD = {"kind": "SGD", "lr": 0.125}
WINDOWS = every_batch_synchronises(accumulating(2, 2, 2))

HOROVOD_SETTINGS = [
    trains("plain", SMALL, even(2, 3)),
    trains("four-ranks", SMALL, even(4, 3)),
    trains("each-alone", DEEP, even(2, 2), environment={"HOROVOD_FUSION_THRESHOLD": "0"}),
    # 1024 bytes, the smallest above 0 with two ranks in a node
    trains("small-buffer", DEEP, even(2, 2), environment={"HOROVOD_FUSION_THRESHOLD": "1"}),
    trains("without-cache", SMALL, even(2, 3), environment={"HOROVOD_CACHE_CAPACITY": "0"}),
    trains("small-cache", DEEP, even(2, 3), environment={"HOROVOD_CACHE_CAPACITY": "4"}),
    trains("fp16", SMALL, even(2, 2, batch=1), compression="fp16",
           optimizer={**SGD, "lr": 2**-6}),
    trains("predivided", SMALL, even(2, 3), gradient_predivide_factor=4.0),
    trains("accumulating", SMALL, WINDOWS),
    trains("two-passes", SMALL, WINDOWS, backward_passes_per_step=2),
    trains("two-passes-four-ranks", DEEP,
           every_batch_synchronises(accumulating(4, 2, 2)), backward_passes_per_step=2),
    trains("momentum", SMALL, even(2, 3), optimizer={**SGD, "momentum": 0.5}),
    trains("weight-decay", SMALL, even(2, 3), optimizer={**SGD, "weight_decay": 0.25}),
    trains("adam", SMALL, even(2, 3), optimizer={"kind": "Adam", "lr": 0.125}),
    trains("batch-norm", NORM, even(2, 2, batch=4), optimizer={**SGD, "lr": 2**-5}),
    # The first convolution of a process takes more than a cycle of the others.
    trains("image", IMAGE, even(2, 2), optimizer={**SGD, "lr": 2**-9}, environment=LONG_CYCLE),
    trains("left-out-on-one-rank", SKIPPABLE, skipping(even(2, 3), [2], [1], [0, 2])),
    trains("left-out-on-two-of-four", SKIPPABLE, skipping(even(4, 3), [2], [1, 3], [1])),
    trains("left-out-everywhere", SKIPPABLE, skipping(even(2, 3), [2], [0, 1], [1])),
    trains("join", SMALL, uneven([3, 2])),
    trains("join-four-ranks", SMALL, uneven([1, 3, 2, 3])),
    trains("two-groups", DEEP, even(2, 3), num_groups=2),
    trains("three-groups-four-ranks", DEEP, even(4, 2), num_groups=3),
    # Rank 0 hands a group over, and rank 1 its members by themselves: they wait for each other.
    {**trains("group-left-out", SKIPPABLE, skipping(even(2, 3), [2], [1], [1]), num_groups=2),
     "stuck_after_s": 5},
    trains("groups-of-two-passes", SMALL, WINDOWS, backward_passes_per_step=2, num_groups=2),
    script("another-order", [reduce("a"), reduce("b", 2), WAIT],
           [reduce("b", 2), reduce("a"), WAIT]),
    script("sum-beside-mean", [reduce("a"), reduce("b", operator="sum"), reduce("c"), WAIT],
           [reduce("a"), reduce("b", operator="sum"), reduce("c"), WAIT]),
    script("types", [reduce("a"), reduce("b", dtype="fp64"), reduce("c"), WAIT],
           [reduce("a"), reduce("b", dtype="fp64"), reduce("c"), WAIT]),
    script("other-shape", [reduce("a"), WAIT, reduce("b"), WAIT],
           [reduce("a", 4), WAIT, reduce("b"), WAIT]),
    script("other-type", [reduce("a"), WAIT], [reduce("a", dtype="fp64"), WAIT]),
    script("other-operator", [reduce("a"), WAIT], [reduce("a", operator="sum"), WAIT]),
    script("other-root", [send("a", 0), WAIT], [send("a", 1), WAIT]),
    script("broadcasts-of-a-name", [send("a"), WAIT, send("a"), WAIT],
           [send("a"), WAIT, send("a"), WAIT]),
    script("other-shape-later", [reduce("a"), WAIT, reduce("a", 2), WAIT, reduce("a"), WAIT],
           [reduce("a"), WAIT, reduce("a", 4), WAIT, reduce("a"), WAIT]),
    script("shape-changes", [reduce("a"), WAIT, reduce("a", 5), WAIT, reduce("a", 5), WAIT],
           [reduce("a"), WAIT, reduce("a", 5), WAIT, reduce("a", 5), WAIT]),
    script("reduce-beside-join", [reduce("a"), WAIT, reduce("a"), WAIT, JOIN],
           [reduce("a"), WAIT, JOIN]),
    script("gather-beside-join", [gather("a"), WAIT, JOIN], [JOIN]),
    script("broadcast-beside-join", [send("a"), WAIT, JOIN], [JOIN]),
    script("gathered", [gather("a"), WAIT], [gather("a"), WAIT]),
    # What one rank alone asks for in another shape, when all know the old one.
    script("shape-changes-on-one-rank", [reduce("a"), WAIT, reduce("a"), WAIT, reduce("a"), WAIT],
           [reduce("a"), WAIT, reduce("a", 4), WAIT, reduce("a"), WAIT]),
    script("gathered-unequal", [gather("a", 2), WAIT, gather("a", 2), WAIT],
           [gather("a", 3), WAIT, gather("a", 3), WAIT]),
    script("gathered-grows-on-one-rank", [gather("a", 2), WAIT, gather("a", 2), WAIT, gather("a", 2), WAIT],
           [gather("a", 2), WAIT, gather("a", 4), WAIT, gather("a", 4), WAIT],
           [gather("a", 2), WAIT, gather("a", 1), WAIT, gather("a", 1), WAIT]),
    script("minimum-and-maximum",
           [reduce("a", operator="min"), reduce("b", operator="max"), reduce("c", 2, operator="product"), WAIT],
           [reduce("c", 2, operator="product"), reduce("b", operator="max"), reduce("a", operator="min"), WAIT]),
    in_sets([[0, 1], [2, 3]], trains("process-sets", SMALL, even(4, 3))),
    in_sets([[0, 2], [1, 3]], trains("process-sets-interleaved", DEEP, even(4, 2),
                                     optimizer={**SGD, "momentum": 0.5},
                                     environment={"HOROVOD_FUSION_THRESHOLD": "1"})),
    in_sets([[0, 1, 2]], trains("process-set-of-three", SMALL, even(4, 2))),
    in_sets([[1, 3]], trains("process-set-without-rank-0", SMALL, even(4, 2))),
    # Rank 1 joins, which gives zeros to the set of all ranks alone: rank 0 waits.
    {**in_sets([[0, 1], [2, 3]], trains("process-sets-join", SMALL, uneven([3, 2, 2, 2]))),
     "stuck_after_s": 8},
    # One name means a tensor of its own in each set.
    in_sets([[0, 1], [2, 3]], script(
        "process-sets-one-name",
        [reduce("a") + [0], send("b", 1) + [0], WAIT, reduce("a"), WAIT],
        [send("b", 1) + [0], reduce("a") + [0], WAIT, reduce("a"), WAIT],
        [reduce("a", 2) + [1], gather("b") + [1], WAIT, reduce("a"), WAIT],
        [reduce("a", 2) + [1], gather("b") + [1], WAIT, reduce("a"), WAIT])),
]
