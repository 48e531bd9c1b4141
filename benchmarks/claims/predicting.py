"""Figures about probabilities and time. Words that depend on them are asserted here."""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks.claims.runs import (
    MC_DROPOUT,
    RESULTS,
    SMALL,
    SPN,
    SPN_MARGIN,
    ends_at,
    excludes_zero,
    experiment,
    listed,
    phase_costs,
    shown,
    small,
)
from spinal.report.experiment import Experiment
from spinal.report.numbers import decimal, percent, points
from spinal.report.read import stored_runs

_MEASURES = ("accuracy", "ece")


def as_they_are() -> dict[str, object]:
    mnist, fashion = (_gain_of_the_soft_recipe(name) for name in ("mnist", "fashion-mnist"))
    assert not excludes_zero(mnist)
    assert not excludes_zero(fashion)
    cifar = _calibration("cifar10-1k@cpu")
    for values in cifar.values():
        assert values[0] == min(values)
    for name in ("fashion-mnist-1k@cpu", "svhn-1k@cpu"):
        nll = _calibration(name)["nll"]
        assert nll[0] == max(nll)
    return {
        "mnist": shown(mnist),
        "fashion": shown(fashion),
        **_against_the_head(),
        **_against_its_network(),
        **{what: listed([decimal(v) for v in values]) for what, values in cifar.items()},
        "seeds": len(mnist),
    }


def _gain_of_the_soft_recipe(dataset: str) -> NDArray[np.float64]:
    """Gains in area over Random, by the trained SPN's entropy as it is."""
    table = pd.read_csv(RESULTS / "picking" / "runs.csv")
    table = table[table["dataset"] == dataset]
    areas = table.pivot(index="seed", columns=["recipe", "method"], values="area")
    soft, sharp = (areas[recipe, SPN].dropna() for recipe in ("soft", "sharp"))
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
        own, network = (
            {what: float(e.measure(prefix + what)[SPN_MARGIN].mean().mean()) for what in _MEASURES}
            for prefix in ("", "network_")
        )
        assert (own["accuracy"] > network["accuracy"]) == (SMALL[name] != "Fashion-MNIST")
        assert own["ece"] < network["ece"]
        gains.append(f"{points(own['accuracy'] - network['accuracy'])} on {SMALL[name]}")
        pair = f"{decimal(own['ece'])} and {decimal(network['ece'])}"
        errors.append(f"{pair} on {SMALL[name]}")
    return {"small": listed(gains), "small_ece": "; ".join(errors)}


def _calibration(name: str) -> dict[str, list[float]]:
    """Calibration error and likelihood at the end, of SPN-CNN, MC Dropout and Random."""
    e = experiment("paper/runs", name=name)
    last = {what: e.measure(what).loc[e.labels[-1]] for what in ("ece", "nll")}
    return {
        what: [float(values[method].mean()) for method in (SPN, MC_DROPOUT, "random")]
        for what, values in last.items()
    }


def entropies() -> dict[str, object]:
    folder = RESULTS / "uncertainty-alone" / "report"
    svhn, fashion = (
        pd.read_csv(folder / name / "detection.csv").set_index(["method", "score"])["auroc"]
        for name in ("svhn-cifar-10-cpu", "fashion-mnist-mnist-cpu")
    )
    spn, dropout, softmax = (
        (method, "entropy") for method in ("spn-cnn", "mc-dropout", "deterministic")
    )
    assert svhn[dropout] > svhn[spn] > svhn[softmax]
    assert fashion[spn] > max(fashion[dropout], fashion[softmax])
    assert svhn.idxmax()[0] == "ensemble"
    assert fashion.idxmax() == ("spn-cnn", "log-density")

    def cells(of: pd.Series, keys: Sequence[tuple[str, str]]) -> str:
        return listed([percent(of[key], 1) for key in keys])

    return {
        "svhn": cells(svhn, [spn, dropout, softmax]),
        "ensemble": percent(svhn.max(), 1),
        "fashion": cells(fashion, [spn, dropout, softmax]),
        "information": percent(fashion["mc-dropout", "mutual-information"], 1),
        "density": percent(fashion.max(), 1),
    }


def few_labels() -> dict[str, object]:
    path = RESULTS / "full-mnist" / "mnist@cpu" / "seed-0" / "parts.jsonl"
    whole, few = (json.loads(line)["accuracy"] for line in path.read_text().splitlines())
    chosen = ends_at(experiment("paper/runs", name="mnist"), SPN, 1000)
    assert chosen > whole > few
    return {
        name: percent(v, 1) for name, v in (("chosen", chosen), ("all", whole), ("random", few))
    }


def costs() -> dict[str, object]:
    table = pd.read_csv(RESULTS / "benchmarks" / "loop.csv").groupby("contender")
    seconds = table.sum(numeric_only=True).drop(columns=["round", "labels"]).sum(axis=1)
    assert (table.size() == 29).all()
    ratios = seconds / seconds["random"]
    return {
        "some": decimal(ratios["spn-cnn"], 1),
        "whole": decimal(ratios["spn-cnn, whole pool"], 1),
        "small": listed([f"{_cost(e):.2f} ({SMALL[name]})" for name, e in small().items()]),
    }


def _cost(e: Experiment) -> float:
    """The time of SPN-CNN over that of Random, both in units of training the network."""
    spn, random = (sum(phase_costs(e, method).values()) for method in (SPN_MARGIN, "random"))
    return spn / random


def doubts() -> dict[str, object]:
    folders = (
        "methods/runs", "methods/margin", "mnist-300/runs", "paper/runs", "vgg-five-seeds/runs",
    )  # fmt: skip
    runs = [run for folder in folders for run in stored_runs(RESULTS / folder)]
    runs += [run for e in small().values() for run in e.runs]
    fitted = [all(r.fitted_share is not None for r in run.rounds) for run in runs]
    shares = {
        name: [
            percent(float(e.measure("fitted_share")[method].mean().mean()), 0)
            for method in ("random", SPN_MARGIN)
        ]
        for name, e in small().items()
    }
    pairs = [f"{first} and {second} % on {SMALL[name]}" for name, (first, second) in shares.items()]
    return {"fitted": sum(fitted), "runs": len(runs), "shares": "; ".join(pairs)}
