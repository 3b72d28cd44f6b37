"""What is recorded of layers that ranks compute together: a file of tests/data/oracle/sharded each.

Plans are written in torch's words. Ranks of one replica are neighbours and get the same samples.
"""

from settings import RELU, accumulating, even, layer, linear, network
from sharded_settings import CLIPPED, LAMB, setting

GELU = layer("GELU")
COLUMNS, ROWS = "ColwiseParallel()", "RowwiseParallel()"
COLUMNS_FOR_LOSS = "ColwiseParallel(output_layouts=Shard(-1), use_local_output=False)"
UP_DOWN = {"0": COLUMNS, "2": ROWS, "3": COLUMNS, "5": ROWS}


def feed_forwards(**arguments):
    return network([4], [4], [
        linear(4, 8, **arguments), RELU, linear(8, 4, **arguments),
        linear(4, 8, **arguments), RELU, linear(8, 4, **arguments)])


FEED_FORWARDS = feed_forwards()


def together(iterations, ranks):
    """Of each replica its ranks do the same."""
    return [of_replica for of_replica in iterations for _ in range(ranks)]


# Gradients of a mean over classes are small: what is done to them shall be seen in the weights.
SGD_OF_CLASSES = {"kind": "SGD", "lr": 0.125}


def tensor(name, described, plan, ranks=2, iterations=None, optimizer=None, more=None, **options):
    if optimizer is None and described["loss"]["kind"] == "CrossEntropyLoss":
        optimizer = SGD_OF_CLASSES
    return setting("tensor-" + name, described, together(iterations or even(1, 2), ranks),
                   optimizer, more,
                   tensor={"tensor_parallel_size": ranks, "parallelize_plan": plan, **options})


def embedding(num_embeddings=8, embedding_dim=4):
    return layer("Embedding", num_embeddings=num_embeddings, embedding_dim=embedding_dim)


def tokens(*layers, positions=4, classes=8):
    return network([positions], [positions, classes], list(layers), loss="CrossEntropyLoss",
                   input_dtype="int64")


NORM = layer("LayerNorm", normalized_shape=[4])
LOOKED_UP = tokens(embedding(), linear(4, 8))
IN_SEQUENCE = tokens(embedding(), NORM, linear(4, 8), GELU, linear(8, 4), NORM,
                     linear(4, 8, bias=False))
IN_SEQUENCE_FROZEN = tokens(
    embedding(), layer("LayerNorm", normalized_shape=[4], trainable=False), linear(4, 8), GELU,
    linear(8, 4), NORM, linear(4, 8, bias=False))
SEQUENCE_PLAN = {
    "0": "RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(1))",
    "1": "SequenceParallel()",
    "2": "ColwiseParallel(input_layouts=Shard(1))",
    "4": "RowwiseParallel(output_layouts=Shard(1))",
    "5": "SequenceParallel()",
    "6": "ColwiseParallel(input_layouts=Shard(1), output_layouts=Replicate())",
}
ATTENTION = tokens(
    embedding(), layer("GroupedQueryAttention", embed_dim=4, num_heads=2, num_kv_heads=2),
    linear(4, 8))
HEADS = {"1.q_proj": COLUMNS, "1.k_proj": COLUMNS, "1.v_proj": COLUMNS, "1.o_proj": ROWS}
PREPARED = {"1": "PrepareModuleInput(input_layouts=Replicate(), "
                 "desired_input_layouts=Replicate())"}
GATED = tokens(embedding(), layer("SwiGLU", embed_dim=4, hidden_dim=8), linear(4, 8))
GATES = {"1.gate_proj": COLUMNS, "1.up_proj": COLUMNS, "1.down_proj": ROWS}
RMS_NORM = layer("RMSNorm", normalized_shape=[4])


def llama():
    """A block without its residuals, which exchange nothing."""
    return tokens(
        embedding(), RMS_NORM,
        layer("GroupedQueryAttention", embed_dim=4, num_heads=2, num_kv_heads=2),
        RMS_NORM, layer("SwiGLU", embed_dim=4, hidden_dim=8), RMS_NORM,
        linear(4, 8, bias=False))


FROM_SEQUENCE = "PrepareModuleInput(input_layouts=Shard(1), desired_input_layouts=Replicate())"
# As Lightning's example of tensor parallelism cuts Llama.
LLAMA_PLAN = {
    "0": "RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(1))",
    "1": "SequenceParallel()",
    "2": FROM_SEQUENCE,
    "2.q_proj": COLUMNS, "2.k_proj": COLUMNS, "2.v_proj": COLUMNS,
    "2.o_proj": "RowwiseParallel(output_layouts=Shard(1))",
    "3": "SequenceParallel()",
    "4": FROM_SEQUENCE,
    "4.gate_proj": COLUMNS, "4.up_proj": COLUMNS,
    "4.down_proj": "RowwiseParallel(output_layouts=Shard(1))",
    "5": "SequenceParallel()",
    "6": "ColwiseParallel(input_layouts=Shard(1), output_layouts=Replicate())",
}
# Four linears, each of which the loss's gradient reaches through the others.
FOUR = network([4], [4], [linear(4, 8), linear(8, 8), linear(8, 8), linear(8, 4)])
FROZEN = network([4], [4], [
    linear(4, 8), RELU, linear(8, 4), linear(4, 8, trainable=False), RELU,
    linear(8, 4, trainable=False), linear(4, 4)])
IN_HALVES = {"units": [[0, 2], [3, 5]]}
TWO_REPLICAS = {"iterations": even(2, 2)}
ADAMW = {"kind": "AdamW", "lr": 2**-6}

ONE_REPLICA_SETTINGS = [
    tensor("two-replicas-loss-in-parts", LOOKED_UP,
           {"0": "RowwiseParallel(input_layouts=Replicate())", "1": COLUMNS_FOR_LOSS},
           **TWO_REPLICAS),
    tensor("feed-forward", FEED_FORWARDS, UP_DOWN),
    tensor("feed-forward-four-ranks", FEED_FORWARDS, UP_DOWN, 4),
    tensor("feed-forward-without-bias", feed_forwards(bias=False), UP_DOWN),
    tensor("feed-forward-adamw", FEED_FORWARDS, UP_DOWN, optimizer=ADAMW),
    tensor("feed-forward-accumulation", FEED_FORWARDS, UP_DOWN,
           iterations=accumulating(1, 2, 2)),
    tensor("feed-forward-clipped", FEED_FORWARDS, UP_DOWN, more=CLIPPED),
    # Only the first of the two is cut.
    tensor("feed-forward-partly", FEED_FORWARDS, {"0": COLUMNS, "2": ROWS}),
    tensor("feed-forward-partly-clipped", FEED_FORWARDS, {"0": COLUMNS, "2": ROWS}, more=CLIPPED),
    tensor("feed-forward-frozen", FROZEN, UP_DOWN),
    tensor("feed-forward-frozen-clipped", FROZEN, UP_DOWN, more=CLIPPED),
    tensor("columns-gathered", FOUR, {
        "0": "ColwiseParallel(output_layouts=Replicate())",
        "1": "ColwiseParallel(output_layouts=Replicate())",
        "3": "ColwiseParallel(output_layouts=Replicate())"}),
    # Each by columns, the next gathers its input itself.
    tensor("columns-from-columns", FOUR, {
        "0": COLUMNS, "1": "ColwiseParallel(input_layouts=Shard(-1))",
        "2": "ColwiseParallel(input_layouts=Shard(-1))",
        "3": ROWS}, 4),
    tensor("rows-from-whole", FOUR, {
        "1": "RowwiseParallel(input_layouts=Replicate())",
        "2": "RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(-1))",
        "3": ROWS}),
    tensor("embedding-rows", LOOKED_UP,
           {"0": "RowwiseParallel(input_layouts=Replicate())"}),
    tensor("embedding-columns", LOOKED_UP,
           {"0": "ColwiseParallel(output_layouts=Replicate())"}, 4),
    tensor("output-gathered", LOOKED_UP,
           {"1": "ColwiseParallel(output_layouts=Replicate())"}),
    tensor("loss-in-parts", LOOKED_UP, {"1": COLUMNS_FOR_LOSS}),
    tensor("loss-in-parts-four-ranks", LOOKED_UP, {"1": COLUMNS_FOR_LOSS}, 4),
    tensor("loss-in-parts-accumulation", LOOKED_UP, {"1": COLUMNS_FOR_LOSS},
           iterations=accumulating(1, 2, 2)),
    tensor("loss-in-parts-sequence", IN_SEQUENCE, {
        **SEQUENCE_PLAN, "6": "ColwiseParallel(input_layouts=Shard(1), output_layouts=Shard(-1), "
                              "use_local_output=False)"}),
    tensor("sequence", IN_SEQUENCE, SEQUENCE_PLAN),
    tensor("sequence-four-ranks", IN_SEQUENCE, SEQUENCE_PLAN, 4),
    tensor("sequence-adamw", IN_SEQUENCE, SEQUENCE_PLAN, optimizer=ADAMW),
    # How often each optimizer needs the whole gradient of a norm
    tensor("sequence-adagrad", IN_SEQUENCE, SEQUENCE_PLAN,
           optimizer={"kind": "Adagrad", "lr": 2**-6, "weight_decay": 0.125}),
    tensor("sequence-adadelta", IN_SEQUENCE, SEQUENCE_PLAN,
           optimizer={"kind": "Adadelta", "lr": 0.125}),
    tensor("sequence-adamax", IN_SEQUENCE, SEQUENCE_PLAN,
           optimizer={"kind": "Adamax", "lr": 2**-6}),
    tensor("sequence-nadam", IN_SEQUENCE, SEQUENCE_PLAN, optimizer={"kind": "NAdam", "lr": 2**-6}),
    tensor("sequence-radam", IN_SEQUENCE, SEQUENCE_PLAN, optimizer={"kind": "RAdam", "lr": 2**-6}),
    tensor("sequence-rmsprop", IN_SEQUENCE, SEQUENCE_PLAN,
           optimizer={"kind": "RMSprop", "lr": 2**-6, "momentum": 0.5}),
    tensor("sequence-rmsprop-centered", IN_SEQUENCE, SEQUENCE_PLAN,
           optimizer={"kind": "RMSprop", "lr": 2**-6, "centered": True}),
    tensor("sequence-asgd", IN_SEQUENCE, SEQUENCE_PLAN, optimizer={"kind": "ASGD", "lr": 2**-6}),
    tensor("sequence-lamb", IN_SEQUENCE, SEQUENCE_PLAN, optimizer=LAMB),
    tensor("sequence-accumulation", IN_SEQUENCE, SEQUENCE_PLAN, iterations=accumulating(1, 2, 2)),
    tensor("sequence-clipped", IN_SEQUENCE, SEQUENCE_PLAN, more=CLIPPED),
    # SequenceParallel makes parameters anew, all of which are trained.
    tensor("sequence-frozen-norm", IN_SEQUENCE_FROZEN, SEQUENCE_PLAN),
    tensor("sequence-norm-left-out", IN_SEQUENCE,
           {name: style for name, style in SEQUENCE_PLAN.items() if name != "1"}),
    tensor("attention", ATTENTION, HEADS),
    tensor("attention-prepared", ATTENTION, {**PREPARED, **HEADS}),
    tensor("gated", GATED, GATES),
    tensor("gated-prepared", GATED, {**PREPARED, **GATES}),
    tensor("llama", llama(), LLAMA_PLAN),
    tensor("llama-accumulation-clipped", llama(), LLAMA_PLAN, iterations=accumulating(1, 2, 2),
           more=CLIPPED),
]
REPLICA_SETTINGS = [
    tensor("two-replicas", FEED_FORWARDS, UP_DOWN, **TWO_REPLICAS),
    tensor("two-replicas-in-units", FEED_FORWARDS, UP_DOWN, **TWO_REPLICAS, **IN_HALVES),
    tensor("two-replicas-accumulation", FEED_FORWARDS, UP_DOWN, **IN_HALVES,
           iterations=accumulating(2, 2, 2)),
    tensor("two-replicas-clipped", FEED_FORWARDS, UP_DOWN, **TWO_REPLICAS, more=CLIPPED),
    tensor("two-replicas-lamb", FEED_FORWARDS, UP_DOWN, **TWO_REPLICAS, optimizer=LAMB),
    tensor("two-replicas-partly", FEED_FORWARDS, {"0": COLUMNS, "2": ROWS}, **TWO_REPLICAS,
           **IN_HALVES),
    tensor("two-replicas-partly-clipped", FEED_FORWARDS, {"0": COLUMNS, "2": ROWS},
           **TWO_REPLICAS, more=CLIPPED),
    tensor("two-replicas-sequence", IN_SEQUENCE, SEQUENCE_PLAN, **TWO_REPLICAS),
    tensor("two-replicas-sequence-in-units", IN_SEQUENCE, SEQUENCE_PLAN, **TWO_REPLICAS,
           units=[[1, 4], [5, 6]], optimizer=ADAMW),
    tensor("two-replicas-sequence-clipped", IN_SEQUENCE, SEQUENCE_PLAN, **TWO_REPLICAS,
           more=CLIPPED),
    tensor("two-replicas-llama", llama(), LLAMA_PLAN, **TWO_REPLICAS,
           units=[[1, 2], [3, 4]]),
    tensor("two-replicas-llama-clipped", llama(), LLAMA_PLAN, **TWO_REPLICAS,
           units=[[1, 2], [3, 4]], more=CLIPPED),
]

TENSOR_SETTINGS = ONE_REPLICA_SETTINGS + REPLICA_SETTINGS
