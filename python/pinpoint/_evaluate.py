"""Evaluation of runs."""

from __future__ import annotations

import json
import os
from typing import Any, Dict, List, Optional, Union

from . import _native
from ._data import PathLike


class Evaluation:
    """Scores in percent: by name, by class, by image."""

    def __init__(self, document: Dict[str, Any]) -> None:
        #: Everything, as in ``report.json``.
        self.document = document

    @property
    def scores(self) -> Dict[str, Any]:
        """The headline scores by name."""
        return self.document["scores"]

    @property
    def images(self) -> Any:
        """One row per image: a pandas frame, or a list of dictionaries without pandas."""
        return _frame(self.document["images"])

    @property
    def classes(self) -> Any:
        """One row per class, likewise."""
        return _frame(self.document["classes"])

    def __getitem__(self, name: str) -> Any:
        return self.scores[name]

    def __repr__(self) -> str:
        shown = ("classification_error", "f1_foreground", "f1_background")
        found = [
            f"{name}={self.scores[name]:.2f}" for name in shown if self.scores.get(name) is not None
        ]
        return f"Evaluation({', '.join(found)})"


def _frame(rows: List[Dict[str, Any]]) -> Any:
    try:
        import pandas
    except ImportError:
        return rows
    return pandas.DataFrame(rows)


def evaluate(
    run: Optional[PathLike] = None,
    data: Optional[PathLike] = None,
    *,
    method: Optional[str] = None,
    maps: Optional[PathLike] = None,
    split: str = "test",
    crf: Optional[str] = None,
    threshold: Union[float, str] = 0.5,
    oracle_label: bool = False,
    decidability: bool = False,
    report: Optional[PathLike] = None,
    threads: Optional[int] = None,
) -> Evaluation:
    """Scores a run on a dataset with masks, that of the run by default.

    ``method`` scores ``"all-ones"`` or ``"centre-gaussian"`` instead, and ``maps`` a folder of
    saved maps. ``report`` is a folder for the report that the command would write.
    """

    def path(given: Optional[PathLike]) -> Optional[str]:
        return None if given is None else os.fspath(given)

    wanted = {
        "run": path(run),
        "method": method,
        "maps": path(maps),
        "data": path(data),
        "split": split,
        "crf": crf,
        "threshold": str(threshold),
        "oracle_label": oracle_label,
        "decidability": decidability,
        "report": path(report),
        "threads": threads,
    }
    return Evaluation(json.loads(_native.evaluate(wanted)))
