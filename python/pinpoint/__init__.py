"""Learns where an object is, pixel by pixel, from images that carry only a class label.

Train on your own images, and predict new ones::

    run = pinpoint.train("birds", "runs/birds", weights="resnet18.pth")
    found = pinpoint.load(run).predict("photo.jpg")
    found.label, found.mask, found.boxes

Arrays are NumPy's: images are ``height × width × 3`` of ``uint8``, masks ``height × width`` of
``bool``, scores ``height × width`` of ``float32`` in ``[0, 1]``, 1 is foreground.
"""

from __future__ import annotations

from . import metrics
from ._data import as_image, write_dataset
from ._crf import crf
from ._evaluate import Evaluation, evaluate
from ._native import PinpointError, Prediction, __version__
from ._predict import Predictor, load
from ._train import train
from .estimator import PointwiseLocalizer

__all__ = [
    "Evaluation",
    "PinpointError",
    "PointwiseLocalizer",
    "Prediction",
    "Predictor",
    "__version__",
    "as_image",
    "crf",
    "evaluate",
    "load",
    "metrics",
    "train",
    "write_dataset",
]
