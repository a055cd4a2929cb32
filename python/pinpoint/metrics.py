"""Scores of anybody's maps, computed as pinpoint's own reports are.

>>> import numpy as np
>>> truth = np.zeros((8, 8), bool)
>>> truth[2:6, 2:6] = True
>>> scores = score([truth.astype(float)], [truth])
>>> scores["f1_foreground"], scores["pxap"], scores["max_box_acc"]
(100.0, 100.0, 100.0)
"""

from __future__ import annotations

import json
from typing import Any, Dict, Optional, Sequence, Union

import numpy as np

from . import _native
from ._evaluate import Evaluation

__all__ = ["evaluation", "f1", "max_box_acc", "pxap", "score"]


def evaluation(
    maps: Sequence[Any],
    masks: Sequence[Any],
    *,
    labels: Optional[Sequence[Any]] = None,
    predicted: Optional[Sequence[Any]] = None,
    threshold: Union[float, str] = 0.5,
) -> Evaluation:
    """Everything that can be scored of maps in ``[0, 1]`` against masks of the same sizes.

    ``labels`` and ``predicted`` are the true and the predicted classes, where classes count.
    """
    if len(maps) != len(masks):
        raise ValueError(f"there are {len(maps)} maps and {len(masks)} masks")
    if len(maps) == 0:
        raise ValueError("there are no maps to score")
    if predicted is not None and labels is None:
        raise ValueError("`predicted` needs `labels` to compare with")
    for name, given in (("labels", labels), ("predicted", predicted)):
        if given is not None and len(given) != len(maps):
            raise ValueError(f"there are {len(maps)} maps and {len(given)} {name}")
    names = sorted({str(label) for label in [*(labels or []), *(predicted or [])]}) or ["object"]
    index = {name: place for place, name in enumerate(names)}
    found = _native.score_maps(
        [np.asarray(scores, dtype=np.float32) for scores in maps],
        [np.asarray(mask).astype(bool) for mask in masks],
        names,
        [index[str(label)] for label in labels or []],
        [index[str(label)] for label in predicted or []],
        str(threshold),
    )
    return Evaluation(json.loads(found))


def score(maps: Sequence[Any], masks: Sequence[Any], **options: Any) -> Dict[str, Any]:
    """The headline scores by name, in percent; see :func:`evaluation`."""
    return evaluation(maps, masks, **options).scores


def f1(maps: Sequence[Any], masks: Sequence[Any], threshold: Union[float, str] = 0.5):
    """F1 of foreground and of background, means over images, in percent."""
    found = score(maps, masks, threshold=threshold)
    return found["f1_foreground"], found["f1_background"]


def pxap(maps: Sequence[Any], masks: Sequence[Any]) -> float:
    """Pixel average precision over all pixels together, in percent."""
    return score(maps, masks)["pxap"]


def max_box_acc(maps: Sequence[Any], masks: Sequence[Any], version: int = 1) -> float:
    """Share of images whose largest region has a right box at the best threshold, in percent.

    ``version`` 2 averages over the overlaps 0.3, 0.5 and 0.7.
    """
    if version not in (1, 2):
        raise ValueError("there are versions 1 and 2 of MaxBoxAcc")
    return score(maps, masks)["max_box_acc" if version == 1 else "max_box_acc_v2"]
