"""Throughput of prediction on Ray beside the plain command, alternately in one run.

    pip install 'ray[data]' pillow target/wheels/*.whl
    python bench/ray_peer.py [--images 240] [--size 640x480] [--repeat 3]

The command has as many threads as the machine has cores, Ray as many actors with a thread each. Both
predict a few images and many; what the many take longer is divided by their number, so that start-up is
in neither figure. Start-up is what the few take beyond that, and is told separately: for Ray, of
`predict` in a process where Ray runs already, and of `ray.init`. A probe is trained first on drawn images
from drawn weights, since only time is measured.
"""

import argparse
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

#: Images that are enough for every actor to start.
FEW = 8


def draw(folder, images, size):
    import numpy as np
    from PIL import Image

    rng = np.random.default_rng(3)
    width, height = size
    for index in range(images):
        small = rng.integers(0, 256, (height // 16, width // 16, 3), dtype=np.uint8)
        picture = Image.fromarray(small).resize(size, Image.BICUBIC)
        path = pathlib.Path(folder, f"class{index % 2}", f"{index:04}.png")
        path.parent.mkdir(parents=True, exist_ok=True)
        picture.save(path)


def timed(work):
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--images", type=int, default=240)
    parser.add_argument("--size", default="640x480")
    parser.add_argument("--repeat", type=int, default=3)
    arguments = parser.parse_args()
    size = tuple(map(int, arguments.size.split("x")))
    cores = os.cpu_count()

    import pinpoint.ray
    import ray.data

    started = time.perf_counter()
    ray.init(num_cpus=cores, include_dashboard=False, log_to_driver=False)
    ray.data.DataContext.get_current().enable_progress_bars = False
    init = time.perf_counter() - started
    with tempfile.TemporaryDirectory() as folder:
        draw(f"{folder}/data/train", 8, size)
        run = pinpoint.train(f"{folder}/data", f"{folder}/run")
        counts = {"few": FEW, "many": FEW + arguments.images}
        for name, count in counts.items():
            draw(f"{folder}/{name}", count, size)

        def by_command(name):
            words = ["predict", run, f"{folder}/{name}", "--out", f"{folder}/out"]
            command = [sys.executable, "-m", "pinpoint", *words, "--threads", str(cores)]
            subprocess.run(command, check=True, capture_output=True)

        def by_ray(name):
            summary = pinpoint.ray.predict(f"{folder}/{name}", run, f"{folder}/out")
            assert summary.done == counts[name] and not summary.failed, summary

        each, start = {}, {}
        for _ in range(arguments.repeat):
            for who, predict in (("command", by_command), ("ray", by_ray)):
                times = {}
                for name in counts:
                    shutil.rmtree(f"{folder}/out", ignore_errors=True)
                    times[name] = timed(lambda: predict(name))
                one = (times["many"] - times["few"]) / arguments.images
                each.setdefault(who, []).append(one)
                start.setdefault(who, []).append(times["few"] - FEW * one)
    rates = {who: 1 / statistics.median(seconds) for who, seconds in each.items()}
    print(f"{'':10}{'images/s':>10}{'from':>8}{'to':>8}{'start-up s':>12}")
    for who, seconds in each.items():
        least, most = 1 / max(seconds), 1 / min(seconds)
        line = f"{rates[who]:10.2f}{least:8.2f}{most:8.2f}{statistics.median(start[who]):12.1f}"
        print(f"{who:10}{line}")
    print(f"ray / command: {rates['ray'] / rates['command']:.2f}; ray.init took {init:.1f} s")


if __name__ == "__main__":
    main()
