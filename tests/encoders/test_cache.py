"""Features on disk: what is kept, when it is computed, and what survives being killed."""

from __future__ import annotations

import os
import signal
import struct
import subprocess
import sys
import textwrap
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from spinal.data import Points, Pool
from spinal.encoders import FeatureCache, ImageEncoder, encode, load_encoder
from spinal.encoders.vectors import Vectors
from spinal.errors import FileFormatError


class Counting:
    """An encoder that counts the images that go through it."""

    def __init__(self, encoder: ImageEncoder, monkeypatch: pytest.MonkeyPatch) -> None:
        self.images = 0
        embed = encoder.embed

        def counted(pixels: np.ndarray) -> np.ndarray:
            self.images += len(pixels)
            return embed(pixels)

        monkeypatch.setattr(encoder, "embed", counted)


def test_keeps_what_the_encoder_computes(
    tmp_path: Path, photographs: list[Path], pixels: ImageEncoder
) -> None:
    cache = FeatureCache(tmp_path / "cache", pixels)
    assert cache.compute(photographs, batch=3) == []
    features, there = cache.get(photographs)
    assert there.all()
    # Small images: JPEG is not decoded at a fraction of its size, and Pillow alone gives the same.
    expected = encode(pixels, [Image.open(path) for path in photographs])
    np.testing.assert_array_equal(features, expected)
    again = FeatureCache(tmp_path / "cache", pixels).get(photographs[::-1])[0]
    np.testing.assert_array_equal(again, expected[::-1])


def test_each_content_is_computed_once(
    tmp_path: Path, photographs: list[Path], pixels: ImageEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    counting = Counting(pixels, monkeypatch)
    cache = FeatureCache(tmp_path / "cache", pixels)
    copy = photographs[0].with_name("copy.png")
    copy.write_bytes(photographs[0].read_bytes())
    cache.compute([*photographs, copy], batch=4)
    assert counting.images == len(photographs) == len(cache.vectors)

    moved = [path.rename(path.with_name("moved-" + path.name)) for path in photographs]
    cache.compute(moved)
    assert counting.images == len(photographs)
    _, there = cache.get([*moved, *photographs])
    assert there.tolist() == [True] * len(moved) + [False] * len(photographs)


def test_an_unchanged_file_is_not_read_and_a_changed_one_is(
    tmp_path: Path, photographs: list[Path], pixels: ImageEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = FeatureCache(tmp_path / "cache", pixels)
    cache.compute(photographs)
    Image.new("RGB", (40, 40), "red").save(photographs[3])
    assert not cache.get(photographs)[1][3]

    read: list[Path] = []
    read_bytes = Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda path: read.append(path) or read_bytes(path))
    cache.compute(photographs)
    assert read == [photographs[3]]
    red = cache.get(photographs)[0][3].reshape(3, 16, 16)
    np.testing.assert_allclose(red[:, 0, 0], [1, -127 / 128, -127 / 128])


def test_what_cannot_be_used_is_reported_and_remembered(
    tmp_path: Path, photographs: list[Path], pixels: ImageEncoder
) -> None:
    text, cut, huge, gone = (tmp_path / name for name in ("a.png", "b.jpg", "c.png", "d.png"))
    text.write_text("not an image")
    jpeg = next(path for path in photographs if path.suffix == ".jpg")
    cut.write_bytes(jpeg.read_bytes()[:200])
    huge.write_bytes(png_that_claims(30_000, 30_000))
    given = [text, cut, huge, gone, photographs[0]]
    cache = FeatureCache(tmp_path / "cache", pixels)
    first = cache.compute(given)
    reasons = {skipped.path.name: skipped.reason for skipped in first}
    assert list(reasons) == ["a.png", "b.jpg", "c.png", "d.png"]
    assert reasons["a.png"].startswith("not a PNG")
    assert "30000 x 30000" in reasons["c.png"] or "pixels" in reasons["c.png"]
    assert reasons["d.png"] == "No such file or directory"
    assert cache.get(given)[1].tolist() == [False] * 4 + [True]
    second = cache.compute(given)
    assert sorted(second, key=lambda s: s.path) == sorted(first, key=lambda s: s.path)


@pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning")
def test_large_images_are_refused_by_their_header(
    tmp_path: Path, pixels: ImageEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def load(*_: object) -> None:
        raise AssertionError("decoded")

    monkeypatch.setattr("PIL.ImageFile.ImageFile.load", load)
    huge = tmp_path / "huge.png"
    huge.write_bytes(png_that_claims(10_001, 10_000))
    (skipped,) = FeatureCache(tmp_path / "cache", pixels).compute([huge])
    assert skipped.reason == "10001 x 10000 pixels, more than 100,000,000"


def test_progress_and_stopping(
    tmp_path: Path, photographs: list[Path], pixels: ImageEncoder
) -> None:
    cache = FeatureCache(tmp_path / "cache", pixels)
    seen: list[tuple[int, int]] = []
    cache.compute(
        photographs,
        on_progress=lambda done, total: seen.append((done, total)),
        should_stop=lambda: seen[-1][0] >= 8,
        batch=4,
    )
    assert seen == [(0, 20), (4, 20), (8, 20)]
    assert cache.get(photographs)[1].tolist() == [True] * 8 + [False] * 12
    cache.compute(photographs, on_progress=lambda done, total: seen.append((done, total)), batch=6)
    assert seen[3:] == [(8, 20), (14, 20), (20, 20)]


def test_points_of_a_pool(tmp_path: Path, photographs: list[Path], pixels: ImageEncoder) -> None:
    cache = FeatureCache(tmp_path / "cache", pixels)
    cache.compute(photographs[5:])
    points, there = cache.points(photographs)
    assert isinstance(points, Points)
    assert points.shape == (15, 768)
    assert there.sum() == 15
    pool = Pool(points, 2)
    np.testing.assert_array_equal(pool.points[[3, 1]], cache.get(photographs)[0][[3, 1]])


def test_encoders_do_not_share_vectors(
    tmp_path: Path, photographs: list[Path], pixels: ImageEncoder
) -> None:
    FeatureCache(tmp_path / "cache", pixels).compute(photographs)
    other = FeatureCache(tmp_path / "cache", load_encoder("pixels@8", device="cpu"))
    assert not other.get(photographs)[1].any()


def test_names_that_are_no_text(
    tmp_path: Path, photographs: list[Path], pixels: ImageEncoder
) -> None:
    odd = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff\xfe.png"))
    odd.write_bytes(photographs[0].read_bytes())
    cache = FeatureCache(tmp_path / "cache", pixels)
    assert cache.compute([odd]) == []
    assert cache.get([odd])[1].all()


@pytest.mark.long
def test_survives_being_killed(
    tmp_path: Path, photographs: list[Path], pixels: ImageEncoder
) -> None:
    """Killed again and again while it writes: what is there is right, and it comes to an end."""
    many = []
    for i in range(400):
        many.append(tmp_path / f"{i}.png")
        Image.new("RGB", (8, 8), (i % 256, i // 256, 7)).save(many[-1])
    script = textwrap.dedent("""
        import sys
        from pathlib import Path
        from spinal.encoders import FeatureCache, load_encoder
        folder = Path(sys.argv[1])
        cache = FeatureCache(folder / "cache", load_encoder("pixels", device="cpu"))
        print("started", flush=True)
        cache.compute(sorted(folder.glob("*.png")), batch=1)
    """)
    expected = encode(pixels, [Image.open(path) for path in many])
    generator = np.random.default_rng(0)
    found = 0
    for _ in range(3):
        process = subprocess.Popen(
            [sys.executable, "-c", script, str(tmp_path)], stdout=subprocess.PIPE
        )
        assert process.stdout is not None
        process.stdout.readline()
        try:
            process.wait(float(generator.uniform(0.01, 0.15)))
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
        process.communicate()
        cache = FeatureCache(tmp_path / "cache", pixels)
        features, there = cache.get(many)
        np.testing.assert_array_equal(features, expected[there])
        assert there.sum() >= found
        found = int(there.sum())
        cache.close()
    cache = FeatureCache(tmp_path / "cache", pixels)
    cache.compute(many)
    np.testing.assert_array_equal(cache.get(many)[0], expected)


def test_rows_that_were_cut_off_are_overwritten(
    tmp_path: Path, photographs: list[Path], pixels: ImageEncoder
) -> None:
    """As after a kill between the write to one file and the commit in the other."""
    cache = FeatureCache(tmp_path / "cache", pixels)
    cache.compute(photographs[:5])
    with (cache.vectors.folder / "vectors.f32").open("ab") as file:
        file.write(b"torn")
    cache.compute(photographs)
    expected = encode(pixels, [Image.open(path) for path in photographs])
    np.testing.assert_array_equal(cache.get(photographs)[0], expected)


def test_two_writers(tmp_path: Path, photographs: list[Path], pixels: ImageEncoder) -> None:
    one, two = (FeatureCache(tmp_path / "cache", pixels) for _ in range(2))
    one.compute(photographs[:10], batch=2, on_progress=lambda *_: two.compute(photographs, batch=3))
    expected = encode(pixels, [Image.open(path) for path in photographs])
    for cache in (one, two):
        np.testing.assert_array_equal(cache.get(photographs)[0], expected)
    assert len(one.vectors) == len(photographs)


@pytest.mark.parametrize("damage", ["not a number", "one bit", "cut off"])
def test_damaged_vectors_are_computed_again(
    tmp_path: Path,
    photographs: list[Path],
    pixels: ImageEncoder,
    monkeypatch: pytest.MonkeyPatch,
    damage: str,
) -> None:
    cache = FeatureCache(tmp_path / "cache", pixels)
    cache.compute(photographs)
    expected = cache.get(photographs)[0]
    assert cache.vectors.repair() == 0
    content = bytearray(cache.vectors.file.read_bytes())
    at = 2 * 4 * cache.vectors.width + 400
    if damage == "not a number":
        content[at : at + 4] = b"\xff" * 4
    elif damage == "one bit":
        content[at] ^= 1
    else:
        del content[-7:]
    cache.vectors.file.write_bytes(content)
    counting = Counting(pixels, monkeypatch)
    assert cache.vectors.repair() == 1
    assert cache.get(photographs)[1].sum() == len(photographs) - 1
    cache.compute(photographs)
    assert counting.images == 1
    np.testing.assert_array_equal(cache.get(photographs)[0], expected)
    assert cache.vectors.repair() == 0


def test_vectors_of_an_older_version_are_used(
    tmp_path: Path, photographs: list[Path], pixels: ImageEncoder
) -> None:
    cache = FeatureCache(tmp_path / "cache", pixels)
    cache.compute(photographs[:5])
    cache.vectors._index.execute("ALTER TABLE contents DROP COLUMN checksum")
    cache.close()
    cache = FeatureCache(tmp_path / "cache", pixels)
    assert cache.vectors.repair() == 0
    cache.compute(photographs)
    expected = encode(pixels, [Image.open(path) for path in photographs])
    np.testing.assert_array_equal(cache.get(photographs)[0], expected)


def test_damage_is_named(tmp_path: Path, photographs: list[Path], pixels: ImageEncoder) -> None:
    cache = FeatureCache(tmp_path / "cache", pixels)
    cache.compute(photographs)
    cache.close()
    with pytest.raises(FileFormatError, match="its vectors have 768 numbers, not 5"):
        Vectors(cache.vectors.folder, 5)
    (cache.vectors.folder / "vectors.f32").write_bytes(b"")
    with pytest.raises(FileFormatError, match="delete this folder"):
        FeatureCache(tmp_path / "cache", pixels).get(photographs)
    (cache.vectors.folder / "index.sqlite").write_bytes(b"not a database at all" * 100)
    with pytest.raises(FileFormatError, match="delete this folder"):
        FeatureCache(tmp_path / "cache", pixels)


def png_that_claims(width: int, height: int) -> bytes:
    """A PNG file whose header promises an image that does not follow."""
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    parts = [b"\x89PNG\r\n\x1a\n"]
    for kind, data in ((b"IHDR", header), (b"IDAT", zlib.compress(b"\0")), (b"IEND", b"")):
        checksum = struct.pack(">I", zlib.crc32(kind + data))
        parts += [struct.pack(">I", len(data)), kind, data, checksum]
    return b"".join(parts)
