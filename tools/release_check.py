"""Build the wheel and the source distribution, and test them in empty environments.

``python tools/release_check.py`` (or ``make release-check``) installs the following, each into its
own virtual environment outside the repository:

- the wheel with the constraints of the project, without extras and with each extra;
- the source distribution, and runs a part of the tests that it contains;
- the wheel without constraints, on every other Python from 3.10 to 3.13 that is installed.

In each environment ``tools/smoke.py`` tests the installation. A failure does not stop the other
checks.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[1]
PYTHONS = ("3.10", "3.11", "3.12", "3.13")
#: Exit code of ``tools/smoke.py`` if a check is not possible here.
NOT_TESTED = 77
#: Extras for the development of spinal itself.
DEVELOPMENT = ("dev", "docs")
#: Tests of the source distribution: quick, and from every layer.
SDIST_TESTS = (
    "tests/acquisition/test_scores.py", "tests/circuits/test_densities.py", "tests/test_files.py",
)  # fmt: skip


def extras() -> list[str]:
    """The extras for users, from pyproject.toml."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    return [name for name in project["optional-dependencies"] if name not in DEVELOPMENT]


def find_pythons(versions: Iterable[str] = PYTHONS) -> dict[str, str]:
    """The interpreters of these versions that can be started, by version.

    Looks on the PATH and among the versions of pyenv.
    """
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    executables = {}
    for version in versions:
        candidates = [f"python{version}", *map(str, sorted(pyenv.glob(f"{version}.*/bin/python")))]
        for candidate in candidates:
            code = "import sys, venv; print('%d.%d' % sys.version_info[:2])"
            try:
                shown = subprocess.run([candidate, "-c", code], capture_output=True, text=True)
            except OSError:
                continue
            if shown.stdout.strip() == version:
                executables[version] = candidate
                break
    return executables


class NotTestedError(Exception):
    """A check is not possible here; the message says why."""


class CheckError(Exception):
    """A command failed; the message holds what it printed."""


def run(*command: str | Path, cwd: Path) -> None:
    """Run a command outside the repository.

    Raises:
        NotTestedError: if it says so.
        CheckError: if it fails.
    """
    environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
    environment |= {"OMP_NUM_THREADS": "1", "PYTHONNOUSERSITE": "1"}
    done = subprocess.run(
        [*map(str, command)], cwd=cwd, env=environment, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, encoding="utf-8", errors="replace",
    )  # fmt: skip
    if done.returncode == NOT_TESTED:
        raise NotTestedError(done.stdout.strip().splitlines()[-1])
    if done.returncode:
        raise CheckError(f"{done.stdout}\nfailed: {' '.join(map(str, command))}")


def build(folder: Path) -> tuple[Path, Path]:
    """The wheel and the source distribution."""
    run(sys.executable, "-m", "build", "--outdir", folder, ROOT, cwd=folder)
    (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return wheel, sdist


def install(python: str, home: Path, *requirements: str, constraints: bool = True) -> Path:
    """A new environment in ``home`` with these packages; its Python."""
    shutil.rmtree(home, ignore_errors=True)
    run(python, "-m", "venv", home, cwd=home.parent)
    inside = home / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    pins = ("-c", str(ROOT / "constraints.txt")) if constraints else ()
    run(inside, "-m", "pip", "install", "--quiet", "--no-compile", *pins, *requirements, cwd=home)
    return inside


def check_wheel(
    wheel: Path, python: str, extra: str, folder: Path, *, constraints: bool = True
) -> None:
    """Install the wheel with an extra ("" for none) and use it."""
    requirement = f"{wheel}[{extra}]" if extra else str(wheel)
    inside = install(python, folder / "env", requirement, "mypy", constraints=constraints)
    work = folder / "work"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    shutil.copy(ROOT / "tools" / "smoke.py", work)
    run(inside, "smoke.py", *([extra] if extra else []), cwd=work)


def check_sdist(sdist: Path, folder: Path) -> None:
    """Install the source distribution and run some of its tests from its own folder."""
    with tarfile.open(sdist) as archive:
        archive.extractall(folder)
    inside = install(sys.executable, folder / "env", str(sdist), "pytest")
    source = folder / sdist.name.removesuffix(".tar.gz")
    shutil.rmtree(source / "spinal")  # the tests must import the installed package
    run(inside, "-m", "pytest", "-q", "-m", "not long", *SDIST_TESTS, cwd=source)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run all checks, and print how long each took."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--extra", action="append", help="only these extras; may be repeated")
    parser.add_argument("--pythons", help="only these other versions, such as 3.12,3.13; or none")
    options = parser.parse_args(arguments)
    own = "{}.{}".format(*sys.version_info[:2])
    chosen = PYTHONS if options.pythons is None else options.pythons.split(",")
    others = [version for version in chosen if version in PYTHONS and version != own]
    installed = find_pythons(others)

    with tempfile.TemporaryDirectory(prefix="spinal-release-") as temporary:
        folder = Path(temporary)
        failed = []

        def check(what: str, function: Callable[..., None], *arguments: Any, **more: Any) -> None:
            start = time.monotonic()
            try:
                function(*arguments, **more)
                outcome = "ok"
            except CheckError as error:
                print(error)
                failed.append(what)
                outcome = "FAILED"
            except NotTestedError as reason:
                what, outcome = f"{what}: not tested, {reason}", "--"
            print(f"{outcome}  {what}  ({time.monotonic() - start:.0f} s)", flush=True)

        wheel, sdist = build(folder)
        print(f"ok  built {wheel.name} and {sdist.name}", flush=True)
        check(f"source distribution, Python {own}", check_sdist, sdist, folder)
        for extra in options.extra or ["", *extras()]:
            what = f"wheel, Python {own}, {extra or 'no extra'}"
            check(what, check_wheel, wheel, sys.executable, extra, folder)
        for version, python in installed.items():
            what = f"wheel, Python {version}, no extra, no constraints"
            check(what, check_wheel, wheel, python, "", folder, constraints=False)
        for version in others:
            if version not in installed:
                print(f"--  Python {version} is not installed here: not tested")
    if failed:
        sys.exit(f"failed: {'; '.join(failed)}")


if __name__ == "__main__":
    main()
