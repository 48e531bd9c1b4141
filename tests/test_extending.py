"""The changes in docs/extending.md apply to the project as it is, and their tests pass."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
DIFFS = re.findall(
    r"^```diff\n(.*?)^```$", (ROOT / "docs" / "extending.md").read_text("utf-8"), re.M | re.S
)


@pytest.mark.long
def test_each_change_is_a_file_a_line_and_a_test(tmp_path: Path) -> None:
    for folder in ("spinal", "tests"):
        shutil.copytree(
            ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__")
        )
    added = []
    for diff in DIFFS:
        new = re.findall(r"^--- /dev/null\n\+\+\+ b/(.*)$", diff, re.M)
        assert [path.partition("/")[0] for path in new] == ["spinal", "tests"]
        added.append(new[1])
        subprocess.run(["git", "apply", "-"], input=diff, text=True, cwd=tmp_path, check=True)
    assert len(added) == 5
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *added]
    run = subprocess.run(
        command,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stdout
    assert "5 passed" in run.stdout
