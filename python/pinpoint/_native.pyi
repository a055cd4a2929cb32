import os
from typing import Any, Callable, Dict, List, Optional, Tuple

import numpy as np
from numpy.typing import NDArray

__version__: str

class PinpointError(Exception): ...

class Prediction:
    """Class, scores and mask of one image, at the image's own size."""

    @property
    def mask(self) -> NDArray[np.bool_]:
        """Which pixels are foreground, ``height × width``."""
    @property
    def scores(self) -> NDArray[np.float32]:
        """How much each pixel is foreground, in ``[0, 1]``, ``height × width``."""
    @property
    def label(self) -> Optional[str]:
        """The most probable class; none for a method that does not classify."""
    @property
    def probability(self) -> Optional[float]:
        """Its probability."""
    @property
    def probabilities(self) -> Optional[NDArray[np.float32]]:
        """The probability of each of ``classes``."""
    @property
    def classes(self) -> List[str]: ...
    @property
    def threshold(self) -> float:
        """Where the scores were cut."""
    @property
    def boxes(self) -> List[Tuple[int, int, int, int]]:
        """Left, top, right and bottom of each region, the largest first; right and bottom are
        the first column and row beyond it."""
    def overlay(self) -> NDArray[np.uint8]:
        """The image with its mask coloured, ``height × width × 3``."""
    def save_mask(self, path: str) -> None:
        """Writes the mask as a grey PNG, 255 is foreground; the file appears whole or not at all."""

class Predictor:
    run: os.PathLike[str]
    device: str
    classes: List[str]
    method: str
    def __init__(self, run: str, device: str) -> None: ...
    def predict_array(self, image: NDArray[np.uint8], options: Dict[str, Any]) -> Prediction: ...
    def predict_file(self, path: str, options: Dict[str, Any]) -> Prediction: ...

def train(wanted: Dict[str, Any], progress: Optional[Callable[[Dict[str, Any]], None]]) -> str: ...
def wanted_features(wanted: Dict[str, Any]) -> Tuple[List[Tuple[str, str]], int]:
    """Names and paths of the images whose features a training needs, and how many cells of each."""

class FeatureMaker:
    """The backbone of a training to come, which makes features shard by shard."""
    def __init__(self, wanted: Dict[str, Any], cells: int) -> None: ...
    def make(
        self, folder: str, number: int, images: List[Tuple[str, str]]
    ) -> Tuple[int, int, List[Tuple[str, str]]]: ...

def evaluate(wanted: Dict[str, Any]) -> str: ...
def crf(
    image: NDArray[np.uint8], probabilities: NDArray[np.float32], settings: Dict[str, Any]
) -> NDArray[np.float32]: ...
def crf_labels(
    image: NDArray[np.uint8], probabilities: NDArray[np.float32], settings: Dict[str, Any]
) -> NDArray[np.float32]: ...
def score_maps(
    maps: List[NDArray[np.float32]],
    masks: List[NDArray[np.bool_]],
    classes: List[str],
    labels: List[int],
    predicted: List[int],
    threshold: str,
) -> str: ...
