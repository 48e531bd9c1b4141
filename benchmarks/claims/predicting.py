"""Figures about probabilities and time. Words that depend on them are asserted here."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks.claims.runs import (
    RANDOM,
    RESULTS,
    SMALL,
    SPN,
    SPN_ENTROPY,
    batches,
    cost,
    digits,
    ends_at,
    excludes_zero,
    listed,
    seeds,
    shown,
    small,
    timed,
    timed_ratio,
)
from spinal.report.numbers import decimal, percent, points
from spinal.report.read import stored_runs

_MEASURES = ("accuracy", "ece")


def as_they_are() -> dict[str, object]:
    mnist, fashion = (_gain_of_the_soft_recipe(name) for name in ("mnist", "fashion-mnist"))
    assert not excludes_zero(mnist)
    assert not excludes_zero(fashion)
    return {
        "mnist": shown(mnist),
        "fashion": shown(fashion),
        **_against_the_head(),
        **_against_its_network(),
        "seeds": len(mnist),
    }


def _gain_of_the_soft_recipe(dataset: str) -> NDArray[np.float64]:
    """Gains in area over Random, by the trained SPN's entropy as it is."""
    table = pd.read_csv(RESULTS / "picking" / "runs.csv")
    table = table[table["dataset"] == dataset]
    areas = table.pivot(index="seed", columns=["recipe", "method"], values="area")
    soft, sharp = (areas[recipe, SPN_ENTROPY].dropna() for recipe in ("soft", "sharp"))
    assert (sharp > soft).all()
    return (soft - areas["baselines", "random"]).dropna().to_numpy()


def _against_the_head() -> dict[str, object]:
    """In how many cells the SPN's likelihood is better than the softmax's, and its accuracy."""
    lines = (RESULTS / "spn-recipe" / "fits.jsonl").read_text().splitlines()
    fits = pd.DataFrame(map(json.loads, lines))
    fits = fits[fits["recipe"] == "closed form"]
    cells = fits.groupby(["dataset", "labels"]).mean(numeric_only=True)
    return {
        "cells": len(cells),
        "better": int((cells["nll"] < cells["head_nll"]).sum()),
        "accuracy": points((cells["accuracy"] - cells["head_accuracy"]).mean()),
    }


def _against_its_network() -> dict[str, object]:
    """SPN-CNN against the network below it, at the paper's numbers of labels."""
    gains, errors = [], []
    for name, e in small().items():
        own, network, logistic = (
            {what: float(e.measure(prefix + what)[SPN].mean().mean()) for what in _MEASURES}
            for prefix in ("", "network_", "logistic_")
        )
        assert (own["accuracy"] > network["accuracy"]) == (SMALL[name] != "Fashion-MNIST")
        assert own["ece"] < network["ece"]
        gains.append(f"{points(own['accuracy'] - network['accuracy'])} on {SMALL[name]}")
        three = listed([decimal(one["ece"]) for one in (own, network, logistic)])
        errors.append(f"{three} on {SMALL[name]}")
    return {"small": listed(gains), "small_ece": "; ".join(errors)}


def entropies() -> dict[str, object]:
    svhn, fashion = (_auroc(f"{pair}@small") for pair in ("svhn-cifar-10", "fashion-mnist-mnist"))
    means = _parts("svhn-cifar-10@small", lambda part: {
        (part["method"], where): part["entropy"][where]["mean"] for where in ("inside", "outside")
    }).mean()  # fmt: skip
    assert len(svhn) == len(fashion)
    others = [method for method in _UNCERTAIN if method != "spn-cnn"]
    gains = {
        (name, method): (of["spn-cnn", "entropy"] - of[method, "entropy"]).to_numpy()
        for name, of in (("svhn", svhn), ("fashion", fashion))
        for method in others
    }
    assert not any(map(excludes_zero, gains.values()))
    by_information = svhn.xs("mutual-information", axis=1, level=1)
    assert (by_information["spn-cnn"] > by_information.drop(columns="spn-cnn").max(axis=1)).all()
    by_entropy = fashion.xs("entropy", axis=1, level=1)
    density = fashion["spn-cnn", "log-density"]
    assert (density > by_entropy.max(axis=1)).all()
    rows = [
        [label, *(_cell(of, method, score) for of in (svhn, fashion) for score in _SCORES)]
        for method, label in _UNCERTAIN.items()
    ]
    narrow = _auroc("fashion-mnist-mnist@cpu").iloc[0]
    assert narrow["spn-cnn", "entropy"] > max(narrow[method, "entropy"] for method in others)
    assert narrow.idxmax() == ("spn-cnn", "log-density")
    return {
        "table": "\n".join(f"| {' | '.join(row)} |" for row in rows),
        "seeds": seeds(len(svhn)),
        "dropout": shown(gains["svhn", "mc-dropout"]),
        "softmax": shown(gains["svhn", "deterministic"]),
        "ensemble": shown(gains["svhn", "ensemble"]),
        **{where: _mean_entropies(means, where) for where in ("inside", "outside")},
        "narrow_spn": percent(narrow["spn-cnn", "entropy"], 1),
        "narrow_others": listed([percent(narrow[method, "entropy"], 1) for method in others]),
        "narrow_density": percent(narrow["spn-cnn", "log-density"], 1),
    }


#: Methods of `spinal uncertainty-alone`, and scores that separate two datasets.
_UNCERTAIN = {
    "spn-cnn": "SPN-CNN", "mc-dropout": "MC Dropout",
    "deterministic": "Deterministic", "ensemble": "Ensemble",
}  # fmt: skip
_SCORES = ("entropy", "margin", "mutual-information", "log-density")


def _auroc(pair: str) -> pd.DataFrame:
    """AUROC in ``[seeds, (method, score)]``."""
    return _parts(pair, lambda part: {
        (part["method"], score): value["auroc"] for score, value in part["scores"].items()
    })  # fmt: skip


def _parts(
    pair: str, read: Callable[[dict[str, Any]], dict[tuple[str, str], float]]
) -> pd.DataFrame:
    """Values of all methods of `spinal uncertainty-alone`, with a row for each seed."""
    found = {}
    for path in sorted((RESULTS / "uncertainty-alone" / pair).glob("seed-*/parts.jsonl")):
        parts = [read(json.loads(line)) for line in path.read_text().splitlines()]
        found[path.parent.name] = {key: value for part in parts for key, value in part.items()}
    return pd.DataFrame(found).T


def _mean_entropies(means: pd.Series, where: str) -> str:
    methods = ("spn-cnn", "mc-dropout", "deterministic")
    return listed([decimal(means[method, where], 2) for method in methods])


def _cell(of: pd.DataFrame, method: str, score: str) -> str:
    return percent(of[method, score].mean(), 1) if (method, score) in of else ""


def few_labels() -> dict[str, object]:
    path = RESULTS / "full-mnist" / "mnist@cpu" / "seed-0" / "parts.jsonl"
    whole, few = (json.loads(line)["accuracy"] for line in path.read_text().splitlines())
    mnist = small()["mnist@small"]
    chosen = ends_at(mnist, SPN, 1000)
    assert chosen > whole > few
    figures = {"chosen": chosen, "all": whole, "random": few}
    return {name: percent(v, 1) for name, v in figures.items()} | {
        "seeds": seeds(len(mnist.of(SPN)))
    }


def costs() -> dict[str, object]:
    table = pd.read_csv(RESULTS / "benchmarks" / "loop.csv").groupby("contender")
    seconds = table.sum(numeric_only=True).drop(columns=["round", "labels"]).sum(axis=1)
    assert (table.size() == 29).all()
    ratios = seconds / seconds["random"]
    return {
        "some": decimal(ratios["spn-cnn"], 1),
        "whole": decimal(ratios["spn-cnn, whole pool"], 1),
        "small": listed([f"{cost(e, SPN):.2f} ({SMALL[name]})" for name, e in small().items()]),
        "timed": listed([f"{timed_ratio(e):.2f} ({SMALL[name]})" for name, e in timed().items()]),
    }


def doubts() -> dict[str, object]:
    runs = stored_runs(RESULTS / "vgg-five-seeds" / "runs") + digits().runs
    runs += [run for found in (small(), batches()) for e in found.values() for run in e.runs]
    assert all(record.fitted_share is not None for run in runs for record in run.rounds)
    shares = {
        name: [
            percent(float(e.measure("fitted_share")[method].mean().mean()), 0)
            for method in (RANDOM, SPN)
        ]
        for name, e in small().items()
    }
    pairs = [f"{first} and {second} % on {SMALL[name]}" for name, (first, second) in shares.items()]
    return {"runs": len(runs), "shares": "; ".join(pairs)}
