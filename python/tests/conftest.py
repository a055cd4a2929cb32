"""A small run that all tests share, trained on drawn images by the package itself."""

import numpy as np
import pinpoint
import pytest

SMALL = {
    "model.backbone": "tiny",
    "model.output_stride": 8,
    "model.classifier_scale": 1.0,
    "preprocess.crop": 32,
    "preprocess.upscale_short_side": 0,
    "preprocess.eval_multiple": 8,
    "train.batch_size": 4,
    "train.epochs": 2,
    "erase.rounds": 1,
}

PROBE = {
    "model.backbone": "tiny",
    "preprocess.upscale_short_side": 64,
    "probe.students": 1,
    "probe.heads": 1,
}


def drawn(count: int = 16, side: int = 40, seed: int = 0):
    """Bright discs and dark squares on noise, with labels and masks."""
    random = np.random.default_rng(seed)
    images, labels, masks = [], [], []
    rows, columns = np.mgrid[:side, :side]
    for index in range(count):
        image = random.integers(90, 140, (side, side, 3)).astype(np.uint8)
        y, x = random.integers(12, side - 12, 2)
        disc = index % 2 == 0
        if disc:
            mask = (rows - y) ** 2 + (columns - x) ** 2 < 64
        else:
            mask = (abs(rows - y) < 8) & (abs(columns - x) < 8)
        image[mask] = [220, 60, 40] if disc else [20, 40, 160]
        images.append(image)
        labels.append("disc" if disc else "square")
        masks.append(mask)
    return images, labels, masks


@pytest.fixture(scope="session")
def drawing():
    return drawn()


@pytest.fixture(scope="session")
def data(tmp_path_factory, drawing):
    folder = tmp_path_factory.mktemp("data")
    images, labels, masks = drawing
    pinpoint.write_dataset(folder, images, labels, masks, split="train")
    pinpoint.write_dataset(folder, images[:4], labels[:4], masks[:4], split="valid")
    pinpoint.write_dataset(folder, images[:6], labels[:6], masks[:6], split="test")
    return folder


@pytest.fixture(scope="session")
def run(tmp_path_factory, data):
    return pinpoint.train(data, tmp_path_factory.mktemp("runs") / "run", method="minmax", **SMALL)
