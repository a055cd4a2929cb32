"""Predictions of a trained run."""

from __future__ import annotations

import os
from typing import Any, List, Optional, Union, overload

import numpy as np

from . import _native
from ._data import PathLike, as_image
from ._native import Prediction


class Predictor:
    """A trained run, opened once; threads may share it, and pickling it keeps its path.

    ``with pinpoint.load(run) as predictor`` closes it at the end; :meth:`close` does so at once.
    """

    def __init__(self, run: PathLike, device: str = "cpu") -> None:
        self._path = os.path.abspath(os.fspath(run))
        self._open: Optional[_native.Predictor] = _native.Predictor(self._path, device)

    @property
    def _native(self) -> _native.Predictor:
        """What computes, as long as the run is open."""
        if self._open is None:
            raise ValueError(f"the run {self._path!r} is closed: open it again by `pinpoint.load`")
        return self._open

    def close(self) -> None:
        """Gives the memory back, once predictions that other threads have begun are done."""
        self._open = None

    def __enter__(self) -> "Predictor":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

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
        if self._open is None:
            return f"Predictor({self._path!r}, closed)"
        return f"Predictor({self.run!r}, method={self.method!r}, classes={self.classes!r})"


def load(run: PathLike, device: str = "cpu") -> Predictor:
    """Opens the best weights of a run that ``train`` or the command has written."""
    return Predictor(run, device)
