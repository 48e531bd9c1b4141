"""The published datasets: what they are, in which files they come, and where from.

Sizes and MD5 sums are those of the contents: an IDX file that was compressed anew is still itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from spinal.data import formats
from spinal.data.formats import DataFile, Part


@dataclass(frozen=True)
class PublishedFile:
    """A file as its publisher made it; ``.gz`` may be added to its name where ``gzipped``."""

    name: str
    md5: str | None = None
    size: int | None = None
    gzipped: bool = False


@dataclass(frozen=True)
class Download:
    """A file to fetch; the checksum is that of what comes over the wire."""

    url: str
    md5: str

    @property
    def filename(self) -> str:
        """Under which name it is kept."""
        return self.url.rsplit("/", 1)[1]


@dataclass(frozen=True)
class Layout:
    """One form in which a dataset is published: its files, in the order that ``read`` takes them.

    With ``shared_names``, other datasets have files of the same names, so that a name alone does
    not say which dataset it is; the last file is then a small one.
    """

    format: str
    files: tuple[PublishedFile, ...]
    read: Callable[[Sequence[DataFile]], tuple[Part, Part]]
    shared_names: bool = False


@dataclass(frozen=True)
class Published:
    """A dataset that others have published.

    Attributes:
        image_shape: (H, W, C).
        folders: Where its files may be inside a data folder; the first is where downloads go.
        layouts: The forms in which it may be there, the best one first.
    """

    name: str
    title: str
    n_train: int
    n_test: int
    image_shape: tuple[int, int, int]
    classes: tuple[str, ...]
    folders: tuple[str, ...]
    layouts: tuple[Layout, ...]
    downloads: tuple[Download, ...]

    @property
    def train_shape(self) -> tuple[int, int, int, int]:
        """(N, H, W, C) of the training images."""
        return (self.n_train, *self.image_shape)

    @property
    def test_shape(self) -> tuple[int, int, int, int]:
        """(N, H, W, C) of the test images."""
        return (self.n_test, *self.image_shape)


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


NPZ = Layout(
    "NPZ",
    (PublishedFile("train.npz"), PublishedFile("test.npz")),
    formats.read_npz,
    shared_names=True,
)
DIGITS = tuple("0123456789")

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

_SVHN_TRAIN = PublishedFile("train_32x32.mat", "e26dedcc434d2e4c54c9b2d4a06d8373", 182_040_794)
_SVHN_TEST = PublishedFile("test_32x32.mat", "eb5a983be6a315427106f1b164d9cef3", 64_275_384)

SVHN = Published(
    name="svhn",
    title="SVHN, cropped digits",
    n_train=73_257,
    n_test=26_032,
    image_shape=(32, 32, 3),
    classes=DIGITS,
    folders=("svhn", "SVHN", ""),
    layouts=(Layout("SVHN MATLAB", (_SVHN_TRAIN, _SVHN_TEST), formats.read_svhn_mat), NPZ),
    downloads=(
        Download(
            "http://ufldl.stanford.edu/housenumbers/train_32x32.mat",
            "e26dedcc434d2e4c54c9b2d4a06d8373",
        ),
        Download(
            "http://ufldl.stanford.edu/housenumbers/test_32x32.mat",
            "eb5a983be6a315427106f1b164d9cef3",
        ),
    ),
)

PUBLISHED = {entry.name: entry for entry in (MNIST, FASHION_MNIST, CIFAR_10, SVHN)}
