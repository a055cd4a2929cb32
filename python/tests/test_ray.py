"""A local Ray: the same answers and bytes, killed and resumed, bad images put aside."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pinpoint
import pytest
from conftest import PROBE, drawn

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


def killed_after(work, pattern, folder):
    """Starts work on a Ray of its own, and kills all of it once there is such a file."""
    script = textwrap.dedent(
        f"""
        import pinpoint.ray, ray
        ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False)
        pinpoint.ray.{work}
        """
    )
    environment = {key: value for key, value in os.environ.items() if key != "RAY_ADDRESS"}
    job = subprocess.Popen([sys.executable, "-c", script], env=environment, start_new_session=True,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 300
    while not list(folder.rglob(pattern)) and job.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    if job.poll() is None:
        os.killpg(job.pid, signal.SIGKILL)
        job.wait()
    assert list(folder.rglob(pattern)), "the job ended before anything was done"


def test_a_job_that_was_killed_goes_on_where_it_was(run, photos, tmp_path):
    from pinpoint.ray import predict

    out = tmp_path / "out"
    work = f"predict({str(photos)!r}, {str(run)!r}, {str(out)!r}, concurrency=1)"
    killed_after(work, "*.json", out)
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


def test_the_recipes_for_kubernetes_are_valid_yaml_of_their_kinds():
    # Ray brings it.
    import yaml

    page = (Path(__file__).parents[2] / "docs" / "scale.md").read_text()
    recipes = [yaml.safe_load(block.split("```")[0]) for block in page.split("```yaml\n")[1:]]
    kinds = {recipe["kind"]: recipe for recipe in recipes}
    assert {kind: recipe["apiVersion"] for kind, recipe in kinds.items()} == {
        "RayJob": "ray.io/v1",
        "MPIJob": "kubeflow.org/v2beta1",
    }
    ray_cluster = kinds["RayJob"]["spec"]["rayClusterSpec"]
    pods = [ray_cluster["headGroupSpec"], *ray_cluster["workerGroupSpecs"]]
    pods += kinds["MPIJob"]["spec"]["mpiReplicaSpecs"].values()
    for pod in pods:
        spec = pod["template"]["spec"]
        [container], [volume] = spec["containers"], spec["volumes"]
        assert container["volumeMounts"] == [{"name": volume["name"], "mountPath": "/shared"}]


@pytest.fixture()
def many(tmp_path):
    """More images than one file of features holds."""
    images, labels, _ = drawn(count=80, seed=9)
    pinpoint.write_dataset(tmp_path / "many", images, labels, split="train")
    return tmp_path / "many"


def weights(run):
    return [(run / "weights" / name).read_bytes() for name in ("best.safetensors", "last.safetensors")]


def test_a_probe_trained_on_ray_has_the_bytes_of_a_plain_one_even_if_killed(many, tmp_path):
    from pinpoint.ray import train

    plain = weights(pinpoint.train(many, tmp_path / "plain", **PROBE))
    features = tmp_path / "features"
    work = f"train({str(many)!r}, {str(tmp_path / 'never')!r}, features={str(features)!r}, **{PROBE!r})"
    killed_after(work, "*.features.safetensors", features)
    parts = {path: path.stat().st_mtime_ns for path in features.glob("*.features.safetensors")}
    events = []
    run = train(many, tmp_path / "run", features=features, concurrency=2, progress=events.append, **PROBE)
    assert weights(run) == plain
    assert {event.get("what") for event in events} >= {"reading features", "training heads"}
    assert len(list(features.glob("*.features.safetensors"))) == 3
    assert all(path.stat().st_mtime_ns == time for path, time in parts.items()), "made twice"
    assert not list(features.glob(".*"))

    # Features do not depend on heads, and a run that is stopped goes on with them.
    class Enough(Exception):
        pass

    def stop(event):
        if event.get("what") == "training heads":
            raise Enough

    with pytest.raises(Enough):
        train(many, tmp_path / "stopped", features=features, progress=stop, **PROBE)
    assert weights(train(None, tmp_path / "stopped", features=features, resume=True)) == plain


def test_a_training_image_that_cannot_be_used_is_named_and_the_others_are_kept(many, tmp_path):
    from pinpoint.ray import train

    image = sorted((many / "train" / "disc").iterdir())[3]
    content = image.read_bytes()
    image.write_bytes(b"no image")
    with pytest.raises(pinpoint.PinpointError) as raised:
        train(many, tmp_path / "run", concurrency=2, **PROBE)
    assert "1 of 80 training images" in str(raised.value) and str(image) in str(raised.value)
    assert not (tmp_path / "run").exists()
    features = tmp_path / "run-features"
    before = {path: path.stat().st_mtime_ns for path in features.iterdir()}
    image.write_bytes(content)
    run = train(many, tmp_path / "run", concurrency=2, **PROBE)
    again = [path for path, time in before.items() if path.stat().st_mtime_ns != time]
    assert len(before) == 3 and len(again) == 1, "only what lacked an image is made again"
    assert weights(run) == weights(pinpoint.train(many, tmp_path / "plain", **PROBE))


def test_what_cannot_be_trained_is_refused_before_anything_is_computed(many, run, tmp_path):
    from pinpoint.ray import train

    with pytest.raises(pinpoint.PinpointError, match="there is a run here already"):
        train(many, run, **PROBE)
    with pytest.raises(pinpoint.PinpointError, match="studnts"):
        train(many, tmp_path / "run", **{"probe.studnts": 3})
    with pytest.raises(ValueError, match="`data` is missing"):
        train(None, tmp_path / "run")
    assert not (tmp_path / "run").exists() and not (tmp_path / "run-features").exists()
