"""Figures about what is chosen. Words of the template that depend on them are asserted here."""

from __future__ import annotations

from benchmarks.claims.runs import (
    BATCHBALD,
    DETERMINISTIC,
    MC_DROPOUT,
    SMALL,
    SPN,
    SPN_MARGIN,
    VGG,
    after_a_choice,
    area,
    by_dataset,
    clearly_above,
    difference,
    digits,
    ends_at,
    excludes_zero,
    experiment,
    listed,
    markdown_table,
    shown,
    small,
)
from spinal.report.experiment import Experiment
from spinal.report.numbers import percent, points
from spinal.report.paper import accuracies
from spinal.report.savings import stays_above
from spinal.report.statistics import holm, paired_t_test


def by_network(e: Experiment) -> Experiment:
    found = e.by_network()
    assert found is not None
    return found


def better_than_random() -> dict[str, object]:
    on_digits, mnist = digits(), experiment("mnist-300/runs", name="mnist-300")
    gains = {
        "digits": difference(on_digits, SPN),
        "mnist": difference(mnist, SPN),
        "digits_network": difference(by_network(on_digits), SPN),
        "mnist_network": difference(by_network(mnist), SPN),
    }
    assert all(clearly_above(gain) for gain in gains.values())
    long = experiment("paper/runs", name="mnist")
    end, curve = ends_at(long, "random", 1000), long.mean_curve(SPN)
    needed = curve.index[curve.index >= stays_above(curve, end)].min()
    trained = {n: difference(experiment("paper/runs", name=n), SPN) for n in VGG}
    closed = {n: difference(experiment("vgg-five-seeds/runs", name=n), SPN_MARGIN) for n in VGG}
    for of_vgg in (trained, closed):
        assert min(holm([paired_t_test(gain) for gain in of_vgg.values()])) > 0.05
    return {
        **{name: shown(gain) for name, gain in gains.items()},
        "end": percent(end),
        "end_spn": percent(ends_at(long, SPN, 1000)),
        "needed": needed,
        "trained": by_dataset(trained),
        "closed": by_dataset(closed),
        "digits_seeds": len(gains["digits"]),
        "mnist_seeds": len(gains["mnist"]),
        "trained_seeds": len(trained["svhn-1k@cpu"]),
        "closed_seeds": len(closed["svhn-1k@cpu"]),
    }


def at_the_paper_s_counts() -> dict[str, object]:
    runs, softmax = small(), "deterministic-margin"
    gains = {name: after_a_choice(e, SPN_MARGIN) for name, e in runs.items()}
    assert all((gain > 0).all() for gain in gains.values())
    by_softmax = {name: after_a_choice(e, softmax) for name, e in runs.items()}
    chosen = {n: after_a_choice(by_network(e), SPN_MARGIN, softmax) for n, e in runs.items()}
    leads = {name: after_a_choice(e, SPN_MARGIN, softmax) for name, e in runs.items()}
    assert all(by_softmax[name].mean() > leads[name].mean() for name in runs)
    printed = accuracies().set_index(["table", "method", "labels"])["accuracy"]
    rows = []
    for name, e in runs.items():
        curve = e.mean_curve("random")
        over = [value - printed[e.paper, "random", labels] for labels, value in curve.items()]
        above = f"{sum(value >= 0 for value in over)} of {len(over)}"
        if min(over) < 0:
            above += f", else at most {percent(-min(over), 1)} below"
        found = (gains[name], by_softmax[name], leads[name], chosen[name])
        rows.append([SMALL[name], str(len(gains[name])), *map(shown, found), above])
    assert clearly_above(leads["svhn-1k@small"])
    assert not excludes_zero(leads["cifar10-1k@small"])
    assert clearly_above(-leads["fashion-mnist-1k@small"])
    assert not any(clearly_above(lead) for lead in chosen.values())
    head = ["", "seeds", "SPN-CNN over Random", "Deterministic over Random"]
    head += ["SPN-CNN over Deterministic", "the same, by the networks", "above the paper"]
    return {
        "table": "\n".join(markdown_table(head, rows)),
        "area": by_dataset({n: difference(e, SPN_MARGIN, softmax) for n, e in runs.items()}),
    }


def ahead_of_competitors() -> dict[str, object]:
    on_digits, mnist = digits(), experiment("methods/runs", name="mnist-200")
    in_paper = (DETERMINISTIC, MC_DROPOUT, "bayesian-batch", "batchbald")
    leads = [difference(on_digits, SPN, other) for other in in_paper]
    assert all(clearly_above(lead) for lead in leads)
    assert all((difference(mnist, SPN, other) > 0).all() for other in in_paper)
    assert mnist.areas["typiclust"].mean() > mnist.areas[SPN].mean()
    others = [method for method in on_digits.methods if method != SPN]
    corrected = holm([paired_t_test(difference(on_digits, SPN, other)) for other in others])
    assert [o for o, p in zip(others, corrected, strict=True) if p < 0.05] == ["random"]
    margin = experiment("methods/runs", "methods/margin", name="digits")
    softmax, spn = (difference(margin, m) for m in ("deterministic-margin", SPN_MARGIN))
    assert abs(softmax.mean() - spn.mean()) < 0.003
    return {
        "digits": listed([points(lead.mean(), 1) for lead in leads]),
        "typiclust": area(mnist, "typiclust"),
        "spn": area(mnist, SPN),
        "softmax": shown(softmax),
        "margin": shown(spn),
        "digits_seeds": len(leads[0]),
        "margin_seeds": len(spn),
        **_behind_the_vgg(),
    }


def _behind_the_vgg() -> dict[str, object]:
    titles = {
        "bayesian-batch": "Bayesian Batch",
        "typiclust": "TypiClust",
        "badge": "BADGE",
        "k-center": "k-center",
        "spn-batchbald": "SPN-BatchBALD",
        "spn-variance-power-variance-bald": "SPN variance",
    }
    runs = {name: experiment("paper/runs", name=name) for name in VGG}
    behind = {other: difference(runs["svhn-1k@cpu"], SPN, other) for other in titles}
    assert all((lead < 0).all() for lead in behind.values())
    assert (difference(runs["svhn-1k@cpu"], SPN) < 0).all()
    dropout = {name: difference(runs[name], SPN, MC_DROPOUT) for name in VGG}
    fashion, cifar = dropout["fashion-mnist-1k@cpu"], dropout["cifar10-1k@cpu"]
    assert (fashion > 0).all()
    assert (cifar > 0).all()
    ensembles = {name: difference(runs[name], "ensemble-max-entropy", SPN) for name in VGG}
    assert all(clearly_above(lead) for lead in ensembles.values())
    return {
        "svhn": listed([f"{t} ({points(behind[m].mean(), 1)})" for m, t in titles.items()]),
        "dropout_fashion": points(fashion.mean(), 1),
        "dropout_cifar": points(cifar.mean(), 1),
        "ensemble": by_dataset(ensembles),
        "vgg_seeds": len(fashion),
    }


def mc_dropout_on_mnist() -> dict[str, object]:
    e, pair = experiment("paper/runs", name="mnist"), (SPN, MC_DROPOUT)
    ends = {n: [ends_at(e, method, n) for method in pair] for n in (100, 300, 1000)}
    assert all(spn > dropout for n, (spn, dropout) in ends.items() if n < 1000)
    last = abs(ends[1000][0] - ends[1000][1])
    assert last < 0.001
    printed = accuracies().set_index(["table", "method", "labels"])["accuracy"]
    theirs = [percent(printed["mnist", method, 1000]) for method in (MC_DROPOUT, SPN)]
    pairs = [f"{' and '.join(map(percent, values))} at {n:,}" for n, values in ends.items()]
    return {
        "paper": " against ".join(theirs),
        "pairs": ", ".join(pairs),
        "images": round(10_000 * last),
    }


def spn_batchbald() -> dict[str, object]:
    mnist = experiment("methods/runs", name="mnist-200")
    on_digits, on_mnist = difference(digits(), *BATCHBALD), difference(mnist, *BATCHBALD)
    assert clearly_above(on_digits)
    assert on_mnist.min() < 0 < on_mnist.max()
    assert all(difference(mnist, method).mean() < 0 for method in BATCHBALD)
    vgg = {n: difference(experiment("paper/runs", name=n), *BATCHBALD) for n in VGG}
    assert not any(excludes_zero(lead) for lead in vgg.values())
    return {
        "digits": shown(on_digits),
        "mnist": shown(on_mnist),
        "vgg": by_dataset(vgg),
        "digits_seeds": len(on_digits),
        "vgg_seeds": len(vgg["svhn-1k@cpu"]),
    }


def bayesian_batch() -> dict[str, object]:
    mnist = experiment("methods/runs", name="mnist-200")
    for e in (digits(), mnist):
        assert e.areas.groupby("method").mean().idxmin() == "bayesian-batch"
    return {"mnist": percent(ends_at(mnist, "bayesian-batch", 200), 0)}
