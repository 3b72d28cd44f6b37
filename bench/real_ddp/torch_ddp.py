"""One rank of PyTorch's own DDP on Gloo, on the models of this folder's scenarios.

  torch_ddp.py MODEL STEPS [cpu|cuda]

Started by compare.py, which sets the variables of torchrun. Rank 0 prints the median seconds of a
step, the first left out, as `lockstep exec` tells it, and the bytes of parameters and buffers.
"""
import os
import statistics
import sys
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def mlp():
    layers = []
    for _ in range(7):
        layers += [nn.Linear(1024, 1024), nn.ReLU()]
    model = nn.Sequential(*layers, nn.Linear(1024, 1024))
    return model, nn.MSELoss(), torch.randn(128, 1024), torch.randn(128, 1024)


class Block(nn.Module):
    """Two convolutions and a skip connection (He et al. 2016, figure 5, left)."""

    def __init__(self, before, after, stride):
        super().__init__()
        self.branch = nn.Sequential(
            nn.Conv2d(before, after, 3, stride, 1, bias=False),
            nn.BatchNorm2d(after),
            nn.ReLU(),
            nn.Conv2d(after, after, 3, 1, 1, bias=False),
            nn.BatchNorm2d(after),
        )
        self.shortcut = nn.Sequential()
        if stride != 1 or before != after:
            self.shortcut = nn.Sequential(
                nn.Conv2d(before, after, 1, stride, bias=False), nn.BatchNorm2d(after)
            )

    def forward(self, inputs):
        return torch.relu(self.branch(inputs) + self.shortcut(inputs))


def resnet18():
    layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU()]
    layers.append(nn.MaxPool2d(3, 2, 1))
    before = 64
    for stage, after in enumerate((64, 128, 256, 512)):
        layers += [Block(before, after, 2 if stage > 0 else 1), Block(after, after, 1)]
        before = after
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 1000)]
    images, classes = torch.randn(16, 3, 64, 64), torch.randint(1000, (16,))
    return nn.Sequential(*layers), nn.CrossEntropyLoss(), images, classes


class Bottleneck(nn.Module):
    """ResNet-50's block, with the stride on the 3 x 3 convolution (v1.5)."""

    def __init__(self, before, width, stride):
        super().__init__()
        after = 4 * width
        self.branch = nn.Sequential(
            nn.Conv2d(before, width, 1, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            nn.Conv2d(width, width, 3, stride, 1, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            nn.Conv2d(width, after, 1, bias=False),
            nn.BatchNorm2d(after),
        )
        self.shortcut = nn.Sequential()
        if stride != 1 or before != after:
            self.shortcut = nn.Sequential(
                nn.Conv2d(before, after, 1, stride, bias=False), nn.BatchNorm2d(after)
            )

    def forward(self, inputs):
        return torch.relu(self.branch(inputs) + self.shortcut(inputs))


def resnet50():
    layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU()]
    layers.append(nn.MaxPool2d(3, 2, 1))
    before = 64
    for width, blocks in ((64, 3), (128, 4), (256, 6), (512, 3)):
        for block in range(blocks):
            layers.append(Bottleneck(before, width, 2 if block == 0 and width > 64 else 1))
            before = 4 * width
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2048, 1000)]
    images, classes = torch.randn(32, 3, 224, 224), torch.randint(1000, (32,))
    return nn.Sequential(*layers), nn.CrossEntropyLoss(), images, classes


class GptBlock(nn.Module):
    """Pre-norm attention and perceptron (Radford et al. 2019)."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm_1, self.norm_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.mixed, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.perceptron = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(approximate="tanh"), nn.Linear(4 * width, width)
        )

    def forward(self, inputs):
        batch, length, width = inputs.shape
        parts = self.mixed(self.norm_1(inputs)).view(batch, length, 3, self.heads, -1)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        summed = nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        middle = inputs + self.out(summed.transpose(1, 2).reshape(batch, length, width))
        return middle + self.perceptron(self.norm_2(middle))


class Gpt(nn.Module):
    def __init__(self, vocabulary, positions, width, heads, blocks):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.positions = nn.Parameter(torch.randn(positions, width))
        self.blocks = nn.Sequential(*[GptBlock(width, heads) for _ in range(blocks)])
        self.norm = nn.LayerNorm(width)

    def forward(self, tokens):
        hidden = self.tokens(tokens) + self.positions[: tokens.shape[1]]
        logits = self.norm(self.blocks(hidden)) @ self.tokens.weight.T
        return logits.flatten(0, 1)


def gpt2():
    tokens = torch.randint(50257, (4, 1024))
    targets = torch.randint(50257, (4 * 1024,))
    return Gpt(50257, 1024, 768, 12, 12), nn.CrossEntropyLoss(), tokens, targets


MODELS = {"mlp": mlp, "resnet18": resnet18, "resnet50": resnet50, "gpt2": gpt2}


def main():
    on_gpu = len(sys.argv) > 3 and sys.argv[3] == "cuda"
    rank = int(os.environ["RANK"])
    device = torch.device("cuda", rank) if on_gpu else torch.device("cpu")
    if on_gpu:
        torch.cuda.set_device(device)
        # Ours computes convolutions of fp32 in fp32, and matrices as torch does by default.
        torch.backends.cudnn.allow_tf32 = False
    torch.set_num_threads(max(1, os.cpu_count() // int(os.environ["WORLD_SIZE"])))
    dist.init_process_group("nccl" if on_gpu else "gloo")
    torch.manual_seed(1)
    model, loss_of, inputs, targets = MODELS[sys.argv[1]]()
    model, inputs, targets = model.to(device), inputs.to(device), targets.to(device)
    model = DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    steps = int(sys.argv[2])
    seconds = []
    begin = time.perf_counter()
    for _ in range(steps):
        optimizer.zero_grad()
        loss_of(model(inputs), targets).backward()
        optimizer.step()
        if on_gpu:
            torch.cuda.synchronize()
        now = time.perf_counter()
        seconds.append(now - begin)
        begin = now
    dist.barrier()
    if rank == 0:
        state = [*model.parameters(), *model.buffers()]
        print(statistics.median(seconds[1:]), sum(tensor.nbytes for tensor in state))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
