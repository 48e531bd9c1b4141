"""The command line, as a user meets it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from spinal.commands.app import main
from spinal.commands.options import parse_seeds
from spinal.errors import SpinalError


def spinal(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "spinal", *arguments]
    environment = {
        "COLUMNS": "120",
        "PATH": "",
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": str(Path.cwd()),
    }
    return subprocess.run(
        command, capture_output=True, text=True, cwd=cwd, env=environment, check=False
    )


class Called(NamedTuple):
    """What a command printed, and its exit code."""

    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Called]:
    """Runs a command in this process, which imports everything once, in an empty folder."""

    def run(*arguments: str) -> Called:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("COLUMNS", "120")
        monkeypatch.setattr(sys, "argv", ["spinal", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        shown = capsys.readouterr()
        return Called(int(ended.value.code or 0), shown.out, shown.err)

    return run


def test_help_reads_like_a_manual() -> None:
    shown = spinal("--help").stdout
    for word in (
        "demo",
        "run",
        "report",
        "tune",
        "datasets",
        "protocols",
        "methods",
        "spinal protocols digits",
    ):
        assert word in shown


def test_help_needs_neither_torch_nor_numpy() -> None:
    """As ``spinal --help`` would wait seconds for them."""
    code = (
        "import sys\nfrom spinal.commands.app import main\nsys.argv = ['spinal', '--help']\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "print(sorted({'torch', 'numpy', 'sklearn', 'pandas'} & sys.modules.keys()))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True,
        env={"PYTHONPATH": str(Path.cwd())},
    )  # fmt: skip
    assert "demo" in done.stdout
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.long
def test_set_changes_a_protocol(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(
        'rounds = 0\n[network]\nname = "dense"\ntraining = {min-steps = 1, max-steps = 2}\n'
    )
    random = ["run", "mine.toml", "--method", "random", "--workers", "1"]
    assert spinal(*random, cwd=tmp_path).returncode == 0
    wide = ["--set", "initial=30", "--set", "network.training.batch-size=8"]
    refused = spinal(*random, *wide, cwd=tmp_path)
    assert refused.returncode == 2
    assert "made with other settings" in refused.stderr
    done = spinal(*random, *wide, "--out", "other", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "30 labels" in done.stdout
    kept = (tmp_path / "other" / "mine" / "random" / "seed-0" / "run.toml").read_text()
    assert "batch-size = 8" in kept


@pytest.mark.long
def test_either_spn_at_any_scale_and_what_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(
        'rounds = 0\n[network]\nname = "dense"\ntraining = {min-steps = 1, max-steps = 2}\n'
    )
    options = ["--method", "all", "--acquisition", "bald", "--spn", "tuned", "--workers", "1"]
    done = spinal("run", "mine.toml", *options, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "left out: deterministic does not go with bald" in done.stdout
    folder = tmp_path / "runs" / "mine-tuned-spn"
    assert (folder / "spn-cnn-bald" / "seed-0" / "rounds.jsonl").exists()
    assert (folder / "badge" / "seed-0" / "rounds.jsonl").exists()
    assert not (folder / "deterministic-bald").exists()


@pytest.mark.long
def test_demo_spn_writes_picture_and_table(tmp_path: Path) -> None:
    done = spinal("demo-spn", "--out", "here", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "here/spn.png" in done.stdout
    header, first, *_ = (tmp_path / "here" / "spn.csv").read_text().splitlines()
    assert header.startswith("missing,")
    with_all_features = [float(value) for value in first.split(",")][1:]
    assert with_all_features[0] == with_all_features[1] > 0.9


@pytest.mark.long
def test_demo_ends_with_picture_table_and_paths(tmp_path: Path) -> None:
    done = spinal("demo", "--rounds", "1", "--seeds", "0", "--out", "here", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "spn-cnn-margin" in done.stdout
    assert "here/digits.png" in done.stdout
    assert (tmp_path / "here" / "digits.png").stat().st_size > 10_000
    again = spinal("report", "here/runs", cwd=tmp_path)
    assert again.returncode == 0, again.stderr
    assert (tmp_path / "here" / "runs" / "report" / "summary.md").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "digitz"], "did you mean 'digits'"),
        (["run", "digits", "--method", "spn"], "did you mean 'spn-cnn'"),
        (["run", "digits", "--acquisition", "bald-ish"], "does not go with 'bald-ish'"),
        (["run", "digits", "--method", "all", "--acquisition", "bold"], "did you mean 'bald'"),
        (["run", "digits", "--seeds", "a-b"], "give numbers and ranges"),
        (["run", "digits", "--set", "network.widht=2"], "did you mean 'width'"),
        (["tune", "digits", "--set", "rounds"], "is not KEY=VALUE"),
        (["run", "digits", "--engine", "rai"], "did you mean 'ray'"),
        (["report", "nothing-here"], "no runs in it"),
        (["protocols", "nope"], "no protocol 'nope'"),
    ],
)
def test_errors_are_one_line_and_exit_2(
    arguments: list[str], message: str, call: Callable[..., Called]
) -> None:
    done = call(*arguments)
    assert done.returncode == 2
    assert done.stderr.startswith("error:")
    assert message in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_brackets_in_errors_are_shown(tmp_path: Path, call: Callable[..., Called]) -> None:
    (tmp_path / "mine.toml").write_text("scale = 5")
    assert "[scale.cpu]" in call("run", "mine.toml").stderr


def test_listings(call: Callable[..., Called]) -> None:
    assert "mnist" in call("protocols").stdout
    assert 'dataset = "digits"' in call("protocols", "digits").stdout
    assert "max-entropy" in call("methods").stdout
    assert "1297 x 8 x 8 x 1" in call("datasets").stdout


def test_the_program_itself_ends_with_the_error(tmp_path: Path) -> None:
    done = spinal("run", "digitz", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: no protocol 'digitz'")


def test_seeds_are_numbers_and_ranges() -> None:
    assert parse_seeds("0-2,5, 1") == [0, 1, 2, 5]
    for wrong in ("", "3-1", "x"):
        with pytest.raises(SpinalError):
            parse_seeds(wrong)
