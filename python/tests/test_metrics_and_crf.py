"""Scores and the CRF for anybody's maps."""

import numpy as np
import pinpoint
import pytest


def test_scores_are_those_computed_by_hand():
    truth = np.zeros((4, 4), bool)
    truth[:2] = True
    scores = np.zeros((4, 4))
    scores[:1] = 1.0  # Half of the foreground is found, and nothing else.
    found = pinpoint.metrics.score([scores], [truth])
    assert found["f1_foreground"] == pytest.approx(100 * 2 * 4 / (4 + 8))
    assert found["f1_background"] == pytest.approx(100 * 2 * 8 / (12 + 8))
    assert pinpoint.metrics.f1([scores], [truth]) == (found["f1_foreground"], found["f1_background"])
    assert pinpoint.metrics.pxap([truth], [truth]) == 100
    assert pinpoint.metrics.max_box_acc([truth], [truth], version=2) == 100


def test_classes_count_where_they_are_given():
    truth = np.eye(4, dtype=bool)
    found = pinpoint.metrics.evaluation(
        [truth] * 4, [truth] * 4, labels=["a", "a", "b", "b"], predicted=["a", "b", "b", "b"]
    )
    assert found.scores["classification_error"] == 25
    pandas = pytest.importorskip("pandas")
    frame = found.images
    assert isinstance(frame, pandas.DataFrame) and len(frame) == 4


def test_maps_that_cannot_be_scored_are_named():
    truth = np.zeros((4, 4), bool)
    with pytest.raises(pinpoint.PinpointError, match="map 1"):
        pinpoint.metrics.score([truth, np.zeros((3, 4))], [truth, truth])
    with pytest.raises(pinpoint.PinpointError, match=r"\[0, 1\]"):
        pinpoint.metrics.score([np.full((4, 4), 2.0)], [truth])
    with pytest.raises(ValueError, match="2 maps and 1 masks"):
        pinpoint.metrics.score([truth, truth], [truth])


def test_two_labels_are_refined_as_one_mask_is():
    random = np.random.default_rng(3)
    image = random.integers(0, 255, (12, 16, 3)).astype(np.uint8)
    mask = random.uniform(0.05, 0.95, (12, 16)).astype(np.float32)
    one = pinpoint.crf(image, mask, preset="glas")
    both = pinpoint.crf(image, np.stack([mask, 1 - mask]), preset="glas")
    assert np.allclose(both[0], one, atol=1e-5) and np.allclose(both.sum(0), 1, atol=1e-5)
    assert np.array_equal(pinpoint.crf(image, mask, iterations=0), mask)


def test_the_crf_says_what_it_cannot_use():
    image = np.zeros((4, 4, 3), np.uint8)
    with pytest.raises(ValueError, match="4×4"):
        pinpoint.crf(image, np.zeros((3, 4)))
    with pytest.raises(ValueError, match="natural"):
        pinpoint.crf(image, np.zeros((4, 4)), preset="oil")
    with pytest.raises(TypeError, match="height × width"):
        pinpoint.crf(image, np.zeros(4))
    with pytest.raises(pinpoint.PinpointError):
        pinpoint.crf(image, np.full((4, 4), np.nan))
