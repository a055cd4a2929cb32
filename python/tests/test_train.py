"""Training and evaluation, beside the command and through scikit-learn's conventions."""

import json
import subprocess
import sys

import numpy as np
import pinpoint
import pytest
from conftest import PROBE, SMALL, drawn


def command(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "pinpoint", *map(str, arguments)], capture_output=True, text=True
    )


def test_a_run_has_the_bytes_that_the_command_writes(data, run, tmp_path):
    settings = [word for key, value in SMALL.items() for word in ("--set", f"{key}={json.dumps(value)}")]
    done = command("train", "--method", "minmax", "--data", data, "--out", tmp_path / "run", *settings)
    assert done.returncode == 0, done.stderr
    name = "weights/best.safetensors"
    assert (run / name).read_bytes() == (tmp_path / "run" / name).read_bytes()


def test_an_evaluation_is_the_command_s(data, run):
    found = pinpoint.evaluate(run, data)
    done = command("evaluate", run, "--data", data, "--json", "--no-report")
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    for name in ("f1_foreground", "f1_background", "classification_error"):
        assert found[name] == pytest.approx(said[name], abs=1e-9)
    assert len(found.images) == 6 and len(found.classes) == 2
    assert "f1_foreground" in repr(found)
    trivial = pinpoint.evaluate(data=data, method="all-ones")
    assert trivial["f1_background"] == 0 and trivial["classification_error"] is None


def test_progress_is_told_and_an_exception_in_it_leaves_a_run_to_resume(data, run, tmp_path):
    class Enough(Exception):
        pass

    events = []

    def stop(event):
        events.append(event)
        if event["kind"] == "epoch":
            raise Enough

    out = tmp_path / "run"
    with pytest.raises(Enough):
        pinpoint.train(data, out, method="minmax", progress=stop, **SMALL)
    assert {"started", "step", "epoch"} <= {event["kind"] for event in events}
    again = pinpoint.train(None, out, resume=True)
    name = "weights/best.safetensors"
    assert (again / name).read_bytes() == (run / name).read_bytes()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"train.epochs": 0}, "train.epochs"),
        ({"train__epocs": 3}, "epocs"),
        ({"train.epochs": "many"}, "many"),
        ({"seed.more": 1}, "seed.more"),
    ],
)
def test_settings_that_do_not_exist_or_fit_are_named(data, tmp_path, settings, words):
    with pytest.raises(pinpoint.PinpointError) as raised:
        pinpoint.train(data, tmp_path / "run", method="minmax", **settings)
    assert words in str(raised.value)
    assert not (tmp_path / "run").exists()


def test_what_cannot_be_trained_says_why(data, tmp_path):
    with pytest.raises(pinpoint.PinpointError, match="no-such-data"):
        pinpoint.train("no-such-data", tmp_path / "run")
    with pytest.raises(ValueError, match="`data` is missing"):
        pinpoint.train(None, tmp_path / "run")
    with pytest.raises(pinpoint.PinpointError, match="cam-median"):
        pinpoint.train(data, tmp_path / "run", method="cam-median")
    with pytest.raises(ValueError, match="2 images and 1 labels"):
        pinpoint.write_dataset(tmp_path, np.zeros((2, 4, 4)), ["cat"])
    with pytest.raises(ValueError, match="name of a folder"):
        pinpoint.write_dataset(tmp_path, np.zeros((1, 4, 4)), ["../cat"])


def test_without_ray_the_message_says_how_to_get_it_and_what_to_use_instead(data, run, tmp_path, monkeypatch):
    import pinpoint.ray

    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ImportError, match=r"pip install 'ray\[data\]'.*`pinpoint predict`"):
        pinpoint.ray.predict([], run, tmp_path / "out")
    with pytest.raises(ImportError, match=r"pip install 'ray\[data\]'"):
        pinpoint.ray.train(data, tmp_path / "run", **PROBE)
    assert not (tmp_path / "run").exists()


def test_the_command_of_the_wheel_refuses_to_be_one_of_several_processes(data, tmp_path, monkeypatch):
    # Open MPI tells every process how many it has started.
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "2")
    done = command("train", "--method", "cam-avg", "--data", data, "--out", tmp_path / "run")
    assert done.returncode == 2 and "built without MPI" in done.stderr, done.stderr
    assert "docs/scale.md" in done.stderr and not (tmp_path / "run").exists()


def test_the_estimator_keeps_scikit_learn_s_conventions(drawing):
    sklearn = pytest.importorskip("sklearn.base")
    images, labels, _ = drawing
    numbers = [0 if label == "disc" else 1 for label in labels]
    estimator = pinpoint.PointwiseLocalizer(method="minmax", settings=SMALL, seed=3)
    assert sklearn.clone(estimator).get_params() == estimator.get_params()
    assert estimator.fit(images, numbers) is estimator
    assert estimator.classes_.tolist() == [0, 1]
    probabilities = estimator.predict_proba(images[:3])
    assert probabilities.shape == (3, 2) and np.allclose(probabilities.sum(1), 1, atol=1e-5)
    assert set(estimator.predict(images).tolist()) <= {0, 1}
    assert 0 <= estimator.score(images, numbers) <= 1
    assert estimator.predict_masks(images[:1])[0].shape == images[0].shape[:2]
    with pytest.raises(ValueError, match="two classes"):
        estimator.fit(images[:2], [0, 0])
    with pytest.raises(ValueError, match="learning"):
        estimator.set_params(learning=1)
