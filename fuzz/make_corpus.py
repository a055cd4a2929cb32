"""Writes `corpus/`: for each fuzz target, small files that are read without complaint.

    python3 fuzz/make_corpus.py

Files of the tests are copied, the rest is made here, with the standard library alone; but for
reports, which are those of `target/release/pinpoint` about a tiny dataset.
"""

import hashlib
import json
import shutil
import struct
import subprocess
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
FIXTURES = HERE.parent / "tests/it/fixtures"
CORPUS = HERE / "corpus"


def seed(target, name, content):
    folder = CORPUS / target
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())


def copy(target, *names):
    for name in names:
        seed(target, Path(name).name, (FIXTURES / name).read_bytes())


def lists(target, *parts, name="lists.txt"):
    """Several files in one, as `entry_points.rs` takes them apart."""
    seed(target, name, "\n\x0c\n".join(parts))


def reports():
    """Reports of a trivial answer and of a probe, with the first entries of their long lists."""
    with tempfile.TemporaryDirectory() as folder:
        def pinpoint(*arguments):
            command = HERE.parent / "target/release/pinpoint"
            subprocess.run([command, *arguments], cwd=folder, check=True, capture_output=True)

        def short(value):
            if isinstance(value, dict):
                return {key: short(part) for key, part in value.items()}
            return [short(part) for part in value[:4]] if isinstance(value, list) else value

        draw = "--classes 2 --train 4 --valid 0 --test 2 --size 32"
        pinpoint("data", "synth", "data", *draw.split())
        pinpoint("train", "--data", "data", "--out", "run", "--set", "model.backbone=tiny")
        pinpoint("evaluate", "run", "--report", "probe")
        pinpoint("evaluate", "--method", "all-ones", "--data", "data", "--report", "all-ones")
        for name in ["probe", "all-ones"]:
            text = (Path(folder) / name / "report.json").read_text()
            report = short(json.loads(text.replace(folder, "")))
            seed("report", name + ".json", json.dumps(report))


def npy(descr, shape, data):
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}"
    header += " " * (-(10 + len(header) + 1) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data


def safetensors(tensors, metadata=None):
    header, data = {}, b""
    if metadata is not None:
        header["__metadata__"] = {"pinpoint": metadata}
    for name, (shape, values) in tensors.items():
        raw = struct.pack(f"<{len(values)}f", *values)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + data


def checkpoint(sealed):
    tensors = {"bn1.weight": ([2], [1.0, 1.0]), "optimizer.first.bn1.weight": ([2], [0.5, 0.25])}
    terms = {"localizer": 0.5, "foreground": None, "background": None}
    note = {
        "dataset": 7, "epoch": 0, "step": 2, "updates": 2, "best": None, "records": [],
        "sums": {"images": 8, "looks": 8, "mistakes": 1.0, "terms": terms, "seconds": 1.5},
    }
    text = json.dumps(note, separators=(",", ":"), sort_keys=True)
    if not sealed:
        return safetensors(tensors, text)
    sums = {
        name: hashlib.sha256(struct.pack(f"<{len(values)}f", *values)).hexdigest()
        for name, (_, values) in tensors.items()
    }
    lines = [text] + [
        f'"{name}" F32 {shape} {sums[name]}' for name, (shape, _) in sorted(tensors.items())
    ]
    whole = hashlib.sha256("\n".join(lines).encode()).hexdigest()
    seal = {"note": note, "sha256": {"whole": whole, "tensors": sums}}
    return safetensors(tensors, json.dumps(seal, separators=(",", ":"), sort_keys=True))


def main():
    shutil.rmtree(CORPUS, ignore_errors=True)
    pictures = [
        "images/cmyk.jpg", "images/cmyk.tif", "images/palette-2bit.png", "images/palette-8bit.png",
        "images/palette.bmp", "images/square-lossy.webp", "images/square-of-ones-lossless.webp",
        "images/ycck.jpg",
    ]
    copy("image", *pictures)
    copy("mask", *pictures)
    copy("mat", *(str(path.relative_to(FIXTURES)) for path in sorted(FIXTURES.glob("mat/*.mat"))))
    seed("npy", "f4.npy", npy("<f4", (1, 2), struct.pack("<2f", 0.5, 1.0)))
    seed("npy", "u1.npy", npy("|u1", (2, 2, 1), bytes([0, 1, 2, 255])))
    seed("npy", "f2-big-endian.npy", npy(">f2", (1, 1), b"\x38\x00"))
    seed("list", "table.csv", "image,label,mask,split\na.png,cat,a_mask.png,train\nb.png,dog,,test\n")
    seed("list", "semicolons.csv", 'path;class\n"a ""b"".png";x\nc.png;y\n')
    image = {"id": 1, "file_name": "a.png", "width": 3, "height": 2}
    cat = {"id": 1, "image_id": 1, "category_id": 7, "bbox": [0, 0, 2, 1]}
    for name, outline in {
        "polygons": [[0, 0, 2, 0, 2, 1, 0, 1], [1, 1, 3, 1, 3, 2]],
        "runs": {"size": [2, 3], "counts": [1, 3, 2]},
        "compressed": {"size": [2, 3], "counts": "132"},
    }.items():
        crowd = {**cat, "id": 2, "iscrowd": 1, "segmentation": {"size": [2, 3], "counts": [5, 1]}}
        annotations = [{**cat, "segmentation": outline}, crowd]
        instances = {"images": [image], "annotations": annotations, "categories": [{"id": 7, "name": "cat"}]}
        seed("coco", name + ".json", json.dumps(instances))
    lists("pets", "#Image CLASS-ID SPECIES BREED\nA_cat_1 2 1 1\n", "dog_2 1 2 1\n")
    lists("voc", "1  1\n2 -1\n3  0\n", "1 -1\n2  1\n", "2  1\n")
    lists(
        "cub", "1 1.A/a.png\n20 2.B/b.png\n", "1 1\n20 2\n", "1 1\n20 0\n", "1 1.A\n2 2.B\n",
        "1 0.0 0.0 2.0 1.0\n20 1.5 1 1.5 1\n",
    )
    seed("glas", "Grade.csv", "name,patient ID, grade (GlaS)\ntrain_1,4, benign\ntestA_1,5, malignant\n")
    ids, labels = "b.png\n", "a.png,0\nb.png,1\n"
    lists("wsol", "a.png\n", labels, ids, labels, "b.png,0,0,2,1\nb.png,1,1,3,2\n", name="boxes.txt")
    lists("wsol", "a.png\n", labels, ids, labels, "b.png,mask.png,ignore.png\n", name="masks.txt")
    seed("folds", "rows.csv", "a.png,a_mask.png,benign\n|b, c.png|,,malignant\n")
    seed("folds", "encoding.yaml", "{benign: 0,\n  malignant: 1}\n")
    seed("folds", "block.yaml", "benign: 0\nmalignant: 1\n")
    lists("folds", "a.png,a_mask.png,x\n", "", "a.png,,x\n", "{x: 0}\n", name="fold.txt")
    for path in sorted((HERE.parent / "configs").glob("*.toml"))[:3]:
        seed("settings", path.name, path.read_bytes())
    seed("settings", "methods.toml", "seed = 3\n[pool]\ntop = 0.3\n[methods.minmax]\nerase.rounds = 0\n")
    copy("safetensors", "weights/f32.safetensors", "weights/f16.safetensors", "weights/bf16.safetensors")
    copy("pth", "weights/zip.pth", "weights/legacy.pth", "weights/nested.pth", "weights/hostile.pth")
    seed("run_state", "sealed.safetensors", checkpoint(sealed=True))
    seed("run_state", "of-old.safetensors", checkpoint(sealed=False))
    images = {"files": 2, "bytes": 9, "every_byte": False, "sha256": "00"}
    reports()
    seed("run_state", "inputs.json", json.dumps({"weights": None, "images": images}))


main()
