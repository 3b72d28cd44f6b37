"""One rank of PyTorch's own DDP on Gloo, on the models of this folder's scenarios.

Started by compare.py, which sets the variables of torchrun. Rank 0 prints the median seconds of a
step, of those after the first five.
"""
import os
import statistics
import sys
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

WARM_UP = 5


def mlp():
    layers = []
    for _ in range(7):
        layers += [nn.Linear(1024, 1024), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(1024, 1024)), nn.MSELoss(), torch.randn(128, 1024), torch.randn(128, 1024)


MODELS = {"mlp": mlp}


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
        print(statistics.median(seconds[WARM_UP:]))
    dist.destroy_process_group()


main()
