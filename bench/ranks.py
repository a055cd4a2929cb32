"""What a step of training costs on so many ranks and threads, side by side in one run.

    cargo build --release --features mpi
    python bench/ranks.py target/release/pinpoint [--repeat 3] [--method minmax]

A ResNet-18 is trained on drawn images from drawn weights, since only time is measured. Every row has
the same global batches; rows take turns, and the median of all repeats is shown with the extremes.
The first epoch is left out: it maps memory for the first time.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import tempfile

#: Name, ranks (none without MPI) and threads of each.
ROWS = [
    ("1 process, 1 thread", None, 1),
    ("1 process, 2 threads", None, 2),
    ("1 rank, 2 threads", 1, 2),
    ("2 ranks, 1 thread each", 2, 1),
    ("3 ranks, 1 thread each", 3, 1),
]
#: Containers forbid one process to read another's memory, which is only a shortcut.
MPIRUN = ["mpirun", "--oversubscribe", "--allow-run-as-root", "--bind-to", "none"]
MPIRUN += ["--mca", "btl_vader_single_copy_mechanism", "none"]


def seconds_per_step(command, data, out, ranks, threads, arguments):
    settings = {
        "model.backbone": "resnet18",
        "preprocess.crop": arguments.crop,
        "train.batch_size": arguments.batch,
        "train.epochs": 2,
        "erase.rounds": 1,
        "data.valid_fraction": 0,
    }
    train = [command, "train", "--method", arguments.method, "--data", data, "--out", out]
    train += ["--threads", str(threads)]
    for key, value in settings.items():
        train += ["--set", f"{key}={value}"]
    if ranks is not None:
        train = [*MPIRUN, "-n", str(ranks), *train]
    done = subprocess.run(train, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    lines = pathlib.Path(out, "metrics.jsonl").read_text().splitlines()
    return json.loads(lines[-1])["seconds"] / arguments.steps


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("command")
    parser.add_argument("--method", default="minmax")
    parser.add_argument("--batch", type=int, default=12)
    parser.add_argument("--crop", type=int, default=128)
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--repeat", type=int, default=3)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        data = f"{folder}/data"
        sizes = {"train": arguments.batch * arguments.steps, "valid": 0, "test": 1}
        sizes |= {"size": arguments.crop, "classes": 2}
        flags = [word for key, value in sizes.items() for word in (f"--{key}", str(value))]
        draw = [arguments.command, "data", "synth", data, *flags]
        subprocess.run(draw, check=True, capture_output=True)
        found = {name: [] for name, *_ in ROWS}
        for turn in range(arguments.repeat):
            for name, ranks, threads in ROWS:
                out = f"{folder}/{name}-{turn}"
                row = (data, out, ranks, threads)
                found[name].append(seconds_per_step(arguments.command, *row, arguments))
    base = statistics.median(found[ROWS[0][0]])
    print(f"{'':24}{'s per step':>12}{'from':>8}{'to':>8}{'times faster':>14}")
    for name, seconds in found.items():
        middle = statistics.median(seconds)
        print(f"{name:24}{middle:12.2f}{min(seconds):8.2f}{max(seconds):8.2f}{base / middle:14.2f}")


if __name__ == "__main__":
    main()
