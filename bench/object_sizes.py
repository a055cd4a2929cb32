"""Datasets with objects of other sizes, to try settings on that were chosen elsewhere.

    apt-get download tuxpaint-stamps-default && dpkg -x tuxpaint-stamps-default_*.deb stamps
    python bench/object_sizes.py stamps/usr/share/tuxpaint/stamps CUB5 FOLDS OUT [--draw N]

writes class folders with masks, which `pinpoint train --data OUT/stamps-small` and so on read:

- `stamps-small`, `stamps-medium`, `stamps-large`: photographs of animals, plants, food, tools and
  signs (Tux Paint's stamps), pasted where no bird is into images of CUB5; they cover about 4, 13
  and 30 % of the image. Test images show other objects than training images.
- `other-mixed`, `other-half`: the same with other kinds of stamps, which cover 4 to 60 % and 40 to
  75 % of the image where their shape allows it.
- `birds-close`: images of CUB5 cut so that the bird covers 33 to 50 %; training images are those of
  the folds, so that the test images of CUB5 are only scored.

Another `--draw` chooses other stamps, places and sizes; settings are tried on draw 1, and draw 0 is
only scored.

CUB5 is the folder with `CUB_200_2011` and `segmentations`, FOLDS that with its `*.csv` folds.
"""

import argparse
import csv
import pathlib

import numpy as np
from PIL import Image

KINDS = {
    "bird": ["animals/birds"],
    "flower": ["plants/flowers"],
    "fruit": ["food/fruit"],
    "mammal": ["animals/mammals"] + [f"animals/mammals/{kind}" for kind in ("bovines", "cats", "deer", "equines")],
    "sign": ["town/roadsigns"],
    "tool": ["household/tools"],
    "vegetable": ["food/vegetables"],
}
OTHER_KINDS = {
    "vehicle": [f"vehicles/{kind}" for kind in ("auto", "flight", "ship", "emergency", "construction", "cycle", "race")],
    "tree": ["plants/trees", "plants"],
    "insect": [f"animals/{kind}" for kind in ("insects", "shellfish", "lizards", "amphibians")],
    "fish": ["animals/fish"],
    "household": ["household", "household/dishes", "household/electronics"],
    "music": ["hobbies/music", "hobbies"],
    "planet": ["space/planets", "space/moon", "space", "sports"],
}
# Folders of each class, the least and largest share of the image, and where randomness begins.
SETS = {
    "stamps-small": (KINDS, 0.02, 0.06, 2),
    "stamps-medium": (KINDS, 0.08, 0.2, 2),
    "stamps-large": (KINDS, 0.3, 0.6, 2),
    "other-mixed": (OTHER_KINDS, 0.04, 0.6, 33),
    "other-half": (OTHER_KINDS, 0.4, 0.75, 33),
}
MOST_STAMPS, LEAST_SIDE, COPIES = 26, 100, 2


def write(root, split, label, name, picture, mask):
    for folder, image, suffix in ((root, picture, ".jpg"), (root / "masks", mask, ".png")):
        folder = folder / split / label
        folder.mkdir(parents=True, exist_ok=True)
        image.save(folder / (name + suffix), quality=92)


def birds(cub5, folds):
    """Images of CUB5 with a mask: (split, class, name, picture, mask)."""
    for split in ("train", "valid", "test"):
        (file,) = pathlib.Path(folds).glob(f"{split}*.csv")
        for image, mask, label in csv.reader(file.open()):
            if (pathlib.Path(cub5) / mask).exists():
                picture = Image.open(pathlib.Path(cub5) / image).convert("RGB")
                mask = np.array(Image.open(pathlib.Path(cub5) / mask).convert("L")) > 127
                yield split, label.split(".")[1], pathlib.Path(image).stem, picture, mask


def without_bird(picture, mask):
    """The largest rectangle beside the bird, if it is not too narrow."""
    (top, bottom), (left, right) = ((places.min(), places.max() + 1) for places in np.where(mask))
    height, width = mask.shape
    sides = [(0, 0, width, top), (0, bottom, width, height), (0, 0, left, height), (right, 0, width, height)]
    sides = [side for side in sides if min(side[2] - side[0], side[3] - side[1]) > 90]
    area = lambda side: (side[2] - side[0]) * (side[3] - side[1])
    return picture.crop(max(sides, key=area)) if sides else None


def stamps(root, folders, draw):
    """The stamps of some folders, cut to what they show."""
    files = sorted(file for folder in folders for file in (pathlib.Path(root) / folder).glob("*.png"))
    np.random.default_rng(7 + 10 * draw).shuffle(files)
    for file in files[:MOST_STAMPS]:
        stamp = Image.open(file).convert("RGBA")
        stamp = stamp.crop(stamp.getchannel("A").point(lambda value: 255 * (value > 16)).getbbox())
        if max(stamp.size) >= LEAST_SIDE:
            yield stamp


def pasted(rng, stamp, share, backgrounds):
    """A stamp that covers a share of a picture, and its mask."""
    width, height = (400, 320) if rng.random() < 0.5 else (320, 400)
    background = backgrounds[rng.integers(len(backgrounds))]
    scale = min(background.width / width, background.height / height) * rng.uniform(0.5, 1)
    size = int(width * scale), int(height * scale)
    left, top = (rng.integers(whole - part + 1) for whole, part in zip(background.size, size))
    picture = background.crop((left, top, left + size[0], top + size[1])).resize((width, height), Image.BICUBIC)
    opaque = np.array(stamp)[..., 3].mean() / 255
    grown = (share * width * height / (opaque * stamp.width * stamp.height)) ** 0.5
    grown = min(grown, 0.96 * width / stamp.width, 0.96 * height / stamp.height)
    stamp = stamp.resize([max(8, int(side * grown)) for side in stamp.size], Image.LANCZOS)
    place = [int(rng.integers(whole - part + 1)) for whole, part in zip((width, height), stamp.size)]
    picture.paste(stamp, place, stamp)
    mask = Image.new("L", (width, height))
    mask.paste(stamp.getchannel("A").point(lambda value: 255 * (value > 127)), place)
    return picture, mask


def close(rng, picture, mask):
    """The picture cut around its bird."""
    (top, bottom), (left, right) = ((int(p.min()), int(p.max()) + 1) for p in np.where(mask))
    area = mask.sum() / rng.uniform(0.33, 0.5)
    shape = ((right - left) / (bottom - top)) ** 0.3
    width = max(right - left, min(picture.width, int(area**0.5 * shape)))
    height = max(bottom - top, min(picture.height, int(area / width)))
    x = int(np.clip(rng.integers(right - width, left + 1), 0, picture.width - width))
    y = int(np.clip(rng.integers(bottom - height, top + 1), 0, picture.height - height))
    scale = 320 / min(width, height)
    size = round(width * scale), round(height * scale)
    mask = Image.fromarray(mask[y : y + height, x : x + width].astype(np.uint8) * 255)
    return picture.crop((x, y, x + width, y + height)).resize(size, Image.BICUBIC), mask.resize(size, Image.NEAREST)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("stamps")
    parser.add_argument("cub5")
    parser.add_argument("folds")
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--draw", type=int, default=0)
    arguments = parser.parse_args()
    backgrounds, rng = [], np.random.default_rng(1)
    for split, label, name, picture, mask in birds(arguments.cub5, arguments.folds):
        background = without_bird(picture, mask)
        backgrounds += [background] if background else []
        if mask.sum() >= 1500:
            split = "test" if split == "test" else "train"
            write(arguments.out / "birds-close", split, label, name, *close(rng, picture, mask))
    for name, (kinds, low, high, seed) in SETS.items():
        rng = np.random.default_rng(seed + 10 * arguments.draw)
        for kind, folders in kinds.items():
            found = list(stamps(arguments.stamps, folders, arguments.draw))
            for index, stamp in enumerate(found):
                split = "train" if index < 0.6 * len(found) else "test"
                for copy in range(COPIES):
                    share = np.exp(rng.uniform(np.log(low), np.log(high)))
                    pair = pasted(rng, stamp, share, backgrounds)
                    write(arguments.out / name, split, kind, f"{index}-{copy}", *pair)


if __name__ == "__main__":
    main()
