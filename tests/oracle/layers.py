"""Values and saved tensors of layers of torchvision's Swin and transformers' T5, written in torch.

Prints the numbers that tests/unit/network/recorded_layers_test.cpp compares with: inputs and weights are
sin(step * (i + 1)), results are sums over a factor of the same form, all in fp64. What autograd saves is counted
by storage, parameters and buffers left out.

    python layers.py
"""

import torch
import torch.nn.functional as F


def wave(shape, step):
    size = 1
    for each in shape:
        size *= each
    numbers = torch.sin(step * torch.arange(1, size + 1, dtype=torch.float64))
    return numbers.view(shape).requires_grad_()


def saved_elements(compute, samples, own):
    """Elements of one sample that autograd keeps beside `own`."""
    storages = {}
    left_out = {tensor.untyped_storage().data_ptr() for tensor in own}

    def pack(tensor):
        place = tensor.untyped_storage().data_ptr()
        if place not in left_out:
            storages[place] = tensor.untyped_storage().nbytes() // tensor.element_size()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        compute()
    return sum(storages.values()) / samples


def distances(window):
    """The row of the table for each pair of positions of a square window."""
    steps = torch.arange(window)
    places = torch.stack(torch.meshgrid(steps, steps, indexing="ij")).flatten(1)
    apart = places[:, :, None] - places[:, None, :] + window - 1
    return (apart[0] * (2 * window - 1) + apart[1]).flatten()


def windows(image, window):
    batch, height, width, channels = image.shape
    parts = image.view(batch, height // window, window, width // window, window, channels)
    return parts.permute(0, 1, 3, 2, 4, 5).reshape(-1, window * window, channels)


def window_attention(image, weights, window, shift, heads, index):
    """Liu et al. 2021 with the padding, the turn and the mask of -100 of torchvision."""
    qkv, qkv_bias, projection, projection_bias, table = weights
    batch, height, width, channels = image.shape
    padded = F.pad(image, (0, 0, 0, -width % window, 0, -height % window))
    size = padded.shape[1:3]
    turn = [0 if window >= side else shift for side in size]
    if sum(turn):
        padded = torch.roll(padded, shifts=(-turn[0], -turn[1]), dims=(1, 2))
    rows = windows(padded, window)
    head = channels // heads
    split = F.linear(rows, qkv, qkv_bias).reshape(len(rows), -1, 3, heads, head).permute(2, 0, 3, 1, 4)
    scores = (split[0] * head**-0.5).matmul(split[1].transpose(-2, -1))
    bias = table[index].view(window * window, window * window, heads).permute(2, 0, 1).contiguous()
    scores = scores + bias.unsqueeze(0)
    if sum(turn):
        regions = image.new_zeros((1, *size, 1))
        number = 0
        for top, bottom in ((0, -window), (-window, -turn[0]), (-turn[0], None)):
            for left, right in ((0, -window), (-window, -turn[1]), (-turn[1], None)):
                regions[:, top:bottom, left:right] = number
                number += 1
        region = windows(regions, window).squeeze(-1)
        apart = region.unsqueeze(1) != region.unsqueeze(2)
        mask = torch.zeros(apart.shape, dtype=image.dtype).masked_fill(apart, -100.0)
        scores = scores.view(batch, -1, heads, *scores.shape[-2:]) + mask.unsqueeze(1).unsqueeze(0)
        scores = scores.view(len(rows), heads, *scores.shape[-2:])
    attended = scores.softmax(-1).matmul(split[2]).transpose(1, 2).reshape(rows.shape)
    result = F.linear(attended, projection, projection_bias)
    count = [side // window for side in size]
    result = result.view(batch, *count, window, window, channels).permute(0, 1, 3, 2, 4, 5)
    result = result.reshape(batch, *size, channels)
    if sum(turn):
        result = torch.roll(result, shifts=(turn[0], turn[1]), dims=(1, 2))
    return result[:, :height, :width, :].contiguous()


def buckets(positions, number, farthest, both):
    """Raffel et al. 2020; in fp32 as transformers."""
    steps = torch.arange(positions)
    distance = steps[None, :] - steps[:, None]
    first = 0
    if both:
        number //= 2
        first = (distance > 0).long() * number
        distance = distance.abs()
    else:
        distance = (-distance).clamp(min=0)
    exact = number // 2
    ratio = torch.log(torch.tensor(farthest / exact, dtype=torch.float64)).item()
    far = exact + (torch.log(distance.float() / exact) / ratio * (number - exact)).long()
    return first + torch.where(distance < exact, distance, far.clamp(max=number - 1))


def t5_attention(states, source, bias, weights, heads):
    query, key, value, output = weights

    def split(tensor, weight):
        return F.linear(tensor, weight).view(tensor.size(0), tensor.size(1), heads, -1).transpose(1, 2)

    scores = split(states, query).matmul(split(source, key).transpose(3, 2))
    if bias is not None:
        scores = scores + bias
    probabilities = F.softmax(scores, -1)
    sums = probabilities.matmul(split(source, value)).transpose(1, 2).contiguous()
    return F.linear(sums.flatten(2), output)


def show(name, result, leaves):
    factor = wave(result.shape, 0.13).detach()
    value = (result * factor).sum()
    value.backward()
    sums = [(leaf.grad * wave(leaf.shape, 0.07).detach()).sum().item() for leaf in leaves]
    print(name, *(f"{number:.12g}" for number in [value.item(), *sums]))


def main():
    for shift in (0, 1):
        image = wave((2, 3, 5, 4), 0.37)
        weights = [wave((12, 4), 0.51), wave((12,), 0.9), wave((4, 4), 0.23), wave((4,), 0.61), wave((9, 2), 0.77)]
        result = window_attention(image, weights, 2, shift, 2, distances(2))
        show(f"window_attention shift {shift}:", result, [image, *weights])
    states, source = wave((2, 3, 4), 0.37), wave((2, 2, 4), 0.91)
    weights = [wave((6, 4), 0.21), wave((6, 4), 0.31), wave((6, 4), 0.41), wave((4, 6), 0.51)]
    show("cross_attention:", t5_attention(states, source, None, weights, 2), [states, source, *weights])
    states, table = wave((2, 3, 4), 0.37), wave((8, 2), 0.53)
    weights = [wave((6, 4), 0.21), wave((6, 4), 0.31), wave((6, 4), 0.41), wave((4, 6), 0.51)]
    bias = table[buckets(3, 8, 6, True)].permute(2, 0, 1).unsqueeze(0).expand(2, 2, 3, 3)
    show("biased_attention:", t5_attention(states, states, bias, weights, 2), [states, table, *weights])
    for both in (True, False):
        rows = buckets(200, 32, 128, both)
        print(f"buckets both {both}: to the last", rows[0, ::25].tolist(), "from the last", rows[199, ::25].tolist())

    image = wave((2, 8, 8, 8), 0.3) * 1
    weights = [wave(shape, 0.1) for shape in ((24, 8), (24,), (8, 8), (8,), (49, 2))]
    index = distances(4)
    saved = saved_elements(lambda: window_attention(image, weights, 4, 2, 2, index), 2, [*weights, index])
    print("window_attention saves", saved)
    states, source = wave((2, 6, 16), 0.3) * 1, wave((2, 4, 16), 0.3) * 1
    bias = wave((2, 2, 6, 6), 0.3) * 1
    weights = [wave((16, 16), 0.1) for _ in range(4)]
    print("biased_attention saves", saved_elements(lambda: t5_attention(states, states, bias, weights, 2), 2, weights))
    print("cross_attention saves", saved_elements(lambda: t5_attention(states, source, None, weights, 2), 2, weights))
    image = wave((2, 8, 6, 6), 0.3) * 1
    first, second = wave((2, 8, 1, 1), 0.1), wave((8, 2, 1, 1), 0.1)

    def excitation():
        scale = F.conv2d(F.relu(F.conv2d(F.adaptive_avg_pool2d(image, 1), first)), second)
        return F.hardsigmoid(scale) * image

    print("excitation saves", saved_elements(excitation, 2, [first, second]))
    kept = torch.ones(2, 1, 1, 1, dtype=torch.float64)
    print("stochastic_depth saves", saved_elements(lambda: image * kept, 2, []))


main()
