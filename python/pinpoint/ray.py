"""Any number of images on Ray: their masks, and the features that a probe learns from.

    import pinpoint.ray
    run = pinpoint.ray.train("slides/", "runs/glands", weights="resnet18-f37072fd.pth")
    summary = pinpoint.ray.predict("more-slides/", run, "masks/")

are the same calls on a laptop and on a cluster. Every actor opens the network once and has a core
of its own. Images stream through, so memory does not grow with their number; what is finished is
on disk at once, so a job that was killed goes on where it was; an image that cannot be read is
reported and does not stop the others.
"""

from __future__ import annotations

import json
import os
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Dict, Iterable, List, Optional, Tuple, Union

import numpy as np

from . import _native, _train
from ._data import PathLike
from ._native import PinpointError

__all__ = ["Summary", "predict", "train"]

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
    _, data = _ray()
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
    rows = _on_actors(dataset, _Worker, (run, out, options, save_scores), concurrency)
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


#: Images whose features are in one file, a shard.
SHARD = 32


def train(
    data: Optional[PathLike],
    out: PathLike,
    *,
    features: Optional[PathLike] = None,
    concurrency: Optional[int] = None,
    weights: Optional[PathLike] = None,
    seed: Optional[int] = None,
    threads: Optional[int] = None,
    resume: bool = False,
    progress: Union[None, bool, _train.Progress] = None,
    **settings: Any,
) -> Path:
    """Trains a probe whose features are computed on Ray, and gives the run's folder.

    The run has the bytes that :func:`pinpoint.train` would write, and takes the same settings.
    Features go to the folder ``features``, beside ``out`` and named after it by default, which
    every worker must be able to write; ``data`` and ``weights`` must be readable by every worker.
    They stay there for other seeds and heads. A call that was killed is made again: what is
    finished is not computed twice; a run whose heads were being trained goes on with
    ``resume=True``. If images cannot be used, the others' features are made nevertheless, and all
    problems are raised at once.
    """
    out = os.path.abspath(os.fspath(out))
    features = os.path.abspath(os.fspath(features or f"{out}-features"))
    wanted = _train.request(
        None if data is None else os.path.abspath(os.fspath(data)),
        out,
        weights=None if weights is None else os.path.abspath(os.fspath(weights)),
        seed=seed,
        threads=threads,
        resume=resume,
        features=features,
        settings=settings,
    )
    # A run that has begun found all features that it needs.
    if not resume:
        _make_features(wanted, features, concurrency)
    return _train.run(wanted, progress)


def _make_features(wanted: Dict[str, Any], folder: str, concurrency: Optional[int]) -> None:
    """Fills a folder with the features of all images that a training needs, or raises."""
    _, data = _ray()
    images, cells = _native.wanted_features(wanted)
    shards = [
        {"number": start // SHARD, "images": json.dumps(images[start : start + SHARD], default=str)}
        for start in range(0, len(images), SHARD)
    ]
    rows = _on_actors(data.from_items(shards), _Maker, (wanted, cells, folder), concurrency)
    failed = [problem for row in rows.iter_rows() for problem in json.loads(row["failed"])]
    if failed:
        problems = "\n".join(f"  {path}: {error}" for path, error in sorted(failed))
        raise PinpointError(
            f"{len(failed)} of {len(images)} training images cannot be used\n{problems}\n"
            "hint: repair or remove them, and call again; the others need no second pass"
        )


class _Maker:
    """Opens the backbone once, and makes the features of one shard after the other."""

    def __init__(self, wanted: Dict[str, Any], cells: int, folder: str) -> None:
        self.maker, self.folder = _native.FeatureMaker(wanted, cells), folder

    def __call__(self, row: Dict[str, Any]) -> Dict[str, Any]:
        # As text, since Ray gives lists back as arrays.
        images = [(name, path) for name, path in json.loads(row["images"])]
        _, _, failed = self.maker.make(self.folder, int(row["number"]), images)
        return {"failed": json.dumps([(str(path), error) for path, error in failed])}


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
        mask = self._file(name, ".png")
        mask.parent.mkdir(parents=True, exist_ok=True)
        found.save_mask(str(mask))
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


def _on_actors(dataset: Any, actor: Any, arguments: tuple, concurrency: Optional[int]) -> Any:
    """What actors make of each row of a dataset, each of them on a core of its own."""
    ray, _ = _ray()
    return dataset.map(
        actor,
        fn_constructor_args=arguments,
        concurrency=concurrency or max(1, int(ray.cluster_resources().get("CPU", 1))),
        num_cpus=1,
        # The network's own threads would only compete with the other actors.
        runtime_env={"env_vars": {"RAYON_NUM_THREADS": "1"}},
    )


def _ray() -> Tuple[Any, Any]:
    try:
        import ray
        import ray.data as data
    except ImportError as error:
        raise ImportError(
            "Ray is missing: install it by `pip install 'ray[data]'`, or use `pinpoint predict`"
        ) from error
    return ray, data
