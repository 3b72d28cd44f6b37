"""One rank of PyTorch's own DDP on Gloo, on the models of this folder's scenarios.

  torch_ddp.py MODEL STEPS

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


MODELS = {"mlp": mlp, "resnet18": resnet18}


def main():
    torch.set_num_threads(max(1, os.cpu_count() // int(os.environ["WORLD_SIZE"])))
    dist.init_process_group("gloo")
    torch.manual_seed(1)
    model, loss_of, inputs, targets = MODELS[sys.argv[1]]()
    model = DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    seconds = []
    for _ in range(int(sys.argv[2])):
        begin = time.perf_counter()
        optimizer.zero_grad()
        loss_of(model(inputs), targets).backward()
        optimizer.step()
        seconds.append(time.perf_counter() - begin)
    dist.barrier()
    if dist.get_rank() == 0:
        state = [*model.parameters(), *model.buffers()]
        print(statistics.median(seconds[1:]), sum(tensor.nbytes for tensor in state))
    dist.destroy_process_group()


main()
