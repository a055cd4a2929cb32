"""Times `dense-crf` beside pydensecrf2, alternating, and compares what they answer.

    pip install --target DIR --no-deps pydensecrf2
    cargo build --release -p dense-crf --example time_raw
    PYTHONPATH=DIR python bench/crf_peer.py [--image FILE] [--rounds 9] [--threads 1 2]

Without `--image` a 775×522 picture of blobs with film grain is drawn. pydensecrf2 uses one thread.
Both are timed from probabilities in memory to probabilities in memory, in a process that has done
the same before; the best of the rounds counts. Prints one Markdown table.
"""

import argparse
import os
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
import pydensecrf.densecrf as peer
from pydensecrf.utils import unary_from_softmax

# theta_alpha, theta_beta, theta_gamma, iterations; weights 10 and 3
PRESETS = {"glas": (13, 3, 3, 2), "natural": (19, 11, 5, 5)}


def draw(width, height, rng):
    """An image of soft-edged blobs on another colour, with grain, as uint8 [h, w, 3]."""
    y, x = np.mgrid[:height, :width]
    blobs = np.zeros((height, width))
    for _ in range(12):
        cx, cy, r = rng.uniform(0, width), rng.uniform(0, height), rng.uniform(30, 110)
        blobs = np.maximum(blobs, 1 / (1 + np.exp((np.hypot(x - cx, y - cy) - r) / 2)))
    inside, outside = np.array([150, 90, 160]), np.array([220, 170, 205])
    clean = blobs[..., None] * inside + (1 - blobs[..., None]) * outside
    shading = 12 * np.sin(x / 40)[..., None] + 12 * np.cos(y / 55)[..., None]
    return np.clip(clean + shading + rng.normal(0, 7, clean.shape), 0, 255).astype(np.uint8)


def probabilities(image, labels, rng):
    """Plausible soft labels that follow brightness, float32 [labels, h, w]."""
    grey = image.mean(2)
    grey = (grey - grey.mean()) / (grey.std() + 1e-6)
    scores = np.stack([np.cos(grey + k) + rng.normal(0, 0.5, grey.shape) for k in range(labels)])
    p = np.exp(scores)
    return (p / p.sum(0)).astype(np.float32)


def run_peer(image, p, preset):
    alpha, beta, gamma, iterations = PRESETS[preset]
    start = time.perf_counter()
    crf = peer.DenseCRF2D(image.shape[1], image.shape[0], len(p))
    crf.setUnaryEnergy(unary_from_softmax(p))
    crf.addPairwiseGaussian(sxy=gamma, compat=3)
    crf.addPairwiseBilateral(sxy=alpha, srgb=beta, rgbim=image, compat=10)
    q = np.array(crf.inference(iterations)).reshape(p.shape)
    return time.perf_counter() - start, q


def run_ours(binary, image, p, preset, threads, folder):
    rgb, before, after = (folder / name for name in ("rgb", "before", "after"))
    image.tofile(rgb)
    p.astype("<f4").tofile(before)
    height, width, _ = image.shape
    arguments = [width, height, preset, len(p), rgb, before, after]
    printed = subprocess.run(
        [binary, *map(str, arguments)],
        env={**os.environ, "RAYON_NUM_THREADS": str(threads)},
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    return float(printed), np.fromfile(after, "<f4").reshape(p.shape)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--image", type=Path, help="any file Pillow reads, at its own size")
    parser.add_argument("--labels", type=int, nargs="+", default=[2])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    target = Path(os.environ.get("CARGO_TARGET_DIR", "target"))
    parser.add_argument("--binary", type=Path, default=target / "release/examples/time_raw")
    args = parser.parse_args()

    rng = np.random.default_rng(0)
    if args.image:
        from PIL import Image

        image = np.ascontiguousarray(np.array(Image.open(args.image).convert("RGB")))
    else:
        image = draw(775, 522, rng)
    print(f"image {image.shape[1]}×{image.shape[0]}, best of {args.rounds} alternating rounds\n")
    columns = "".join(f" ours, {n} thr (s) | ratio |" for n in args.threads)
    print(f"| preset | labels | pydensecrf2 (s) |{columns} max diff | mean diff | labels equal |")
    print("|---|---|---|" + "---|---|" * len(args.threads) + "---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for preset in PRESETS:
            for labels in args.labels:
                compare(args, image, probabilities(image, labels, rng), preset, Path(folder))


def compare(args, image, p, preset, folder):
    run_peer(image, p, preset)
    theirs, ours = [], {threads: [] for threads in args.threads}
    for _ in range(args.rounds):
        seconds, expected = run_peer(image, p, preset)
        theirs.append(seconds)
        for threads in args.threads:
            seconds, answer = run_ours(args.binary, image, p, preset, threads, folder)
            ours[threads].append(seconds)
    base = min(theirs)
    cells = ""
    for threads in args.threads:
        own = min(ours[threads])
        cells += f" {own:.3f} | {base / own:.1f}× |"
    difference = np.abs(answer - expected)
    equal = (answer.argmax(0) == expected.argmax(0)).mean()
    print(
        f"| `{preset}` | {len(p)} | {base:.3f} |{cells} {difference.max():.1e} |"
        f" {difference.mean():.1e} | {equal:.5%} |",
        flush=True,
    )


if __name__ == "__main__":
    main()
