"""Training of runs."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Callable, Dict, Optional, Union

from . import _native
from ._data import PathLike

Progress = Callable[[Dict[str, Any]], None]


def train(
    data: Optional[PathLike],
    out: PathLike,
    *,
    method: str = "probe",
    weights: Optional[PathLike] = None,
    seed: Optional[int] = None,
    device: str = "cpu",
    threads: Optional[int] = None,
    resume: bool = False,
    progress: Union[None, bool, Progress] = None,
    **settings: Any,
) -> Path:
    """Trains on a dataset, and gives the run's folder.

    ``data`` is a folder in any layout that the command reads; :func:`write_dataset` makes one of
    arrays. Settings are given by their dotted key, ``**{"train.epochs": 20}``, or with two
    underscores for the dot, ``train__epochs=20``. ``progress`` is called with a dictionary for
    every event; ``True`` shows a bar by ``tqdm``. Ctrl-C leaves a run that ``resume=True`` goes on
    with, for which ``data`` may be ``None``. The bytes are those that the command would write.
    """
    wanted = request(
        data,
        out,
        method=method,
        weights=weights,
        seed=seed,
        device=device,
        threads=threads,
        resume=resume,
        settings=settings,
    )
    return run(wanted, progress)


def request(
    data: Optional[PathLike],
    out: PathLike,
    *,
    method: str = "probe",
    weights: Optional[PathLike] = None,
    seed: Optional[int] = None,
    device: str = "cpu",
    threads: Optional[int] = None,
    resume: bool = False,
    features: Optional[PathLike] = None,
    settings: Dict[str, Any],
) -> Dict[str, Any]:
    """What the native part calls a training."""
    if resume and (method != "probe" or seed is not None):
        raise ValueError("a run is resumed with its own method and seed: leave them out")
    if data is None and not resume:
        raise ValueError("`data` is missing; only a run that is resumed knows its own")
    wanted = {key.replace("__", "."): value for key, value in settings.items()}
    if seed is not None:
        wanted["seed"] = seed
    return {
        "data": None if data is None else os.fspath(data),
        "out": os.fspath(out),
        "method": method,
        "weights": None if weights is None else os.fspath(weights),
        "settings": [(key, json.dumps(value)) for key, value in wanted.items()],
        "device": device,
        "threads": threads,
        "resume": resume,
        "features": None if features is None else os.fspath(features),
    }


def run(wanted: Dict[str, Any], progress: Union[None, bool, Progress]) -> Path:
    """Trains what :func:`request` gave."""
    callback = _bar() if progress is True else (progress or None)
    return Path(_native.train(wanted, callback))


def _bar() -> Progress:
    """A bar by tqdm, fed with events."""
    from tqdm.auto import tqdm

    bar: Dict[str, Any] = {}

    def start(what: str, total: int) -> Any:
        if bar.get("what") != what:
            if "bar" in bar:
                bar["bar"].close()
            bar.update(what=what, bar=tqdm(total=total, desc=what))
        return bar["bar"]

    def show(event: Dict[str, Any]) -> None:
        kind = event["kind"]
        if kind == "started" and event["steps"]:
            epoch, step = event["from"]
            start("training", event["epochs"] * event["steps"]).update(epoch * event["steps"] + step)
        elif kind == "step" and "bar" in bar:
            bar["bar"].update(1)
        elif kind == "working":
            current = start(event["what"], event["total"])
            current.update(event["done"] - current.n)

    return show
