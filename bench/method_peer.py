"""Steps of training and prediction: PyTorch and pinpoint, alternately, in one run.

    cargo build --release
    python bench/method_peer.py target/release/pinpoint [--repeat 3] [--only resnet18]
    python bench/method_peer.py target/release/pinpoint --first RUN IMAGE

The peer below is the same method on the same network, written for PyTorch: u + 1 passes of the
localizer, each with its backward pass, then the classifier on both halves, then SGD. All samples
stay trusted, as in `pinpoint bench`. Every measurement is a process of its own, so that peak memory
is its own too; times are the best of all repeats, ratios are PyTorch's better layout / pinpoint.

With `--first` it is the time from nothing to the mask of one image on disk, by a ResNet-18 run of
`pinpoint train` and by a PyTorch program with a weights file of the same network.
"""

import argparse
import json
import resource
import subprocess
import sys
import time

TRAIN = [
    ("train", "resnet18", "classic", 240, 8, 4),
    ("train", "resnet18", "deep", 240, 8, 4),
    ("train", "resnet50", "deep", 240, 8, 4),
]
PREDICT = [
    ("predict", "resnet18", "deep", 480, 1, 0),
    ("predict", "resnet18", "deep", 480, 8, 0),
    ("predict", "resnet50", "deep", 480, 1, 0),
]


def network(backbone, stem, classes, maps):
    import torch
    from torch import nn

    blocks, expansion = {
        "resnet18": ([2, 2, 2, 2], 1),
        "resnet50": ([3, 4, 6, 3], 4),
    }[backbone]

    def unit(i, o, kernel, stride=1):
        conv = nn.Conv2d(i, o, kernel, stride, kernel // 2, bias=False)
        return [conv, nn.BatchNorm2d(o)]

    class Block(nn.Module):
        def __init__(self, i, planes, stride):
            super().__init__()
            o = planes * expansion
            if expansion == 1:
                layers = [*unit(i, planes, 3, stride), nn.ReLU(True), *unit(planes, o, 3)]
            else:
                layers = [*unit(i, planes, 1), nn.ReLU(True), *unit(planes, planes, 3, stride)]
                layers += [nn.ReLU(True), *unit(planes, o, 1)]
            self.branch = nn.Sequential(*layers)
            project = stride != 1 or i != o
            self.shortcut = nn.Sequential(*unit(i, o, 1, stride)) if project else nn.Identity()

        def forward(self, x):
            return torch.relu(self.branch(x) + self.shortcut(x))

    if stem == "classic":
        layers, channels = [*unit(3, 64, 7, 2), nn.ReLU(True)], 64
    else:
        layers = [*unit(3, 64, 3, 2), nn.ReLU(True), *unit(64, 64, 3), nn.ReLU(True)]
        layers += [*unit(64, 128, 3), nn.ReLU(True)]
        channels = 128
    layers.append(nn.MaxPool2d(3, 2, 1))
    for stage, count in enumerate(blocks):
        planes = 64 << stage
        for index in range(count):
            layers.append(Block(channels, planes, 2 if stage and not index else 1))
            channels = planes * expansion
    net = nn.Module()
    net.backbone = nn.Sequential(*layers)
    net.localizer = nn.Conv2d(channels, classes * maps, 1)
    net.classifier = nn.Conv2d(channels, classes * maps, 1)
    return net


class Method:
    def __init__(self, options):
        import torch

        torch.manual_seed(0)
        self.classes, self.rounds = 2, options.rounds
        self.net = network(options.backbone, options.stem, self.classes, 5)
        self.format = getattr(torch, options.layout)
        self.net.to(memory_format=self.format)
        self.images = torch.randn(options.batch, 3, options.size, options.size)
        self.images = self.images.to(memory_format=self.format)
        self.labels = torch.arange(options.batch) % self.classes
        self.optimizer = torch.optim.SGD(
            self.net.parameters(), 1e-3, momentum=0.9, weight_decay=1e-5, nesterov=True
        )

    def head(self, images, head):
        maps = head(self.net.backbone(images))
        b, _, h, w = maps.shape
        maps = maps.view(b, self.classes, -1, h, w).mean(2)
        cells = maps.flatten(2)
        top = cells.sort(2, descending=True).values[..., : max(1, round(0.09 * h * w))]
        return top.mean(2), maps

    def mask(self, scores, maps):
        import torch
        import torch.nn.functional as F

        evidence = (scores.softmax(1)[..., None, None] * maps).sum(1, keepdim=True)
        size = self.images.shape[2:]
        evidence = F.interpolate(evidence, size, mode="bilinear", align_corners=True)
        low, high = evidence.amin((2, 3), True), evidence.amax((2, 3), True)
        return torch.sigmoid(8 * ((evidence - low) / (high - low) - 0.5))

    def half(self, images):
        import torch.nn.functional as F

        size = [side // 2 for side in self.images.shape[2:]]
        return F.interpolate(images, size, mode="bilinear", align_corners=True)

    def train(self):
        import math

        import torch
        import torch.nn.functional as F

        self.optimizer.zero_grad(set_to_none=True)
        erased, total = self.images, torch.zeros_like(self.images[:, :1])
        for round_ in range(self.rounds + 1 if self.rounds else 1):
            scores, maps = self.head(erased, self.net.localizer)
            F.cross_entropy(scores, self.labels).backward()
            with torch.no_grad():
                mask = self.mask(scores, maps) * math.exp(-round_ / 10)
                total = torch.maximum(total, mask)
                erased = erased * (1 - total)
        for half in range(2):
            shown = self.half(self.images * (total if half == 0 else 1 - total))
            scores, _ = self.head(shown, self.net.classifier)
            if half == 0:
                F.cross_entropy(scores, self.labels).backward()
            else:
                (-scores.log_softmax(1).mean(1)).mean().backward()
        self.optimizer.step()

    def predict(self):
        import torch

        with torch.inference_mode():
            scores, maps = self.head(self.images, self.net.localizer)
            mask = self.mask(scores, maps)
            scores, _ = self.head(self.half(self.images * mask), self.net.classifier)
            scores.softmax(1)
            return mask


def work(options):
    """One measurement of PyTorch, as `pinpoint bench` makes one of ours."""
    import torch

    method = Method(options)
    method.net.train(options.mode == "train")
    step = method.train if options.mode == "train" else method.predict
    step()
    times = []
    for _ in range(options.steps):
        start = time.perf_counter()
        step()
        times.append(time.perf_counter() - start)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"seconds": min(times), "peak_mib": peak, "threads": torch.get_num_threads()}))


def first(options):
    """What a PyTorch program does for its first result: import, load, predict, write."""
    import numpy as np
    import torch
    from PIL import Image

    method = Method.__new__(Method)
    method.classes = 2
    method.net = network("resnet18", options.stem, 2, 5)
    method.net.load_state_dict(torch.load(options.weights))
    method.net.eval().to(memory_format=torch.channels_last)
    pixels = np.asarray(Image.open(options.image).convert("RGB"), dtype=np.float32) / 127.5 - 1
    images = torch.from_numpy(pixels).permute(2, 0, 1)[None]
    pad = [-side % 32 for side in images.shape[2:]]
    images = torch.nn.functional.pad(images, (0, pad[1], 0, pad[0]), mode="reflect")
    method.images = images.contiguous(memory_format=torch.channels_last)
    mask = method.predict()[0, 0, : pixels.shape[0], : pixels.shape[1]]
    Image.fromarray(np.uint8(255 * (mask.numpy() >= 0.5))).save(options.mask)


def compare_first(options):
    import tempfile
    from pathlib import Path

    import torch

    run, image = options.first
    stem = "deep" if 'stem = "deep"' in Path(run, "config.toml").read_text() else "classic"
    with tempfile.TemporaryDirectory() as folder:
        weights = f"{folder}/weights.pt"
        torch.save(network("resnet18", stem, 2, 5).state_dict(), weights)
        files = ["--weights", weights, "--image", image, "--mask", f"{folder}/mask.png"]
        commands = {
            "pinpoint": [options.pinpoint, "predict", run, image, "--out", f"{folder}/out"],
            "PyTorch": [sys.executable, __file__, "--worker", "first", "--stem", stem, *files],
        }
        seconds = {name: [] for name in commands}
        for _ in range(options.repeat):
            for name, command in commands.items():
                start = time.perf_counter()
                subprocess.run(command, check=True, capture_output=True)
                seconds[name].append(time.perf_counter() - start)
    ours, theirs = min(seconds["pinpoint"]), min(seconds["PyTorch"])
    print(f"start to first result: pinpoint {ours:.2f} s, PyTorch {theirs:.2f} s, ratio {theirs / ours:.1f}")


def measure(command):
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def flags(row):
    names = ("--backbone", "--stem", "--size", "--batch", "--rounds")
    return [row[0]] + [str(part) for pair in zip(names, row[1:]) for part in pair]


def compare(options):
    print("| work | pinpoint s | channels-last s | default s | ratio | pinpoint MiB | PyTorch MiB | ratio |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|")
    rows = [row for row in TRAIN + PREDICT if options.only in " ".join(map(str, row))]
    for row in rows:
        found = {"pinpoint": [], "channels_last": [], "contiguous_format": []}
        steps = ["--steps", str(options.steps)]
        for _ in range(options.repeat):
            found["pinpoint"].append(measure([options.pinpoint, "bench", *flags(row), *steps]))
            for layout in ("channels_last", "contiguous_format"):
                worker = [sys.executable, __file__, "--worker", *flags(row), *steps]
                found[layout].append(measure([*worker, "--layout", layout]))
        seconds = {name: min(one["seconds"] for one in many) for name, many in found.items()}
        layout = min(("channels_last", "contiguous_format"), key=seconds.get)
        ours = min(one["peak_mib"] for one in found["pinpoint"])
        theirs = min(one["peak_mib"] for one in found[layout])
        print(
            f"| {' '.join(map(str, row))} | {seconds['pinpoint']:.3f} | {seconds['channels_last']:.3f}"
            f" | {seconds['contiguous_format']:.3f} | **{seconds[layout] / seconds['pinpoint']:.2f}**"
            f" | {ours:.0f} | {theirs:.0f} | **{theirs / ours:.2f}** |",
            flush=True,
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    worker = "--worker" in sys.argv
    if worker:
        sys.argv.remove("--worker")
        parser.add_argument("mode")
        parser.add_argument("--backbone")
        parser.add_argument("--stem")
        parser.add_argument("--layout")
        for name in ("--size", "--batch", "--rounds", "--steps"):
            parser.add_argument(name, type=int)
        for name in ("--weights", "--image", "--mask"):
            parser.add_argument(name)
        options = parser.parse_args()
        return first(options) if options.mode == "first" else work(options)
    parser.add_argument("pinpoint", help="the built command")
    parser.add_argument("--repeat", type=int, default=3, help="measurements of each, alternating")
    parser.add_argument("--steps", type=int, default=3, help="timed steps in each measurement")
    parser.add_argument("--only", default="", help="rows that contain this text, e.g. `resnet18 deep`")
    parser.add_argument("--first", nargs=2, metavar=("RUN", "IMAGE"), help="time the first result")
    options = parser.parse_args()
    return compare_first(options) if options.first else compare(options)


if __name__ == "__main__":
    main()
