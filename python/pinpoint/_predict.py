"""Predictions of a trained run."""

from __future__ import annotations

import os
from typing import Any, List, Optional, Union, overload

import numpy as np

from . import _native
from ._data import PathLike, as_image
from ._native import Prediction


class Predictor:
    """A trained run, opened once; threads may share it, and pickling it keeps its path."""

    def __init__(self, run: PathLike, device: str = "cpu") -> None:
        self._native = _native.Predictor(os.path.abspath(os.fspath(run)), device)

    @property
    def run(self) -> str:
        """The run's folder."""
        return os.fspath(self._native.run)

    @property
    def classes(self) -> List[str]:
        """The classes, in the order of probabilities."""
        return self._native.classes

    @property
    def method(self) -> str:
        """What was trained."""
        return self._native.method

    def predict(
        self,
        image: Any,
        *,
        crf: Optional[str] = None,
        threshold: Union[float, str] = 0.5,
        class_name: Optional[str] = None,
        tile: Optional[int] = None,
    ) -> Any:
        """Class, scores and mask of an image: an array, a PIL image, a path, or a list of those.

        ``crf`` snaps masks to edges (``"natural"`` or ``"glas"``), ``threshold`` is a number,
        ``"otsu"`` or ``"percentile:80"``, ``class_name`` the class whose mask is wanted where a
        method has one per class, and ``tile`` the side of the windows for large images. A list
        gives a list.
        """
        options = {
            "crf": crf,
            "threshold": str(threshold),
            "class_name": class_name,
            "tile": tile,
        }
        if isinstance(image, (list, tuple)):
            return [self._one(single, options) for single in image]
        return self._one(image, options)

    def _one(self, image: Any, options: dict) -> Prediction:
        if isinstance(image, (str, os.PathLike)):
            return self._native.predict_file(os.fspath(image), options)
        return self._native.predict_array(as_image(image), options)

    def __reduce__(self):
        return load, (self.run, self._native.device)

    def __repr__(self) -> str:
        return f"Predictor({self.run!r}, method={self.method!r}, classes={self.classes!r})"


def load(run: PathLike, device: str = "cpu") -> Predictor:
    """Opens the best weights of a run that ``train`` or the command has written."""
    return Predictor(run, device)
