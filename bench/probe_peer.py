"""The training of a probe: PyTorch and pinpoint on the same images, alternately, in one run.

    cargo build --release
    python bench/probe_peer.py target/release/pinpoint [--images 64] [--size 775x522] [--repeat 3]

The peer below is the same work written for PyTorch, scikit-learn and SciPy, as an experiment would
be: features of a frozen ResNet-18 once per image, PCA, three mask heads and three held-out heads,
maps sharpened and cut, two generations of two students, and a logistic regression chosen by
cross-validation. Images are drawn, since only time is measured. Every measurement is a process of its own,
so that peak memory is its own too; times are the best of all repeats, ratios are PyTorch's over
pinpoint's.
"""

import argparse
import json
import os
import pathlib
import re
import resource
import subprocess
import sys
import tempfile
import time

STAGES, DIMENSIONS, SIGMA = (2, 3), 64, 1.5


def peer(folder, weights):
    """Trains a probe on the class folders of `folder/train`."""
    import numpy as np
    import torch
    import torch.nn.functional as F
    import torchvision
    from PIL import Image
    from scipy.ndimage import gaussian_filter
    from scipy.stats import skew
    from sklearn.decomposition import PCA
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import cross_val_score
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from torch import nn

    started = time.perf_counter()
    network = torchvision.models.resnet18()
    network.load_state_dict(torch.load(weights), strict=False)
    network = network.eval().to(memory_format=torch.channels_last)
    mean = torch.tensor([0.485, 0.456, 0.406])[:, None, None]
    std = torch.tensor([0.229, 0.224, 0.225])[:, None, None]
    files = sorted(pathlib.Path(folder, "train").glob("*/*.png"))
    names = sorted({file.parent.name for file in files})
    labels = np.array([names.index(file.parent.name) for file in files])
    cells, grids, descriptors = [], [], []
    for file in files:
        image = Image.open(file).convert("RGB")
        scale = min(1.0, 512 / min(image.size))
        image = image.resize([round(side * scale) for side in image.size], Image.BILINEAR)
        x = (torch.from_numpy(np.array(image)).permute(2, 0, 1).float() / 255 - mean) / std
        height, width = x.shape[1:]
        x = F.pad(x[None], (0, -width % 32, 0, -height % 32), mode="reflect")
        with torch.inference_mode():
            x = network.maxpool(network.relu(network.bn1(network.conv1(x))))
            maps = {1: network.layer1(x)}
            for stage in (2, 3, 4):
                maps[stage] = getattr(network, f"layer{stage}")(maps[stage - 1])
            grid = maps[2].shape[2:]
            kept = [F.interpolate(maps[s], grid, mode="bilinear") for s in STAGES]
        cells.append(torch.cat(kept, 1)[0].flatten(1).T.half().numpy())
        grids.append(tuple(grid))
        pooled = [maps[stage][0].flatten(1) for stage in (3, 4)]
        top = [p.topk(max(1, p.shape[1] // 20), 1).values.mean(1) for p in pooled]
        descriptors.append(torch.cat([p.mean(1) for p in pooled] + top).numpy())
    features = time.perf_counter() - started

    rng = np.random.default_rng(0)
    sample = np.concatenate([c[rng.choice(len(c), 360)] for c in cells]).astype(np.float32)
    centre, spread = sample.mean(0), sample.std(0) + 1e-3
    pca = PCA(DIMENSIONS, whiten=True).fit((sample - centre) / spread)
    project = lambda c: pca.transform((c.astype(np.float32) - centre) / spread).astype(np.float32)
    z = [torch.from_numpy(project(c)) for c in cells]
    y, classes = torch.tensor(labels), len(names)
    fixed = [np.random.default_rng(1).choice(len(f), 800) for f in z]
    z_sampled = torch.stack([f[torch.from_numpy(i)] for f, i in zip(z, fixed)])
    size = lambda s: -0.4 * (0.2 * torch.log(s) + 0.8 * torch.log(1 - s)).mean()

    def mask_head(seed):
        torch.manual_seed(seed)
        mask, classifier = nn.Linear(DIMENSIONS, 1), nn.Linear(DIMENSIONS, classes)
        nn.init.normal_(mask.weight, std=0.01)
        nn.init.zeros_(mask.bias)
        both = [*mask.parameters(), *classifier.parameters()]
        optimizer = torch.optim.AdamW(both, 5e-3, weight_decay=1e-2)
        for _ in range(250):
            picked, places = torch.randperm(len(y))[:32], torch.randperm(800)[:400]
            f = z_sampled[picked][:, places]
            r = torch.sigmoid(mask(f))
            pooled = (f * r).sum(1) / r.sum(1)
            loss = F.cross_entropy(classifier(pooled), y[picked]) + size(r.mean((1, 2)))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        return mask

    targets = F.one_hot(y, classes).float() - 1 / classes
    targets = targets / targets.pow(2).mean().sqrt()

    def held_out(seed):
        torch.manual_seed(seed)
        mask = nn.Linear(DIMENSIONS, 1)
        nn.init.normal_(mask.weight, std=0.05)
        nn.init.zeros_(mask.bias)
        optimizer = torch.optim.AdamW(mask.parameters(), 1e-2, weight_decay=1e-3)

        def error(x, a, b):
            mean = x[a].mean(0)
            fitted = x[a] - mean
            gram = fitted.T @ fitted + 10 * torch.eye(DIMENSIONS)
            solved = torch.linalg.solve(gram, fitted.T @ targets[a])
            return ((targets[b] - (x[b] - mean) @ solved) ** 2).mean()

        for _ in range(150):
            f = z_sampled[:, torch.randperm(800)[:400]]
            r = torch.sigmoid(mask(f))
            inside = (f * r).sum(1) / r.sum(1)
            outside = (f * (1 - r)).sum(1) / (1 - r).sum(1)
            order = torch.randperm(len(y))
            a, b = order[: len(y) // 2], order[len(y) // 2 :]
            both = lambda x: (error(x, a, b) + error(x, b, a)) / 2
            loss = both(inside) - torch.clamp(both(outside), max=1.0) + size(r.mean((1, 2)))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        return mask

    standardized = lambda u: (u - u.mean()) / (u.std() + 1e-6)
    smooth = lambda u, grid: gaussian_filter(u.reshape(grid), SIGMA).ravel()
    sigmoid = lambda u: 1 / (1 + np.exp(-np.clip(u, -30, 30)))

    def cut(u, beta, alpha=0.0):
        counts, edges = np.histogram(u, 256)
        middle, p = (edges[1:] + edges[:-1]) / 2, counts / counts.sum()
        share, first, second = np.cumsum(p), np.cumsum(p * middle), np.cumsum(p * middle**2)
        rest = 1 - share
        usable = (share > 0.005) & (rest > 0.005)
        a, b = share.clip(1e-9), rest.clip(1e-9)
        within = (second[-1] - first**2 / a - (first[-1] - first) ** 2 / b).clip(1e-12)
        sides = [second / a - (first / a) ** 2, (second[-1] - second) / b - ((first[-1] - first) / b) ** 2]
        own = [part * np.log(np.maximum(v, within / 4)) for part, v in zip((a, b), sides)]
        score = (1 - alpha) * 0.5 * np.log(within) + alpha * 0.5 * sum(own)
        score -= beta * (share * np.log(a) + rest * np.log(b))
        return edges[np.where(usable, score, np.inf).argmin() + 1]

    def between(u, side):
        share = side.mean()
        return share * (1 - share) * (u[side].mean() - u[~side].mean()) ** 2 / u.var()

    def discriminant(x, p):
        p = p[:, None]
        inside = (x * p).sum(0) / p.sum()
        outside = (x * (1 - p)).sum(0) / (1 - p).sum()
        spread = (x - inside).T @ ((x - inside) * p) + (x - outside).T @ ((x - outside) * (1 - p))
        w = np.linalg.solve(spread / len(x) + 3 * np.eye(x.shape[1]), inside - outside)
        return x @ w - 0.5 * (inside + outside) @ w

    def students(sides, seed):
        trained = []
        for index in range(2):
            torch.manual_seed(seed + index)
            student = nn.Sequential(
                nn.Dropout(0.1), nn.Linear(DIMENSIONS, 64), nn.ReLU(), nn.Dropout(0.3), nn.Linear(64, 1)
            )
            optimizer = torch.optim.AdamW(student.parameters(), 2e-3, weight_decay=1e-2)
            for _ in range(300):
                picked = torch.randperm(len(y))[:16]
                places = [torch.randint(len(z[i]), (96,)) for i in picked]
                f = torch.stack([z[i][p] for i, p in zip(picked, places)])
                t = torch.stack([torch.from_numpy(sides[i])[p] for i, p in zip(picked, places)])
                loss = F.binary_cross_entropy_with_logits(student(f)[..., 0], t.float())
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            trained.append(student.eval())
        return trained

    groups = [[head(seed) for seed in range(3)] for head in (mask_head, held_out)]
    with torch.no_grad():
        maps = []
        for f, grid in zip(z, grids):
            of = lambda heads: np.mean([standardized(h(f)[:, 0].numpy()) for h in heads], 0)
            maps.append(smooth(sum(standardized(of(heads)) for heads in groups), grid))
        beta = float(np.clip(np.mean([skew(u) for u in maps]) - 0.5, 0, 1))
        sharpened = []
        for u, f, grid in zip(maps, z, grids):
            u, x = standardized(u), f.numpy()
            for _ in range(2):
                odds = discriminant(x, sigmoid(4 * (u - cut(u, beta))))
                u = standardized(u + smooth(standardized(odds), grid))
            sharpened.append(u)
        explained = np.mean([between(u, u >= cut(u, beta)) for u in sharpened])
        alpha = (1 - beta) * np.clip((0.8 - explained) / 0.1, 0, 1)
        sides = [u >= cut(u, beta, alpha) for u in sharpened]
    first = students(sides, 0)
    with torch.no_grad():
        sides = []
        for f, grid in zip(z, grids):
            logits = smooth(np.mean([s(f)[:, 0].numpy() for s in first], 0), grid)
            odds = smooth(discriminant(f.numpy(), sigmoid(logits).clip(1e-3, 1 - 1e-3)), grid)
            sides.append(0.3 * logits + 0.7 * odds >= 0)
    students(sides, 10)
    x = np.stack(descriptors)
    for part in (x, np.concatenate([x[:, 256:768], x[:, 1024:]], 1)):
        for c in (0.01, 0.1, 1.0):
            model = make_pipeline(StandardScaler(), LogisticRegression(C=c, max_iter=1000))
            cross_val_score(model, part, labels, cv=5, scoring="neg_log_loss")
    model.fit(x, labels)
    total = time.perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"features": features, "total": total, "peak_mib": peak}))


def ours(command, folder, weights, out):
    started = time.perf_counter()
    train = ["train", "--method", "probe", "--data", folder, "--weights", weights, "--out", out]
    process = subprocess.Popen([command, *train], stderr=subprocess.PIPE, text=True)
    said = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    assert status == 0, said
    total = time.perf_counter() - started
    features = float(re.search(r"features in ([0-9.]+) s", said).group(1))
    return {"features": features, "total": total, "peak_mib": usage.ru_maxrss / 1024}


def save_safetensors(state, path):
    """The same weights in the format that pinpoint keeps its own in."""
    header, content = {}, b""
    for name, tensor in state.items():
        if tensor.is_floating_point() and not name.startswith("fc."):
            values = tensor.numpy().tobytes()
            offsets = [len(content), len(content) + len(values)]
            shape = list(tensor.shape)
            header[name] = {"dtype": "F32", "shape": shape, "data_offsets": offsets}
            content += values
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + content)


def draw(folder, images, width, height):
    import numpy as np
    from PIL import Image

    rng = np.random.default_rng(3)
    for index in range(images):
        small = rng.integers(0, 256, (height // 16, width // 16, 3), dtype=np.uint8)
        picture = Image.fromarray(small).resize((width, height), Image.BICUBIC)
        path = pathlib.Path(folder, "train", f"class{index % 2}", f"{index}.png")
        path.parent.mkdir(parents=True, exist_ok=True)
        picture.save(path)


def prepare(folder, images, size):
    """In a process of its own, so that its memory is not counted as that of what follows."""
    import torch
    import torchvision

    state = torchvision.models.resnet18().state_dict()
    torch.save(state, pathlib.Path(folder, "resnet18.pth"))
    save_safetensors(state, pathlib.Path(folder, "resnet18.safetensors"))
    draw(pathlib.Path(folder, "data"), int(images), *map(int, size.split("x")))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("command")
    parser.add_argument("--images", type=int, default=64)
    parser.add_argument("--size", default="775x522")
    parser.add_argument("--repeat", type=int, default=3)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        data, weights = f"{folder}/data", f"{folder}/resnet18"
        this = [sys.executable, __file__]
        what = ["--prepare", folder, str(arguments.images), arguments.size]
        subprocess.run([*this, *what], check=True)
        rows = {"pytorch": [], "pinpoint": []}
        for turn in range(arguments.repeat):
            peer = [*this, "--peer", data, f"{weights}.pth"]
            found = subprocess.run(peer, capture_output=True, text=True)
            assert found.returncode == 0, found.stderr
            rows["pytorch"].append(json.loads(found.stdout.splitlines()[-1]))
            out = f"{folder}/run{turn}"
            row = ours(arguments.command, data, f"{weights}.safetensors", out)
            rows["pinpoint"].append(row)
    print(f"{'':12}{'PyTorch':>10}{'pinpoint':>10}{'ratio':>8}")
    for key in ("features", "total", "peak_mib"):
        theirs, mine = (min(row[key] for row in rows[name]) for name in ("pytorch", "pinpoint"))
        print(f"{key:12}{theirs:10.1f}{mine:10.1f}{theirs / mine:8.2f}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--peer"]:
        peer(*sys.argv[2:])
    elif sys.argv[1:2] == ["--prepare"]:
        prepare(*sys.argv[2:])
    else:
        main()
