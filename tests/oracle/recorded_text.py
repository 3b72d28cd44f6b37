"""How a recording is written, and when two of them agree."""

import json
import math

import torch

import network as networks

# Tensors above this are written as a digest.
LISTED_MAX = 64


def written(tensor):
    """A tensor as numbers, or as count and digest; None stays None."""
    if tensor is None:
        return None
    flat = tensor.detach().reshape(-1)
    if flat.numel() <= LISTED_MAX:
        if not flat.is_floating_point():
            return flat.tolist()
        numbers = flat.to(torch.float64).tolist()
        return [number if math.isfinite(number) else str(number) for number in numbers]
    bits = (flat.to(torch.float64) + 0.0).view(torch.int64)  # + 0: one zero, not two
    odd = 2 * torch.arange(flat.numel(), dtype=torch.int64) + 1
    # Sum over i of (2 i + 1) * (the bits of element i as fp64), modulo 2^64.
    return {"elements": flat.numel(), "digest": str(int((bits * odd).sum()) & networks.WORD)}


def numbers_in(value):
    if isinstance(value, (dict, list)):
        for child in value.values() if isinstance(value, dict) else value:
            yield from numbers_in(child)
    elif isinstance(value, float):
        yield value


def text_of(value, indent=""):
    """JSON with one leaf list a line: small, and a difference shows where it is."""
    leaf = not isinstance(value, (dict, list)) or not value
    if leaf or all(not isinstance(v, (dict, list)) or is_flat(v) for v in children(value)):
        compact = json.dumps(value)
        if leaf or len(compact) + len(indent) < 160:
            return compact
    inner = indent + " "
    if isinstance(value, dict):
        rows = [f"{inner}{json.dumps(k)}: {text_of(v, inner)}" for k, v in value.items()]
        return "{\n" + ",\n".join(rows) + "\n" + indent + "}"
    if is_flat(value) and not any(" " in str(child) for child in value):  # else: lines of a file
        return json.dumps(value)
    return "[\n" + ",\n".join(inner + text_of(v, inner) for v in value) + "\n" + indent + "]"


def children(value):
    return value.values() if isinstance(value, dict) else value


def is_flat(value):
    return isinstance(value, (dict, list)) and not any(
        isinstance(v, (dict, list)) for v in children(value)
    )


def greatest_in(value):
    return max((abs(number) for number in numbers_in(value)), default=0.0)


def agree(old, new, allowed):
    if isinstance(old, float) and isinstance(new, float):
        return abs(old - new) <= allowed
    if isinstance(old, dict) and isinstance(new, dict):
        return old.keys() == new.keys() and all(agree(old[k], new[k], allowed) for k in old)
    if isinstance(old, list) and isinstance(new, list):
        return len(old) == len(new) and all(agree(a, b, allowed) for a, b in zip(old, new))
    return old == new
