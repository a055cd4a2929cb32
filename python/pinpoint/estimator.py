"""scikit-learn's conventions: ``fit``, ``predict``, ``predict_proba``, ``score``."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence

import numpy as np

from ._data import PathLike, write_dataset
from ._predict import Predictor, load
from ._train import train


class PointwiseLocalizer:
    """Learns classes and masks from images and labels.

    Parameters are kept as they are given, as scikit-learn's ``clone`` and ``GridSearchCV`` want
    it; what is learned ends in an underscore.
    """

    def __init__(
        self,
        method: str = "probe",
        weights: Optional[PathLike] = None,
        out: Optional[PathLike] = None,
        seed: int = 0,
        settings: Optional[Dict[str, Any]] = None,
    ) -> None:
        self.method = method
        self.weights = weights
        self.out = out
        self.seed = seed
        self.settings = settings

    def get_params(self, deep: bool = True) -> Dict[str, Any]:
        """The parameters it was made with."""
        names = ("method", "weights", "out", "seed", "settings")
        return {name: getattr(self, name) for name in names}

    def set_params(self, **params: Any) -> "PointwiseLocalizer":
        """Replaces parameters."""
        unknown = set(params) - set(self.get_params())
        if unknown:
            raise ValueError(f"there is no parameter {', '.join(sorted(unknown))}")
        for name, value in params.items():
            setattr(self, name, value)
        return self

    def fit(self, X: Sequence[Any], y: Sequence[Any]) -> "PointwiseLocalizer":
        """Learns from images and their labels."""
        if len(y) > 0 and len({str(label) for label in y}) < 2:
            raise ValueError("there must be images of at least two classes")
        self._folder = None
        out = self.out
        if out is None:
            # Kept as long as the estimator.
            self._folder = tempfile.TemporaryDirectory(prefix="pinpoint-")
            out = Path(self._folder.name) / "run"
        data = write_dataset(f"{out}-data", X, y)
        self.run_ = train(
            data, out, method=self.method, weights=self.weights, seed=self.seed,
            **(self.settings or {}),
        )
        self.predictor_: Predictor = load(self.run_)
        labels = {str(label): label for label in y}
        self.classes_ = np.array([labels[name] for name in self.predictor_.classes])
        return self

    def predict(self, X: Sequence[Any]) -> np.ndarray:
        """The class of each image."""
        return self.classes_[np.argmax(self.predict_proba(X), axis=1)]

    def predict_proba(self, X: Sequence[Any]) -> np.ndarray:
        """The probability of each class, in the order of ``classes_``."""
        return np.stack([self.predictor_.predict(image).probabilities for image in X])

    def predict_masks(self, X: Sequence[Any], **options: Any) -> List[np.ndarray]:
        """The mask of each image."""
        return [self.predictor_.predict(image, **options).mask for image in X]

    def score(self, X: Sequence[Any], y: Sequence[Any]) -> float:
        """Share of images whose class is right."""
        return float(np.mean(self.predict(X) == np.asarray(y)))
