"""A run in memory: what comes out, what goes wrong, and the command beside it."""

import json
import pickle
import re
import shutil
import subprocess
import sys
import threading

import numpy as np
import pinpoint
import pytest


@pytest.fixture(scope="module")
def predictor(run):
    return pinpoint.load(run)


def test_a_prediction_has_everything_at_the_size_of_its_image(predictor, drawing):
    image = drawing[0][0]
    found = predictor.predict(image)
    assert found.mask.shape == found.scores.shape == image.shape[:2]
    assert found.mask.dtype == bool and found.scores.dtype == np.float32
    assert np.array_equal(found.mask, found.scores >= found.threshold)
    assert predictor.classes == ["disc", "square"]
    assert found.label in predictor.classes
    assert abs(found.probabilities.sum() - 1) < 1e-5
    assert found.probability == found.probabilities.max()
    for left, top, right, bottom in found.boxes:
        assert found.mask[top:bottom, left:right].any()
    overlay = found.overlay()
    assert overlay.shape == image.shape and overlay.dtype == np.uint8
    assert "foreground" in repr(found)


def test_every_kind_of_image_gives_the_same_prediction(predictor, drawing, tmp_path):
    pil = pytest.importorskip("PIL.Image")
    image = drawing[0][1]
    path = tmp_path / "image.png"
    pil.fromarray(image).save(path)
    expected = predictor.predict(image).scores
    backwards = np.asfortranarray(image)
    readonly = image.copy()
    readonly.setflags(write=False)
    strided = np.repeat(image, 2, axis=1)[:, ::2]
    alpha = np.dstack([image, np.zeros(image.shape[:2], np.uint8)])
    kinds = [path, str(path), pil.open(path), backwards, readonly, strided, alpha, image / 255.0]
    for found in predictor.predict(kinds):
        assert np.array_equal(found.scores, expected)


def test_the_command_predicts_the_same_bytes(run, predictor, drawing, tmp_path):
    pinpoint.write_dataset(tmp_path, drawing[0][:1], ["image"], split="in")
    path = tmp_path / "in" / "image" / "0.png"
    command = [sys.executable, "-m", "pinpoint", "predict", str(run), str(path), "--npy", "--json"]
    done = subprocess.run([*command, "--out", str(tmp_path / "out")], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    line = json.loads(done.stdout)
    found = predictor.predict(path)
    saved = np.load(next((tmp_path / "out").rglob("*.npy")))
    assert np.array_equal(saved.reshape(found.scores.shape), found.scores)
    assert line["class"] == found.label


def test_arrays_in_any_order_or_without_write_access_are_not_touched(predictor, drawing):
    image = drawing[0][2]
    expected = predictor.predict(image).scores
    for kind in (np.asfortranarray(image), image[::-1, ::-1][::-1, ::-1], image.copy()):
        kind.setflags(write=False)
        before = kind.copy()
        assert np.array_equal(predictor.predict(kind).scores, expected)
        assert np.array_equal(kind, before)


def test_a_closed_run_says_so_and_opens_again(run, drawing):
    with pinpoint.load(run) as predictor:
        expected = predictor.predict(drawing[0][0])
    for use in (
        lambda: predictor.predict(drawing[0][0]),
        lambda: predictor.classes,
        lambda: pickle.dumps(predictor),
    ):
        with pytest.raises(ValueError, match="is closed: open it again by `pinpoint.load`"):
            use()
    assert "closed" in repr(predictor)
    predictor.close()  # Twice is as good as once.
    # What was predicted does not need the run.
    again = pinpoint.load(run).predict(drawing[0][0])
    assert np.array_equal(expected.mask, again.mask)


def test_a_predictor_outlives_its_run_but_cannot_be_sent_elsewhere(run, drawing, tmp_path):
    moved = tmp_path / "run"
    shutil.copytree(run, moved)
    predictor = pinpoint.load(moved)
    sent = pickle.dumps(predictor)
    shutil.rmtree(moved)
    assert predictor.predict(drawing[0][0]).mask.shape == drawing[0][0].shape[:2]
    with pytest.raises(pinpoint.PinpointError, match=re.escape(str(moved))):
        pickle.loads(sent)


def test_a_run_of_a_newer_version_is_refused_with_both_versions(run, tmp_path):
    newer = tmp_path / "newer"
    shutil.copytree(run, newer)
    header = json.dumps({"__metadata__": {"pinpoint": json.dumps({"version": "99.1.0"})}}).encode()
    weights = newer / "weights" / "best.safetensors"
    weights.write_bytes(len(header).to_bytes(8, "little") + header)
    with pytest.raises(pinpoint.PinpointError) as raised:
        pinpoint.load(newer)
    for words in ("99.1.0", pinpoint.__version__, "newer"):
        assert words in str(raised.value)


def test_a_closed_run_finishes_what_other_threads_have_begun(run, drawing):
    images = drawing[0][:4] * 3
    expected = [found.mask for found in pinpoint.load(run).predict(images)]
    predictor = pinpoint.load(run)
    native, begun = predictor._native, threading.Event()
    options = {"crf": None, "threshold": "0.5", "class_name": None, "tile": None}
    found = []

    def work():
        for image in images:
            found.append(native.predict_array(image, options).mask)
            begun.set()

    thread = threading.Thread(target=work)
    thread.start()
    begun.wait()
    predictor.close()
    thread.join()
    assert all(map(np.array_equal, found, expected)) and len(found) == len(images)


def test_threads_share_a_predictor_and_pickling_keeps_its_path(predictor, drawing):
    images = drawing[0][:6]
    expected = [predictor.predict(image).scores for image in images]
    found = [None] * len(images)

    def work(index):
        found[index] = predictor.predict(images[index]).scores

    threads = [threading.Thread(target=work, args=(index,)) for index in range(len(images))]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    again = pickle.loads(pickle.dumps(predictor))
    for index, scores in enumerate(expected):
        assert np.array_equal(found[index], scores)
        assert np.array_equal(again.predict(images[index]).scores, scores)


@pytest.mark.parametrize(
    ("image", "kind", "words"),
    [
        (np.zeros((4, 4, 2), np.uint8), TypeError, "(4, 4, 2)"),
        (np.zeros((4,), np.uint8), TypeError, "(4,)"),
        (np.zeros((0, 5, 3), np.uint8), ValueError, "no pixels"),
        (np.zeros((0, 0), np.uint8), ValueError, "no pixels"),
        (np.zeros((2, 4, 4, 3), np.uint8), TypeError, "(2, 4, 4, 3)"),
        (np.zeros((4, 4, 3), np.int64), TypeError, "int64"),
        (np.zeros((4, 4, 3), complex), TypeError, "complex128"),
        (np.array([["a", "b"]]), TypeError, "<U1"),
        (np.array([[None, None]]), TypeError, "object"),
        (None, TypeError, "()"),
        (np.full((4, 4), 7.0), ValueError, "[0, 1]"),
        (np.full((4, 4), np.nan), ValueError, "[0, 1]"),
        ("no/such/file.png", pinpoint.PinpointError, "no/such/file.png"),
    ],
)
def test_what_is_no_image_is_said_in_one_sentence(predictor, image, kind, words):
    with pytest.raises(kind) as raised:
        predictor.predict(image)
    assert words in str(raised.value)


def test_options_are_checked(predictor, drawing):
    image = drawing[0][0]
    for options in ({"crf": "oil"}, {"threshold": "valid"}, {"threshold": "high"}, {"tile": 3}, {"class_name": "cat"}):
        with pytest.raises(ValueError):
            predictor.predict(image, **options)
    half, tenth = predictor.predict(image), predictor.predict(image, threshold="percentile:90")
    assert tenth.mask.mean() <= 0.12 and half.threshold == 0.5
    assert predictor.predict(image, crf="natural").scores.shape == image.shape[:2]


def test_what_is_no_run_is_refused(tmp_path):
    with pytest.raises(pinpoint.PinpointError) as raised:
        pinpoint.load(tmp_path)
    assert str(tmp_path) in str(raised.value)
