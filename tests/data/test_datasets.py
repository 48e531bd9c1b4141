"""Every published form of every dataset is read; every damage to it is refused, and named."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from spinal.data import (
    Dataset,
    dataset_name,
    dataset_names,
    list_datasets,
    load_dataset,
    search,
)
from spinal.data.formats import parse_cifar_python
from spinal.data.table import PUBLISHED
from spinal.errors import DataError, FileFormatError, SpinalError
from tests.data.files import Small, gzipped, npz, tar_gz, write


def archive(version: str) -> Callable[[Small], dict[str, bytes]]:
    def make(small: Small) -> dict[str, bytes]:
        if version == "binary":
            return {"cifar-10-binary.tar.gz": tar_gz(small.cifar_binary(), "cifar-10-batches-bin")}
        return {"cifar-10-python.tar.gz": tar_gz(small.cifar_python(), "cifar-10-batches-py")}

    return make


# Dataset, folder inside the data folder, files, and how the format is called.
FORMS = {
    "mnist": ("mnist", "mnist", Small.idx, "IDX"),
    "mnist-gz": ("mnist", "mnist", lambda small: gzipped(small.idx()), "IDX"),
    "mnist-torchvision": ("mnist", "MNIST/raw", Small.idx, "IDX"),
    "mnist-straight": ("mnist", "", Small.idx, "IDX"),
    "mnist-npz": ("mnist", "mnist", Small.npz, "NPZ"),
    "fashion": ("fashion-mnist", "fashion-mnist", lambda small: gzipped(small.idx()), "IDX"),
    "fashion-torchvision": ("fashion-mnist", "FashionMNIST/raw", Small.idx, "IDX"),
    "cifar-binary": ("cifar-10", "cifar-10", Small.cifar_binary, "CIFAR-10 binary"),
    "cifar-bin": ("cifar-10", "cifar-10-batches-bin", Small.cifar_binary, "CIFAR-10 binary"),
    "cifar-py": ("cifar-10", "cifar-10-batches-py", Small.cifar_python, "CIFAR-10 Python"),
    "cifar-inside": (
        "cifar-10",
        "cifar10/cifar-10-batches-py",
        Small.cifar_python,
        "CIFAR-10 Python",
    ),
    "cifar-tar-binary": ("cifar-10", "", archive("binary"), "CIFAR-10 binary archive"),
    "cifar-tar-python": ("cifar-10", "cifar10", archive("python"), "CIFAR-10 Python archive"),
    "svhn-mat": ("svhn", "svhn", Small.mat, "SVHN MATLAB"),
    "svhn-straight": ("svhn", "", Small.mat, "SVHN MATLAB"),
    "svhn-npz": ("svhn", "svhn", Small.npz, "NPZ"),
}


@pytest.fixture
def put(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], tuple[Small, Path]]:
    """Write a dataset in one of the forms, and make the table expect it."""

    def put(form: str) -> tuple[Small, Path]:
        name, folder, make, _ = FORMS[form]
        small = Small(name)
        contents = make(small)
        write(tmp_path / folder, contents)
        if form.startswith(("mnist-gz", "fashion")):
            contents = small.idx()  # checksums are those of what was compressed
        if form.endswith("npz"):
            contents = {}
        monkeypatch.setitem(PUBLISHED, name, small.published(contents))
        return small, tmp_path / folder

    return put


def assert_same(dataset: Dataset, small: Small) -> None:
    for part in ("train", "test"):
        images, labels = getattr(dataset, f"{part}_images"), getattr(dataset, f"{part}_labels")
        assert images.dtype == np.uint8
        assert labels.dtype == np.int64
        np.testing.assert_array_equal(images, getattr(small, f"{part}_images"))
        np.testing.assert_array_equal(labels, getattr(small, f"{part}_labels"))


@pytest.mark.parametrize("form", FORMS)
def test_every_published_form_gives_the_same_arrays(form: str, put, tmp_path: Path) -> None:
    small, folder = put(form)
    dataset = load_dataset(small.name, tmp_path, download=False)
    assert_same(dataset, small)
    assert dataset.source == str(folder)
    assert len(dataset.classes) == 10


@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_listed(form: str, put, tmp_path: Path) -> None:
    small, folder = put(form)
    (row,) = [row for row in list_datasets(tmp_path) if row.name == small.name]
    assert (row.source, row.format, row.problem) == (str(folder), FORMS[form][3], "")
    assert row.train_shape == small.train_images.shape
    assert row.test_shape == small.test_images.shape


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("damage", ["half", "empty", "one byte less", "flipped", "other"])
def test_a_damaged_file_is_refused_by_name(form: str, damage: str, put, tmp_path: Path) -> None:
    small, folder = put(form)
    path = sorted(folder.iterdir())[-1]
    if form == "mnist-straight":
        path = folder / "train-images-idx3-ubyte"  # the label file says which dataset it is
    content = path.read_bytes()
    middle = len(content) // 2
    path.write_bytes(
        {
            "half": content[:middle],
            "empty": b"",
            "one byte less": content[:-1],
            "flipped": content[:middle] + bytes([content[middle] ^ 255]) + content[middle + 1 :],
            "other": b"<html>404</html>" * 300,
        }[damage]
    )
    with pytest.raises(FileFormatError, match=r"expected|truncated|corrupt") as caught:
        load_dataset(small.name, tmp_path, download=False)
    assert str(path) in str(caught.value)


# Without a checksum, nothing says whose files those straight in the folder are.
@pytest.mark.parametrize("form", [form for form in FORMS if form != "mnist-straight"])
@pytest.mark.parametrize("damage", [0, 3, 4, 7, 11, 50, 0.5, 0.9, 0.99])
def test_truncation_is_seen_without_a_checksum_too(
    form: str, damage: float, put, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small, folder = put(form)
    monkeypatch.setitem(PUBLISHED, small.name, small.published({}))
    path = sorted(folder.iterdir())[0]
    content = path.read_bytes()
    end = int(damage * len(content)) if isinstance(damage, float) else damage
    path.write_bytes(content[:end])
    with pytest.raises(FileFormatError) as caught:
        load_dataset(small.name, tmp_path, download=False)
    assert str(path) in str(caught.value)


def test_plain_idx_files_are_memory_mapped(put, tmp_path: Path) -> None:
    put("mnist")
    images = load_dataset("mnist", tmp_path).train_images
    base = images
    while isinstance(base.base, np.ndarray):
        base = base.base
    assert isinstance(base, np.memmap)
    assert not images.flags.writeable


def test_the_wrong_number_of_images_is_refused(put, tmp_path: Path) -> None:
    small, _ = put("svhn-npz")
    write(tmp_path / "svhn", {"train.npz": small.npz()["test.npz"]})
    with pytest.raises(FileFormatError, match=r"training part\): images of shape \(4, .*15"):
        load_dataset("svhn", tmp_path)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"images": np.zeros((15, 32, 32, 3), np.uint8)}, "labels"),
        ({"labels": np.zeros(15, int)}, "images"),
        ({"images": np.zeros((15, 32, 32, 3)), "labels": np.zeros(15, int)}, "float64"),
        ({"images": np.zeros((15, 32, 32, 3), np.uint8), "labels": np.zeros(15)}, "float64"),
        ({"images": np.zeros((15, 32, 32, 3), np.uint8), "labels": np.zeros(14, int)}, "15 images"),
        ({"images": np.zeros((15, 32, 32, 3), np.uint8), "labels": np.full(15, 10)}, "to 10"),
        ({"images": np.zeros((15, 32, 32, 3), np.uint8), "labels": np.array([{}] * 15)}, "pickle"),
    ],
)
def test_an_npz_of_other_arrays_is_refused(arrays, message: str, put, tmp_path: Path) -> None:
    put("svhn-npz")
    write(tmp_path / "svhn", {"train.npz": npz(**arrays)})
    with pytest.raises(FileFormatError, match=message):
        load_dataset("svhn", tmp_path)


def test_other_arrays_of_an_npz_are_extras(put, tmp_path: Path) -> None:
    small, _ = put("svhn-npz")
    write(tmp_path / "svhn", small.npz(certain=np.array([2, 0, 1, 2], np.uint8)))
    dataset = load_dataset("svhn", tmp_path)
    assert list(dataset.extras) == ["test_certain"]
    np.testing.assert_array_equal(dataset.extras["test_certain"], [2, 0, 1, 2])


class Malice:
    def __reduce__(self) -> tuple:
        return os.mkdir, ("pwned",)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_pickle_cannot_run_anything(
    protocol: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    content = np.frombuffer(pickle.dumps({"data": Malice()}, protocol), np.uint8)
    with pytest.raises(FileFormatError, match=r"bad_file.*mkdir"):
        parse_cifar_python(content, "bad_file")
    assert not Path("pwned").exists()


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_batches_written_anew_are_read(protocol: int) -> None:
    pixels = np.arange(2 * 3072).reshape(2, 3072).astype(np.uint8)
    batch = {b"data": pixels, b"labels": [3, 7], b"filenames": [b"a", b"b"]}
    content = np.frombuffer(pickle.dumps(batch, protocol), np.uint8)
    labels, found = parse_cifar_python(content, "batch")
    np.testing.assert_array_equal(found, pixels)
    np.testing.assert_array_equal(labels, [3, 7])


def test_places_are_searched_in_order(
    put, tmp_path: Path, nowhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small, folder = put("fashion")
    places = [tmp_path / "given", tmp_path / "env", search.DEBIAN_FOLDER, nowhere / "cache"]
    monkeypatch.setenv("SPINAL_DATA", str(tmp_path / "env"))
    for place in reversed(places):  # the later ones first: each one that is added comes to count
        write(place / "fashion-mnist", {p.name: p.read_bytes() for p in folder.iterdir()})
        dataset = load_dataset("fashion-mnist", tmp_path / "given", download=False)
        assert dataset.source == str(place / "fashion-mnist")
        assert_same(dataset, small)


def test_files_straight_in_the_folder_are_told_apart(put, tmp_path: Path) -> None:
    put("mnist-straight")
    rows = {row.name: row for row in list_datasets(tmp_path)}
    assert rows["mnist"].source == str(tmp_path)
    assert rows["fashion-mnist"].source == ""
    with pytest.raises(DataError, match="Fashion-MNIST was not found"):
        load_dataset("fashion-mnist", tmp_path, download=False)


def test_what_is_missing_is_said(put, tmp_path: Path) -> None:
    _, folder = put("mnist")
    (folder / "t10k-labels-idx1-ubyte").unlink()
    with pytest.raises(DataError, match=f"put t10k-labels-idx1-ubyte into {folder}"):
        load_dataset("mnist", tmp_path, download=False)
    (row,) = [row for row in list_datasets(tmp_path) if row.name == "mnist"]
    assert (row.source, row.missing, row.folder) == ("", ("t10k-labels-idx1-ubyte",), str(folder))


def test_without_any_file_the_published_ones_are_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"train_32x32.mat, test_32x32.mat into .*svhn.*ufldl"):
        load_dataset("svhn", tmp_path, download=False)
    rows = {row.name: row for row in list_datasets(tmp_path)}
    assert rows["svhn"].missing == ("train_32x32.mat", "test_32x32.mat")
    assert rows["cifar-10"].missing == ("cifar-10-binary.tar.gz",)


def test_a_file_of_the_wrong_size_is_listed_as_a_problem(put, tmp_path: Path) -> None:
    _, folder = put("cifar-binary")
    (folder / "data_batch_2.bin").write_bytes(b"123")
    (row,) = [row for row in list_datasets(tmp_path) if row.name == "cifar-10"]
    assert row.problem == "data_batch_2.bin has 3 bytes, expected 9,219"


def test_names_are_forgiving_and_unknown_ones_are_not(put, tmp_path: Path) -> None:
    put("cifar-bin")
    assert load_dataset("CIFAR10", tmp_path).name == "cifar-10"
    for spelling in ("cifar-10", "cifar10", "CIFAR 10", "Cifar_10"):
        assert dataset_name(spelling) == "cifar-10"
    assert [dataset_name(name) for name in dataset_names()] == list(dataset_names())
    assert dataset_name("imagenet") == "imagenet"
    with pytest.raises(SpinalError, match="did you mean 'fashion-mnist'"):
        load_dataset("fashon-mnist")
    with pytest.raises(SpinalError, match="there are digits, mnist"):
        load_dataset("imagenet")


def test_digits_are_built_in_and_split_for_ever() -> None:
    digits = load_dataset()
    assert digits.train_images.shape == (1297, 8, 8, 1)
    np.testing.assert_array_equal(np.bincount(digits.test_labels), [50] * 10)
    assert (digits.train_images.min(), digits.train_images.max()) == (0, 255)
    # Recorded: these change only if the split does.
    assert digits.test_labels[:12].tolist() == [1, 2, 3, 1, 3, 5, 0, 1, 5, 5, 0, 2]
    assert int(digits.test_images.sum()) == 2_490_947
    rows = list_datasets()
    assert rows[0].train_shape == digits.train_images.shape
    assert rows[0].test_shape == digits.test_images.shape


def test_the_table_is_consistent() -> None:
    for name, entry in PUBLISHED.items():
        assert entry.name == name
        assert len(set(entry.classes)) == len(entry.classes) == 10
        assert "" in entry.folders
        names = {file.name for layout in entry.layouts for file in layout.files}
        for item in entry.downloads:
            assert item.filename in names | {f"{file}.gz" for file in names}
            assert len(item.md5) == 32
        for layout in entry.layouts:
            for file in layout.files:
                assert file.md5 is None or len(file.md5) == 32
