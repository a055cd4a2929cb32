"""A probe on as many images as CUB-200-2011 has: time and memory of training and of scoring.

    cargo build --release
    python bench/probe_size.py target/release/pinpoint WEIGHTS [--images 12000] [--classes 200] \
        [--size 500x375] [--folder FOLDER]

Half of the images are learned from and half are scored, masks included. Each shows an ellipse with
the two colours and the stripes of its class on a blurred background. WEIGHTS are those of
ResNet-18 as `pinpoint weights get resnet18` fetches them. Images that are in FOLDER already are
not drawn again.
"""

import argparse
import colorsys
import json
import os
import pathlib
import re
import subprocess
import tempfile
import time

import numpy as np
from PIL import Image


def pattern(label, classes, rows, columns):
    """The stripes of a class, `[height, width, 3]`."""
    rng = np.random.default_rng(label)
    hue, angle, period = label / classes, rng.uniform(0, np.pi), rng.uniform(8, 40)
    colours = [colorsys.hsv_to_rgb(h % 1, 0.9, v) for h, v in ((hue, 0.9), (hue + 0.3, 0.6))]
    phase = (rows * np.sin(angle) + columns * np.cos(angle)) * 2 * np.pi / period
    return 255 * np.where((np.sin(phase) > 0)[..., None], *map(np.array, colours))


def draw(folder, images, classes, width, height):
    rows, columns = np.mgrid[:height, :width].astype(np.float32)
    for index in range(images):
        label = index % classes
        split = ("train", "test")[index // classes % 2]
        place = pathlib.Path(split, f"class{label:03}")
        target = folder / place / f"{index}.jpg"
        if target.exists():
            continue
        rng = np.random.default_rng([1, index])
        small = rng.integers(0, 256, (height // 16, width // 16, 3), dtype=np.uint8)
        picture = np.array(Image.fromarray(small).resize((width, height), Image.BICUBIC))
        centre = rng.uniform(0.3, 0.7, 2) * (height, width)
        radius = rng.uniform(0.1, 0.3, 2) * height
        inside = ((rows - centre[0]) / radius[0]) ** 2 + ((columns - centre[1]) / radius[1]) ** 2 < 1
        picture[inside] = pattern(label, classes, rows[inside], columns[inside])
        mask = folder / "masks" / place / f"{index}.png"
        for parent in (target.parent, mask.parent):
            parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(inside.astype(np.uint8) * 255).save(mask)
        Image.fromarray(picture).save(target, quality=90)


def measured(command):
    """Runs it; what it said on both streams, with seconds by the clock, of processors, and MiB."""
    started = time.perf_counter()
    with tempfile.TemporaryFile("w+") as said:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=said, text=True)
        answer = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        said.seek(0)
        log = said.read()
    assert status == 0, log
    cost = {
        "seconds": round(time.perf_counter() - started, 1),
        "processor_seconds": round(usage.ru_utime + usage.ru_stime, 1),
        "peak_mib": usage.ru_maxrss // 1024,
    }
    return answer, log, cost


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("command")
    parser.add_argument("weights")
    parser.add_argument("--images", type=int, default=12_000)
    parser.add_argument("--classes", type=int, default=200)
    parser.add_argument("--size", default="500x375")
    parser.add_argument("--folder", type=pathlib.Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.folder or pathlib.Path(temporary)
        data, run = folder / "data", folder / f"run-{arguments.images}"
        draw(data, arguments.images, arguments.classes, *map(int, arguments.size.split("x")))
        train = ["train", "--method", "probe", "--data", data, "--weights", arguments.weights]
        _, log, cost = measured([arguments.command, *train, "--out", run])
        parts = re.search(r"features in ([0-9.]+) s, heads in ([0-9.]+) s", log)
        features, heads = map(float, parts.groups())
        print(json.dumps({"training": {"features": features, "heads": heads, **cost}}))
        scoring = ["evaluate", run, "--json", "--no-report"]
        answer, _, cost = measured([arguments.command, *scoring])
        scores = json.loads(answer)
        wanted = ("images", "classification_error", "f1_foreground", "f1_background")
        print(json.dumps({"scoring": {**cost, **{key: scores[key] for key in wanted}}}))


if __name__ == "__main__":
    main()
