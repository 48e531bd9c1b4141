"""The report of `benchmarks.afternoon`: the steps of each program, totals, accuracy."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import dataclass
from typing import Any

from benchmarks.machine import processor

#: Estimated seconds for a key or a typed character, and to point at something and click it: the
#: keystroke-level model of Card, Moran and Newell (1980), a good typist.
KEY, CLICK = 0.2, 1.3

#: Test photographs for which the exported model is compared with the table of predictions.
CHECKED = 100

INTRODUCTION = """\
A simulated person drives both programs in Chromium, with mouse and keyboard. They start from the same folder of {n}
photographs of waste in six classes (TrashNet, 112 x 84 pixels; the file names do not tell the class), give {answers}
answers, all of them right, and end with a model and a table of its predictions for 630 other photographs.

- **Wait**: seconds from the first input of a step until the program is ready for the next step. This machine is shared,
  so the tables have an estimate for an idle machine: seconds on the clock, or seconds of all processors that program and
  browser had meanwhile, whichever is less.
- **Think**: {think:g} s for each answer, the same for both, and not part of *wait*. The person really pauses, since
  spinal computes in the background meanwhile. While it does, a pause lasts until it had {think:g} s of processor time.
- **Click, press and type**: estimated, with {click:g} s for a click and {key:g} s for a key or a character
  (keystroke-level model).
- Installation is not counted, nor is reading documentation: the person knows all steps.
"""  # noqa: E501

ABOUT_SPINAL = """\
The model chooses the images and learns while the person labels. The exported classifier takes feature vectors: to use
it without spinal, compute these with a few lines of your own. `spinal predict` does both. The page can export the model
as well, with two clicks.
"""  # noqa: E501

ABOUT_LABEL_STUDIO = """\
- By default, Label Studio refuses to import more than 100 files at once, with an error message that names a setting.
  The person knows this and sets it in the first command.
- The first start creates the database, which takes most of its time. This step and the next one are needed once, the
  others for each project.
- Clicks and keys in the file dialog are counted, but not driven: the browser gets the files directly.
- Images are labelled in the order of the files, which is random here. In a folder that is sorted by class, the person
  would have to change the sampling in the settings.
- Label Studio does not train models. The script, `benchmarks/afternoon_train.py`, uses the same encoder as spinal,
  EfficientNet-Lite0, and logistic regression of scikit-learn. It is counted as typed: about four minutes, which
  somebody who has such a script saves. No time is counted to think about it.
- `spinal label-studio` trains a model for a Label Studio project and chooses its tasks, without a script. It was not
  measured here.
"""  # noqa: E501

BETTER = """\
- **Kinds of work.** Boxes, polygons, masks, key points, audio, video, text spans, time series, dialogues, and mixtures
  of them. In spinal, an image or a text has one class or several, and nothing else.
- **Teams.** Accounts with passwords, several projects on one page, and a data manager with filters, columns and saved
  views. spinal serves one project and only asks for a name.
- **Storage and connections.** S3, Google Cloud, Azure and Redis as sources and targets, PostgreSQL, webhooks, a complete
  API, an SDK. spinal reads a folder or a table.
- **Few commands.** After the start, classes and files are chosen on the page, and files can come from another machine.
  `spinal label` takes both as arguments, and the files must be on the machine where it runs.
- **Your own model.** With a script of your own, everything about the model can be changed.
"""  # noqa: E501

LIMITS = """\
- One run, one dataset, one number of answers. The difference in accuracy has a standard error of about two points from
  the test photographs alone; the choice of the images adds to it. [Accuracy per label](answers/README.md) has more
  datasets and seeds.
- Real people need longer for some images than for others, make mistakes, and look for buttons.
- The machine was busy, so the waits are estimates, and those on the clock are too long. Processor seconds of server
  and browser are added up, although they can work at the same time, and the browser draws without a graphics card. So
  the estimates are rather too long as well, mostly for Label Studio, whose page does more.
- Clicks, keys and characters do not depend on the machine.
"""  # noqa: E501

ABOUT = {"spinal": ABOUT_SPINAL, "Label Studio": ABOUT_LABEL_STUDIO}


@dataclass
class Step:
    """What a person does for one purpose, and the wait for it.

    Attributes:
        name: the purpose.
        clicks: of the mouse.
        keys: that are pressed in the browser; a combination, such as Ctrl+Enter, is one.
        characters: that are typed, in commands, forms and scripts.
        wait: seconds on the clock until the program was ready, without the time to think.
        processor: seconds of all processors that the program and the browser had meanwhile.
        answers: images that are labelled.
    """

    name: str
    clicks: int = 0
    keys: int = 0
    characters: int = 0
    wait: float = 0.0
    processor: float = 0.0
    answers: int = 0

    def __add__(self, other: Step) -> Step:
        return Step(
            self.name, self.clicks + other.clicks, self.keys + other.keys,
            self.characters + other.characters, self.wait + other.wait,
            self.processor + other.processor, self.answers + other.answers,
        )  # fmt: skip

    def idle_wait(self) -> float:
        """Estimated seconds to wait on an idle machine.

        No more than on the clock here, and no more than the processors needed.
        """
        return min(self.wait, self.processor)

    def hands(self) -> float:
        """Estimated seconds to click, press and type."""
        return CLICK * self.clicks + KEY * (self.keys + self.characters)


def total(steps: list[Step]) -> Step:
    """The sum of all steps."""
    return sum(steps, Step("**total**"))


def steps_table(steps: list[Step]) -> str:
    """The steps of a program in Markdown, with a line for their sum."""
    lines = [
        "| | step | clicks | keys | characters | wait, s | on the clock, s |",
        "|--:|---|--:|--:|--:|--:|--:|",
    ]
    idle = [step.idle_wait() for step in steps]
    for i, step in enumerate([*steps, total(steps)]):
        number, wait = (i + 1, idle[i]) if i < len(steps) else ("", sum(idle))
        lines.append(
            f"| {number} | {step.name} | {step.clicks} | {step.keys} | {step.characters:,} | "
            f"{wait:.1f} | {step.wait:.1f} |"
        )
    return "\n".join(lines)


def summary_table(runs: dict[str, list[Step]], accuracies: dict[str, float], think: float) -> str:
    """Both programs side by side, in Markdown.

    Args:
        runs: the steps of each program.
        accuracies: on the test photographs, from 0 to 1.
        think: seconds to think about an answer.
    """
    sums = {name: total(steps) for name, steps in runs.items()}
    idle = {name: sum(step.idle_wait() for step in steps) for name, steps in runs.items()}
    rows = {
        "steps": {name: f"{len(steps)}" for name, steps in runs.items()},
        "clicks": {name: f"{s.clicks}" for name, s in sums.items()},
        "keys": {name: f"{s.keys}" for name, s in sums.items()},
        "typed characters": {name: f"{s.characters:,}" for name, s in sums.items()},
        "wait for the program, s (estimated for an idle machine)": {
            name: f"{wait:.0f}" for name, wait in idle.items()
        },
        "the same on the clock of this machine, s": {n: f"{s.wait:.0f}" for n, s in sums.items()},
        "think, s": {name: f"{think * s.answers:.0f}" for name, s in sums.items()},
        "click, press and type, s (estimated)": {n: f"{s.hands():.0f}" for n, s in sums.items()},
        "**all, minutes**": {
            name: f"**{(idle[name] + think * s.answers + s.hands()) / 60:.1f}**"
            for name, s in sums.items()
        },
        "**accuracy of the model, %**": {n: f"**{100 * a:.1f}**" for n, a in accuracies.items()},
    }
    lines = [f"| | {' | '.join(runs)} |", "|---|" + "--:|" * len(runs)]
    lines += [f"| {row} | {' | '.join(cells[n] for n in runs)} |" for row, cells in rows.items()]
    return "\n".join(lines)


def write_page(done: dict[str, dict[str, Any]], options: Namespace) -> str:
    """The page in Markdown.

    Args:
        done: results of each program, by `benchmarks.afternoon.drive`.
        options: of the command.
    """
    n, answers, think = options.number, options.answers, options.think
    runs = {name: [Step(**step) for step in each["steps"]] for name, each in done.items()}
    loads = [load for each in done.values() for load in each["loads"]]
    commits = dict.fromkeys(each["commit"] for each in done.values())
    parts = [
        f"# A first afternoon: {n} photographs to a trained model",
        f"`python -m benchmarks.afternoon --photos DIR --label-studio BIN --number {n} --answers "
        f"{answers} --think {think:g} --seed {options.seed}`, commit {', '.join(commits)}, "
        f"Label Studio {done['Label Studio']['version']}. One run with one seed. {processor()}, "
        f"one core that other programs use as well: the load was {min(loads):.0f} to "
        f"{max(loads):.0f}.",
        INTRODUCTION.format(n=n, answers=answers, think=think, click=CLICK, key=KEY),
        summary_table(runs, {name: each["accuracy"] for name, each in done.items()}, think),
        f"Accuracy is that of the tables of predictions. The exported model of spinal, loaded from "
        f"its files, agrees with its table on {100 * done['spinal']['agreement']:.0f} % of the "
        f"first {CHECKED} test photographs.",
    ]
    for name, steps in runs.items():
        parts += [f"## Steps with {name}", steps_table(steps), ABOUT[name]]
    parts += ["## What Label Studio does better", BETTER, "## Limits of this measurement", LIMITS]
    return "\n\n".join(part.strip() for part in parts) + "\n"
