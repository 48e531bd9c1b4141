"""Reading of measurements on disk, and the page of experiments that have no rounds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from spinal.errors import FileFormatError, SpinalError
from spinal.files import write_text
from spinal.report.origin import flat
from spinal.report.page import Chapter, page
from spinal.report.parts import Drawing, Section, Table
from spinal.report.write import write_parts
from spinal.runs import read_lines, read_settings, seed_of


@dataclass(frozen=True, eq=False)
class StoredSeed:
    """One seed of an experiment: the results of its parts, and its settings."""

    experiment: str
    seed: int
    parts: list[dict[str, Any]]
    settings: dict[str, Any]

    @property
    def title(self) -> str:
        """Title of its experiment."""
        return str(self.settings["experiment"].get("title") or self.experiment)


def stored_seeds(folder: str | Path, parts: int) -> dict[str, list[StoredSeed]]:
    """The finished seeds under ``folder``, by experiment, in the order of seeds.

    Args:
        folder: Folder of measurements.
        parts: Number of parts of a finished seed.

    Raises:
        SpinalError: if there are none.
    """
    by_experiment: dict[str, list[StoredSeed]] = {}
    for path in Path(folder).glob("*/seed-*/parts.jsonl"):
        lines, name, seed = read_lines(path), path.parts[-3], seed_of(path.parent)
        if len(lines) == parts and seed is not None:
            settings = read_settings(path.parent)
            if "experiment" not in settings:
                raise FileFormatError(f"{path.parent}: its run.toml is missing or not its own")
            by_experiment.setdefault(name, []).append(StoredSeed(name, seed, lines, settings))
    if not by_experiment:
        raise SpinalError(f"{folder}: no finished seeds in it")
    return {
        name: sorted(by_experiment[name], key=lambda measurement: measurement.seed)
        for name in sorted(by_experiment)
    }


def origin(seeds: Sequence[StoredSeed], command: str) -> Section:
    """The origin of the seeds: command, settings, versions, hardware."""
    rows = [
        {"seed": str(s.seed), **s.settings.get("versions", {}), **s.settings.get("machine", {})}
        for s in seeds
    ]
    makers = pd.DataFrame(rows).fillna("")
    settings = pd.DataFrame(flat(seeds[0].settings["experiment"]), columns=["setting", "value"])
    numbers = ",".join(str(seed.seed) for seed in seeds)
    return Section(
        "Commands and versions",
        [f"`{command} --seeds {numbers}`"],
        [
            Table(
                "seeds",
                "Versions that made them, and the machine.",
                makers,
                makers,
                words=makers.shape[1],
            ),
            Table("settings", "Settings, as they were kept.", settings, settings, words=2),
        ],
    )


def write_pages(chapters: Sequence[Chapter], heading: str, out: Path) -> list[Path]:
    """Write ``index.html``, ``summary.md`` and all parts as files; return the paths."""
    out.mkdir(parents=True, exist_ok=True)
    write_text(out / "index.html", page(chapters, heading))
    write_text(out / "summary.md", _markdown(chapters, heading))
    return [out / "index.html", out / "summary.md", *write_parts(list(chapters), out)]


def _markdown(chapters: Sequence[Chapter], heading: str) -> str:
    lines = [f"# {heading}", ""]
    for folder, title, sections in chapters:
        lines += [f"## {title}", ""]
        for section in sections:
            lines += [f"### {section.title}", ""]
            for sentence in section.text:
                lines += [sentence, ""]
            for part in section.parts:
                if isinstance(part, Drawing):
                    lines += [f"![{part.caption}]({folder}/{part.name}.svg)", "", part.caption, ""]
                else:
                    lines += [part.to_markdown()]
    return "\n".join(lines)
