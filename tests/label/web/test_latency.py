"""The page does not wait for the model, which is fitted in another process at a lower priority."""

from __future__ import annotations

import os
import re
import sys
import time
from pathlib import Path

import pytest

from spinal.label.store.project import open_project
from spinal.label.web.serving import Page
from spinal.label.web.simulate import Person
from tests.label.conftest import CLASSES
from tests.label.files import make_images


@pytest.mark.long
def test_the_next_image_comes_while_a_fit_runs(tmp_path: Path) -> None:
    """`benchmarks/label.py` measures how fast it comes."""
    truth = make_images(tmp_path / "images", 150)
    project = open_project(tmp_path / "images", classes=CLASSES, encoder="pixels")
    project.scan()
    person = Person(truth, CLASSES)
    waits: list[float] = []
    with Page(project, "127.0.0.1", 0) as page:
        while page.supervisor.status["state"] in ("starting", "features"):
            time.sleep(0.1)
        for budget in range(20, 141, 20):
            session = person.label(page.link, budget, pace=0.05)
            waits += session.waits_during("fitting")
            if len(waits) >= 15:
                break
        assert page.supervisor._worker is not None
        worker = page.supervisor._worker.pid
        if sys.platform == "linux":
            own = os.getpriority(os.PRIO_PROCESS, 0)
            assert os.getpriority(os.PRIO_PROCESS, worker) == min(own + 5, 19)
            group = Path(f"/proc/{worker}/autogroup")
            if group.exists():
                assert re.search(r"nice 5$", group.read_text().strip())
    project.close()
    assert len(waits) >= 15, "no fit ran while it was labelled"
