"""What is recorded: one setting a file of tests/data/oracle.

An iteration of a rank names its samples, and where it differs from the usual `skipped_layers` (by
index, not run in this forward), `synchronise: False` (inside no_sync), `loss_factor`, `step: False`
(no optimizer step after it) and `training: False` (a forward in evaluation). With `loss_scale`, the
arguments of a GradScaler, losses are scaled and steps with gradients that overflow are skipped.
"""


def layer(kind, **arguments):
    return {"kind": kind, "arguments": arguments} if arguments else {"kind": kind}


def linear(inputs, outputs, **arguments):
    return layer("Linear", in_features=inputs, out_features=outputs, **arguments)


def network(inputs, output, layers, loss="MSELoss", input_dtype="fp32", reduction="mean"):
    description = {
        "input": inputs,
        "output": output,
        "input_dtype": input_dtype,
        "layers": layers,
        "loss": layer(loss) if reduction == "mean" else layer(loss, reduction=reduction),
    }
    return description


RELU = layer("ReLU")
# Trainable parameters differ in size, so that a bucket's size tells what is in it.
# 24, 6, 12, 2
SMALL = network([4], [2], [linear(4, 6), RELU, linear(6, 2)])
# 24, 6, 42, 7, 14, 2
DEEP = network([4], [2], [linear(4, 6), RELU, linear(6, 7), RELU, linear(7, 2)])
# 20, 5, 3, 2; layer 2 keeps its width and can be left out. Between trainable layers stand frozen
# ones: the output is linear in what is trained, and many steps stay exact.
SKIPPABLE = network(
    [4], [2],
    [linear(4, 5), linear(5, 3, trainable=False), layer("Bias", features=3),
     linear(3, 2, trainable=False), layer("Bias", features=2)],
)
FROZEN = network([4], [2], [linear(4, 6, trainable=False), RELU, linear(6, 5), linear(5, 2)])
FROZEN_MIDDLE = network([4], [2], [linear(4, 6), linear(6, 5, trainable=False), linear(5, 2)])
NORM = network(
    [4], [2], [linear(4, 3, bias=False), layer("BatchNorm1d", num_features=3), linear(3, 2)]
)
# A square matrix, a wide one and a vector: 64, 8, 32, 4.
SQUARE = network([8], [4], [linear(8, 8), RELU, linear(8, 4)])
# 12, 3, 6, 2; no layer hides an input from another.
STRAIGHT = network([4], [2], [linear(4, 3), linear(3, 2)])
# Three square matrices of one shape and a wide one.
ALIKE = network([4], [3], [linear(4, 4), linear(4, 4), linear(4, 4), linear(4, 3)])
BUFFERS = network(
    [4], [2], [layer("Buffer", shape=[5], dtype="int64"), linear(4, 2), layer("Buffer", shape=[3])]
)
TIED = network(
    [4],
    [4, 4],
    [layer("Embedding", num_embeddings=4, embedding_dim=2, name="table"),
     linear(2, 4, bias=False, tied_to="table")],
    input_dtype="int64",
)
TOKENS = network(
    [4],
    [4, 5],
    [layer("Embedding", num_embeddings=7, embedding_dim=4), linear(4, 5)],
    loss="CrossEntropyLoss",
    input_dtype="int64",
)
TRANSFORMER = network(
    [4],
    [4, 5],
    [layer("Embedding", num_embeddings=7, embedding_dim=4),
     layer("PositionalEmbedding", num_embeddings=5, embedding_dim=4),
     layer("LayerNorm", normalized_shape=[4]),
     layer("CausalSelfAttention", embed_dim=4, num_heads=2),
     layer("GELU", approximate="tanh"),
     layer("LayerNorm", normalized_shape=[4]),
     layer("MultiheadAttention", embed_dim=4, num_heads=2),
     layer("GELU"),
     linear(4, 5)],
    loss="CrossEntropyLoss",
    input_dtype="int64",
)
IMAGE = network(
    [2, 7, 6],
    [3],
    [layer("Conv2d", in_channels=2, out_channels=4, kernel_size=3, padding=1, groups=2),
     layer("MaxPool2d", kernel_size=3, stride=2, padding=1),
     RELU,
     layer("Conv2d", in_channels=4, out_channels=3, kernel_size=[2, 1], stride=[1, 2]),
     layer("AvgPool2d", kernel_size=2, stride=1),
     layer("AdaptiveAvgPool2d", output_size=[1, 1]),
     layer("Flatten"),
     linear(3, 3)],
)
# 262144 elements are 1 MiB: the first weight alone passes the limit of the small bucket.
WIDE = network([4], [1], [linear(4, 65536), RELU, linear(65536, 1)], reduction="sum")
# About 0.5, 10, 10 and 0.5 MiB.
BIG = network(
    [8], [1], [linear(8, 1600), linear(1600, 1600), linear(1600, 1600), linear(1600, 80),
               linear(80, 1)], reduction="sum",
)


def shard(rank, world_size, iterations, batch=2, **more):
    """Iterations over samples that are dealt out in turn."""
    return [
        {"samples": [(i * batch + k) * world_size + rank for k in range(batch)], **more}
        for i in range(iterations)
    ]


def even(world_size, iterations, batch=2, **more):
    return [shard(rank, world_size, iterations, batch, **more) for rank in range(world_size)]


def setting(name, described, iterations, dtype="fp32", lr=0.125, momentum=0.0, more=None, **ddp):
    return {
        "name": name,
        "world_size": len(iterations),
        "dtype": dtype,
        "seed": 11,
        "network": described,
        "ddp": ddp,
        "optimizer": {"lr": lr, "momentum": momentum},
        "iterations": iterations,
        **(more or {}),
    }


def skipping(iterations, layers, ranks, turns):
    """The same iterations; the ranks leave the layers out in these turns."""
    return [
        [
            {**it, "skipped_layers": layers} if rank in ranks and turn in turns else it
            for turn, it in enumerate(its)
        ]
        for rank, its in enumerate(iterations)
    ]


def accumulating(world_size, windows, size, **more):
    """Windows of `size` micro-batches, all but the last of each inside no_sync."""
    result = even(world_size, windows * size, loss_factor=1 / size, **more)
    for its in result:
        for turn, it in enumerate(its):
            if (turn + 1) % size != 0:
                it.update(synchronise=False, step=False)
    return result


def uneven(counts, batch=2):
    return [shard(rank, len(counts), count, batch) for rank, count in enumerate(counts)]


TINY = 40 / 2**20  # MiB: 40 bytes, so that buckets close after every tensor or two
FINE = {"dtype": "fp64"}



def power_sgd(start=2, **more):
    return {"ddp_comm_hook": "powerSGD_hook",
            "ddp_comm_state": {"start_powerSGD_iter": start, **more}}


def local_sgd(hook, period, start, **more):
    return {"ddp_comm_hook": hook, "model_averaging_period": period,
            "ddp_comm_state": {"start_localSGD_iter": start, **more}}


def scaled(init_scale, growth_interval=2000):
    return {"autocast": "fp16",
            "loss_scale": {"init_scale": init_scale, "growth_interval": growth_interval}}


# Every matrix is compressed, to as many columns as it has: what it stands for is the mean itself.
WHOLE = {"matrix_approximation_rank": 8, "min_compression_rate": 0.1}
CALLS_ALONE = {"values": False}
# Where rounding cannot be avoided, errors shall not grow from step to step.
SMALL_STEPS = {"lr": 2**-5}

SETTINGS = [
    # Buckets
    setting("plain", SMALL, even(2, 3), **FINE),
    setting("plain-single-precision", SMALL, even(2, 1, batch=1)),
    setting("four-ranks", SMALL, even(4, 3), **FINE),
    setting("three-ranks", SMALL, even(3, 2), **FINE),
    setting("tiny-buckets", DEEP, even(2, 3), bucket_cap_mb=TINY, **FINE),
    setting("middle-buckets", DEEP, even(2, 3), bucket_cap_mb=200 / 2**20, **FINE),
    setting("explicit-default-cap", WIDE, even(2, 3, batch=1), lr=0.0, bucket_cap_mb=25),
    setting("first-bucket-of-one-mebibyte", WIDE, even(2, 3, batch=1), lr=0.0),
    setting("several-large-buckets", BIG, even(2, 2, batch=1), lr=0.0,
            more={"values": False}, bucket_cap_mb=8),
    setting("large-buckets-by-default", BIG, even(2, 2, batch=1), lr=0.0, more={"values": False}),
    setting("bucket-views", DEEP, even(2, 3), bucket_cap_mb=TINY, gradient_as_bucket_view=True,
            **FINE),
    setting("bucket-views-zeroed", DEEP, even(2, 3), bucket_cap_mb=TINY,
            gradient_as_bucket_view=True, more={"set_to_none": False}, **FINE),
    setting("momentum", SMALL, even(2, 3), momentum=0.5, **FINE),
    # Unused parameters
    setting("unused-nowhere", SKIPPABLE, even(2, 3), find_unused_parameters=True, **FINE),
    setting("unused-nowhere-large", WIDE, even(2, 2, batch=1), lr=0.0,
            find_unused_parameters=True),
    setting("unused-nowhere-tiny-buckets", SKIPPABLE, even(2, 3), find_unused_parameters=True,
            bucket_cap_mb=TINY, **FINE),
    setting("unused-on-one-rank", SKIPPABLE, skipping(even(2, 3), [2], [1], [0, 2]),
            find_unused_parameters=True, bucket_cap_mb=TINY, momentum=0.5, **FINE),
    setting("unused-everywhere", SKIPPABLE, skipping(even(2, 3), [2], [0, 1], [0, 2]),
            find_unused_parameters=True, momentum=0.5, **FINE),
    setting("unused-everywhere-bucket-views", SKIPPABLE,
            skipping(even(2, 3), [2], [0, 1], [0, 2]), find_unused_parameters=True,
            gradient_as_bucket_view=True, momentum=0.5, **FINE),
    setting("unused-everywhere-zeroed", SKIPPABLE,
            skipping(even(2, 3), [2], [0, 1], [0, 2]), find_unused_parameters=True,
            momentum=0.5, more={"set_to_none": False}, **FINE),
    setting("unused-on-alternate-ranks", SKIPPABLE,
            skipping(skipping(even(4, 3), [2], [1, 3], [0, 2]), [4], [0, 2], [1]),
            find_unused_parameters=True, bucket_cap_mb=TINY, **FINE),
    setting("unused-in-part-of-a-window", SKIPPABLE,
            skipping(accumulating(2, 2, 2), [2], [0, 1], [1, 3]), find_unused_parameters=True,
            **FINE),
    setting("unused-on-one-rank-of-a-window", SKIPPABLE,
            skipping(accumulating(2, 2, 2), [2], [1], [0, 1]), find_unused_parameters=True, **FINE),
    setting("unused-and-not-looked-for", SKIPPABLE, skipping(even(2, 2), [2], [0, 1], [0]),
            bucket_cap_mb=TINY, **FINE),
    setting("unused-on-one-rank-and-not-looked-for", SKIPPABLE,
            skipping(even(2, 2), [2], [1], [0]), bucket_cap_mb=TINY, more={"timeout_s": 4},
            **FINE),
    # Static graph
    setting("static-graph", SKIPPABLE, even(2, 3), static_graph=True, bucket_cap_mb=TINY, **FINE),
    setting("static-graph-unused-everywhere", SKIPPABLE,
            skipping(even(2, 3), [2], [0, 1], [0, 1, 2]), static_graph=True, bucket_cap_mb=TINY,
            **FINE),
    setting("static-graph-unused-on-one-rank", SKIPPABLE,
            skipping(even(2, 3), [2], [1], [0, 1, 2]), static_graph=True, bucket_cap_mb=TINY,
            **FINE),
    setting("static-graph-looking-for-unused", SKIPPABLE, even(2, 3), static_graph=True,
            find_unused_parameters=True, bucket_cap_mb=TINY, **FINE),
    setting("static-graph-accumulating-later", SKIPPABLE,
            [shard(r, 2, 1) + [{**it, "samples": [8 + k for k in it["samples"]]} for it in its]
             for r, its in enumerate(accumulating(2, 2, 2))], static_graph=True,
            bucket_cap_mb=TINY, **FINE),
    setting("static-graph-bucket-views", SKIPPABLE,
            skipping(even(2, 3), [2], [0, 1], [0, 1, 2]), static_graph=True, bucket_cap_mb=TINY,
            gradient_as_bucket_view=True, momentum=0.5, **FINE),
    setting("static-graph-accumulating", SKIPPABLE, accumulating(2, 2, 2), static_graph=True,
            bucket_cap_mb=TINY, **FINE),
    # Buffers
    setting("batch-norm", NORM, even(2, 3, batch=4), **SMALL_STEPS),
    setting("batch-norm-local-buffers", NORM, even(2, 3, batch=4), broadcast_buffers=False,
            **SMALL_STEPS),
    # Running statistics have the type of the parameters.
    setting("batch-norm-double", NORM, even(2, 3, batch=4), **FINE, **SMALL_STEPS),
    setting("batch-norm-half", NORM, even(2, 2, batch=4), dtype="fp16", **SMALL_STEPS),
    setting("batch-norm-brain", NORM, even(2, 2, batch=4), dtype="bf16", **SMALL_STEPS),
    setting("batch-norm-brain-join", NORM, uneven([3, 1], batch=4), dtype="bf16", join=True,
            **SMALL_STEPS),
    setting("buffers-half", BUFFERS, even(2, 1, batch=1), dtype="fp16", lr=2**-6),
    setting("buffers", BUFFERS, even(2, 3, batch=1), lr=2**-2),
    setting("batch-norm-evaluated", NORM,
            [its + [{"samples": [20 + 4 * r + k for k in range(3)], "training": False}] * 2
             + [{"samples": [40 + 4 * r + k for k in range(4)]}]
             for r, its in enumerate(even(2, 2, batch=4))], **SMALL_STEPS),
    # Accumulation
    setting("accumulation", SMALL, accumulating(2, 3, 2), **FINE),
    setting("accumulation-of-four", NORM, accumulating(2, 2, 4, batch=4), **SMALL_STEPS),
    setting("accumulation-bucket-views", DEEP, accumulating(2, 2, 2), bucket_cap_mb=TINY,
            gradient_as_bucket_view=True, **FINE),
    # Join
    setting("join", SMALL, uneven([2, 4]), join=True, **FINE),
    setting("join-rank-zero-last", SMALL, uneven([4, 2]), join=True, bucket_cap_mb=TINY, **FINE),
    setting("join-divide-by-active", SMALL, uneven([2, 4]), join=True,
            divide_by_initial_world_size=False, **FINE),
    setting("join-four-ranks", SMALL, uneven([1, 3, 2, 4]), join=True, **FINE),
    setting("join-two-last", SMALL, uneven([3, 1, 3]), join=True, **FINE),
    setting("join-before-any-backward", SMALL, uneven([2, 0]), join=True, bucket_cap_mb=TINY,
            **FINE),
    setting("join-even", SMALL, uneven([2, 2]), join=True, **FINE),
    setting("join-batch-norm", NORM, uneven([3, 1], batch=4), join=True, **SMALL_STEPS),
    setting("join-batch-norm-local-buffers", NORM, uneven([3, 1], batch=4), join=True,
            broadcast_buffers=False, **SMALL_STEPS),
    setting("join-unused", SKIPPABLE, skipping(uneven([1, 3]), [2], [1], [1]), join=True,
            find_unused_parameters=True, **FINE),
    setting("join-static-graph", SKIPPABLE, uneven([2, 4]), join=True, static_graph=True,
            bucket_cap_mb=TINY, **FINE),
    setting("join-accumulating", SMALL,
            [accumulating(2, windows, 2)[r] for r, windows in enumerate([1, 2])], join=True,
            **FINE),
    # Parameters
    setting("frozen-layer", FROZEN, even(2, 3), bucket_cap_mb=TINY, **FINE),
    setting("frozen-middle", FROZEN_MIDDLE, even(2, 3), bucket_cap_mb=TINY, **FINE),
    setting("shared-weight", TIED, even(2, 3), **FINE),
    setting("embedding-and-cross-entropy", TOKENS, even(2, 3)),
    # Layers
    setting("transformer", TRANSFORMER, even(2, 2), **SMALL_STEPS),
    setting("transformer-double", TRANSFORMER, even(2, 2), **FINE, **SMALL_STEPS),
    setting("image", IMAGE, even(2, 2), lr=2**-9),
    setting("image-double", IMAGE, even(2, 2), lr=2**-9, **FINE),
    # Mixed precision
    setting("mixed", SMALL, even(2, 2), lr=2**-5, more={"autocast": "bf16"}),
    setting("mixed-batch-norm", NORM, even(2, 2, batch=4), more={"autocast": "bf16"},
            **SMALL_STEPS),
    setting("mixed-transformer", TRANSFORMER, even(2, 2), more={"autocast": "bf16"},
            **SMALL_STEPS),
    setting("mixed-image", IMAGE, even(2, 2), lr=2**-9, more={"autocast": "bf16"}),
    setting("half-precision", SMALL, even(2, 2, batch=1), dtype="fp16", lr=2**-6),
    # Mixed precision with a GradScaler
    setting("scaled", SMALL, even(2, 12), lr=2**-9, more=scaled(2.0**16)),
    setting("scaled-too-much", SMALL, even(2, 20), lr=2**-9, more=scaled(2.0**19)),
    setting("scaled-growing", SMALL, even(2, 20), lr=2**-9, more=scaled(2.0**10, 2)),
    setting("scaled-accumulating", SMALL, accumulating(2, 12, 2), lr=2**-9,
            more=scaled(2.0**12, 3)),
    setting("scaled-clipping", SMALL, even(2, 12), lr=2**-5,
            more={**scaled(2.0**18), "clip_norm": 0.5}),
    setting("scaled-overflow-on-one-rank", SMALL, even(4, 20, batch=1), lr=2**-9,
            more=scaled(2.0**16, 4)),
    # Communication hooks
    setting("hook-allreduce", SMALL, even(2, 3), ddp_comm_hook="allreduce_hook", **FINE),
    setting("hook-allreduce-bucket-views", DEEP, even(4, 3), ddp_comm_hook="allreduce_hook",
            bucket_cap_mb=TINY, gradient_as_bucket_view=True, **FINE),
    setting("hook-fp16", SMALL, even(2, 1), ddp_comm_hook="fp16_compress_hook"),
    setting("hook-fp16-four-ranks", SMALL, even(4, 1), ddp_comm_hook="fp16_compress_hook"),
    setting("hook-fp16-tiny-buckets", DEEP, even(2, 1), ddp_comm_hook="fp16_compress_hook",
            bucket_cap_mb=TINY),
    setting("hook-fp16-accumulating", SMALL, accumulating(2, 1, 2),
            ddp_comm_hook="fp16_compress_hook"),
    setting("hook-bf16", SMALL, even(2, 1), ddp_comm_hook="bf16_compress_hook"),
    setting("hook-bf16-wrapper", SMALL, even(2, 1), ddp_comm_hook="allreduce_hook",
            ddp_comm_wrapper="bf16_compress_wrapper", gradient_as_bucket_view=True),
    setting("hook-noop", SMALL, even(2, 3), ddp_comm_hook="noop_hook", **FINE),
    setting("hook-noop-unused", SKIPPABLE, skipping(even(2, 3), [2], [1], [0, 2]),
            ddp_comm_hook="noop_hook", find_unused_parameters=True, **FINE),
    setting("hook-power-sgd", SQUARE, even(2, 4), more=CALLS_ALONE, **power_sgd()),
    setting("hook-power-sgd-rank-two", SQUARE, even(4, 4), more=CALLS_ALONE,
            **power_sgd(matrix_approximation_rank=2, min_compression_rate=1)),
    setting("hook-power-sgd-static-graph", SQUARE, even(2, 4), more=CALLS_ALONE, static_graph=True,
            **power_sgd()),
    setting("hook-power-sgd-nothing-to-compress", SMALL, even(2, 3), more=CALLS_ALONE,
            **power_sgd(min_compression_rate=100)),
    setting("hook-power-sgd-cold", SQUARE, even(2, 3), more=CALLS_ALONE,
            **power_sgd(0, warm_start=False, use_error_feedback=False)),
    setting("hook-power-sgd-accumulating", SQUARE, accumulating(2, 3, 2), more=CALLS_ALONE,
            **power_sgd()),
    setting("hook-power-sgd-wrapped", SQUARE, even(2, 4), more=CALLS_ALONE,
            ddp_comm_wrapper="fp16_compress_wrapper", **power_sgd()),
    setting("hook-power-sgd-whole", STRAIGHT, even(2, 4, batch=4), lr=2**-6, **FINE,
            **power_sgd(**WHOLE)),
    setting("hook-power-sgd-whole-four-ranks", STRAIGHT, even(4, 4, batch=4), lr=2**-6, **FINE,
            **power_sgd(batch_tensors_with_same_shape=True, **WHOLE)),
    setting("hook-power-sgd-shapes-in-batches", ALIKE, even(2, 4, batch=4), lr=2**-20, **FINE,
            **power_sgd(batch_tensors_with_same_shape=True,
                        compression_stats_logging_frequency=1, **WHOLE)),
    setting("hook-power-sgd-shapes-in-batches-rank-one", ALIKE, even(4, 4, batch=4),
            more=CALLS_ALONE, **power_sgd(batch_tensors_with_same_shape=True,
                                          min_compression_rate=1)),
    setting("hook-power-sgd-whole-without-feedback", STRAIGHT, even(2, 3, batch=4), lr=2**-6,
            **FINE, **power_sgd(use_error_feedback=False, **WHOLE)),
    setting("hook-power-sgd-without-state", SMALL, even(2, 1), ddp_comm_hook="powerSGD_hook"),
    setting("hook-power-sgd-batched", SMALL, even(2, 3), **FINE,
            **{**power_sgd(), "ddp_comm_hook": "batched_powerSGD_hook"}),
    setting("hook-post-local-sgd", SMALL, even(4, 5), more={"ranks_per_node": 2}, **FINE,
            **local_sgd("post_localSGD_hook", 2, 1)),
    setting("hook-post-local-sgd-alone", SMALL, even(4, 5), more={"ranks_per_node": 2}, **FINE,
            **local_sgd("post_localSGD_hook", 3, 1, post_local_gradient_allreduce=False)),
    setting("hook-noop-averaged", SMALL, even(2, 4), **FINE, **local_sgd("noop_hook", 2, 0)),
    setting("brain-precision", SMALL, even(2, 2, batch=1), dtype="bf16", lr=2**-6),
]
