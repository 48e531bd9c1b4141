"""SVHN, cropped digits, in MATLAB files."""

from __future__ import annotations

from spinal.data import formats
from spinal.data.published import DIGITS, NPZ, Download, Layout, Published, PublishedFile

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
