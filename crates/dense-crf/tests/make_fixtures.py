"""Writes `fixtures.bin`: what pydensecrf2 answers on small images, for `tests/original.rs`.

    pip install --target DIR --no-deps pydensecrf2
    PYTHONPATH=DIR python crates/dense-crf/tests/make_fixtures.py

Each case: eight little-endian u32 (width, height, labels, theta_alpha, theta_beta, theta_gamma,
iterations, 0), then rgb bytes, then probabilities and answer as little-endian floats,
labels × pixels. Weights are 3 (smoothness) and 10 (appearance).
"""

from pathlib import Path

import numpy as np
import pydensecrf.densecrf as dcrf
from pydensecrf.utils import unary_from_softmax

WIDTH, HEIGHT = 36, 28
PRESETS = [(13, 3, 3, 2), (19, 11, 5, 5)]


def picture(rng):
    """Three regions of different colour, shaded and with grain."""
    y, x = np.mgrid[:HEIGHT, :WIDTH]
    disc = np.hypot(x - 13, y - 14) < 9
    stripe = x > 27
    image = np.full((HEIGHT, WIDTH, 3), [205, 160, 190], float)
    image[disc] = [130, 80, 150]
    image[stripe] = [90, 150, 90]
    image += (8 * np.sin(y / 7))[..., None] + rng.normal(0, 4, image.shape)
    regions = disc + 2 * stripe
    return np.clip(image, 0, 255).astype(np.uint8), regions


def soft_labels(regions, labels, rng):
    scores = rng.normal(0, 0.8, (labels, HEIGHT, WIDTH))
    np.put_along_axis(
        scores,
        np.minimum(regions, labels - 1)[None],
        np.take_along_axis(scores, np.minimum(regions, labels - 1)[None], 0) + 1.0,
        0,
    )
    p = np.exp(scores)
    return (p / p.sum(0)).astype("<f4")


def answer(image, p, preset):
    alpha, beta, gamma, iterations = preset
    crf = dcrf.DenseCRF2D(WIDTH, HEIGHT, len(p))
    crf.setUnaryEnergy(unary_from_softmax(p))
    crf.addPairwiseGaussian(sxy=gamma, compat=3)
    crf.addPairwiseBilateral(sxy=alpha, srgb=beta, rgbim=image, compat=10)
    return np.array(crf.inference(iterations), "<f4")


def main():
    rng = np.random.default_rng(5)
    out = b""
    for preset in PRESETS:
        for labels in (2, 3):
            image, regions = picture(rng)
            p = soft_labels(regions, labels, rng)
            header = np.array([WIDTH, HEIGHT, labels, *preset, 0], "<u4")
            parts = (header, image, p, answer(image, p, preset))
            out += b"".join(part.tobytes() for part in parts)
    Path(__file__).with_name("fixtures.bin").write_bytes(out)


if __name__ == "__main__":
    main()
