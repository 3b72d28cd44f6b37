"""What torch's flight recorder saw of this process."""

import json
import math

import torch

TYPE_NAMES = {
    "Double": "fp64",
    "Float": "fp32",
    "BFloat16": "bf16",
    "Half": "fp16",
    "Long": "int64",
    "Int": "int32",
    "Byte": "uint8",
    "Bool": "uint8",
}


def operations():
    """The collectives of this process, in order: [name, dtype, elements], or ["barrier"]."""
    trace = json.loads(torch._C._distributed_c10d._dump_fr_trace_json())
    result = []
    for entry in trace.get("entries", []):
        name = entry["profiling_name"].removeprefix("gloo:")
        side = "input" if entry["input_dtypes"] else "output"  # who receives a scatter has no input
        elements = sum(math.prod(sizes) for sizes in entry[side + "_sizes"])
        if name == "barrier":
            result.append([name])
        else:
            result.append([name, TYPE_NAMES[entry[side + "_dtypes"][0]], elements])
    return result
