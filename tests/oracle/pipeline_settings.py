"""What is recorded of pipelines whose stages are wrapped for data parallelism: a file of
tests/data/oracle/sharded each.

Ranks lie in a mesh (pp, dp): ranks of one pipeline get the same samples.
"""

from settings import RELU, even, linear, network
from sharded_settings import BF16, BF16_REDUCED_IN_FP32, CLIPPED, setting

# Layers with parameters are the even ones.
SEVEN = network([4], [2], [linear(4, 6), RELU, linear(6, 7), RELU, linear(7, 6), RELU, linear(6, 2)])
HALVES = [[0, 3], [4, 6]]
QUARTERS = [[0, 1], [2, 3], [4, 5], [6, 6]]
LINEARS = [[0, 0], [2, 2], [4, 4], [6, 6]]
EIGHT = network([4], [4], [linear(4, 4) for _ in range(8)])
EIGHTHS = [[i, i] for i in range(8)]
ADAM = {"kind": "AdamW", "lr": 0.125, "weight_decay": 0.0}
SMALL_STEPS = {"kind": "SGD", "lr": 2**-6}


def pipeline(name, described=SEVEN, ranks=2, replicas=2, iterations=None, optimizer=None, more=None,
             sharded=None, **options):
    iterations = iterations or even(replicas, 2, batch=4)
    of_ranks = [iterations[rank % replicas] for rank in range(ranks * replicas)]
    options = {"schedule": "1F1B", "n_microbatches": 2, "pipeline_parallel_size": ranks,
               "stages": HALVES, "units": LINEARS, **options}
    if sharded is not None:
        options["fully_shard"] = sharded
    return setting("pipeline-" + name, described, of_ranks, optimizer, more, pipeline=options)


def in_two_batches(replicas, batch):
    """One step of the optimizer behind two calls of the schedule."""
    result = even(replicas, 2, batch=batch)
    for iterations in result:
        iterations[0]["step"] = False
    return result


def sharded(name, arguments=None, **options):
    return pipeline("fsdp2-" + name, sharded=arguments or {}, **options)


FOUR = {"n_microbatches": 4}
# Schedules in the shape of a V do not come through over Gloo: with them two ranks wait for messages of each other until
# the time limit.
PIPELINE_SETTINGS = [
    pipeline("alone", replicas=1),
    pipeline("ddp"),
    sharded("plain"),
    sharded("four-micro-batches", **FOUR),
    sharded("reshard", {"reshard_after_forward": True}, **FOUR),
    sharded("no-reshard", {"reshard_after_forward": False}, **FOUR),
    sharded("one-unit", units=[], **FOUR),
    sharded("unit-and-rest", units=[[2, 2], [4, 4]], **FOUR),
    sharded("gpipe", schedule="GPipe", **FOUR),
    sharded("sum-of-gradients", scale_grads=False, optimizer=SMALL_STEPS, **FOUR),
    sharded("bf16", {"mixed_precision": BF16}),
    sharded("bf16-reduced-in-fp32", {"mixed_precision": BF16_REDUCED_IN_FP32}, **FOUR),
    sharded("clipped", more=CLIPPED),
    sharded("adam", optimizer=ADAM),
    sharded("two-batches", iterations=in_two_batches(2, 4)),
    sharded("recomputed", more={"checkpointed": {"segments": [[0, 1], [4, 5]], "by": "torch"}},
            **FOUR),
    sharded("four-stages", ranks=4, replicas=1, stages=QUARTERS, **FOUR),
    sharded("interleaved", schedule="Interleaved1F1B", stages=QUARTERS, **FOUR),
    sharded("interleaved-reshard", {"reshard_after_forward": True}, schedule="Interleaved1F1B",
            stages=QUARTERS, **FOUR),
    sharded("looped-bfs-of-four", described=EIGHT, schedule="LoopedBFS", stages=EIGHTHS, units=[]),
    pipeline("alone-interleaved-zero-bubble", replicas=1, schedule="InterleavedZeroBubble",
             stages=QUARTERS, **FOUR),
    sharded("interleaved-zero-bubble-no-reshard", {"reshard_after_forward": False},
            schedule="InterleavedZeroBubble", stages=QUARTERS, **FOUR),
    sharded("interleaved-zero-bubble", schedule="InterleavedZeroBubble", stages=QUARTERS, **FOUR),
]
