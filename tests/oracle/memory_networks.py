"""Networks of torchvision and transformers, written in torch, whose memory is recorded."""

import torch
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint


class Sum(nn.Module):
    """A branch and what went into it."""

    def __init__(self, *layers):
        super().__init__()
        self.branch = nn.Sequential(*layers)

    def forward(self, value):
        return self.branch(value) + value


class Permute(nn.Module):
    def __init__(self, *order):
        super().__init__()
        self.order = order

    def forward(self, value):
        return value.permute(self.order)


# ---- EfficientNet-B0 (Tan & Le 2019) ----


class Excitation(nn.Module):
    def __init__(self, channels, squeezed):
        super().__init__()
        self.layers = nn.Sequential(
            nn.AdaptiveAvgPool2d(1), nn.Conv2d(channels, squeezed, 1), nn.SiLU(inplace=True),
            nn.Conv2d(squeezed, channels, 1), nn.Sigmoid())

    def forward(self, value):
        return self.layers(value) * value


def activated(before, after, kernel, stride=1, groups=1, silu=True):
    layers = [nn.Conv2d(before, after, kernel, stride, kernel // 2, groups=groups, bias=False),
              nn.BatchNorm2d(after)]
    return [*layers, nn.SiLU(inplace=True)] if silu else layers


def efficientnet():
    layers = activated(3, 32, 3, 2)
    before = 32
    for expansion, kernel, stride, after, count in (
            (1, 3, 1, 16, 1), (6, 3, 2, 24, 2), (6, 5, 2, 40, 2), (6, 3, 2, 80, 3), (6, 5, 1, 112, 3),
            (6, 5, 2, 192, 4), (6, 3, 1, 320, 1)):
        for block in range(count):
            inner = before * expansion
            step = stride if block == 0 else 1
            wider = activated(before, inner, 1) if expansion > 1 else []
            inside = [*wider, *activated(inner, inner, kernel, step, inner),
                      Excitation(inner, before // 4), *activated(inner, after, 1, silu=False)]
            layers += [Sum(*inside)] if step == 1 and before == after else inside
            before = after
    return nn.Sequential(*layers, *activated(320, 1280, 1), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                         nn.Linear(1280, 1000))


# ---- ConvNeXt tiny (Liu et al. 2022) ----


class LayerScale(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(channels, 1, 1))

    def forward(self, value):
        return self.weight * value


def convnext(norm):
    def over_channels(width):
        return [Permute(0, 2, 3, 1), norm(width, eps=1e-6), Permute(0, 3, 1, 2)]

    width = 96
    layers = [nn.Conv2d(3, width, 4, 4), *over_channels(width)]
    for stage, count in enumerate((3, 3, 9, 3)):
        if stage > 0:
            layers += [*over_channels(width), nn.Conv2d(width, 2 * width, 2, 2)]
            width *= 2
        layers += [Sum(nn.Conv2d(width, width, 7, padding=3, groups=width), Permute(0, 2, 3, 1),
                       norm(width, eps=1e-6), nn.Linear(width, 4 * width), nn.GELU(),
                       nn.Linear(4 * width, width), Permute(0, 3, 1, 2), LayerScale(width))
                   for _ in range(count)]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), *over_channels(width), nn.Flatten(),
                         nn.Linear(width, 1000))


# ---- Swin tiny (Liu et al. 2021) ----


class WindowAttention(nn.Module):
    window = 7

    def __init__(self, width, heads, shifted):
        super().__init__()
        self.heads, self.shifted = heads, shifted
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        side = 2 * self.window - 1
        self.table = nn.Parameter(torch.empty(side * side, heads))
        self.register_buffer("index", torch.zeros(self.window**4, dtype=torch.int64))

    def split(self, image):
        batch, height, width, channels = image.shape
        parts = image.view(batch, height // self.window, self.window, width // self.window,
                           self.window, channels)
        return parts.permute(0, 1, 3, 2, 4, 5).reshape(-1, self.window**2, channels)

    def forward(self, image):
        batch, height, width, channels = image.shape
        turn = self.window // 2 if self.shifted and height > self.window else 0
        turned = torch.roll(image, (-turn, -turn), (1, 2)) if turn else image
        rows = self.split(turned)
        head = channels // self.heads
        qkv = self.qkv(rows).reshape(len(rows), -1, 3, self.heads, head).permute(2, 0, 3, 1, 4)
        scores = (qkv[0] * head**-0.5).matmul(qkv[1].transpose(-2, -1))
        area = self.window**2
        bias = self.table[self.index].view(area, area, -1).permute(2, 0, 1).contiguous()
        scores = scores + bias.unsqueeze(0)
        if turn:
            mask = image.new_zeros(len(rows) // batch, area, area)
            scores = scores.view(batch, -1, self.heads, area, area) + mask.unsqueeze(1).unsqueeze(0)
            scores = scores.view(-1, self.heads, area, area)
        sums = functional.softmax(scores, -1).matmul(qkv[2]).transpose(1, 2).reshape(rows.shape)
        result = self.proj(sums)
        grid = (batch, height // self.window, width // self.window, self.window, self.window)
        result = result.view(*grid, channels).permute(0, 1, 3, 2, 4, 5).reshape(image.shape)
        return torch.roll(result, (turn, turn), (1, 2)) if turn else result


class PatchMerging(nn.Module):
    def forward(self, image):
        return torch.cat([image[..., 0::2, 0::2, :], image[..., 1::2, 0::2, :],
                          image[..., 0::2, 1::2, :], image[..., 1::2, 1::2, :]], -1)


def swin(norm):
    width = 96
    layers = [nn.Conv2d(3, width, 4, 4), Permute(0, 2, 3, 1), norm(width)]
    for stage, (count, heads) in enumerate(((2, 3), (2, 6), (6, 12), (2, 24))):
        if stage > 0:
            layers += [PatchMerging(), norm(4 * width), nn.Linear(4 * width, 2 * width, bias=False)]
            width *= 2
        for block in range(count):
            layers += [Sum(norm(width), WindowAttention(width, heads, block % 2 == 1)),
                       Sum(norm(width), nn.Linear(width, 4 * width), nn.GELU(),
                           nn.Linear(4 * width, width))]
    return nn.Sequential(*layers, norm(width), Permute(0, 3, 1, 2), nn.AdaptiveAvgPool2d(1),
                         nn.Flatten(), nn.Linear(width, 1000))


# ---- An encoder and a decoder as T5's (Raffel et al. 2020), with layer norms ----


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.q, self.k, self.v, self.o = (nn.Linear(width, width, bias=False) for _ in range(4))

    def forward(self, value, source, bias=None):
        def split(tensor):
            return tensor.view(tensor.size(0), tensor.size(1), self.heads, -1).transpose(1, 2)

        scores = split(self.q(value)).matmul(split(self.k(source)).transpose(3, 2))
        if bias is not None:
            scores += bias
        probabilities = functional.softmax(scores.float(), -1).type_as(scores)
        sums = probabilities.matmul(split(self.v(source))).transpose(1, 2).contiguous()
        return self.o(sums.flatten(2))


class Block(nn.Module):
    def __init__(self, norm, width, heads, wide, crosses):
        super().__init__()
        self.norms = nn.ModuleList(norm(width) for _ in range(3 if crosses else 2))
        self.own = Attention(width, heads)
        self.across = Attention(width, heads) if crosses else None
        self.wide = nn.Sequential(nn.Linear(width, wide, bias=False), nn.ReLU(),
                                  nn.Linear(wide, width, bias=False))

    def forward(self, value, bias, memory=None):
        normed = self.norms[0](value)
        value = value + self.own(normed, normed, bias)
        del normed
        if self.across is not None:
            value = value + self.across(self.norms[1](value), memory)
        return value + self.wide(self.norms[-1](value))


class EncoderDecoder(nn.Module):
    source, heads, buckets = 512, 8, 32

    def __init__(self, norm, activation_checkpointing, width=512, wide=2048, count=6, vocabulary=32128):
        super().__init__()
        self.runs_again = activation_checkpointing == "full"
        self.shared = nn.Embedding(vocabulary, width)
        self.tables = nn.ModuleList(nn.Embedding(self.buckets, self.heads) for _ in range(2))
        self.encoder, self.decoder = (
            nn.ModuleList(Block(norm, width, self.heads, wide, crosses) for _ in range(count))
            for crosses in (False, True))
        self.last = nn.ModuleList(norm(width) for _ in range(2))

    def bias(self, value, stack):
        """Of each sample, since the mask of the batch is added to it."""
        count = value.size(1)
        rows = self.tables[stack](torch.zeros(count, count, dtype=torch.int64))
        mask = value.new_zeros(value.size(0), 1, 1, count)
        return rows.permute(2, 0, 1).unsqueeze(0) + mask

    def run(self, value, stack, *memory):
        bias = self.bias(value, stack)
        for block in (self.encoder, self.decoder)[stack]:
            if self.runs_again:
                value = checkpoint(block, value, bias, *memory, use_reentrant=False,
                                   preserve_rng_state=False)
            else:
                value = block(value, bias, *memory)
        return self.last[stack](value)

    def forward(self, tokens):
        states = self.shared(tokens)
        memory = self.run(states[:, : self.source], 0)
        value = self.run(states[:, self.source :], 1, memory)
        return functional.linear(value, self.shared.weight)


def encoder_decoder_layers():
    """The same as layers of a scenario."""
    width, wide, count = 512, 2048, 6

    def attention(kind, **more):
        return {kind: {"embed_dim": width, "num_heads": 8, "scaled": False, "bias": False, **more}}

    def linear(before, after):
        return {"Linear": {"in_features": before, "out_features": after, "bias": False}}

    def residual(*layers):
        return {"Residual": {"layers": [{"LayerNorm": width}, *layers]}}

    def stack(first, positions, both, blocks):
        bias = {"RelativePositionBias": {"num_heads": 8, "bidirectional": both}}
        return [{"Positions": {"first": first, "count": positions}},
                {"Aside": {"as": "bias", "of": [bias], "layers": [
                    {"repeat": count, "layers": blocks}]}},
                {"LayerNorm": width}]

    feed_forward = residual(linear(width, wide), "ReLU", linear(wide, width))
    own = attention("BiasedAttention", aside="bias")
    across = attention("CrossAttention", aside="memory")
    both = {"as": "memory", "of": stack(0, 512, True, [residual(own), feed_forward]),
            "layers": stack(512, 128, False, [residual(own), residual(across), feed_forward])}
    head = {"in_features": width, "out_features": 32128, "bias": False, "tied_to": "shared"}
    return {"input": [640], "attention": "math", "layers": [
        {"Embedding": [32128, width], "name": "shared"}, {"Aside": both}, {"Linear": head}]}
