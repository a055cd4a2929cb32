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


def test_maps_of_any_number_type_and_order_are_scored_alike():
    truth = np.zeros((4, 6), bool)
    truth[1:3, 2:5] = True
    scores = np.linspace(0, 1, 24).reshape(4, 6)
    expected = pinpoint.metrics.score([scores], [truth])
    readonly = scores.copy()
    readonly.setflags(write=False)
    for kind in (readonly, np.asfortranarray(scores), np.repeat(scores, 2, 1)[:, ::2], scores.tolist()):
        assert pinpoint.metrics.score([kind], [np.asfortranarray(truth)]) == expected


def test_maps_of_other_kinds_are_refused_by_number():
    truth = np.zeros((4, 4), bool)
    with pytest.raises(TypeError, match="map 1"):
        pinpoint.metrics.score([truth, np.zeros(4)], [truth, truth])
    with pytest.raises(TypeError, match="mask 0"):
        pinpoint.metrics.score([truth], [np.zeros((4, 4, 1), bool)])
    for empty in (np.zeros((0, 4)), np.zeros((4, 0))):
        with pytest.raises((ValueError, pinpoint.PinpointError)):
            pinpoint.metrics.score([empty], [empty.astype(bool)])
    with pytest.raises(ValueError, match="no maps"):
        pinpoint.metrics.score([], [])


def test_the_crf_takes_arrays_in_any_order_and_leaves_them_alone():
    random = np.random.default_rng(5)
    image = random.integers(0, 255, (10, 14, 3)).astype(np.uint8)
    mask = random.uniform(0.05, 0.95, (10, 14)).astype(np.float32)
    expected = pinpoint.crf(image, mask)
    frozen_image, frozen_mask = image.copy(), mask.copy()
    for frozen in (frozen_image, frozen_mask):
        frozen.setflags(write=False)
    assert np.array_equal(pinpoint.crf(frozen_image, frozen_mask), expected)
    assert np.array_equal(pinpoint.crf(np.asfortranarray(image), np.asfortranarray(mask)), expected)
    wide = pinpoint.crf(image, mask.astype(np.float64))
    assert wide.dtype == np.float32 and np.array_equal(wide, expected)
    assert np.array_equal(frozen_mask, mask)


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
    with pytest.raises((ValueError, pinpoint.PinpointError), match="0"):
        pinpoint.crf(image, np.zeros((0, 4, 4)))
    with pytest.raises(ValueError, match="no pixels"):
        pinpoint.crf(np.zeros((0, 4, 3), np.uint8), np.zeros((0, 4)))
    with pytest.raises((TypeError, ValueError)):
        pinpoint.crf(image, np.full((4, 4), "much"))
