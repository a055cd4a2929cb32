"""Prediction of any number of images on Ray, the same call on a laptop and on a cluster.

    import pinpoint.ray
    summary = pinpoint.ray.predict("slides/", "runs/glands", "s3-mounted/masks")

Every actor opens the run once and has a core of its own. Images stream through, so memory does
not grow with their number; each finished image leaves its files at once, so a job that was killed
goes on where it was; an image that cannot be read is reported and does not stop the others.
"""

from __future__ import annotations

import json
import os
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Dict, Iterable, List, Optional, Tuple, Union

import numpy as np

from ._data import PathLike, _write_png

__all__ = ["Summary", "predict"]

SUFFIXES = {".png", ".jpg", ".jpeg", ".tif", ".tiff", ".bmp", ".webp", ".gif"}


@dataclass
class Summary:
    """What became of the images."""

    #: Images that were predicted now.
    done: int = 0
    #: Images that an earlier call had predicted.
    skipped: int = 0
    #: Images that could not be predicted, each with the reason.
    failed: List[Tuple[str, str]] = field(default_factory=list)


def predict(
    images: Any,
    run: PathLike,
    out: PathLike,
    *,
    concurrency: Optional[int] = None,
    crf: Optional[str] = None,
    threshold: Union[float, str] = 0.5,
    save_scores: bool = False,
) -> Summary:
    """Predicts images into ``out``: ``NAME.png`` with the mask and ``NAME.json`` with the rest.

    ``images`` is a folder, a list of paths, or a Ray dataset with a column ``path``. Paths must
    be readable by every worker, as must ``run``; ``out`` must be writable by every worker. Names
    keep the folders that paths do not share. ``save_scores`` adds ``NAME.npy``.
    """
    ray, data = _ray()
    run, out = os.path.abspath(os.fspath(run)), os.path.abspath(os.fspath(out))
    os.makedirs(out, exist_ok=True)
    dataset = images
    if not isinstance(images, data.Dataset):
        items = list(_named(images))
        if not items:
            raise ValueError("there is no image to predict")
        dataset = data.from_items([{"path": path, "name": name} for path, name in items])
    elif "path" not in (dataset.columns() or []):
        raise ValueError("a Ray dataset of images needs a column `path`")
    options = {"crf": crf, "threshold": threshold}
    workers = concurrency or max(1, int(ray.cluster_resources().get("CPU", 1)))
    rows = dataset.map(
        _Worker,
        fn_constructor_args=(run, out, options, save_scores),
        concurrency=workers,
        num_cpus=1,
        # The network's own threads would only compete with the other actors.
        runtime_env={"env_vars": {"RAYON_NUM_THREADS": "1"}},
    )
    summary = Summary()
    for row in rows.iter_rows():
        if row["state"] == "failed":
            summary.failed.append((row["path"], row["error"]))
        elif row["state"] == "skipped":
            summary.skipped += 1
        else:
            summary.done += 1
    summary.failed.sort()
    return summary


class _Worker:
    """Opens the run once, and predicts one image after the other."""

    def __init__(self, run: str, out: str, options: Dict[str, Any], save_scores: bool) -> None:
        from ._predict import load

        self.predictor = load(run)
        self.out, self.options, self.save_scores = Path(out), options, save_scores
        # What a finished image must have been made by to count as finished.
        self.made_by = {"run": _fingerprint(run), **options, "scores": save_scores}

    def __call__(self, row: Dict[str, Any]) -> Dict[str, Any]:
        path = str(row["path"])
        name = str(row.get("name") or Path(path).name)
        answer = {"path": path, "state": "done", "error": ""}
        try:
            if self._is_done(name):
                return {**answer, "state": "skipped"}
            self._predict(path, name)
        except Exception as error:  # One image must not stop the others, whatever is wrong.
            return {**answer, "state": "failed", "error": str(error)}
        return answer

    def _is_done(self, name: str) -> bool:
        try:
            found = json.loads(self._file(name, ".json").read_text())
        except (OSError, ValueError):
            return False
        return found.get("made_by") == self.made_by

    def _predict(self, path: str, name: str) -> None:
        found = self.predictor.predict(path, **self.options)
        grey = np.repeat(found.mask[:, :, np.newaxis].astype(np.uint8) * 255, 3, axis=2)
        self._replace(self._file(name, ".png"), lambda file: _write_png(file, grey))
        if self.save_scores:
            self._replace(self._file(name, ".npy"), lambda file: _save(file, found.scores))
        probabilities = found.probabilities
        facts = {
            "image": path,
            "class": found.label,
            "probability": found.probability,
            "probabilities": None if probabilities is None else probabilities.tolist(),
            "classes": found.classes,
            "threshold": found.threshold,
            "boxes": found.boxes,
            "made_by": self.made_by,
        }
        # Last: an image counts as done once this file is there.
        text = json.dumps(facts)
        self._replace(self._file(name, ".json"), lambda file: file.write_text(text))

    def _file(self, name: str, suffix: str) -> Path:
        return self.out / f"{name}{suffix}"

    @staticmethod
    def _replace(path: Path, write: Any) -> None:
        """Writes a file whole or not at all."""
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, part = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        os.close(handle)
        try:
            write(Path(part))
            os.replace(part, path)
        except BaseException:
            os.unlink(part)
            raise


def _save(path: Path, scores: np.ndarray) -> None:
    with open(path, "wb") as file:
        np.save(file, scores)


def _fingerprint(run: str) -> str:
    """What changes when the run's weights do."""
    import hashlib

    weights = Path(run) / "weights" / "best.safetensors"
    return hashlib.sha256(weights.read_bytes()).hexdigest()


def _named(images: Any) -> Iterable[Tuple[str, str]]:
    """Paths with names that keep the folders they do not share."""
    if isinstance(images, (str, os.PathLike)):
        root = Path(images)
        if root.is_dir():
            found = (p for p in root.rglob("*") if p.suffix.lower() in SUFFIXES and p.is_file())
            paths = sorted(str(p) for p in found)
        else:
            paths = [str(root)]
    else:
        paths = [os.fspath(path) for path in images]
    paths = [os.path.abspath(path) for path in paths]
    if len(set(paths)) < len(paths):
        raise ValueError("a path is given more than once")
    if len(paths) == 1:
        return [(paths[0], Path(paths[0]).name)]
    root = os.path.commonpath([os.path.dirname(path) for path in paths]) if paths else ""
    return [(path, os.path.relpath(path, root)) for path in paths]


def _ray() -> Tuple[Any, Any]:
    try:
        import ray
        import ray.data as data
    except ImportError as error:
        raise ImportError(
            "Ray is missing: install it by `pip install 'ray[data]'`, or use `pinpoint predict`"
        ) from error
    return ray, data
