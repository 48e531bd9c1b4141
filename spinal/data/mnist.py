"""MNIST and Fashion-MNIST, in IDX files."""

from __future__ import annotations

from spinal.data import formats
from spinal.data.published import DIGITS, NPZ, Download, Layout, Published, PublishedFile


def _idx(*md5: str) -> Layout:
    names = (
        ("train-images-idx3-ubyte", 16 + 60_000 * 28 * 28),
        ("train-labels-idx1-ubyte", 8 + 60_000),
        ("t10k-images-idx3-ubyte", 16 + 10_000 * 28 * 28),
        ("t10k-labels-idx1-ubyte", 8 + 10_000),
    )
    files = (
        PublishedFile(name, checksum, size, gzipped=True)
        for (name, size), checksum in zip(names, md5, strict=True)
    )
    return Layout("IDX", tuple(files), formats.read_idx, shared_names=True)


def _idx_downloads(address: str, *md5: str) -> tuple[Download, ...]:
    names = ("train-images-idx3", "train-labels-idx1", "t10k-images-idx3", "t10k-labels-idx1")
    return tuple(
        Download(f"{address}/{name}-ubyte.gz", checksum)
        for name, checksum in zip(names, md5, strict=True)
    )


MNIST = Published(
    name="mnist",
    title="MNIST",
    n_train=60_000,
    n_test=10_000,
    image_shape=(28, 28, 1),
    classes=DIGITS,
    folders=("mnist", "MNIST", "MNIST/raw", ""),
    layouts=(
        _idx(
            "6bbc9ace898e44ae57da46a324031adb",
            "a25bea736e30d166cdddb491f175f624",
            "2646ac647ad5339dbf082846283269ea",
            "27ae3e4e09519cfbb04c329615203637",
        ),
        NPZ,
    ),
    downloads=_idx_downloads(
        "http://yann.lecun.com/exdb/mnist",
        "f68b3c2dcbeaaa9fbdd348bbdeb94873",
        "d53e105ee54ea40749a09fcbcd1e9432",
        "9fb629c4189551a2d022fa330f9573f3",
        "ec29112dd5afa0611ce80d1b7f02629c",
    ),
)

FASHION_MNIST = Published(
    name="fashion-mnist",
    title="Fashion-MNIST",
    n_train=60_000,
    n_test=10_000,
    image_shape=(28, 28, 1),
    classes=(
        "T-shirt/top",
        "Trouser",
        "Pullover",
        "Dress",
        "Coat",
        "Sandal",
        "Shirt",
        "Sneaker",
        "Bag",
        "Ankle boot",
    ),
    folders=("fashion-mnist", "FashionMNIST", "FashionMNIST/raw", ""),
    layouts=(
        _idx(
            "f4a8712d7a061bf5bd6d2ca38dc4d50a",
            "9018921c3c673c538a1fc5bad174d6f9",
            "8181f5470baa50b63fa0f6fddb340f0a",
            "15d484375f8d13e6eb1aabb0c3f46965",
        ),
        NPZ,
    ),
    downloads=_idx_downloads(
        "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com",
        "8d4fb7e6c68d591d4c3dfef9ec88bf0d",
        "25c81989df183df01b3e8a0aad5dffbe",
        "bef4ecab320f06d8554ea6380940ec79",
        "bb300cfdad3c16e7a12a480ee83cd310",
    ),
)
