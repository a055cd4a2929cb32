"""Batch norm + ReLU and max pooling in PyTorch, on the shapes of the example `norm`.

    cargo run --release -p conv-kernels --example norm -- 1
    python bench/norm_peer.py 1

The number is that of threads; channels-last, by the clock, best of 30.
"""

import sys
import time

import torch
import torch.nn.functional as F


def best(work):
    times = []
    for _ in range(30):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return 1e3 * min(times)


def main():
    torch.set_num_threads(int(sys.argv[1]))
    for side, channels in [(120, 64), (60, 64), (30, 128), (15, 256), (8, 512), (60, 256)]:
        x = torch.randn(8, channels, side, side).to(memory_format=torch.channels_last)
        residual = torch.randn_like(x)
        x.requires_grad_()
        gamma, beta = torch.ones(channels, requires_grad=True), torch.zeros(channels, requires_grad=True)
        mean, variance = torch.zeros(channels), torch.ones(channels)

        def norm():
            return F.batch_norm(x, mean, variance, gamma, beta, training=True)

        y = F.relu(norm())
        grad = torch.randn_like(y)
        forward = best(lambda: F.relu(norm()))
        added = best(lambda: F.relu(norm() + residual))
        backward = best(
            lambda: torch.autograd.grad(y, (x, gamma, beta), grad, retain_graph=True)
        )
        print(f"8x{side}x{side}x{channels}: moments and relu(norm) {forward:.2f}, "
              f"with residual {added:.2f}, backward {backward:.2f}")
    x = torch.randn(8, 64, 120, 120).to(memory_format=torch.channels_last).requires_grad_()
    y = F.max_pool2d(x, 3, 2, 1)
    grad = torch.randn_like(y)
    print(f"pooling {best(lambda: F.max_pool2d(x, 3, 2, 1)):.2f}, "
          f"backward {best(lambda: torch.autograd.grad(y, x, grad, retain_graph=True)):.2f}")


if __name__ == "__main__":
    main()
