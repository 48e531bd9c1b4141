"""Image folders and tables of paths: every mode, every damage, every disorder."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from spinal.data import ImageFiles, Points, load_csv, load_folder
from spinal.errors import DataError

RED, GREEN, BLUE, WHITE = (255, 0, 0), (0, 255, 0), (0, 0, 255), (255, 255, 255)


def save(path: Path, image: Image.Image | None = None, **options: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    (image or Image.new("RGB", (12, 9), RED)).save(path, **options)
    return path


def with_alpha() -> Image.Image:
    """Red on the left; on the right, a green that cannot be seen."""
    image = Image.new("RGBA", (40, 40), (*GREEN, 0))
    image.paste((*RED, 255), (0, 0, 20, 40))
    return image


def halves(left: tuple, right: tuple, mode: str = "RGB", size: tuple = (40, 40)) -> Image.Image:
    image = Image.new(mode, size, right)
    image.paste(left, (0, 0, size[0] // 2, size[1]))
    return image


def grey16(value: int) -> Image.Image:
    return Image.fromarray(np.full((40, 40), value, np.uint16))


# How to make the file, the colours expected on its left and right.
MODES = {
    "rgb.png": (halves(RED, GREEN), {}, RED, GREEN),
    "rgb.jpg": (halves(RED, BLUE), {"quality": 100, "subsampling": 0}, RED, BLUE),
    "rgb.webp": (halves(RED, BLUE), {"lossless": True}, RED, BLUE),
    "grey.png": (Image.new("L", (30, 50), 77), {}, (77,) * 3, (77,) * 3),
    "grey.jpeg": (Image.new("L", (30, 50), 77), {}, (77,) * 3, (77,) * 3),
    "bits.png": (Image.new("1", (30, 50), 1), {}, WHITE, WHITE),
    "palette.png": (halves(RED, GREEN).quantize(4), {}, RED, GREEN),
    "palette-clear.png": (with_alpha().quantize(4), {}, RED, WHITE),
    "alpha.png": (with_alpha(), {}, RED, WHITE),
    "alpha.webp": (with_alpha(), {"lossless": True}, RED, WHITE),
    "grey-alpha.png": (Image.new("LA", (30, 30), (10, 0)), {}, WHITE, WHITE),
    "key.png": (halves(RED, GREEN), {"transparency": GREEN}, RED, WHITE),
    "grey16.png": (grey16(40_000), {}, (40_000 >> 8,) * 3, (40_000 >> 8,) * 3),
    "grey12.png": (grey16(2_000), {}, (2_000 >> 4,) * 3, (2_000 >> 4,) * 3),
    "rgb.bmp": (halves(RED, GREEN), {}, RED, GREEN),
    "rgb.tif": (halves(RED, GREEN), {}, RED, GREEN),
    "frames.gif": (
        halves(RED, GREEN),
        {"save_all": True, "append_images": [Image.new("RGB", (40, 40), BLUE)]},
        RED,
        GREEN,
    ),
    "cmyk.jpg": (Image.new("CMYK", (30, 30), (0, 0, 0, 0)), {"quality": 100}, WHITE, WHITE),
    "UPPER.JPG": (halves(RED, BLUE), {"quality": 100, "subsampling": 0}, RED, BLUE),
}


@pytest.mark.parametrize("name", MODES)
def test_every_mode_becomes_rgb(name: str, tmp_path: Path) -> None:
    image, options, left, right = MODES[name]
    path = save(tmp_path / name, image, **options)
    (pixels,) = ImageFiles([path], 8)[np.array([0])]
    assert (pixels.shape, pixels.dtype) == ((8, 8, 3), np.uint8)
    np.testing.assert_allclose(pixels[4, 1].astype(int), left, atol=2)
    np.testing.assert_allclose(pixels[4, 6].astype(int), right, atol=2)


@pytest.mark.parametrize("name", MODES)
def test_every_mode_becomes_grey(name: str, tmp_path: Path) -> None:
    image, options, left, _ = MODES[name]
    path = save(tmp_path / name, image, **options)
    (pixels,) = ImageFiles([path], 8, channels=1)[np.array([0])]
    luma = np.dot(left, (0.299, 0.587, 0.114))
    assert pixels.shape == (8, 8, 1)
    assert abs(int(pixels[4, 1, 0]) - luma) <= 2


@pytest.mark.parametrize("suffix", [".jpg", ".png", ".webp"])
def test_images_are_turned_upright(suffix: str, tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6  # as held by a camera: its right side is the top of the picture
    path = save(tmp_path / f"turned{suffix}", halves(RED, BLUE, size=(80, 40)), exif=exif)
    (pixels,) = ImageFiles([path], (8, 4), fit="stretch")[np.array([0])]
    assert pixels.shape == (8, 4, 3)
    assert pixels[1, 1].argmax() == 0  # red, which was on the left, is at the top
    assert pixels[6, 1].argmax() == 2


@pytest.mark.parametrize("suffix", [".jpg", ".png", ".webp"])
def test_damaged_metadata_do_not_spoil_an_image(suffix: str, tmp_path: Path) -> None:
    path = save(tmp_path / f"a{suffix}", exif=b"Exif\0\0garbage")
    assert len(ImageFiles([path])) == 1


def test_three_ways_to_fit(tmp_path: Path) -> None:
    wide = Image.new("RGB", (40, 20), GREEN)
    wide.paste(RED, (0, 0, 10, 20))
    wide.paste(BLUE, (30, 0, 40, 20))
    path = save(tmp_path / "wide.png", wide)

    def fitted(fit: str) -> np.ndarray:
        return ImageFiles([path], 8, fit=fit)[np.array([0])][0]

    assert (fitted("crop")[:, 1:-1] == GREEN).all()
    assert fitted("stretch")[4, 0].tolist() == list(RED)
    assert fitted("stretch")[4, 7].tolist() == list(BLUE)
    assert (fitted("pad")[[0, 7]] == 0).all()
    assert fitted("pad")[4, 0].tolist() == list(RED)


def test_large_jpegs_decode_small_and_right(tmp_path: Path) -> None:
    ramp = np.linspace(0, 255, 1024).astype(np.uint8)
    image = Image.fromarray(np.broadcast_to(ramp, (1024, 1024)).copy())
    save(tmp_path / "a.jpg", image, quality=95)
    save(tmp_path / "b.png", image)
    fast, full = ImageFiles([tmp_path / "a.jpg", tmp_path / "b.png"], 16, 1)[np.arange(2)].astype(
        int
    )
    assert np.abs(fast - full).max() <= 3


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two classes, loose images, and what lies about in real folders."""
    root = tmp_path / "photos"
    save(root / "dog" / "1.png", Image.new("RGB", (20, 30), BLUE))
    save(root / "dog" / "deep" / "2.jpg", Image.new("RGB", (20, 30), BLUE))
    save(root / "cat" / "b.webp", Image.new("L", (31, 17), 200))
    save(root / "cat" / "a.PNG", Image.new("P", (9, 9)))
    save(root / "loose.jpeg")
    save(root / ".hidden" / "x.png")
    save(root / "cat" / "._a.png")
    save(root / "__MACOSX" / "x.png")
    (root / "owl").mkdir()
    (root / "notes.txt").write_text("not an image")
    return root


def names(points: ImageFiles, root: Path) -> list[str]:
    return [path.relative_to(root).as_posix() for path in points.paths]


def test_sub_folders_are_classes(folder: Path) -> None:
    found = load_folder(folder, size=6)
    assert isinstance(found.points, Points)
    assert found.classes == ("cat", "dog", "owl")
    assert names(found.points, folder) == [
        "cat/a.PNG",
        "cat/b.webp",
        "dog/1.png",
        "dog/deep/2.jpg",
        "loose.jpeg",
    ]
    assert found.labels.tolist() == [0, 0, 1, 1, -1]
    assert found.skipped == ()
    assert found.points.shape == (5, 6, 6, 3)
    batch = found.points[np.array([4, 2, 4])]
    assert batch.shape == (3, 6, 6, 3)
    assert batch[1, 0, 0].tolist() == list(BLUE)
    np.testing.assert_array_equal(batch[0], batch[2])


def test_a_folder_without_sub_folders_is_unlabelled(tmp_path: Path) -> None:
    for i in range(3):
        save(tmp_path / f"{i}.png")
    found = load_folder(tmp_path)
    assert (found.classes, found.labels.tolist()) == ((), [-1, -1, -1])


def damage(root: Path) -> dict[str, str]:
    """Files that cannot be read, and a word of the reason for each."""
    noise = Image.fromarray(np.random.default_rng(0).integers(0, 256, (64, 64, 3), np.uint8))
    for name in ("cut.jpg", "cut.png", "cut.webp"):
        path = save(root / "cat" / name, noise)
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    (root / "cat" / "empty.png").write_bytes(b"")
    (root / "cat" / "text.jpg").write_text("hello")
    save(root / "cat" / "c.png").rename(root / "cat" / "is-really.gif.png")
    Image.new("RGB", (4, 4)).save(root / "cat" / "ppm.png", format="PPM")
    save(root / "cat" / "bomb.png", Image.new("1", (5000, 4000)))
    (root / "dog" / "gone.png").symlink_to(root / "nowhere.png")
    return {
        "cat/bomb.png": "5000 x 4000 pixels",
        "cat/cut.jpg": "truncated",
        "cat/cut.png": "truncated",
        "cat/cut.webp": "",
        "cat/empty.png": "not a PNG",
        "cat/ppm.png": "not a PNG",
        "cat/text.jpg": "not a PNG",
        "dog/gone.png": "No such file",
    }


@pytest.mark.parametrize("cache", [True, False])
def test_unreadable_files_are_listed_and_have_no_index(folder: Path, cache: bool) -> None:
    before = load_folder(folder, size=6)
    expected = damage(folder)
    found = load_folder(folder, size=6, max_pixels=10_000_000, cache=cache)
    skipped = {s.path.relative_to(folder).as_posix(): s.reason for s in found.skipped}
    assert list(skipped) == list(expected)
    for name, word in expected.items():
        assert word in skipped[name]
        assert skipped[name]
    assert names(found.points, folder) == [
        "cat/a.PNG",
        "cat/b.webp",
        "cat/is-really.gif.png",
        "dog/1.png",
        "dog/deep/2.jpg",
        "loose.jpeg",
    ]
    assert found.labels.tolist() == [0, 0, 0, 1, 1, -1]
    rest = np.array([0, 1, 3, 4, 5])
    np.testing.assert_array_equal(found.points[rest], before.points[np.arange(5)])


def test_a_quick_check_finds_the_rest_when_it_is_read(folder: Path) -> None:
    damage(folder)
    found = load_folder(folder, check="header", max_pixels=10_000_000)
    kept = names(found.points, folder)
    assert {"cat/empty.png", "cat/bomb.png"}.isdisjoint(kept)
    assert len(found.points[np.array([kept.index("dog/1.png")])]) == 1
    with pytest.raises(DataError, match=r"cut\.jpg: cannot be read"):
        found.points[np.array([kept.index("cat/cut.jpg")])]


@pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning")
def test_pillows_own_guard_is_listed_too(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 100)
    found = load_folder(folder)
    assert names(found.points, folder) == ["cat/a.PNG", "loose.jpeg"]
    assert "decompression bomb" in found.skipped[0].reason


def test_images_are_decoded_when_they_are_needed(folder: Path) -> None:
    lazy = load_folder(folder, check="header", cache=False)
    cached = load_folder(folder)
    lost = folder / "dog" / "1.png"
    lost.unlink()
    index = np.array([names(lazy.points, folder).index("dog/1.png")])
    assert len(cached.points[index]) == 1
    with pytest.raises(DataError, match=r"1\.png: cannot be read: No such file"):
        lazy.points[index]


@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.parametrize("cache", [True, False])
@pytest.mark.parametrize("check", ["header", "pixels"])
def test_threads_cache_and_check_change_nothing(
    tmp_path: Path, threads: int, cache: bool, check: str
) -> None:
    for i in range(30):
        save(tmp_path / f"{i:02}.png", Image.new("L", (7 + i, 9), 8 * i))
    points = load_folder(tmp_path, 4, channels=1, threads=threads, cache=cache, check=check).points
    order = np.random.default_rng(0).permutation(30)
    for _ in range(2):
        assert points[order][:, 0, 0, 0].tolist() == (8 * order).tolist()
    assert pickle.loads(pickle.dumps(points))[order].tolist() == points[order].tolist()
    assert points[np.array([], int)].shape == (0, 4, 4, 1)
    with pytest.raises(IndexError):
        points[np.array([30])]


def test_links_are_followed_but_not_in_circles(folder: Path, tmp_path: Path) -> None:
    save(tmp_path / "elsewhere" / "f.png")
    (folder / "fox").symlink_to(tmp_path / "elsewhere")
    (folder / "dog" / "up").symlink_to(folder)
    found = load_folder(folder)
    assert found.classes == ("cat", "dog", "fox", "owl")
    assert "fox/f.png" in names(found.points, folder)
    assert len(found.points) == 6


def test_one_file_in_two_classes_is_a_contradiction(folder: Path) -> None:
    (folder / "cat" / "z.png").symlink_to(folder / "dog" / "1.png")
    with pytest.raises(DataError, match=r"z\.png.*1\.png.*two labels, 'cat' and 'dog'"):
        load_folder(folder)


def test_folders_without_images_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such folder"):
        load_folder(tmp_path / "nowhere")
    with pytest.raises(DataError, match=r"no images .* among its 0 files"):
        load_folder(tmp_path)
    (tmp_path / "a.heic").write_bytes(b"II")
    with pytest.raises(DataError, match=r"no images \(.png, .*\) among its 1 files"):
        load_folder(tmp_path)
    (tmp_path / "a.png").write_bytes(b"")
    with pytest.raises(DataError, match=r"none of the 1 images .*a\.png: not a PNG"):
        load_folder(tmp_path)


@pytest.mark.parametrize(
    "options", [{"size": 0}, {"size": (4, -1)}, {"channels": 4}, {"fit": "zoom"}, {"check": "no"}]
)
def test_options_are_checked(folder: Path, options: dict) -> None:
    with pytest.raises(DataError):
        load_folder(folder, **options)


def table(folder: Path, text: str, name: str = "table.csv") -> Path:
    (folder / name).write_text(text, encoding="utf-8")
    return folder / name


def test_a_csv_gives_paths_and_labels(folder: Path) -> None:
    csv = table(
        folder,
        "path,label,who\ndog/1.png,dog,ann\ncat/b.webp,NA,bob\nloose.jpeg,,bob\n"
        f"{folder / 'cat' / 'a.PNG'},dog,ann\nmissing.png,dog,eve\n",
    )
    found = load_csv(csv, size=5)
    assert names(found.points, folder) == ["dog/1.png", "cat/b.webp", "loose.jpeg", "cat/a.PNG"]
    assert found.classes == ("NA", "dog")
    assert found.labels.tolist() == [1, 0, -1, 1]
    assert [s.path.name for s in found.skipped] == ["missing.png"]
    given = load_csv(csv, size=5, classes=["dog", "cat", "NA"])
    assert given.labels.tolist() == [0, 2, -1, 0]


def test_other_columns_and_a_byte_order_mark(folder: Path) -> None:
    csv = table(folder, "\ufefffile;class\n".replace(";", ",") + "dog/1.png,10\ncat/b.webp,9\n")
    found = load_csv(csv, path_column="file", label_column="class")
    assert (found.classes, found.labels.tolist()) == (("9", "10"), [1, 0])
    assert load_csv(csv, path_column="file", label_column=None).classes == ()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not a CSV"),
        ("path,label\n", "no rows"),
        ("file,label\na.png,x\n", "no column 'path' among file, label"),
        ("path,class\na.png,x\n", "no column 'label' among path, class"),
        ("path,label\ndog/1.png,dog\n ,dog\n", "row 3 has no path"),
        ("path,label\ndog/1\0.png,dog\n", "row 2: its path is not a text"),
        ("path,label\ndog/1.png,a\ndog/../dog/1.png,a\n", "row 2 and row 3 are the same file$"),
        ("path,label\ndog/1.png,a\ncat/b.webp,b\ndog/1.png,b\n", "row 2 and row 4 .* 'a' and 'b'"),
        ("path,label\nnowhere.png,a\n", "none of the 1 images can be read"),
        ('path,label\n"dog/1.png,a\n', "not a CSV"),
    ],
)
def test_a_csv_that_cannot_be_used_says_why(folder: Path, text: str, message: str) -> None:
    csv = table(folder, text)
    with pytest.raises(DataError, match=message) as caught:
        load_csv(csv)
    assert str(csv) in str(caught.value)


def test_a_csv_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"x\.csv: No such file"):
        load_csv(tmp_path / "x.csv")
