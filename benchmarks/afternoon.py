"""A first afternoon, in clicks and seconds: from a folder of photographs to a trained model.

    python -m benchmarks.afternoon --photos DIR --label-studio BIN --save results/afternoon.md

A simulated person drives spinal and Label Studio in a browser, from the same 500 photographs to a
model, with the same number of answers. ``DIR`` has the folders ``train`` and ``test``, with a
folder for each class in them. ``BIN`` is the program ``label-studio`` of an environment of its own.
Needs playwright and Chromium; Linux only.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
from playwright.sync_api import Page, sync_playwright

from benchmarks.afternoon_report import CHECKED, Step, write_page
from benchmarks.machine import ROOT, commit, processor_seconds

CHROMIUM = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip
ENVIRONMENT = os.environ | {"PYTHONPATH": str(ROOT)}
#: Milliseconds that anything may take.
LONGEST = 600_000
PROGRAMS = ("spinal", "Label Studio")
SCRIPT = Path(__file__).with_name("afternoon_train.py")
#: Shown by the page of spinal while its model is busy.
BUSY = "#status .busy"
#: Whether Label Studio shows another image than before.
SHOWN = """before => {
    const image = document.querySelector("img[alt=image]");
    return image && image.src && image.src !== before && image.complete && image.naturalWidth;
}"""


@dataclass
class Photos:
    """Photographs with names that do not tell their class.

    Attributes:
        folder: has ``photos`` and ``test``.
        classes: in alphabetical order; the digit of a class is its key in both programs.
        truth: class of each file name.
    """

    folder: Path
    classes: tuple[str, ...]
    truth: dict[str, str]

    @classmethod
    def draw(cls, source: Path, folder: Path, n: int, seed: int) -> Photos:
        """Copy ``n`` photographs of ``train`` and all of ``test``, in random order."""
        truth: dict[str, str] = {}
        chance = random.Random(seed)
        for part, name, most in (("train", "photos", n), ("test", "test", None)):
            files = sorted(path for path in (source / part).glob("*/*") if path.is_file())
            chance.shuffle(files)
            (folder / name).mkdir()
            for i, file in enumerate(files[:most]):
                copy = folder / name / f"{name.rstrip('s')}-{i:04}{file.suffix}"
                shutil.copyfile(file, copy)
                truth[copy.name] = file.parent.name
        return cls(folder, tuple(sorted(set(truth.values()))), truth)

    def key(self, name: str) -> str:
        """The key of the class of a file."""
        return str(self.classes.index(self.truth[name]) + 1)

    def accuracy(self, table: Path) -> float:
        """Share of right predictions in a table with columns ``path`` and ``predicted``."""
        predictions = pd.read_csv(table)
        truth = predictions["path"].map(lambda path: self.truth[Path(path).name])
        assert len(predictions) == len(list((self.folder / "test").iterdir()))
        return float((predictions["predicted"] == truth).mean())


@dataclass
class Person:
    """Somebody at the keyboard; everything that they do is counted.

    Attributes:
        page: the page of the browser.
        think: seconds to think about an answer.
        steps: what was done so far.
        paused: seconds on the clock to think, in this step.
        meanwhile: processor seconds of the program and the browser in these pauses.
    """

    page: Page
    think: float
    steps: list[Step] = field(default_factory=list)
    paused: float = 0.0
    meanwhile: float = 0.0

    @contextmanager
    def step(self, name: str) -> Iterator[Step]:
        """Begin a step; it ends when the program is ready for the next one."""
        step = Step(name)
        self.steps.append(step)
        self.paused = self.meanwhile = 0.0
        began, before = time.monotonic(), _used()
        yield step
        step.wait = time.monotonic() - began - self.paused
        step.processor = _used() - before - self.meanwhile
        print(step, flush=True)

    @property
    def now(self) -> Step:
        """The step that is being done."""
        return self.steps[-1]

    def click(self, target: Any) -> None:
        """Click on a selector or a locator."""
        target = self.page.locator(target) if isinstance(target, str) else target
        target.click()
        self.now.clicks += 1

    def press(self, key: str) -> None:
        """Press a key or a combination of keys."""
        self.page.keyboard.press(key)
        self.now.keys += 1

    def type(self, text: str) -> None:
        """Type in the browser."""
        self.page.keyboard.type(text)
        self.now.characters += len(text)

    def command(self, text: str) -> None:
        """Type a line in a terminal, with Enter; it is run by other means."""
        self.now.characters += len(text) + 1

    def answer(self, program: Program) -> None:
        """Look at an image, and think.

        As long as a model of the page is busy, this lasts until the program had as many seconds of
        processor time: what it would have on an idle machine.
        """
        began, used = time.monotonic(), _used()
        before = processor_seconds(program.process.pid)
        time.sleep(self.think)
        while self.page.locator(BUSY).count():
            if processor_seconds(program.process.pid) - before >= self.think:
                break
            time.sleep(0.1)
        self.paused += time.monotonic() - began
        self.meanwhile += _used() - used
        self.now.answers += 1


def _used() -> float:
    """Processor seconds of all that was started: programs, browser."""
    own = time.process_time()
    return processor_seconds(os.getpid()) - own


class Program:
    """A program with a page, in a process of its own, until the end of the ``with`` block."""

    def __init__(self, *command: Any, cwd: Path, env: dict[str, str] | None = None) -> None:
        self.log = (cwd / "log.txt").open("w")
        self.process = subprocess.Popen(
            [*map(str, command)], cwd=cwd, env=ENVIRONMENT | (env or {}), stdout=self.log,
            stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip

    def __enter__(self) -> Program:
        return self

    def __exit__(self, *_: object) -> None:
        os.killpg(self.process.pid, signal.SIGINT)
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        self.log.close()

    def wait(self, link: str) -> None:
        """Wait until its page can be opened."""
        end = time.monotonic() + LONGEST / 1000
        while self.process.poll() is None and time.monotonic() < end:
            try:
                with urllib.request.urlopen(link, timeout=60):
                    return
            except (urllib.error.URLError, OSError):
                time.sleep(0.1)
        sys.exit(f"no page at {link}: see {self.log.name}")


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def run(*command: Any, cwd: Path) -> None:
    """Run a command to its end."""
    subprocess.run(
        [*map(str, command)], cwd=cwd, check=True, stdout=subprocess.DEVNULL, env=ENVIRONMENT
    )


def with_spinal(person: Person, photos: Photos, answers: int) -> dict[str, float]:
    """Label, export and predict with spinal; the accuracy, and the `agreement` of the export."""
    page, home, port = person.page, photos.folder, free_port()
    link = f"http://127.0.0.1:{port}/"
    arguments = ("label", "photos", "--classes", ",".join(photos.classes), "--budget", answers)
    quiet = ("--port", port, "--no-browser")
    spinal = (sys.executable, "-m", "spinal")
    with Program(*spinal, *arguments, *quiet, cwd=home) as program:
        with person.step("`spinal label photos --classes …`; the page opens with an image"):
            person.command(" ".join(map(str, ("spinal", *arguments))))
            program.wait(link)
            page.goto(link)
            page.wait_for_selector("body[data-ready]")
            page.wait_for_selector("#stage[data-image]")
        with person.step(f"label {answers} images: the key of the class"):
            for _ in range(answers):
                before = page.get_attribute("#stage", "data-image")
                person.answer(program)
                person.press(photos.key(page.text_content("#file") or ""))
                page.wait_for_function(
                    "before => document.getElementById('stage').dataset.image !== before",
                    arg=before,
                )
            page.wait_for_function("() => localStorage.getItem('spinal-outbox') === null")
    for name, *command in (
        ("Ctrl+C, `spinal export photos --to model` (the model is fitted first)",
         "export", "photos", "--to", "model"),
        ("`spinal predict photos test --out predictions.csv`",
         "predict", "photos", "test", "--out", "predictions.csv"),
    ):  # fmt: skip
        with person.step(name) as step:
            step.keys += name.startswith("Ctrl+C")
            person.command(" ".join(("spinal", *command)))
            run(*spinal, *command, cwd=home)
    return {
        "accuracy": photos.accuracy(home / "predictions.csv"),
        "agreement": agreement(home),
    }


def agreement(home: Path) -> float:
    """Share of test photographs for which the exported model says what the table says."""
    from spinal.label.exports.classifier import FILE, ImageClassifier

    classifier = ImageClassifier.load(next(home.glob(f"*/{FILE}")))
    table = pd.read_csv(home / "predictions.csv").head(CHECKED)
    said = []
    for path in table["path"]:
        content = (home / "test" / Path(path).name).read_bytes()
        features = classifier.encoder.embed([classifier.encoder.prepare(content)])
        said.append(classifier.classes[int(classifier.predict(features)[0].argmax())])
    return float((table["predicted"] == said).mean())


def next_photo(page: Page, act: Any) -> str:
    """Do something that leads to the next image of Label Studio; its file name."""
    before = page.evaluate("document.querySelector('img[alt=image]')?.src ?? ''")
    with page.expect_response(lambda reply: "id=next_task" in reply.url) as reply:
        act()
    page.wait_for_function(SHOWN, arg=before)
    return str(reply.value.json()["data"]["image"]).rpartition("/")[2].partition("-")[2]


def with_label_studio(
    person: Person, photos: Photos, answers: int, label_studio: Path
) -> dict[str, float]:
    """Label and export with Label Studio, train with a script; the accuracy of its model."""
    home, port = photos.folder, free_port()
    link = f"http://127.0.0.1:{port}/"
    n = len(list((home / "photos").iterdir()))
    environment = {
        "DATA_UPLOAD_MAX_NUMBER_FILES": f"{n}", "LABEL_STUDIO_BASE_DATA_DIR": f"{home / 'studio'}",
        "COLLECT_ANALYTICS": "false", "LATEST_VERSION_CHECK": "false",
    }  # fmt: skip
    options = ("start", "--no-browser", "--internal-host", "127.0.0.1", "--port", port)
    with Program(label_studio, *options, cwd=home, env=environment) as program:
        with person.step(f"`DATA_UPLOAD_MAX_NUMBER_FILES={n} label-studio`; its page opens"):
            person.command(f"DATA_UPLOAD_MAX_NUMBER_FILES={n} label-studio")
            program.wait(f"{link}health")
            person.page.goto(link)
            person.page.wait_for_selector("a[href='/user/signup/']")
        set_up_project(person, sorted((home / "photos").iterdir()), photos.classes)
        label_and_export(person, program, photos, answers)
    script = SCRIPT.read_text().split('"""', 2)[2].strip()
    with person.step(f"write `train.py`, {len(script.splitlines())} lines: features, model, table"):
        person.command(script)
        (home / "train.py").write_text(script)
    with person.step("`python train.py photos test`"):
        person.command("python train.py photos test")
        run(sys.executable, "train.py", "photos", "test", cwd=home)
    return {"accuracy": photos.accuracy(home / "predictions.csv")}


def set_up_project(person: Person, files: list[Path], classes: tuple[str, ...]) -> None:
    """Sign up, import the files and set up the choice of a class."""
    page = person.page
    button = page.get_by_role
    with person.step("sign up: link, e-mail address, password"):
        person.click("a[href='/user/signup/']")
        person.click("#email")
        person.type("me@example.com")
        person.press("Tab")
        person.type("afternoon1")
        person.press("Enter")
        button("button", name="Create Project").first.wait_for()
    with person.step("*Create Project*, tab *Data Import*"):
        with page.expect_response(lambda reply: reply.url.endswith("/api/projects")):
            person.click(button("button", name="Create Project").first)
        person.click(page.get_by_text("Data Import", exact=True))
        page.wait_for_selector("#file-input", state="attached")
        button("button", name="Upload file").wait_for()
        page.wait_for_load_state("networkidle")
    with person.step("*Upload Files*; in the dialog: the folder, Ctrl+A, Enter") as step:
        with page.expect_file_chooser() as chooser:
            person.click(button("button", name="Upload file"))
        step.clicks, step.keys = step.clicks + 1, step.keys + 2
        with page.expect_response(lambda reply: "/import?" in reply.url) as reply:
            chooser.value.set_files(files)
        assert reply.value.ok, reply.value.text()
        page.wait_for_selector("button[data-waiting=false]:has-text('Save')")
    with person.step("tab *Labeling Setup*, template *Image Classification*"):
        person.click(page.get_by_text("Labeling Setup", exact=True))
        person.click(button("heading", name="Image Classification", exact=True))
        page.wait_for_selector("textarea[name=labels]")
    choices = page.locator("li.lsf-configure__label")
    with person.step(f"remove its 3 choices, add {len(classes)}, *Save*"):
        for left in (2, 1, 0):
            choices.first.hover()
            person.click(choices.first.get_by_role("button", name="delete label"))
            wait_for_number(page, left)
        person.click("textarea[name=labels]")
        person.type("\n".join(classes))
        person.click(button("button", name="Add labels"))
        wait_for_number(page, len(classes))
        person.click(button("button", name="Save", exact=True))
        button("button", name="Label All Tasks").wait_for()
        page.wait_for_selector(f"text=Tasks: {len(files)} / {len(files)}")


def wait_for_number(page: Page, n: int) -> None:
    """Wait until there are so many choices."""
    page.wait_for_function(
        "n => document.querySelectorAll('li.lsf-configure__label').length === n", arg=n
    )


def label_and_export(person: Person, program: Program, photos: Photos, answers: int) -> None:
    """Label images in the order in which Label Studio shows them, and download a table."""
    page = person.page
    with person.step("*Label All Tasks*; the first image is shown"):
        button = page.get_by_role("button", name="Label All Tasks")
        photo = next_photo(page, lambda: person.click(button))
    with person.step(f"label {answers} images: the key of the class, Ctrl+Enter"):
        for _ in range(answers):
            person.answer(program)
            person.press(photos.key(photo))
            page.wait_for_selector(f"input[name='{photos.truth[photo]}']:checked")
            photo = next_photo(page, lambda: person.press("Control+Enter"))
    with person.step("back to the project, *Export*, *CSV*, *Export*"):
        person.click(page.get_by_role("link", name="New Project"))
        person.click("[data-testid=dm-export-button]")
        person.click(page.get_by_text("CSV", exact=True))
        with page.expect_download() as download:
            person.click(page.get_by_role("button", name="Export data"))
        download.value.save_as(photos.folder / "labels.csv")
    assert len(pd.read_csv(photos.folder / "labels.csv")) == answers


@contextmanager
def at_keyboard(think: float) -> Iterator[Person]:
    """A person with a new browser."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile, sync_playwright() as p:
        browser = p.chromium.launch_persistent_context(
            profile, executable_path=shutil.which("chromium"), args=[*CHROMIUM],
            viewport={"width": 1280, "height": 900},
        )  # fmt: skip
        browser.set_default_timeout(LONGEST)
        yield Person(browser.pages[0], think)
        browser.close()


def studio_version(label_studio: Path) -> str:
    """The version of the package that a program ``label-studio`` belongs to."""
    code = "from importlib.metadata import version; print(version('label-studio'))"
    python = label_studio.with_name("python")
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def main() -> None:
    """Drive both programs, and write a page."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--photos", type=Path, required=True, help="folder with train and test")
    parser.add_argument("--label-studio", type=Path, required=True, help="its program")
    parser.add_argument("--number", type=int, default=500, help="of photographs")
    parser.add_argument("--answers", type=int, default=100)
    parser.add_argument("--think", type=float, default=1.0, help="seconds for an answer")
    parser.add_argument("--seed", type=int, default=0, help="of the photographs and their order")
    parser.add_argument("--only", choices=PROGRAMS, help="drive one program, and add it to --keep")
    parser.add_argument("--keep", type=Path, default=Path("afternoon.json"), help="what was done")
    parser.add_argument("--save", type=Path, help="page to write; printed without")
    options = parser.parse_args()
    done = json.loads(options.keep.read_text()) if options.keep.exists() else {}
    for name in (options.only,) if options.only else PROGRAMS:
        if name not in done:
            done = {name: drive(name, options)}
            kept = json.loads(options.keep.read_text()) if options.keep.exists() else {}
            done = kept | done
            options.keep.write_text(json.dumps(done, indent=1))
    if set(done) == set(PROGRAMS):
        text = write_page({name: done[name] for name in PROGRAMS}, options)
        print(text)
        if options.save:
            options.save.write_text(text, encoding="utf-8")


def drive(name: str, options: argparse.Namespace) -> dict[str, Any]:
    """Drive a program; its steps, its accuracy, and what it was measured on."""
    loads = [os.getloadavg()[0]]
    with tempfile.TemporaryDirectory(prefix="afternoon-", ignore_cleanup_errors=True) as place:
        photos = Photos.draw(options.photos, Path(place), options.number, options.seed)
        with at_keyboard(options.think) as person:
            if name == "spinal":
                result, version = with_spinal(person, photos, options.answers), ""
            else:
                program = options.label_studio.absolute()
                result = with_label_studio(person, photos, options.answers, program)
                version = studio_version(program)
    loads.append(os.getloadavg()[0])
    return {
        "steps": [asdict(step) for step in person.steps], **result, "loads": loads,
        "version": version, "commit": commit("spinal", "benchmarks"),
    }  # fmt: skip


if __name__ == "__main__":
    main()
