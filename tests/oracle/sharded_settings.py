"""What is recorded of strategies that shard: one setting a file of tests/data/oracle/sharded.

Iterations are those of settings.py. Units are inclusive ranges of layers, each wrapped as a module
of its own; the root, which is wrapped last, holds everything else.
"""

from settings import NORM, RELU, TINY, accumulating, even, layer, linear, network

# Biases and widths that neither 2 nor 4 divides; layer 1 and 4 have no parameters.
# 20, 5, 35, 7, 7, 7, 21, 3, 6, 2
UNEVEN = network(
    [4], [2],
    [linear(4, 5), RELU, linear(5, 7), layer("LayerNorm", normalized_shape=[7]),
     layer("GELU"), linear(7, 3), linear(3, 2)],
)
# Linear throughout, so that few steps round.
PLAIN = network([4], [2], [linear(4, 6), linear(6, 5), linear(5, 3), linear(3, 2)])
PAIRS = [[0, 1], [2, 3]]
SGD = {"kind": "SGD", "lr": 2**-14}
ADAM = {"kind": "Adam", "lr": 2**-6}
# They take norms and means of tensors.
ADAFACTOR = {"kind": "Adafactor", "lr": 2**-6}
LAMB = {"kind": "Lamb", "lr": 2**-6, "weight_decay": 0.125}

FSDP1 = {
    "units": [[0, 0], [1, 1], [2, 2]],
    "sharding_strategy": "FULL_SHARD",
    "backward_prefetch": "BACKWARD_PRE",
    "forward_prefetch": False,
    "limit_all_gathers": True,
    "use_orig_params": False,
    "mixed_precision": None,
    "sync_module_states": False,
}


def setting(name, described, iterations, optimizer=None, more=None, **family):
    return {
        "name": name,
        "world_size": len(iterations),
        "dtype": "fp32",
        "seed": 11,
        "network": described,
        "optimizer": optimizer or SGD,
        "iterations": iterations,
        **family,
        **(more or {}),
    }


def fsdp1(name, described=PLAIN, iterations=None, optimizer=None, more=None, **different):
    return setting("fsdp1-" + name, described, iterations or even(2, 2), optimizer, more,
                   fsdp1={**FSDP1, **different})


# Layers 1 and 4, which have no parameters, are units of their own.
WITH_EMPTY_UNITS = [[0, 0], [1, 1], [2, 3], [4, 4], [5, 5]]
UNEVEN_UNITS = [[0, 1], [2, 4], [5, 5]]
BF16 = {"param_dtype": "bf16"}
BF16_REDUCED_IN_FP32 = {"param_dtype": "bf16", "reduce_dtype": "fp32"}
CLIPPED = {"clip_norm": 1.0}


def evaluating(world_size, count=3, first=1):
    """Training, but for one iteration that evaluates."""
    result = even(world_size, count)
    for iterations in result:
        iterations[first]["training"] = False
    return result


FSDP1_SETTINGS = [
    fsdp1("full-shard"),
    fsdp1("shard-grad-op", sharding_strategy="SHARD_GRAD_OP"),
    fsdp1("no-shard", sharding_strategy="NO_SHARD"),
    fsdp1("hybrid-shard", iterations=even(4, 2), sharding_strategy="HYBRID_SHARD", nodes=2),
    fsdp1("original-parameters", use_orig_params=True),
    # Units
    fsdp1("uneven", UNEVEN, units=UNEVEN_UNITS),
    fsdp1("uneven-original-parameters", UNEVEN, units=UNEVEN_UNITS, use_orig_params=True),
    fsdp1("units-without-parameters", UNEVEN, units=WITH_EMPTY_UNITS),
    fsdp1("nested-units", units=[[0, 2], [0, 0], [1, 1]]),
    fsdp1("root-without-parameters", units=PAIRS),
    fsdp1("root-only", units=[]),
    fsdp1("four-ranks", UNEVEN, even(4, 2), units=UNEVEN_UNITS),
    fsdp1("hybrid-mesh", iterations=even(4, 2), sharding_strategy="HYBRID_SHARD", mesh=[2, 2]),
    fsdp1("hybrid-zero2", iterations=even(4, 2), sharding_strategy="_HYBRID_SHARD_ZERO2", nodes=2),
    # Prefetching
    fsdp1("backward-post", iterations=even(2, 3), backward_prefetch="BACKWARD_POST"),
    fsdp1("no-backward-prefetch", backward_prefetch=None),
    fsdp1("forward-prefetch", iterations=even(2, 3), forward_prefetch=True),
    fsdp1("forward-prefetch-shard-grad-op", iterations=even(2, 3), forward_prefetch=True,
          sharding_strategy="SHARD_GRAD_OP"),
    # Accumulated gradients
    fsdp1("accumulation", iterations=accumulating(2, 2, 2)),
    fsdp1("accumulation-shard-grad-op", iterations=accumulating(2, 2, 2),
          sharding_strategy="SHARD_GRAD_OP"),
    fsdp1("accumulation-no-shard", iterations=accumulating(2, 2, 2), sharding_strategy="NO_SHARD"),
    fsdp1("accumulation-hybrid", iterations=accumulating(4, 2, 2),
          sharding_strategy="HYBRID_SHARD", nodes=2),
    # Reduced into the shards in every micro-batch
    fsdp1("accumulation-with-reduction", iterations=[
        [{**it, "synchronise": True} for it in its] for its in accumulating(2, 2, 2)]),
    # What is around the sharding
    fsdp1("evaluation", iterations=evaluating(2)),
    fsdp1("adam", optimizer=ADAM),
    fsdp1("adafactor", UNEVEN, units=UNEVEN_UNITS, optimizer=ADAFACTOR),
    fsdp1("adafactor-original", UNEVEN, units=UNEVEN_UNITS, optimizer=ADAFACTOR,
          use_orig_params=True),
    fsdp1("adafactor-no-shard", optimizer=ADAFACTOR, sharding_strategy="NO_SHARD"),
    fsdp1("adafactor-no-shard-original", optimizer=ADAFACTOR, sharding_strategy="NO_SHARD",
          use_orig_params=True),
    fsdp1("lamb", optimizer=LAMB),
    fsdp1("lamb-original", UNEVEN, even(4, 2), units=UNEVEN_UNITS, optimizer=LAMB,
          use_orig_params=True),
    fsdp1("clip-norm", more=CLIPPED),
    fsdp1("clip-norm-no-shard", more=CLIPPED, sharding_strategy="NO_SHARD"),
    fsdp1("clip-norm-hybrid", iterations=even(4, 2), more=CLIPPED,
          sharding_strategy="HYBRID_SHARD", nodes=2),
    fsdp1("bf16", mixed_precision=BF16),
    fsdp1("bf16-reduced-in-fp32", mixed_precision=BF16_REDUCED_IN_FP32),
    fsdp1("bf16-uncast-input", mixed_precision={**BF16, "cast_root_forward_inputs": False}),
    fsdp1("bf16-cast-by-units", units=[[0, 1], [2, 3]], mixed_precision={
        **BF16, "cast_root_forward_inputs": False, "cast_forward_inputs": True}),
    fsdp1("bf16-accumulation", iterations=accumulating(2, 2, 2), mixed_precision=BF16),
    fsdp1("bf16-no-shard", mixed_precision=BF16, sharding_strategy="NO_SHARD"),
    fsdp1("sync-module-states", sync_module_states=True),
    fsdp1("sync-module-states-hybrid", iterations=even(4, 2), sync_module_states=True,
          sharding_strategy="HYBRID_SHARD", nodes=2),
]

# Every module but the root reshards after its forward: reshard_after_forward is not given.
FSDP2 = {"units": [[0, 0], [1, 1], [2, 2]]}


def fsdp2(name, described=PLAIN, iterations=None, optimizer=None, more=None, **different):
    return setting("fsdp2-" + name, described, iterations or even(2, 2), optimizer, more,
                   fsdp2={**FSDP2, **different})


FSDP2_SETTINGS = [
    fsdp2("default"),
    fsdp2("reshard", reshard_after_forward=True),
    fsdp2("no-reshard", reshard_after_forward=False),
    fsdp2("reshard-in-pairs", iterations=even(4, 2), reshard_after_forward=2),
    # Units
    fsdp2("uneven", UNEVEN, units=UNEVEN_UNITS),
    fsdp2("units-without-parameters", UNEVEN, units=WITH_EMPTY_UNITS),
    fsdp2("nested-units", units=[[0, 2], [0, 0], [1, 1]]),
    fsdp2("root-without-parameters", units=PAIRS),
    fsdp2("root-only", units=[]),
    fsdp2("four-ranks", UNEVEN, even(4, 2), units=UNEVEN_UNITS),
    fsdp2("replicated", iterations=even(4, 2), mesh=[2, 2]),
    # Accumulated gradients
    fsdp2("accumulation", iterations=accumulating(2, 2, 2)),
    fsdp2("accumulation-no-reshard", iterations=accumulating(2, 2, 2),
          reshard_after_forward=False),
    fsdp2("accumulation-replicated", iterations=accumulating(4, 2, 2), mesh=[2, 2]),
    fsdp2("accumulation-replicated-reduce-scatter", iterations=accumulating(4, 2, 2), mesh=[2, 2],
          while_accumulating={"requires_all_reduce": False}),
    fsdp2("accumulation-kept-unsharded", iterations=accumulating(2, 2, 2),
          while_accumulating={"requires_gradient_sync": False, "reshard_after_backward": False}),
    fsdp2("accumulation-not-last", iterations=accumulating(2, 2, 2),
          while_accumulating={"requires_gradient_sync": False, "is_last_backward": False}),
    # As before, where the root holds no parameters that are still gathered
    fsdp2("accumulation-not-last-in-pairs", iterations=accumulating(2, 2, 2), units=PAIRS,
          while_accumulating={"requires_gradient_sync": False, "is_last_backward": False}),
    fsdp2("accumulation-not-last-of-three", iterations=accumulating(2, 2, 3), units=PAIRS,
          while_accumulating={"requires_gradient_sync": False, "is_last_backward": False}),
    # What is around the sharding
    fsdp2("evaluation", iterations=evaluating(2)),
    fsdp2("adam", optimizer=ADAM),
    fsdp2("lamb", optimizer=LAMB),
    fsdp2("lamb-four-ranks", UNEVEN, even(4, 2), units=UNEVEN_UNITS, optimizer=LAMB),
    fsdp2("lamb-replicated", iterations=even(4, 2), mesh=[2, 2], optimizer=LAMB),
    fsdp2("rprop", optimizer={"kind": "Rprop", "lr": 2**-6}),
    fsdp2("lamb-accumulation", iterations=accumulating(2, 2, 2), optimizer=LAMB),
    fsdp2("clip-norm", more=CLIPPED),
    fsdp2("clip-norm-replicated", iterations=even(4, 2), mesh=[2, 2], more=CLIPPED),
    fsdp2("bf16", mixed_precision=BF16),
    fsdp2("bf16-reduced-in-fp32", mixed_precision=BF16_REDUCED_IN_FP32),
    fsdp2("bf16-uncast-input", mixed_precision={**BF16, "cast_forward_inputs": False}),
    # The root's own layer gets what the unit before it has widened.
    fsdp2("bf16-widened-output", mixed_precision={**BF16, "output_dtype": "fp32"}),
    fsdp2("bf16-widened-outputs", units=[[0, 0], [1, 2], [3, 3]],
          mixed_precision={**BF16, "output_dtype": "fp32"}),
    fsdp2("fp16-reduced-in-fp16", mixed_precision={"param_dtype": "fp32", "reduce_dtype": "fp16"}),
]


def zero1(name, described=PLAIN, iterations=None, optimizer=None, more=None, ddp=None, **options):
    return setting("zero1-" + name, described, iterations or even(2, 2), optimizer, more,
                   zero1={"ddp": ddp or {}, **options})


ZERO1_SETTINGS = [
    zero1("sgd"),
    zero1("adam", optimizer=ADAM),
    zero1("adafactor", optimizer=ADAFACTOR),
    zero1("momentum", optimizer={**SGD, "momentum": 0.5}),
    zero1("small-buckets", iterations=even(2, 3), ddp={"bucket_cap_mb": TINY}),
    zero1("uneven", UNEVEN),
    zero1("four-ranks", UNEVEN, even(4, 2), optimizer=ADAM),
    zero1("bucket-view", parameters_as_bucket_view=True),
    zero1("bucket-view-four-ranks", UNEVEN, even(4, 2), parameters_as_bucket_view=True),
    zero1("more-ranks-than-parameters", network([4], [2], [linear(4, 3), linear(3, 2, bias=False)]),
          even(4, 2)),
    zero1("more-ranks-than-parameters-bucket-view",
          network([4], [2], [linear(4, 3), linear(3, 2, bias=False)]), even(4, 2),
          parameters_as_bucket_view=True),
    zero1("accumulation", iterations=accumulating(2, 2, 2)),
    zero1("clip-norm", more=CLIPPED),
    zero1("batch-norm", NORM),
]



def deepspeed(name, stage, described=PLAIN, iterations=None, optimizer=None, config=None,
              **zero_optimization):
    return setting("deepspeed-" + name, described, iterations or even(2, 3), optimizer,
                   deepspeed={"zero_optimization": {"stage": stage, **zero_optimization},
                              **(config or {})})


IN_BF16 = {"bf16": {"enabled": True}}
IN_TWO = {"gradient_accumulation_steps": 2}
CLIPPING = {"gradient_clipping": 1.0}
TO_CPU = {"offload_optimizer": {"device": "cpu"}}
# Nothing is kept gathered, whatever its size.
SHARDS_ALL = {"stage3_param_persistence_threshold": 0}
KEEPS_NOTHING = {**SHARDS_ALL, "stage3_prefetch_bucket_size": 0, "stage3_max_reuse_distance": 0}

DEEPSPEED_SETTINGS = [
    deepspeed("stage-0", 0),
    deepspeed("stage-0-four-ranks", 0, UNEVEN, even(4, 2)),
    deepspeed("stage-0-accumulation", 0, iterations=accumulating(2, 2, 2), config=IN_TWO),
    deepspeed("stage-0-clipping", 0, config=CLIPPING),
    deepspeed("stage-0-bf16", 0, config=IN_BF16),
    deepspeed("stage-0-bf16-accumulation", 0, iterations=accumulating(2, 2, 2),
              config={**IN_BF16, **IN_TWO}),
    # Stage 1
    deepspeed("stage-1", 1),
    deepspeed("stage-1-four-ranks", 1, UNEVEN, even(4, 2)),
    deepspeed("stage-1-adam", 1, optimizer=ADAM),
    deepspeed("stage-1-adafactor", 1, optimizer=ADAFACTOR),
    deepspeed("stage-1-lamb", 1, optimizer=LAMB),
    deepspeed("stage-1-small-buckets", 1, UNEVEN, reduce_bucket_size=30),
    deepspeed("stage-1-small-buckets-overlapped", 1, UNEVEN, reduce_bucket_size=30,
              overlap_comm=True),
    deepspeed("stage-1-overlapped", 1, overlap_comm=True),
    deepspeed("stage-1-accumulation", 1, iterations=accumulating(2, 2, 2), config=IN_TWO),
    deepspeed("stage-1-accumulation-overlapped", 1, iterations=accumulating(2, 2, 2),
              config=IN_TWO, overlap_comm=True),
    deepspeed("stage-1-clipping", 1, config=CLIPPING),
    deepspeed("stage-1-bf16", 1, config=IN_BF16),
    # Stage 2
    deepspeed("stage-2", 2),
    deepspeed("stage-2-four-ranks", 2, UNEVEN, even(4, 2)),
    deepspeed("stage-2-adam", 2, optimizer=ADAM),
    deepspeed("stage-2-adafactor", 2, optimizer=ADAFACTOR),
    deepspeed("stage-2-small-buckets", 2, UNEVEN, reduce_bucket_size=30),
    deepspeed("stage-2-small-buckets-four-ranks", 2, UNEVEN, even(4, 2), reduce_bucket_size=30),
    deepspeed("stage-2-small-buckets-overlapped", 2, UNEVEN, reduce_bucket_size=30,
              overlap_comm=True),
    deepspeed("stage-2-reduce-to-owners", 2, use_multi_rank_bucket_allreduce=False),
    deepspeed("stage-2-reduce-to-owners-four-ranks", 2, UNEVEN, even(4, 2), reduce_bucket_size=30,
              use_multi_rank_bucket_allreduce=False),
    deepspeed("stage-2-all-reduce", 2, UNEVEN, reduce_bucket_size=30, reduce_scatter=False),
    deepspeed("stage-2-round-robin", 2, UNEVEN, even(4, 2), round_robin_gradients=True),
    deepspeed("stage-2-accumulation", 2, iterations=accumulating(2, 2, 2), config=IN_TWO),
    deepspeed("stage-2-clipping", 2, config=CLIPPING),
    deepspeed("stage-2-bf16", 2, config=IN_BF16),
    deepspeed("stage-2-bf16-accumulation", 2, iterations=accumulating(2, 2, 2),
              config={**IN_BF16, **IN_TWO}),
    deepspeed("stage-2-bf16-reduced-in-fp32", 2,
              config={**IN_BF16, "communication_data_type": "fp32"}),
    deepspeed("stage-2-offload", 2, optimizer=ADAM, **TO_CPU),
    deepspeed("stage-2-offload-accumulation", 2, iterations=accumulating(2, 2, 2), config=IN_TWO,
              **TO_CPU),
    deepspeed("stage-2-evaluation", 2, iterations=evaluating(2)),
    deepspeed("stage-2-batch-norm", 2, NORM),
    # Stage 3
    deepspeed("stage-3", 3),
    deepspeed("stage-3-all-sharded", 3, **SHARDS_ALL),
    deepspeed("stage-3-some-persistent", 3, stage3_param_persistence_threshold=10),
    deepspeed("stage-3-four-ranks", 3, UNEVEN, even(4, 3), **SHARDS_ALL),
    deepspeed("stage-3-keeps-nothing", 3, iterations=even(2, 4), **KEEPS_NOTHING),
    deepspeed("stage-3-keeps-nothing-four-ranks", 3, UNEVEN, even(4, 3), **KEEPS_NOTHING),
    deepspeed("stage-3-no-prefetch", 3, iterations=even(2, 4), **SHARDS_ALL,
              stage3_prefetch_bucket_size=0),
    deepspeed("stage-3-small-prefetch", 3, iterations=even(2, 4),
              **{**KEEPS_NOTHING, "stage3_prefetch_bucket_size": 30}),
    deepspeed("stage-3-middle-prefetch", 3, iterations=even(2, 4),
              **{**KEEPS_NOTHING, "stage3_prefetch_bucket_size": 60}),
    deepspeed("stage-3-large-prefetch", 3, iterations=even(2, 4),
              **{**KEEPS_NOTHING, "stage3_prefetch_bucket_size": 1000}),
    deepspeed("stage-3-middle-reuse", 3, iterations=even(2, 4),
              **{**KEEPS_NOTHING, "stage3_max_reuse_distance": 40}),
    deepspeed("stage-3-few-live", 3, iterations=even(2, 4), **SHARDS_ALL,
              stage3_max_live_parameters=40),
    deepspeed("stage-3-small-buckets", 3, UNEVEN, **SHARDS_ALL, reduce_bucket_size=30),
    deepspeed("stage-3-not-overlapped", 3, UNEVEN, **SHARDS_ALL, reduce_bucket_size=30,
              overlap_comm=False),
    deepspeed("stage-3-small-sub-groups", 3, **SHARDS_ALL, sub_group_size=30),
    deepspeed("stage-3-adam", 3, optimizer=ADAM, **SHARDS_ALL),
    deepspeed("stage-3-lamb", 3, optimizer=LAMB, **SHARDS_ALL),
    deepspeed("stage-3-lamb-in-groups", 3, optimizer=LAMB, sub_group_size=20, **SHARDS_ALL),
    deepspeed("stage-3-accumulation", 3, iterations=accumulating(2, 2, 2), config=IN_TWO,
              **SHARDS_ALL),
    deepspeed("stage-3-clipping", 3, config=CLIPPING, **SHARDS_ALL),
    deepspeed("stage-3-bf16", 3, config=IN_BF16, **SHARDS_ALL),
    deepspeed("stage-3-offload", 3, optimizer=ADAM, **SHARDS_ALL, **TO_CPU),
    deepspeed("stage-3-second-parts", 3, UNEVEN, even(4, 3), **KEEPS_NOTHING,
              zero_hpz_partition_size=2),
    deepspeed("stage-3-second-parts-prefetched", 3, UNEVEN, even(4, 3),
              **{**KEEPS_NOTHING, "stage3_prefetch_bucket_size": 30}, zero_hpz_partition_size=2),
    deepspeed("stage-3-second-parts-persistent", 3, UNEVEN, even(4, 3), zero_hpz_partition_size=2),
    deepspeed("stage-3-second-parts-accumulation", 3, UNEVEN, accumulating(4, 2, 2), config=IN_TWO,
              **KEEPS_NOTHING, zero_hpz_partition_size=2),
    deepspeed("stage-3-second-parts-evaluation", 3, UNEVEN, evaluating(4), **KEEPS_NOTHING,
              zero_hpz_partition_size=2),
    deepspeed("stage-3-evaluation", 3, iterations=evaluating(2), **SHARDS_ALL),
    deepspeed("stage-3-evaluation-first", 3, iterations=evaluating(2, 4, first=0), **SHARDS_ALL),
    deepspeed("stage-3-evaluation-keeps-nothing", 3, iterations=evaluating(2), **KEEPS_NOTHING),
]



def fairscale(name, described=PLAIN, iterations=None, optimizer=None, more=None, **options):
    return setting("fairscale-" + name, described, iterations or even(2, 2), optimizer, more,
                   fairscale=options)


def fairscale_fsdp(name, described=PLAIN, iterations=None, optimizer=None, more=None, **options):
    return setting("fairscale-fsdp-" + name, described, iterations or even(2, 2), optimizer, more,
                   fairscale_fsdp={"units": [[0, 0], [1, 1], [2, 2]], **options})


NO_BUFFER = {"reduce_buffer_size": 0}

FAIRSCALE_SETTINGS = [
    # Every gradient reduced by itself
    fairscale("default", **NO_BUFFER),
    fairscale("uneven", UNEVEN, **NO_BUFFER),
    fairscale("four-ranks", UNEVEN, even(4, 2), **NO_BUFFER),
    fairscale("adam", optimizer=ADAM, **NO_BUFFER),
    fairscale("lamb", optimizer=LAMB, **NO_BUFFER),
    fairscale("accumulation", iterations=accumulating(2, 2, 2), **NO_BUFFER),
    fairscale("clip-norm", more=CLIPPED, **NO_BUFFER),
    fairscale("batch-norm", NORM, **NO_BUFFER),
    fairscale("batch-norm-accumulation", NORM, accumulating(2, 2, 2), **NO_BUFFER),
    fairscale("batch-norm-own-buffers", NORM, broadcast_buffers=False, **NO_BUFFER),
    fairscale("evaluation", NORM, evaluating(2), **NO_BUFFER),
    fairscale("reduced-in-fp16", reduce_fp16=True, **NO_BUFFER),
    fairscale("broadcast-in-fp16", oss={"broadcast_fp16": True}, **NO_BUFFER),
    # Gradients packed into one buffer for each owner
    fairscale("buffers"),
    fairscale("buffers-uneven", UNEVEN, even(2, 3)),
    fairscale("buffers-four-ranks", UNEVEN, even(4, 2)),
    fairscale("small-buffers", UNEVEN, even(2, 3), reduce_buffer_size=30),
    fairscale("tiny-buffers", UNEVEN, even(2, 3), reduce_buffer_size=6),
    # No parameter of rank 1 fits
    fairscale("empty-buffer", UNEVEN, even(2, 3), reduce_buffer_size=4),
    fairscale("buffers-accumulation", iterations=accumulating(2, 2, 2)),
    fairscale("buffers-clip-norm", more=CLIPPED),
    fairscale("more-ranks-than-parameters",
              network([4], [2], [linear(4, 3), linear(3, 2, bias=False)]), even(4, 2)),
]

FAIRSCALE_FSDP_SETTINGS = [
    fairscale_fsdp("default"),
    fairscale_fsdp("four-ranks", UNEVEN, even(4, 2), units=UNEVEN_UNITS),
    fairscale_fsdp("no-reshard", reshard_after_forward=False),
    fairscale_fsdp("no-buckets", bucket_cap_mb=0),
    fairscale_fsdp("accumulation", iterations=accumulating(2, 2, 2)),
    fairscale_fsdp("clip-norm", more=CLIPPED),
    fairscale_fsdp("evaluation", iterations=evaluating(2)),
    fairscale_fsdp("adam", optimizer=ADAM),
    fairscale_fsdp("adafactor", UNEVEN, units=UNEVEN_UNITS, optimizer=ADAFACTOR),
]


def saving(name, how, made, **more):
    """A setting that ends with a checkpoint; `how`: arguments of Lightning's strategy."""
    result = made("checkpoint-" + name, iterations=more.pop("iterations", even(2, 1)),
                  optimizer=more.pop("optimizer", ADAM), **more)
    return {**result, "checkpoint": how}


SHARDED = {"state_dict_type": "sharded"}
FULL = {"state_dict_type": "full"}
IN_PARTS = {"save_distributed_checkpoint": True}
IN_ONE_FILE = {"save_distributed_checkpoint": False}
ORIGINAL = {"use_orig_params": True}
FOUR = {"described": UNEVEN, "iterations": even(4, 1)}

CHECKPOINT_SETTINGS = [
    saving("sharded", SHARDED, fsdp1, **ORIGINAL),
    saving("sharded-sgd", SHARDED, fsdp1, **ORIGINAL, optimizer=SGD),
    saving("sharded-four-ranks", SHARDED, fsdp1, **ORIGINAL, **FOUR, units=UNEVEN_UNITS),
    saving("sharded-flat-parameters", SHARDED, fsdp1),
    saving("full", FULL, fsdp1, **ORIGINAL),
    saving("full-sgd", FULL, fsdp1, **ORIGINAL, optimizer=SGD),
    saving("full-four-ranks", FULL, fsdp1, **ORIGINAL, **FOUR, units=UNEVEN_UNITS),
    # Rank 0 raises ValueError, and the others wait for it.
    saving("full-flat-parameters", FULL, fsdp1, more={"timeout_s": 5}),
    saving("full-momentum", FULL, fsdp1, **ORIGINAL, optimizer={**SGD, "momentum": 0.5}),
    saving("full-bf16", FULL, fsdp1, **ORIGINAL, mixed_precision=BF16),
    saving("full-no-shard", FULL, fsdp1, **ORIGINAL, sharding_strategy="NO_SHARD"),
    saving("full-hybrid", FULL, fsdp1, **ORIGINAL, **FOUR, units=UNEVEN_UNITS, nodes=2,
           sharding_strategy="HYBRID_SHARD"),
    saving("sharded-hybrid", SHARDED, fsdp1, **ORIGINAL, **FOUR, units=UNEVEN_UNITS, nodes=2,
           sharding_strategy="HYBRID_SHARD"),
    saving("sharded-bf16", SHARDED, fsdp1, **ORIGINAL, mixed_precision=BF16),
    # Groups of a device mesh in place of process groups
    saving("full-mesh", FULL, fsdp1, **ORIGINAL, **FOUR, units=UNEVEN_UNITS, mesh=[2, 2],
           sharding_strategy="HYBRID_SHARD"),
    saving("sharded-mesh", SHARDED, fsdp1, **ORIGINAL, **FOUR, units=UNEVEN_UNITS, mesh=[2, 2],
           sharding_strategy="HYBRID_SHARD"),
    saving("sharded-mesh-sgd", SHARDED, fsdp1, **ORIGINAL, **FOUR, units=UNEVEN_UNITS, mesh=[2, 2],
           sharding_strategy="HYBRID_SHARD", optimizer=SGD),
    saving("sharded-mesh-zero2", SHARDED, fsdp1, **ORIGINAL, **FOUR, units=UNEVEN_UNITS,
           mesh=[2, 2], sharding_strategy="_HYBRID_SHARD_ZERO2"),
    saving("sharded", IN_PARTS, fsdp2),
    saving("sharded-sgd", IN_PARTS, fsdp2, optimizer=SGD),
    saving("sharded-four-ranks", IN_PARTS, fsdp2, **FOUR, units=UNEVEN_UNITS),
    saving("sharded-replicated", IN_PARTS, fsdp2, **FOUR, units=UNEVEN_UNITS, mesh=[2, 2]),
    saving("sharded-bf16", IN_PARTS, fsdp2, mixed_precision=BF16),
    saving("full", IN_ONE_FILE, fsdp2),
    saving("full-replicated", IN_ONE_FILE, fsdp2, **FOUR, units=UNEVEN_UNITS, mesh=[2, 2]),
    saving("full-four-ranks", IN_ONE_FILE, fsdp2, **FOUR, units=UNEVEN_UNITS),
    saving("adam", {}, zero1),
    saving("four-ranks", {}, zero1, **FOUR),
    saving("stage-0", {}, deepspeed, stage=0),
    saving("stage-1", {}, deepspeed, stage=1),
    saving("stage-2", {}, deepspeed, stage=2),
    saving("stage-2-four-ranks", {}, deepspeed, stage=2, **FOUR),
    saving("stage-2-bf16", {}, deepspeed, stage=2, config=IN_BF16),
    saving("stage-2-offload", {}, deepspeed, stage=2, **TO_CPU),
    saving("stage-3", {}, deepspeed, stage=3),
    saving("stage-3-bf16", {}, deepspeed, stage=3, config=IN_BF16),
    saving("stage-3-four-ranks", {}, deepspeed, stage=3, **FOUR, **SHARDS_ALL),
]

# Activation checkpointing. The first segment has two units, and layers behind them that save
# something; the second ends with the unit in which the second forward stops.
CHECKED = network(
    [4], [2],
    [linear(4, 6), linear(6, 5), RELU, linear(5, 4), RELU, linear(4, 7), RELU, linear(7, 3),
     linear(3, 2)],
)
LINEAR_UNITS = [[0, 0], [1, 1], [3, 3], [5, 5], [7, 7]]
IN_SEGMENTS = [[1, 4], [5, 7]]
SHORT_SEGMENTS = [[1, 2], [4, 5], [7, 8]]
FOUR_TIMES = {"iterations": even(4, 3)}


def recomputing(name, made, by="torch", segments=None, **arguments):
    arguments.setdefault("iterations", even(2, 3))
    result = made("recomputed" + name, described=CHECKED, **arguments)
    return {**result, "checkpointed": {"segments": segments or IN_SEGMENTS, "by": by}}


def recomputed_units(made, by, **arguments):
    """What the strategies with units have in common."""
    arguments = {"units": LINEAR_UNITS, **arguments}
    by_whom = "" if by == "torch" else "-by-" + by
    return [
        recomputing(by_whom, made, by, **arguments),
        recomputing(by_whom + "-four-ranks", made, by, **FOUR_TIMES, **arguments),
        recomputing(by_whom + "-accumulation", made, by, iterations=accumulating(2, 2, 2),
                    **arguments),
        recomputing(by_whom + "-one-unit-each", made, by, **{**arguments, "units": IN_SEGMENTS}),
        recomputing(by_whom + "-nested-units", made, by,
                    **{**arguments, "units": [*LINEAR_UNITS, [1, 4]]}),
        recomputing(by_whom + "-wide-unit", made, by, segments=[[1, 2], [3, 4]],
                    **{**arguments, "units": [[0, 0], [1, 5]]}),
        # One unit in each, before the end, at the end, and at the end of the network
        recomputing(by_whom + "-short-segments", made, by, segments=SHORT_SEGMENTS, **arguments),
    ]


def recomputed_modules(**arguments):
    # The modules themselves are called again: checkpoint(module, value).
    arguments = {"stage": 3, "by": "call", **arguments}
    return [
        recomputing("", deepspeed, **arguments),
        recomputing("-all-sharded", deepspeed, **arguments, **SHARDS_ALL),
        recomputing("-keeps-nothing", deepspeed, **arguments, **KEEPS_NOTHING),
        recomputing("-keeps-nothing-four-ranks", deepspeed, **arguments, **KEEPS_NOTHING,
                    **FOUR_TIMES),
        recomputing("-no-prefetch", deepspeed, **arguments, **SHARDS_ALL,
                    stage3_prefetch_bucket_size=0),
        recomputing("-small-prefetch", deepspeed, **arguments,
                    **{**KEEPS_NOTHING, "stage3_prefetch_bucket_size": 30},
                    iterations=even(2, 4)),
        recomputing("-middle-reuse", deepspeed, **arguments,
                    **{**KEEPS_NOTHING, "stage3_max_reuse_distance": 40}),
        recomputing("-some-persistent", deepspeed, **arguments,
                    **{**KEEPS_NOTHING, "stage3_param_persistence_threshold": 10}),
        recomputing("-accumulation", deepspeed, **arguments, **KEEPS_NOTHING,
                    iterations=accumulating(2, 2, 2), config=IN_TWO),
        recomputing("-short-segments", deepspeed, **arguments, **KEEPS_NOTHING,
                    segments=SHORT_SEGMENTS),
        recomputing("-evaluation", deepspeed, **arguments, **KEEPS_NOTHING,
                    iterations=evaluating(2, 4)),
    ]


RECOMPUTING_SETTINGS = [
    *recomputed_units(fsdp1, "torch"),
    recomputing("-backward-post", fsdp1, units=LINEAR_UNITS, backward_prefetch="BACKWARD_POST"),
    recomputing("-no-backward-prefetch", fsdp1, units=LINEAR_UNITS, backward_prefetch=None),
    recomputing("-shard-grad-op", fsdp1, units=LINEAR_UNITS, sharding_strategy="SHARD_GRAD_OP"),
    recomputing("-forward-prefetch", fsdp1, units=LINEAR_UNITS, forward_prefetch=True),
    *recomputed_units(fsdp2, "torch"),
    recomputing("-no-reshard", fsdp2, units=LINEAR_UNITS, reshard_after_forward=False),
    *recomputed_modules(),
    *recomputed_units(fairscale_fsdp, "torch"),
    *recomputed_units(fairscale_fsdp, "fairscale"),
    recomputing("-no-reshard", fairscale_fsdp, units=LINEAR_UNITS, reshard_after_forward=False),
    recomputing("-no-buckets", fairscale_fsdp, units=LINEAR_UNITS, bucket_cap_mb=0),
    recomputing("-by-fairscale-no-reshard", fairscale_fsdp, "fairscale", units=LINEAR_UNITS,
                reshard_after_forward=False),
    recomputing("-by-fairscale-no-buckets", fairscale_fsdp, "fairscale", units=LINEAR_UNITS,
                bucket_cap_mb=0),
]

SHARDED_SETTINGS = (FSDP1_SETTINGS + FSDP2_SETTINGS + ZERO1_SETTINGS + DEEPSPEED_SETTINGS
                    + FAIRSCALE_SETTINGS + FAIRSCALE_FSDP_SETTINGS + CHECKPOINT_SETTINGS
                    + RECOMPUTING_SETTINGS)
