"""Classifiers on tables with missing values: `SPNClassifier` against the usual ones.

Values of the tables of ``benchmarks/anywhere/suite.toml`` are removed at random, from labelled and
test points. Finished results are skipped, so the script can be stopped and started again. Settings
are chosen only on the half ``develop``.

    SPINAL_DATA=DIR python -m benchmarks.missing --half develop --out results/missing
    python -m benchmarks.missing --out results/missing --report
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from benchmarks.anywhere.cells import LABELLED
from benchmarks.anywhere.metrics import measure
from benchmarks.anywhere.sets import Points, read_raw, read_suite
from benchmarks.machine import commit
from benchmarks.missing_report import write_report
from benchmarks.results import Results
from spinal import SPNClassifier

LABELS = (100, 300, 1000)
SHARES = (0.0, 0.2, 0.5)
SEEDS = (0, 1, 2, 3, 4)


@dataclass(frozen=True)
class CellName:
    """What identifies a cell in the results.

    Attributes:
        table: name of the table.
        missing: share of the values that are removed.
        labels: how many points of the pool are labelled, drawn at random.
        seed: of both draws, and of everything that a contender leaves to chance.
    """

    table: str
    missing: float
    labels: int
    seed: int


KEYS = tuple(field.name for field in fields(CellName))


@dataclass(frozen=True, eq=False)
class Cell:
    """What contenders get.

    Attributes:
        x: the labelled points; columns of categories have the type ``category``.
        y: their classes, ``[n]``.
        x_test: points to be predicted.
        seed: of what is left to chance.
    """

    x: pd.DataFrame
    y: NDArray[np.int64]
    x_test: pd.DataFrame
    seed: int

    def as_numbers(self) -> tuple[NDArray, NDArray]:
        """Both tables with a column of 0 and 1 for each category; NaN where it is missing."""
        columns: list[tuple[NDArray, ...]] = []
        for name in self.x:
            parts = [
                part[name].to_numpy(np.float64, na_value=np.nan) for part in (self.x, self.x_test)
            ]
            if self.x[name].dtype == "category":
                codes = np.unique(parts[0][~np.isnan(parts[0])])
                onehot = [(part[:, None] == codes).astype(float) for part in parts]
                known = [np.isin(part, codes)[:, None] for part in parts]
                parts = [np.where(k, o, np.nan) for k, o in zip(known, onehot, strict=True)]
            columns.append(tuple(part.reshape(len(part), -1) for part in parts))
        x, x_test = (np.concatenate(part, axis=1) for part in zip(*columns, strict=True))
        return x, x_test


def logistic(cell: Cell) -> tuple[NDArray, NDArray]:
    """Logistic regression after imputation of the mean; C by cross-validation."""
    x, x_test = cell.as_numbers()
    model = make_pipeline(
        SimpleImputer(keep_empty_features=True), StandardScaler(), LogisticRegression(max_iter=1000)
    )
    folds = StratifiedKFold(5, shuffle=True, random_state=cell.seed)
    strengths = {"logisticregression__C": np.logspace(-3, 2, 6)}
    return _predicted(GridSearchCV(model, strengths, cv=folds).fit(x, cell.y), x_test)


def boosting(cell: Cell) -> tuple[NDArray, NDArray]:
    """Histogram gradient boosting, which knows missing values and categories itself."""
    model = HistGradientBoostingClassifier(random_state=cell.seed)
    return _predicted(model.fit(cell.x, cell.y), cell.x_test)


def forest(cell: Cell) -> tuple[NDArray, NDArray]:
    """A random forest, which knows missing values itself."""
    x, x_test = cell.as_numbers()
    return _predicted(RandomForestClassifier(300, random_state=cell.seed).fit(x, cell.y), x_test)


def spn(cell: Cell) -> tuple[NDArray, NDArray]:
    """`SPNClassifier` with its defaults."""
    return _predicted(SPNClassifier(random_state=cell.seed).fit(cell.x, cell.y), cell.x_test)


#: Each maps a cell to class probabilities ``[N, S]`` of its test points, and the classes ``[S]``.
CONTENDERS: dict[str, Callable[[Cell], tuple[NDArray, NDArray]]] = {
    "spn": spn,
    "logistic": logistic,
    "boosting": boosting,
    "forest": forest,
}


def _predicted(model: Any, x_test: Any) -> tuple[NDArray, NDArray]:
    return model.predict_proba(x_test), model.classes_


def cell_names(table: str, points: Points, options: argparse.Namespace) -> Iterator[CellName]:
    """The cells of a table; of a small one, with three quarters of its points labelled."""
    most = int(LABELLED * len(points.y_train))
    for labels in [n for n in options.labels if n <= most] or [most]:
        for missing in options.missing:
            yield from (CellName(table, missing, labels, seed) for seed in options.seeds)


def make_cell(points: Points, name: CellName) -> Cell:
    """Draw the labelled points and the values that are removed."""
    rng = np.random.default_rng([name.seed, name.labels])
    labelled = rng.permutation(len(points.y_train))[: name.labels]
    assert points.categorical is not None
    x, x_test = (
        _as_table(np.where(rng.random(part.shape) < name.missing, np.nan, part), points.categorical)
        for part in (points.x_train[labelled], points.x_test)
    )
    return Cell(x, points.y_train[labelled], x_test, name.seed)


def _as_table(x: NDArray, categorical: NDArray[np.bool_]) -> pd.DataFrame:
    columns = {}
    for j, is_code in enumerate(categorical):
        column = pd.Series(x[:, j])
        columns[f"x{j}"] = column.astype("Int64").astype("category") if is_code else column
    return pd.DataFrame(columns)


def run(points: Points, name: CellName, contender: str) -> dict[str, Any]:
    """The line of a contender in the results."""
    cell = make_cell(points, name)
    start = time.process_time()
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # rare classes in folds, fits that stop early
        seen, classes = CONTENDERS[contender](cell)
    seconds = time.process_time() - start
    probs = np.zeros((len(seen), len(points.classes)))
    probs[:, classes] = seen
    values = measure(probs, points.y_test, np.ones(len(probs)))
    return (
        asdict(name)
        | {"contender": contender}
        | {key: round(values[key], 5) for key in ("accuracy", "balanced", "nll")}
        | {"seconds": round(seconds, 3)}
    )


def main() -> None:
    """Compute what is missing, or write the report."""
    options = _parse()
    if options.report:
        write_report(options.out)
        return
    torch.set_num_threads(1)
    results = Results(options.out / "results.jsonl", (*KEYS, "contender"))
    origin = {"half": options.half, "commit": commit("spinal", "benchmarks/missing.py")}
    for entry in read_suite(options.half, options.only, ("table",)):
        points = read_raw(entry)
        for name in cell_names(entry.name, points, options):
            for contender in options.contenders:
                if asdict(name) | {"contender": contender} not in results:
                    line = run(points, name, contender)
                    print(line, flush=True)
                    results.add([line | origin])


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.missing")
    add = parser.add_argument
    add("--out", type=Path, required=True, help="folder of results.jsonl and of the report")
    add("--report", action="store_true", help="write the page and the picture, and no more")
    add("--half", choices=["develop", "report"], default="develop")
    add("--only", nargs="*", metavar="TABLE")
    add("--contenders", nargs="*", choices=list(CONTENDERS), default=list(CONTENDERS))
    add("--labels", nargs="*", type=int, default=list(LABELS))
    add("--missing", nargs="*", type=float, default=list(SHARES))
    add("--seeds", nargs="*", type=int, default=list(SEEDS))
    return parser.parse_args()


if __name__ == "__main__":
    main()
