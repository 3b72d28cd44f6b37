"""The networks of the settings as torch modules, with the same numbers as the product's own.

Initial weights and samples are small whole numbers drawn by counter (SplitMix64's finaliser over
key and counter), so that both sides start from the same values without exchanging any.
"""

import torch

DTYPES = {
    "fp64": torch.float64,
    "fp32": torch.float32,
    "bf16": torch.bfloat16,
    "fp16": torch.float16,
    "int64": torch.int64,
}
WORD = (1 << 64) - 1
RMS_NORM = getattr(torch.nn, "RMSNorm", torch.nn.LayerNorm)  # torch has it from 2.4 on


def random_bits(key, counter):
    mixed = (key + 0x9E3779B97F4A7C15 * (counter + 1)) & WORD
    mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & WORD
    mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & WORD
    return mixed ^ (mixed >> 31)


def random_below(key, counter, bound):
    return (random_bits(key, counter) * bound) >> 64


def whole_numbers(key, count):
    """Numbers in -2 .. 2."""
    return [random_below(key, i, 5) - 2 for i in range(count)]


class Bias(torch.nn.Module):
    def __init__(self, features):
        super().__init__()
        self.bias = torch.nn.Parameter(torch.empty(features))

    def forward(self, value):
        return value + self.bias


class Buffer(torch.nn.Module):
    def __init__(self, shape, dtype="fp32"):
        super().__init__()
        self.register_buffer("buffer", torch.zeros(shape, dtype=DTYPES[dtype]))

    def forward(self, value):
        return value


class PositionalEmbedding(torch.nn.Module):
    """Row i of the weight is added to position i, as GPT-2's wpe."""

    def __init__(self, num_embeddings, embedding_dim):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.empty(num_embeddings, embedding_dim))

    def forward(self, value):
        return value + self.weight[: value.shape[1]]


class CausalSelfAttention(torch.nn.Module):
    """GPT-2's."""

    def __init__(self, embed_dim, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.c_attn = torch.nn.Linear(embed_dim, 3 * embed_dim)
        self.c_proj = torch.nn.Linear(embed_dim, embed_dim)

    def forward(self, value):
        batch, positions, width = value.shape
        heads = (batch, positions, self.num_heads, width // self.num_heads)
        parts = [p.view(heads).transpose(1, 2) for p in self.c_attn(value).split(width, dim=2)]
        attended = torch.nn.functional.scaled_dot_product_attention(*parts, is_causal=True)
        return self.c_proj(attended.transpose(1, 2).reshape(value.shape))


class MultiheadAttention(torch.nn.MultiheadAttention):
    """Self-attention."""

    def __init__(self, embed_dim, num_heads):
        super().__init__(embed_dim, num_heads, batch_first=True)

    def forward(self, value):
        return super().forward(value, value, value, need_weights=False)[0]


class GroupedQueryAttention(torch.nn.Module):
    """Llama's: causal, with rotary embedding; of so many heads as its projections give."""

    def __init__(self, embed_dim, num_heads, num_kv_heads):
        super().__init__()
        self.width = embed_dim // num_heads
        self.q_proj = torch.nn.Linear(embed_dim, embed_dim, bias=False)
        self.k_proj = torch.nn.Linear(embed_dim, num_kv_heads * self.width, bias=False)
        self.v_proj = torch.nn.Linear(embed_dim, num_kv_heads * self.width, bias=False)
        self.o_proj = torch.nn.Linear(embed_dim, embed_dim, bias=False)

    def _heads(self, value):
        return value.unflatten(-1, (-1, self.width)).transpose(1, 2)

    def _turned(self, heads):
        half = self.width // 2
        rates = 10000.0 ** (torch.arange(half, dtype=torch.float64) / -half)
        angles = torch.arange(heads.shape[2], dtype=torch.float64)[:, None] * rates
        cosines, sines = angles.cos().to(heads.dtype), angles.sin().to(heads.dtype)
        first, second = heads[..., :half], heads[..., half:]
        return torch.cat([first * cosines - second * sines, second * cosines + first * sines], -1)

    def forward(self, value):
        parts = [self._heads(p(value)) for p in (self.q_proj, self.k_proj, self.v_proj)]
        attended = torch.nn.functional.scaled_dot_product_attention(
            self._turned(parts[0]), self._turned(parts[1]), parts[2], is_causal=True,
            enable_gqa=True)
        return self.o_proj(attended.transpose(1, 2).flatten(2))


class SwiGLU(torch.nn.Module):
    def __init__(self, embed_dim, hidden_dim):
        super().__init__()
        self.gate_proj = torch.nn.Linear(embed_dim, hidden_dim, bias=False)
        self.up_proj = torch.nn.Linear(embed_dim, hidden_dim, bias=False)
        self.down_proj = torch.nn.Linear(hidden_dim, embed_dim, bias=False)

    def forward(self, value):
        gate = torch.nn.functional.silu(self.gate_proj(value))
        return self.down_proj(gate * self.up_proj(value))


KINDS = {
    "Linear": torch.nn.Linear,
    "ReLU": torch.nn.ReLU,
    "Embedding": torch.nn.Embedding,
    "Bias": Bias,
    "Buffer": Buffer,
    "BatchNorm1d": torch.nn.BatchNorm1d,
    "Flatten": torch.nn.Flatten,
    "LayerNorm": torch.nn.LayerNorm,
    "GELU": torch.nn.GELU,
    "PositionalEmbedding": PositionalEmbedding,
    "CausalSelfAttention": CausalSelfAttention,
    "MultiheadAttention": MultiheadAttention,
    "RMSNorm": RMS_NORM,
    "GroupedQueryAttention": GroupedQueryAttention,
    "SwiGLU": SwiGLU,
    "Conv2d": torch.nn.Conv2d,
    "MaxPool2d": torch.nn.MaxPool2d,
    "AvgPool2d": torch.nn.AvgPool2d,
    "AdaptiveAvgPool2d": torch.nn.AdaptiveAvgPool2d,
}


class Network(torch.nn.Module):
    """Layers one after the other; `skipped` names those that a forward leaves out."""

    def __init__(self, description):
        super().__init__()
        for index, layer in enumerate(description["layers"]):
            arguments = dict(layer.get("arguments", {}))
            name = arguments.pop("name", str(index))
            trainable = arguments.pop("trainable", True)
            tied_to = arguments.pop("tied_to", None)
            module = KINDS[layer["kind"]](**arguments)
            if tied_to is not None:
                module.weight = getattr(self, tied_to).weight
            if not trainable:
                module.requires_grad_(False)
            self.add_module(name, module)

    def forward(self, value, skipped=()):
        for index, layer in enumerate(self.children()):
            if index not in skipped:
                value = layer(value)
        return value


def draw_parameters(network, seed, rank):
    """Every rank starts from its own numbers; the strategy must make them equal."""
    norms = {
        id(parameter)
        for layer in network.modules()
        if isinstance(layer, (torch.nn.BatchNorm1d, torch.nn.LayerNorm, RMS_NORM))
        for parameter in layer.parameters()
    }
    with torch.no_grad():
        for index, parameter in enumerate(network.parameters()):
            if id(parameter) in norms:
                continue  # weight 1, bias 0
            key = random_bits(random_bits(seed, rank), index)
            numbers = torch.tensor(whole_numbers(key, parameter.numel()))
            parameter.copy_(numbers.reshape(parameter.shape))


class DataSet:
    """What sample `index` holds is a function of seed and index alone."""

    def __init__(self, setting, output_shape):
        self.seed = setting["seed"]
        self.description = setting["network"]
        self.dtype = DTYPES[setting["dtype"]]
        self.output_shape = output_shape
        self.classes = self.description["loss"]["kind"] == "CrossEntropyLoss"

    def _key(self, sample, part):
        return random_bits(random_bits(self.seed, 0x5A3E1E + part), sample)

    def inputs(self, samples):
        shape = self.description["input"]
        count = torch.Size(shape).numel()
        if self.description.get("input_dtype", "fp32") == "int64":
            first = self.description["layers"][0]["arguments"]
            bound = first["num_embeddings"]
            rows = [
                [random_below(self._key(s, 0), i, bound) for i in range(count)] for s in samples
            ]
            return torch.tensor(rows, dtype=torch.int64).reshape(len(samples), *shape)
        rows = [whole_numbers(self._key(s, 0), count) for s in samples]
        return torch.tensor(rows, dtype=self.dtype).reshape(len(samples), *shape)

    def targets(self, samples):
        count = torch.Size(self.output_shape).numel()
        if self.classes:
            bound = self.output_shape[-1]
            rows = [
                [random_below(self._key(s, 1), i, bound) for i in range(count // bound)]
                for s in samples
            ]
            return torch.tensor(rows, dtype=torch.int64).reshape(-1)
        rows = [whole_numbers(self._key(s, 1), count) for s in samples]
        return torch.tensor(rows, dtype=self.dtype).reshape(len(samples), *self.output_shape)


def loss_of(description, output, target):
    reduction = description["loss"].get("arguments", {}).get("reduction", "mean")
    if description["loss"]["kind"] == "CrossEntropyLoss":
        scores = output.reshape(-1, output.shape[-1])
        return torch.nn.functional.cross_entropy(scores, target, reduction=reduction)
    return torch.nn.functional.mse_loss(output, target, reduction=reduction)
