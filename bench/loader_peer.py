"""Training images a second: pinpoint's loader beside a torchvision DataLoader doing the same work.

    python bench/loader_peer.py [FOLDER] [--workers 2] [--rounds 5] [--epochs 2]

Both load the images of FOLDER (775x522 slides drawn for the occasion if none is given) with the
published GlaS variation: half of the image reflected on each side, a random crop of 480 pixels, both
flips, colour jitter, normalization, batches of 32. They take turns on the same files; the best round
of each counts, because other programs can only ever make a round slower. Processor time per image is
given too, as it suffers least from what else the machine does.
Needs `bench/requirements.txt`; builds pinpoint's side with cargo.
"""

import argparse
import json
import os
import pathlib
import resource
import subprocess
import tempfile
import time

import numpy as np
import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset
from torchvision import transforms

ROOT = pathlib.Path(__file__).resolve().parent.parent


class Slides(Dataset):
    def __init__(self, folder: pathlib.Path):
        self.files = sorted(folder.iterdir())
        self.vary = transforms.Compose([
            transforms.RandomCrop(480),
            transforms.RandomHorizontalFlip(),
            transforms.RandomVerticalFlip(),
            transforms.ColorJitter(0.5, 0.5, 0.5, 0.05),
            transforms.ToTensor(),
            transforms.Normalize([0.5] * 3, [0.5] * 3),
        ])

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int):
        image = Image.open(self.files[index]).convert("RGB")
        padding = [image.width // 2, image.height // 2]
        return self.vary(transforms.functional.pad(image, padding, padding_mode="reflect")), 0


def processor_seconds() -> float:
    """Spent so far by this process and its finished children."""
    usages = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def peer(folder: pathlib.Path, workers: int, epochs: int) -> tuple[float, float]:
    """Images a second, and seconds of processor time per image.

    Workers start before the clock does and live through all epochs: torch at its best.
    """
    torch.set_num_threads(1)
    processor = processor_seconds()
    loader = DataLoader(
        Slides(folder), batch_size=32, shuffle=True, num_workers=workers, persistent_workers=True
    )
    warm = sum(len(labels) for _, labels in loader)
    start = time.perf_counter()
    images = sum(len(labels) for _ in range(epochs) for _, labels in loader)
    seconds = time.perf_counter() - start
    del loader  # ends the workers, so that their time is counted
    return images / seconds, (processor_seconds() - processor) / (warm + images)


def ours(
    program: str, folder: pathlib.Path, workers: int, epochs: int, cache_mib: int
) -> tuple[float, float]:
    """The same two numbers, with the start of the program and a cold cache included."""
    processor = processor_seconds()
    command = [program, str(folder), str(workers), str(epochs), str(cache_mib)]
    report = json.loads(subprocess.check_output(command))
    return report["images_per_second"], (processor_seconds() - processor) / report["images"]


def build() -> str:
    subprocess.run(["cargo", "build", "--release", "--example", "loader_throughput"], cwd=ROOT, check=True)
    target = os.environ.get("CARGO_TARGET_DIR", ROOT / "target")
    return str(pathlib.Path(target) / "release" / "examples" / "loader_throughput")


def draw(folder: pathlib.Path, count: int, extension: str) -> None:
    """Smooth tissue-like colours with grain, which compress about as well as real slides."""
    rng = np.random.default_rng(0)
    for i in range(count):
        coarse = rng.integers(90, 230, (12, 18, 3), dtype=np.uint8)
        smooth = np.array(Image.fromarray(coarse).resize((775, 522), Image.Resampling.BICUBIC), float)
        grain = rng.normal(0, 12, (522, 775, 1))
        slide = Image.fromarray((smooth + grain).clip(0, 255).astype(np.uint8))
        slide.save(folder / f"{i}.{extension}", quality=90)


def measure(name: str, folder: pathlib.Path, program: str, args: argparse.Namespace) -> None:
    runs = {"torchvision": [], "pinpoint": [], "pinpoint, cached": []}
    for _ in range(args.rounds):
        runs["torchvision"].append(peer(folder, args.workers, args.epochs))
        runs["pinpoint"].append(ours(program, folder, args.workers, args.epochs, 0))
        runs["pinpoint, cached"].append(ours(program, folder, args.workers, 5 * args.epochs, 1024))
    best = {loader: (max(r[0] for r in rounds), min(r[1] for r in rounds)) for loader, rounds in runs.items()}
    baseline = best["torchvision"]
    for loader, (speed, processor) in best.items():
        row = [name, loader, f"{speed:.0f}", f"{speed / baseline[0]:.2f}",
               f"{1000 * processor:.1f}", f"{baseline[1] / processor:.2f}"]
        print(f"| {' | '.join(row)} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", type=pathlib.Path, help="a folder with nothing but images")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=2)
    args = parser.parse_args()

    program = build()
    print(f"| images, {args.workers} workers | loader | images/s | ratio | processor ms/image | ratio |")
    print("|---|---|---|---|---|---|", flush=True)
    if args.folder:
        measure(args.folder.name, args.folder, program, args)
        return
    for extension in ("jpg", "png"):
        with tempfile.TemporaryDirectory() as folder:
            draw(pathlib.Path(folder), 64, extension)
            measure(f"drawn, {extension}", pathlib.Path(folder), program, args)


if __name__ == "__main__":
    main()
