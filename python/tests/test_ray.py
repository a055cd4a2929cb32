"""Prediction on a local Ray: the same answers, killed and resumed, bad images put aside."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pinpoint
import pytest
from conftest import drawn

ray = pytest.importorskip("ray")


@pytest.fixture(scope="module", autouse=True)
def cluster():
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    yield
    ray.shutdown()


@pytest.fixture()
def photos(tmp_path):
    images, labels, _ = drawn(count=10, seed=5)
    pinpoint.write_dataset(tmp_path / "in", images, labels, split="photos")
    (tmp_path / "in" / "photos" / "disc" / "broken.png").write_bytes(b"no image")
    return tmp_path / "in" / "photos"


def test_every_image_is_predicted_as_alone_and_a_bad_one_stops_nobody(run, photos, tmp_path):
    from pinpoint.ray import predict

    out = tmp_path / "out"
    summary = predict(photos, run, out, concurrency=2, save_scores=True)
    assert (summary.done, summary.skipped) == (10, 0)
    [(path, error)] = summary.failed
    assert path.endswith("broken.png") and "not an image" in error
    predictor = pinpoint.load(run)
    for image in sorted(photos.rglob("[0-9]*.png")):
        name = image.relative_to(photos)
        scores = np.load(out / f"{name}.npy")
        assert np.array_equal(scores, predictor.predict(image).scores)
        facts = json.loads((out / f"{name}.json").read_text())
        assert facts["class"] in predictor.classes

    again = predict(photos, run, out, concurrency=2, save_scores=True)
    assert (again.done, again.skipped, len(again.failed)) == (0, 10, 1)
    # Other settings are other predictions.
    other = predict(photos, run, out, concurrency=1, threshold=0.7)
    assert (other.done, other.skipped) == (10, 0)


def test_a_job_that_was_killed_goes_on_where_it_was(run, photos, tmp_path):
    from pinpoint.ray import predict

    out = tmp_path / "out"
    script = textwrap.dedent(
        f"""
        import ray
        from pinpoint.ray import predict
        ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False)
        predict({str(photos)!r}, {str(run)!r}, {str(out)!r}, concurrency=1)
        """
    )
    environment = {key: value for key, value in os.environ.items() if key != "RAY_ADDRESS"}
    job = subprocess.Popen([sys.executable, "-c", script], env=environment, start_new_session=True,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 300
    while not list(out.rglob("*.json")) and job.poll() is None and time.monotonic() < deadline:
        time.sleep(0.05)
    if job.poll() is None:
        os.killpg(job.pid, signal.SIGKILL)
        job.wait()
    before = len(list(out.rglob("*.json")))
    assert before > 0
    summary = predict(photos, run, out, concurrency=2)
    assert summary.done + summary.skipped == 10 and summary.skipped >= 1
    assert not [file for file in out.rglob("*.json") if "made_by" not in file.read_text()]


def test_what_cannot_be_predicted_at_all_is_refused(run, tmp_path):
    from pinpoint.ray import predict

    with pytest.raises(ValueError, match="no image"):
        predict([], run, tmp_path / "out")
    with pytest.raises(ValueError, match="more than once"):
        predict(["a.png", "a.png"], run, tmp_path / "out")
    with pytest.raises(ValueError, match="column `path`"):
        predict(ray.data.from_items([{"file": "a.png"}]), run, tmp_path / "out")
