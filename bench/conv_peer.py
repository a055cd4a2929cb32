"""Convolutions of ResNet-18 and ResNet-50: PyTorch and conv-kernels, alternately, in one run.

    cargo build --release -p conv-kernels --example roofline
    python bench/conv_peer.py target/release/examples/roofline [--cpu] [--repeat 5] [--only TEXT]

Each layer is measured by conv-kernels, then by PyTorch in both layouts; best of `--repeat`.
`--cpu` compares processor time on one thread, for machines that others use too.
The last columns are ratios: PyTorch's better layout / conv-kernels.
"""

import argparse
import json
import re
import subprocess
import time

import torch
import torch.nn.functional as F

PASSES = ("forward", "data", "weights")


def shape(name):
    """`deep stem 3x3/2 3-64` -> kernel, stride, in, out."""
    kernel, stride, i, o = re.search(r"(\d)x\d(?:/(\d))? (\d+)-(\d+)", name).groups()
    return int(kernel), int(stride or 1), int(i), int(o)


def best(repeat, clock, work):
    work()
    times = []
    for _ in range(repeat):
        start = clock()
        work()
        times.append(clock() - start)
    return 1e3 * min(times)


def measure(name, size, options, layout):
    kernel, stride, i, o = shape(name)
    clock = time.process_time if options.cpu else time.perf_counter
    conv = dict(stride=[stride] * 2, padding=[kernel // 2] * 2, dilation=[1, 1])
    x = torch.randn(options.batch, i, size, size).to(memory_format=layout)
    w = torch.randn(o, i, kernel, kernel).to(memory_format=layout)
    with torch.no_grad():
        y = F.conv2d(x, w, **conv)
        g = torch.randn_like(y)

        def backward(mask):
            return lambda: torch.ops.aten.convolution_backward(
                g, x, w, None, conv["stride"], conv["padding"], conv["dilation"],
                False, [0, 0], 1, mask,
            )

        return {
            "forward": best(options.repeat, clock, lambda: F.conv2d(x, w, **conv)),
            "data": best(options.repeat, clock, backward([True, False, False])),
            "weights": best(options.repeat, clock, backward([False, True, False])),
        }


def ours(options, only):
    command = [options.binary, "--json", "--repeat", str(options.repeat), "--only", only]
    command += ["--size", str(options.size), "--batch", str(options.batch)]
    command += ["--cpu"] if options.cpu else []
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return [json.loads(line) for line in lines.splitlines()]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("--cpu", action="store_true")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--size", type=int, default=240)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    torch.set_num_threads(1 if options.cpu else options.threads)
    print(f"PyTorch {torch.__version__}, {torch.get_num_threads()} threads, milliseconds")
    print("| layer | pass | conv-kernels | channels-last | default | ratio |")
    print("|---|---|---|---|---|---|")
    totals = {"ours": 0.0, "best": 0.0}
    listing = subprocess.run([options.binary, "--list"], check=True, capture_output=True, text=True)
    for name in (name for name in listing.stdout.splitlines() if options.only in name):
        found = [r for r in ours(options, name) if r["layer"] == name][0]
        last = measure(name, found["size"], options, torch.channels_last)
        default = measure(name, found["size"], options, torch.contiguous_format)
        for p in PASSES:
            mine, theirs = found[p], min(last[p], default[p])
            totals["ours"] += mine
            totals["best"] += theirs
            print(f"| {name} | {p} | {mine:.2f} | {last[p]:.2f} | {default[p]:.2f} "
                  f"| {theirs / mine:.2f} |", flush=True)
    print(f"| all | | {totals['ours']:.1f} | | {totals['best']:.1f} "
          f"| {totals['best'] / totals['ours']:.2f} |")


if __name__ == "__main__":
    main()
