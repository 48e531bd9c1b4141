"""CIFAR-10, in its binary and its Python version."""

from __future__ import annotations

from spinal.data import formats
from spinal.data.published import NPZ, Download, Layout, Published, PublishedFile

_CIFAR_BATCHES = (*(f"data_batch_{i}" for i in range(1, 6)), "test_batch")
_CIFAR_BINARY_MD5 = (
    "5dd7e06a14cb22eb9f671a540d1b7c25",
    "5ea93a67294ea407fff1d09f752e9692",
    "942cd6a4bcdd0dd3c604fbe906cb4421",
    "ae636b3ba5c66a11e91e8cb52e771fcb",
    "53f37980c15c3d472c316c40844f3f0d",
    "803d5f7f4d78ea53de84dbe85f74fb6d",
)
_CIFAR_PYTHON_MD5 = (
    "c99cafc152244af753f735de768cd75f",
    "d4bba439e000b95fd0a9bffe97cbabec",
    "54ebc095f3ab1f0389bbae665268c751",
    "634d18415352ddfa80567beed471001a",
    "482c414d41f54cd18b22e5b47cb7c3cb",
    "40351d587109b95175f43aff81a1287e",
)
_CIFAR_BINARY_ARCHIVE = PublishedFile(
    "cifar-10-binary.tar.gz", "c32a1d4ab5d03f1284b67883e8d87530", 170_052_171
)
_CIFAR_PYTHON_ARCHIVE = PublishedFile(
    "cifar-10-python.tar.gz", "c58f30108f718f92721af3b95e74349a", 170_498_071
)

CIFAR_10 = Published(
    name="cifar-10",
    title="CIFAR-10",
    n_train=50_000,
    n_test=10_000,
    image_shape=(32, 32, 3),
    classes=(
        "airplane",
        "automobile",
        "bird",
        "cat",
        "deer",
        "dog",
        "frog",
        "horse",
        "ship",
        "truck",
    ),
    folders=tuple(
        f"{outer}/{inner}".strip("/")
        for outer in ("cifar-10", "cifar10", "CIFAR10", "")
        for inner in ("", "cifar-10-batches-bin", "cifar-10-batches-py")
    ),
    layouts=(
        Layout(
            "CIFAR-10 binary",
            tuple(
                PublishedFile(f"{name}.bin", md5, 10_000 * 3_073)
                for name, md5 in zip(_CIFAR_BATCHES, _CIFAR_BINARY_MD5, strict=True)
            ),
            formats.read_cifar_binary,
        ),
        Layout(
            "CIFAR-10 Python",
            tuple(map(PublishedFile, _CIFAR_BATCHES, _CIFAR_PYTHON_MD5)),
            formats.read_cifar_python,
        ),
        Layout("CIFAR-10 binary archive", (_CIFAR_BINARY_ARCHIVE,), formats.read_cifar_archive),
        Layout("CIFAR-10 Python archive", (_CIFAR_PYTHON_ARCHIVE,), formats.read_cifar_archive),
        NPZ,
    ),
    # The binary version: the same pixels as the Python version, and no pickles.
    downloads=(
        Download(
            "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
            "c32a1d4ab5d03f1284b67883e8d87530",
        ),
    ),
)
