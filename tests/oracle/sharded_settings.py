"""What is recorded of strategies that shard: one setting a file of tests/data/oracle/sharded.

Iterations are those of settings.py. Units are inclusive ranges of layers, each wrapped as a module
of its own; the root, which is wrapped last, holds everything else.
"""

from settings import DEEP, RELU, SMALL, accumulating, even, layer, linear, network

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


SHARDED_SETTINGS = [
    fsdp1("full-shard"),
    fsdp1("shard-grad-op", sharding_strategy="SHARD_GRAD_OP"),
    fsdp1("no-shard", sharding_strategy="NO_SHARD"),
    fsdp1("hybrid-shard", iterations=even(4, 2), sharding_strategy="HYBRID_SHARD", nodes=2),
    fsdp1("original-parameters", use_orig_params=True),
]
