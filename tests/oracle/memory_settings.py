"""The trainings whose memory is recorded: a scenario, and the same network in torch.nn."""

import torch
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from memory_networks import EncoderDecoder, convnext, efficientnet, encoder_decoder_layers, swin

ADAMW = {"AdamW": {"lr": 1e-4}}
MOMENTUM = {"SGD": {"lr": 0.1, "momentum": 0.9}}
VOCABULARY_OF_BERT = 30522


# ---- What a GPU runs ----


class Dropout(nn.Dropout):
    def forward(self, value):
        return torch.ops.aten.native_dropout(value, self.p, True)[0]


class LayerNorm(nn.LayerNorm):
    """CUDA's autocast runs layer norm in fp32."""

    def forward(self, value):
        mixed = self.weight.dtype == torch.float32 and value.dtype == torch.bfloat16
        return super().forward(value.float() if mixed else value)


def attend(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False):
    if query.dtype == torch.float32:
        operation = torch.ops.aten._scaled_dot_product_efficient_attention
        return operation(query, key, value, attn_mask, True, dropout_p, is_causal)[0]
    operation = torch.ops.aten._scaled_dot_product_flash_attention
    return operation(query, key, value, dropout_p, is_causal, False)[0]


# ---- Layers ----


class CausalSelfAttention(nn.Module):
    """GPT-2's."""

    def __init__(self, embed_dim, num_heads, dropout=0.0, bias=True):
        super().__init__()
        self.num_heads = num_heads
        self.dropout = dropout
        self.c_attn = nn.Linear(embed_dim, 3 * embed_dim, bias=bias)
        self.c_proj = nn.Linear(embed_dim, embed_dim, bias=bias)

    def attended(self, value):
        batch, positions, width = value.shape
        heads = (batch, positions, self.num_heads, width // self.num_heads)
        parts = [p.view(heads).transpose(1, 2) for p in self.c_attn(value).split(width, dim=2)]
        return attend(*parts, None, self.dropout, True).transpose(1, 2).reshape(value.shape)

    def forward(self, value):
        return self.c_proj(self.attended(value))


class MultiheadAttention(nn.MultiheadAttention):
    """Self-attention; recording() gives torch.nn.functional the attention of a GPU."""

    def __init__(self, embed_dim, num_heads, dropout=0.0):
        super().__init__(embed_dim, num_heads, dropout, batch_first=True)

    def forward(self, value):
        return super().forward(value, value, value, need_weights=False)[0]


class PositionalEmbedding(nn.Module):
    def __init__(self, num_embeddings, embedding_dim):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(num_embeddings, embedding_dim))

    def forward(self, value):
        return value + self.weight[: value.shape[1]]


class Residual(nn.Module):
    def __init__(self, *layers, shortcut=None):
        super().__init__()
        self.branch = nn.Sequential(*layers)
        self.shortcut = shortcut or nn.Identity()

    def forward(self, value):
        return self.branch(value) + self.shortcut(value)


class TiedLinear(nn.Module):
    def __init__(self, table):
        super().__init__()
        self.weight = table.weight

    def forward(self, value):
        return functional.linear(value, self.weight)


# ---- Networks ----


class Checkpointed(nn.Sequential):
    def forward(self, value):
        return checkpoint(super().forward, value, use_reentrant=False, preserve_rng_state=False)


def gpt2(vocab_size=50257, activation_checkpointing="none"):
    width, heads, dropout, vocabulary = 768, 12, 0.1, vocab_size
    block = Checkpointed if activation_checkpointing == "full" else nn.Sequential
    table = nn.Embedding(vocabulary, width)
    layers = [table, PositionalEmbedding(1024, width), Dropout(dropout)]
    for _ in range(12):
        layers.append(block(
            Residual(LayerNorm(width), CausalSelfAttention(width, heads, dropout), Dropout(dropout)),
            Residual(LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(approximate="tanh"),
                     nn.Linear(4 * width, width), Dropout(dropout)),
        ))
    return nn.Sequential(*layers, LayerNorm(width), TiedLinear(table))


def convolution(before, after, kernel, stride):
    return nn.Conv2d(before, after, kernel, stride, kernel // 2, bias=False)


def resnet(blocks, bottleneck):
    """torchvision's; its ReLU is in place."""
    layers = [convolution(3, 64, 7, 2), nn.BatchNorm2d(64), nn.ReLU(inplace=True),
              nn.MaxPool2d(3, 2, 1)]
    before = 64
    for stage, count in enumerate(blocks):
        width = 64 << stage
        after = 4 * width if bottleneck else width
        for block in range(count):
            stride = 2 if stage > 0 and block == 0 else 1
            norm, relu = nn.BatchNorm2d, nn.ReLU
            if bottleneck:
                branch = [convolution(before, width, 1, 1), norm(width), relu(inplace=True),
                          convolution(width, width, 3, stride), norm(width), relu(inplace=True),
                          convolution(width, after, 1, 1), norm(after)]
            else:
                branch = [convolution(before, width, 3, stride), norm(width), relu(inplace=True),
                          convolution(width, after, 3, 1), norm(after)]
            changes = stride != 1 or before != after
            shortcut = nn.Sequential(convolution(before, after, 1, stride), norm(after))
            layers += [Residual(*branch, shortcut=shortcut if changes else None),
                       relu(inplace=True)]
            before = after
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(before, 1000))


def linear(given, bias=True):
    return {"Linear": [*given] if bias else {"in_features": given[0], "out_features": given[1],
                                             "bias": False}}


KINDS = {
    "Linear": nn.Linear, "ReLU": nn.ReLU, "GELU": nn.GELU, "Embedding": nn.Embedding,
    "PositionalEmbedding": PositionalEmbedding, "LayerNorm": LayerNorm, "Dropout": Dropout,
    "CausalSelfAttention": CausalSelfAttention, "MultiheadAttention": MultiheadAttention,
    "Conv2d": nn.Conv2d, "MaxPool2d": nn.MaxPool2d, "BatchNorm2d": nn.BatchNorm2d,
    "Flatten": nn.Flatten, "AdaptiveAvgPool2d": nn.AdaptiveAvgPool2d,
}


def modules_of(layers):
    made = []
    for layer in layers:
        if isinstance(layer, str):
            made.append(KINDS[layer]())
        elif "repeat" in layer:
            made += [m for _ in range(layer["repeat"]) for m in modules_of(layer["layers"])]
        else:
            (kind, given), = layer.items()
            if kind == "Residual":
                made.append(Residual(*modules_of(given["layers"])))
            elif isinstance(given, dict):
                made.append(KINDS[kind](**given))
            else:
                made.append(KINDS[kind](*(given if isinstance(given, list) else [given])))
    return made


PRESETS = {
    "gpt2": (gpt2, [1024]),
    "resnet18": (lambda: resnet([2, 2, 2, 2], False), [3, 224, 224]),
    "resnet50": (lambda: resnet([3, 4, 6, 3], True), [3, 224, 224]),
    "efficientnet-b0": (efficientnet, [3, 224, 224]),
    "convnext-tiny": (lambda: convnext(LayerNorm), [3, 224, 224]),
    "swin-tiny": (lambda: swin(LayerNorm), [3, 224, 224]),
}
ENCODER_DECODER = encoder_decoder_layers()


def network_of(model, precision):
    """The network, and what makes its batches."""
    dtype = torch.bfloat16 if precision == "bf16-true" else torch.float32
    torch.set_default_dtype(dtype)
    if model.get("layers") is ENCODER_DECODER["layers"]:
        shape = model["input"]
        network = EncoderDecoder(LayerNorm, model.get("activation_checkpointing", "none"))
    elif "preset" in model:
        make, shape = PRESETS[model["preset"]]
        network = make(**{key: given for key, given in model.items() if key != "preset"})
    else:
        shape = model["input"]
        network = nn.Sequential(*modules_of(model["layers"]))
    torch.set_default_dtype(torch.float32)
    is_pair = isinstance(network, EncoderDecoder)
    has_tokens = is_pair or isinstance(network[0], nn.Embedding)

    def make_batch(size):
        if has_tokens:
            batch = torch.zeros(size, *shape, dtype=torch.int64)
        else:
            batch = torch.zeros(size, *shape, dtype=dtype)
        if is_pair:
            return batch, torch.zeros(size * (shape[0] - network.source), dtype=torch.int64)
        rows = size * (shape[0] if len(shape) < 3 and (has_tokens or len(shape) == 2) else 1)
        return batch, torch.zeros(rows, dtype=torch.int64)

    return network, make_batch


# ---- Settings ----


def encoder_layer(width, heads, wide):
    """torch.nn.TransformerEncoderLayer: normalised after each sum."""
    return [
        {"Residual": {"layers": [{"MultiheadAttention": [width, heads, 0.1]}, {"Dropout": 0.1}]}},
        {"LayerNorm": width},
        {"Residual": {"layers": [{"Linear": [width, wide]}, "GELU", {"Linear": [wide, width]},
                                 {"Dropout": 0.1}]}},
        {"LayerNorm": width},
    ]


def decoder_layer(width, heads, wide):
    attention = {"embed_dim": width, "num_heads": heads, "bias": False}
    return [
        {"Residual": {"layers": [{"LayerNorm": width}, {"CausalSelfAttention": attention}]}},
        {"Residual": {"layers": [{"LayerNorm": width}, linear([width, wide], False), "GELU",
                                 linear([wide, width], False)]}},
    ]


BERT = {"input": [512], "layers": [
    {"Embedding": [VOCABULARY_OF_BERT, 768]}, {"PositionalEmbedding": [512, 768]},
    {"LayerNorm": 768}, {"Dropout": 0.1},
    {"repeat": 12, "layers": encoder_layer(768, 12, 3072)},
    {"Linear": [768, 768]}, "GELU", {"LayerNorm": 768}, {"Linear": [768, VOCABULARY_OF_BERT]}]}
VIT = {"input": [196, 768], "layers": [
    {"Linear": [768, 768]}, {"PositionalEmbedding": [196, 768]},
    {"repeat": 12, "layers": [
        {"Residual": {"layers": [{"LayerNorm": 768}, {"MultiheadAttention": [768, 12]}]}},
        {"Residual": {"layers": [{"LayerNorm": 768}, {"Linear": [768, 3072]}, "GELU",
                                 {"Linear": [3072, 768]}]}}]},
    {"LayerNorm": 768}, {"Linear": [768, 1000]}]}
DECODER = {"input": [1024], "layers": [
    {"Embedding": [32000, 1024]},
    {"repeat": 8, "layers": decoder_layer(1024, 16, 4096)},
    {"LayerNorm": 1024}, linear([1024, 32000], False)]}
PERCEPTRON = {"input": [1024], "layers": [
    {"Linear": [1024, 4096]}, "ReLU", {"Linear": [4096, 4096]}, "ReLU", {"Dropout": 0.5},
    {"Linear": [4096, 4096]}, "GELU", {"Linear": [4096, 1000]}]}


def vgg11():
    layers = []
    before = 3
    for after in (64, "M", 128, "M", 256, 256, "M", 512, 512, "M", 512, 512, "M"):
        if after == "M":
            layers.append({"MaxPool2d": 2})
            continue
        layers += [{"Conv2d": {"in_channels": before, "out_channels": after, "kernel_size": 3,
                               "padding": 1}}, "ReLU"]
        before = after
    return {"input": [3, 224, 224], "layers": [
        *layers, "Flatten", {"Linear": [25088, 4096]}, "ReLU", {"Dropout": 0.5},
        {"Linear": [4096, 4096]}, "ReLU", {"Dropout": 0.5}, {"Linear": [4096, 1000]}]}


def setting(name, network, model, batch_size, precision, optimizer, windows=1):
    scenario = {
        "version": 1,
        "cluster": {"preset": "dgx-h100"},
        "trainer": {"accelerator": "gpu", "devices": 1, "max_steps": 4, "precision": precision,
                    "limit_val_batches": 0, "num_sanity_val_steps": 0},
        "data": {"train": {"samples": 4 * batch_size, "batch_size": batch_size}},
        "optimizer": optimizer,
        "model": model,
    }
    if windows > 1:
        scenario["trainer"]["accumulate_grad_batches"] = windows
        scenario["data"]["train"]["samples"] *= windows
    return {"name": name, "network": network, "scenario": scenario}


def family(name, network, model, optimizer, *settings):
    return [
        setting(f"{name}-{precision}-{batch_size}", network, model, batch_size, precision, optimizer)
        for batch_size, precision in settings
    ]


SETTINGS = [
    *family("gpt2", "GPT-2 of 124 M parameters, vocabulary of 50257, 1024 positions",
            {"preset": "gpt2"}, ADAMW, (1, "32-true"), (2, "32-true"), (8, "32-true"),
            (1, "bf16-mixed"), (2, "bf16-mixed"), (8, "bf16-mixed"), (2, "bf16-true")),
    *family("bert-base", "BERT base, vocabulary of 30522, 512 positions, scores of every position",
            BERT, ADAMW, (2, "32-true"), (16, "32-true"), (16, "bf16-mixed")),
    *family("resnet50", "torchvision's resnet50", {"preset": "resnet50"}, MOMENTUM,
            (2, "32-true"), (32, "32-true"), (32, "bf16-mixed")),
    *family("resnet18", "torchvision's resnet18", {"preset": "resnet18"}, ADAMW,
            (1, "32-true"), (64, "32-true"), (64, "bf16-true")),
    *family("vgg11", "torchvision's vgg11 with its ReLU not in place", vgg11(), MOMENTUM,
            (16, "32-true"), (16, "bf16-mixed")),
    *family("vit-b-16", "the encoder of torchvision's vit_b_16 on patches, a class for each",
            VIT, ADAMW, (16, "32-true"), (16, "bf16-mixed")),
    *family("decoder", "8 blocks of width 1024 without biases, vocabulary of 32000", DECODER,
            ADAMW, (4, "32-true"), (4, "bf16-mixed")),
    *family("perceptron", "three hidden layers of 4096", PERCEPTRON, MOMENTUM,
            (64, "32-true"), (4096, "32-true"), (4096, "bf16-mixed")),
    *family("efficientnet-b0", "torchvision's efficientnet_b0 without stochastic depth",
            {"preset": "efficientnet-b0"}, MOMENTUM, (16, "32-true"), (16, "bf16-mixed")),
    *family("convnext-tiny", "torchvision's convnext_tiny without stochastic depth",
            {"preset": "convnext-tiny"}, ADAMW, (8, "32-true"), (8, "bf16-mixed")),
    *family("swin-tiny", "torchvision's swin_t without stochastic depth",
            {"preset": "swin-tiny"}, ADAMW, (8, "32-true"), (8, "bf16-mixed")),
    *family("encoder-decoder", "T5 small with layer norms, 512 source and 128 target tokens",
            ENCODER_DECODER, ADAMW, (4, "32-true"), (4, "bf16-mixed")),
    # What the optimizers hold for themselves, and gradients that are added to others.
    setting("perceptron-sgd-weight-decay", "three hidden layers of 4096", PERCEPTRON, 64,
            "32-true", {"SGD": {"lr": 0.1, "weight_decay": 1e-4}}),
    setting("perceptron-adam-weight-decay", "three hidden layers of 4096", PERCEPTRON, 64,
            "32-true", {"Adam": {"lr": 1e-4, "weight_decay": 1e-4}}),
    setting("perceptron-accumulating", "three hidden layers of 4096", PERCEPTRON, 4096,
            "32-true", MOMENTUM, 2),
    setting("gpt2-accumulating", "GPT-2 of 124 M parameters", {"preset": "gpt2"}, 2,
            "32-true", ADAMW, 2),
    setting("gpt2-mixed-accumulating", "GPT-2 of 124 M parameters", {"preset": "gpt2"}, 2,
            "bf16-mixed", ADAMW, 2),
    # Few classes: the peak is inside of the backward.
    setting("gpt2-few-tokens", "GPT-2 with a vocabulary of 256",
            {"preset": "gpt2", "vocab_size": 256}, 8, "32-true", ADAMW, 2),
    setting("gpt2-few-tokens-mixed", "GPT-2 with a vocabulary of 256",
            {"preset": "gpt2", "vocab_size": 256}, 8, "bf16-mixed", ADAMW, 2),
    setting("vit-b-16-accumulating", "the encoder of torchvision's vit_b_16 on patches", VIT, 16,
            "32-true", ADAMW, 2),
    setting("resnet50-mixed-accumulating", "torchvision's resnet50", {"preset": "resnet50"}, 32,
            "bf16-mixed", MOMENTUM, 2),
    setting("gpt2-checkpointed", "GPT-2 of 124 M parameters, its blocks checkpointed",
            {"preset": "gpt2", "activation_checkpointing": "full"}, 8, "32-true", ADAMW),
    setting("encoder-decoder-checkpointed", "T5 small with layer norms, its blocks checkpointed",
            {**ENCODER_DECODER, "activation_checkpointing": "full"}, 4, "32-true", ADAMW),
    setting("encoder-decoder-checkpointed-mixed", "T5 small with layer norms, its blocks checkpointed",
            {**ENCODER_DECODER, "activation_checkpointing": "full"}, 4, "bf16-mixed", ADAMW),
    setting("gpt2-checkpointed-mixed", "GPT-2 of 124 M parameters, its blocks checkpointed",
            {"preset": "gpt2", "activation_checkpointing": "full"}, 8, "bf16-mixed", ADAMW),
]
