"""Images and datasets as pinpoint reads them."""

from __future__ import annotations

import os
import struct
import zlib
from collections import Counter
from pathlib import Path
from typing import Any, Iterable, Optional, Sequence, Union

import numpy as np

PathLike = Union[str, "os.PathLike[str]"]


def as_image(image: Any) -> np.ndarray:
    """An image as ``height × width × 3`` of ``uint8``.

    Takes arrays of bytes or of floats in ``[0, 1]``, grey or RGB or RGBA (alpha is dropped), and
    PIL images. Nothing is copied if the array is such an image already.

    >>> import numpy as np
    >>> as_image(np.zeros((4, 6))).shape
    (4, 6, 3)
    >>> as_image(np.full((1, 1), 0.5))[0, 0].tolist()
    [128, 128, 128]
    """
    if hasattr(image, "convert") and not isinstance(image, np.ndarray):
        image = image.convert("RGB")
    array = np.asarray(image)
    if array.ndim not in (2, 3) or (array.ndim == 3 and array.shape[2] not in (1, 3, 4)):
        raise TypeError(
            "an image is an array of height × width, or of height × width × 1, 3 or 4 channels, "
            f"and this has the shape {array.shape}"
        )
    if array.size == 0:
        raise ValueError(f"the image has no pixels: its shape is {array.shape}")
    if array.dtype == np.bool_:
        array = array.astype(np.uint8) * 255
    elif np.issubdtype(array.dtype, np.floating):
        low, high = float(np.min(array)), float(np.max(array))
        if not (0.0 <= low and high <= 1.0):
            raise ValueError(
                f"an image of floats has values in [0, 1], and this one goes from {low:g} to {high:g}"
            )
        array = np.rint(array * 255).astype(np.uint8)
    elif array.dtype != np.uint8:
        raise TypeError(
            f"an image has the dtype uint8, or floats in [0, 1], and this one has {array.dtype}; "
            "scale it to [0, 1] first"
        )
    if array.ndim == 2:
        array = array[:, :, np.newaxis]
    if array.shape[2] == 1:
        array = np.repeat(array, 3, axis=2)
    return array[:, :, :3]


def write_dataset(
    folder: PathLike,
    images: Sequence[Any],
    labels: Sequence[Any],
    masks: Optional[Iterable[Any]] = None,
    split: str = "train",
) -> Path:
    """Writes images and their labels as class folders, which every call here takes as ``data``.

    ``masks`` are only for scoring; training by labels never reads them.

    >>> import numpy as np, tempfile
    >>> folder = write_dataset(tempfile.mkdtemp(), np.zeros((2, 8, 8)), ["cat", "dog"])
    >>> sorted(path.name for path in (folder / "train").iterdir())
    ['cat', 'dog']
    """
    if len(images) != len(labels):
        raise ValueError(f"there are {len(images)} images and {len(labels)} labels")
    if len(images) == 0:
        raise ValueError("there are no images")
    names = [str(label) for label in labels]
    for name in Counter(names):
        if not name or name in (".", "..") or any(c in name for c in '/\\\0'):
            raise ValueError(f"the label {name!r} cannot be the name of a folder")
    root = Path(folder)
    digits = len(str(len(images) - 1))
    masks = list(masks) if masks is not None else []
    for index, (image, name) in enumerate(zip(images, names)):
        file = f"{index:0{digits}}.png"
        _write_png(root / split / name / file, as_image(image))
        if index < len(masks) and masks[index] is not None:
            mask = np.asarray(masks[index]).astype(bool)
            grey = np.repeat(mask[:, :, np.newaxis].astype(np.uint8) * 255, 3, axis=2)
            _write_png(root / "masks" / split / name / file, grey)
    return root


def _write_png(path: Path, image: np.ndarray) -> None:
    """A PNG of 8-bit RGB, so that no imaging library is needed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    height, width, _ = image.shape
    rows = np.zeros((height, 1 + 3 * width), np.uint8)
    rows[:, 1:] = np.ascontiguousarray(image).reshape(height, 3 * width)

    def chunk(kind: bytes, data: bytes) -> bytes:
        check = zlib.crc32(kind + data)
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", check)

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    path.write_bytes(
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(rows.tobytes(), 3))
        + chunk(b"IEND", b"")
    )
