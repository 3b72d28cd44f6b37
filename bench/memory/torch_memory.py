"""The most that PyTorch's tensors hold during three training steps on the CPU, by its profiler.

  .cache/oracle/environment/bin/python bench/memory/torch_memory.py MODEL single|ddp [OPTION...]

MODEL is mlp or resnet18 of bench/real_ddp, gpt of bench/accuracy with 16 samples, or four: four
Linear of 1024 x 1024 without bias. OPTION is adam (else SGD, with momentum but for four), view
(gradient_as_bucket_view), unused (find_unused_parameters). DDP has one rank: its buckets are those
of any number. A step is Lightning's: forward, zero_grad, backward, optimizer.
"""

import os
import pathlib
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.profiler import ProfilerActivity, profile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "real_ddp"))
import torch_ddp  # noqa: E402


def four():
    layers = [nn.Linear(1024, 1024, bias=False) for _ in range(4)]
    return nn.Sequential(*layers), nn.MSELoss(), torch.randn(2, 1024), torch.randn(2, 1024)


class Block(torch_ddp.GptBlock):
    """With the dropout of bench/accuracy/gpt.yaml."""

    def forward(self, inputs):
        batch, length, width = inputs.shape
        parts = self.mixed(self.norm_1(inputs)).view(batch, length, 3, self.heads, -1)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        summed = nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        out = self.out(summed.transpose(1, 2).reshape(batch, length, width))
        middle = inputs + nn.functional.dropout(out, 0.1)
        return middle + nn.functional.dropout(self.perceptron(self.norm_2(middle)), 0.1)


class Gpt(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(2000, 384)
        self.positions = nn.Parameter(torch.randn(48, 384))
        self.blocks = nn.Sequential(*[Block(384, 6) for _ in range(6)])
        self.norm = nn.LayerNorm(384)
        self.logits = nn.Linear(384, 2000, bias=False)

    def forward(self, tokens):
        hidden = nn.functional.dropout(self.tokens(tokens) + self.positions, 0.1)
        return self.logits(self.norm(self.blocks(hidden))).flatten(0, 1)


def gpt():
    tokens = torch.randint(2000, (16, 48))
    return Gpt(), nn.CrossEntropyLoss(), tokens, torch.randint(2000, (16 * 48,))


MODELS = torch_ddp.MODELS | {"four": four, "gpt": gpt}


def train(name, strategy, options):
    model, loss_of, inputs, targets = MODELS[name]()
    if "adam" in options:
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, foreach=False)
    else:
        momentum = 0 if name == "four" else 0.9
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=momentum, foreach=False)
    called = model
    if strategy == "ddp":
        called = DistributedDataParallel(
            model,
            bucket_cap_mb=5 if name == "four" else 25,
            gradient_as_bucket_view="view" in options,
            find_unused_parameters="unused" in options,
        )
    for _ in range(3):
        loss = loss_of(called(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def main():
    name, strategy, *options = sys.argv[1:]
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="0", RANK="0", WORLD_SIZE="1")
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    torch.set_num_threads(1)
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as seen:
        train(name, strategy, options)
    events = [e for e in seen.profiler.kineto_results.events() if e.name() == "[memory]"]
    held = most = 0
    for event in sorted(events, key=lambda e: e.start_ns()):
        held += event.nbytes()
        most = max(most, held)
    print(f"{name} {strategy} {' '.join(options)}: {most / 2**20:.2f} MiB, PyTorch {torch.__version__}")


if __name__ == "__main__":
    main()
