# SPDX-License-Identifier: GPL-2.0-only
"""torch_train.py [--pin]: a small network trained for three epochs by a DataLoader with two workers,
which pins its batches or does not: what docs/real-gpu.md tells of advice. Prints the loss of each
epoch and the seconds after the first step.

    ttmond --dump-db db.json -- python3 tests/gpu/torch_train.py && ttmon advise db.json
"""
import sys
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ITEMS, BATCH, WORKERS, EPOCHS = 2048, 128, 2, 3


def main():
    torch.manual_seed(1)
    data = TensorDataset(torch.randn(ITEMS, 3, 64, 64), torch.randint(0, 10, (ITEMS,)))
    body = [nn.Conv2d(3, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3, stride=2), nn.ReLU()]
    net = nn.Sequential(*body, nn.Flatten(), nn.LazyLinear(10)).cuda()
    optimizer, since = None, None
    for epoch in range(EPOCHS):
        loader = DataLoader(data, batch_size=BATCH, num_workers=WORKERS, pin_memory="--pin" in sys.argv)
        for x, y in loader:
            x, y = x.cuda(non_blocking=True), y.cuda(non_blocking=True)
            loss = nn.functional.cross_entropy(net(x), y)
            # The last layer has its weights from the first step on.
            optimizer = optimizer or torch.optim.SGD(net.parameters(), 1e-3)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if since is None:
                torch.cuda.synchronize()
                since = time.time()
        print("epoch", epoch, loss.item(), flush=True)
    torch.cuda.synchronize()
    print("seconds", round(time.time() - since, 3))


main()
