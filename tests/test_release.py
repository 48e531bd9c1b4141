"""What a package index, a citation and a type checker see."""

from __future__ import annotations

import re
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

import spinal
from spinal.files import read_toml

ROOT = Path(__file__).parents[1]


def field(name: str) -> str:
    """A field of CITATION.cff, at its top level."""
    line = re.search(rf"^{name}: (.*)$", (ROOT / "CITATION.cff").read_text("utf-8"), re.M)
    assert line is not None
    return line.group(1)


def test_version_and_date_agree() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text("utf-8")
    released = dict(re.findall(r"^## (\d\S*) \((\d{4}-\d\d-\d\d)\)$", changelog, re.M))
    assert field("version") == spinal.__version__
    assert released[spinal.__version__] == field("date-released")


def test_addresses_agree() -> None:
    config = read_toml(ROOT / "pyproject.toml")
    urls = config["project"]["urls"]
    assert field("repository-code") == urls["Repository"]
    assert field("url") == urls["Documentation"]
    assert urls["Changelog"].startswith(urls["Repository"])
    (readme,) = config["tool"]["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"]["substitutions"]
    assert urls["Repository"] in readme["replacement"]


def test_images_of_the_readme_show_on_a_package_index() -> None:
    config = read_toml(ROOT / "pyproject.toml")
    (rule,) = config["tool"]["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"]["substitutions"]
    text = (ROOT / "README.md").read_text("utf-8")
    for path in re.findall(r"\]\((?!https?://|#)([^)#]+)", text):
        assert (ROOT / path).exists(), path
    shown = re.sub(rule["pattern"], rule["replacement"], text)
    assert "![" in shown
    assert re.findall(r"\]\((?!https://)(?!#)[^)]*\)", shown) == []


@pytest.mark.long
def test_a_type_checker_sees_the_types_from_outside(tmp_path: Path) -> None:
    """In an environment where spinal is installed, not among the sources that are checked."""
    venv.create(tmp_path / "env")
    variables = {"base": str(tmp_path / "env"), "platbase": str(tmp_path / "env")}
    site = Path(sysconfig.get_path("purelib", vars=variables))
    (site / "spinal").symlink_to(ROOT / "spinal")
    (site / "others.pth").write_text(sysconfig.get_path("purelib"))
    (tmp_path / "use.py").write_text(
        "from spinal import ActiveLearner, Pool, load_dataset\n"
        "digits = load_dataset('digits')\n"
        "learner = ActiveLearner(Pool(digits.train_images, digits.classes))\n"
        "reveal_type(digits.classes)\n"
        "reveal_type(learner.assess(digits.test_images))\n"
        "learner.ask('ten')\n"
    )
    interpreter = Path(sysconfig.get_path("scripts", vars=variables)) / Path(sys.executable).name
    command = [sys.executable, "-m", "mypy", "--python-executable", str(interpreter)]
    done = subprocess.run(
        [*command, "--ignore-missing-imports", "use.py"],
        cwd=tmp_path, capture_output=True, text=True,
    )  # fmt: skip
    assert "tuple[str, ...]" in done.stdout.replace("builtins.", ""), done.stdout
    assert "spinal.learner.assessment.Assessment" in done.stdout
    assert 'incompatible type "str"; expected "int"' in done.stdout
