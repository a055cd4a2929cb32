"""The fully connected CRF, for anybody's probabilities."""

from __future__ import annotations

from typing import Any, Optional

import numpy as np

from . import _native
from ._data import as_image


def crf(
    image: Any,
    probabilities: Any,
    *,
    preset: str = "natural",
    iterations: Optional[int] = None,
    smoothness_weight: Optional[float] = None,
    theta_gamma: Optional[float] = None,
    appearance_weight: Optional[float] = None,
    theta_alpha: Optional[float] = None,
    theta_beta: Optional[float] = None,
) -> np.ndarray:
    """Snaps probabilities to the edges of an image.

    ``probabilities`` are of the foreground, ``height × width``, or of each label,
    ``labels × height × width`` that sum to 1; what comes back has the same shape. In terms of
    pydensecrf: ``theta_gamma`` is ``sxy`` of ``addPairwiseGaussian`` and ``smoothness_weight`` its
    ``compat``; ``theta_alpha`` and ``theta_beta`` are ``sxy`` and ``srgb`` of
    ``addPairwiseBilateral`` and ``appearance_weight`` its ``compat``.

    >>> import numpy as np
    >>> image = np.zeros((4, 8, 3), np.uint8)
    >>> image[:, 4:] = 230
    >>> doubtful = np.where(image[:, :, 0] > 0, 0.8, 0.2).astype(np.float32)
    >>> doubtful[0, 6] = 0.4
    >>> bool(crf(image, doubtful)[0, 6] > 0.9)
    True
    """
    settings = {
        "preset": preset,
        "iterations": iterations,
        "smoothness_weight": smoothness_weight,
        "theta_gamma": theta_gamma,
        "appearance_weight": appearance_weight,
        "theta_alpha": theta_alpha,
        "theta_beta": theta_beta,
    }
    array = np.asarray(probabilities, dtype=np.float32)
    if array.ndim == 2:
        return _native.crf(as_image(image), array, settings)
    if array.ndim == 3:
        return _native.crf_labels(as_image(image), array, settings)
    raise TypeError(
        "probabilities are an array of height × width, or of labels × height × width, and these "
        f"have the shape {array.shape}"
    )
