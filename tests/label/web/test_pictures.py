"""What a browser gets of an image file."""

from __future__ import annotations

import io

import pytest
from PIL import Image
from starlette.testclient import TestClient

from spinal.label.store.project import Project
from tests.label.store.test_decoding import WEBP_BOMB, jpeg_bomb


def number_of(project: Project, name: str) -> int:
    return next(row["id"] for row in project.store.images() if row["path"] == name)


def test_small_files_are_shown_as_they_are_and_large_ones_scaled(
    client: TestClient, project: Project
) -> None:
    small = client.get("/image/1")
    assert small.content == (project.folder / "image-0000.png").read_bytes()
    assert small.headers["content-type"] == "image/png"
    Image.new("RGB", (3000, 2000), "teal").save(project.folder / "large.jpg")
    project.scan()
    number = number_of(project, "large.jpg")
    for route, size in (("image", (1600, 1067)), ("thumb", (240, 160))):
        for _ in range(2):
            reply = client.get(f"/{route}/{number}")
            assert reply.headers["content-type"] == "image/jpeg"
            with Image.open(io.BytesIO(reply.content)) as copy:
                assert copy.size == size
    assert len(list((project.home / "previews").rglob("*.jpg"))) == 2


@pytest.mark.parametrize("route", ["image", "thumb"])
def test_a_truncated_image_is_skipped_for_that_reason(
    client: TestClient, project: Project, route: str
) -> None:
    Image.effect_noise((3000, 2000), 9).save(project.folder / "cut.png")
    whole = (project.folder / "cut.png").read_bytes()
    (project.folder / "cut.png").write_bytes(whole[: len(whole) // 2])
    project.scan()
    refused = client.get(f"/{route}/{number_of(project, 'cut.png')}")
    assert refused.status_code == 404
    assert "truncated" in refused.json()["error"]
    project.scan()  # which looks again at files that were refused
    assert [row["path"] for row in project.store.problems()] == ["cut.png"]


@pytest.mark.parametrize("name", ["small.jpg", "small.png", "small.webp"])
def test_a_small_file_is_not_sent_without_its_end(
    client: TestClient, project: Project, name: str
) -> None:
    file = project.folder / name
    Image.effect_noise((200, 200), 50).convert("RGB").save(file)
    project.scan()
    whole, number = file.read_bytes(), number_of(project, name)
    assert client.get(f"/image/{number}").content == whole
    file.write_bytes(whole[: len(whole) // 2])
    assert client.get(f"/image/{number}").status_code == 404
    assert [row["path"] for row in project.store.problems()] == [name]


@pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning")
def test_bombs_are_skipped_and_other_images_come(client: TestClient, project: Project) -> None:
    (project.folder / "scans.jpg").write_bytes(jpeg_bomb())
    (project.folder / "large.webp").write_bytes(WEBP_BOMB)
    project.scan()
    for name in ("scans.jpg", "large.webp"):
        for route in ("image", "thumb", "image"):
            assert client.get(f"/{route}/{number_of(project, name)}").status_code == 404
    assert client.get("/thumb/1").status_code == 200
    problems = {row["path"]: row["problem"] for row in project.store.problems()}
    assert problems == {
        "large.webp": "takes too much memory to be decoded",
        "scans.jpg": "a JPEG of 406 scans, more than 100",
    }
