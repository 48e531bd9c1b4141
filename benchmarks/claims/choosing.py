"""Figures about what is chosen. Words of the template that depend on them are asserted here."""

from __future__ import annotations

from benchmarks.claims.runs import (
    BATCHBALD,
    BATCHES,
    ENSEMBLE,
    MC_DROPOUT,
    RANDOM,
    SMALL,
    SOFTMAX,
    SPN,
    SPN_ENSEMBLE,
    SPN_ENTROPY,
    VGG,
    after_a_choice,
    area,
    batches,
    by_dataset,
    clearly_above,
    cost,
    difference,
    digits,
    ends_at,
    excludes_zero,
    experiment,
    four_members,
    listed,
    markdown_table,
    seeds,
    shown,
    small,
)
from benchmarks.small_report import best_competitors
from spinal.report.experiment import Experiment
from spinal.report.names import title
from spinal.report.numbers import decimal, percent, points
from spinal.report.paper import accuracies
from spinal.report.savings import stays_above
from spinal.report.statistics import holm, paired_t_test


def by_network(e: Experiment) -> Experiment:
    found = e.by_network()
    assert found is not None
    return found


def better_than_random() -> dict[str, object]:
    gains = {
        "margin": difference(digits(), SPN),
        "entropy": difference(digits(), SPN_ENTROPY),
        "network": difference(by_network(digits()), SPN),
    }
    assert clearly_above(gains["margin"])
    assert clearly_above(gains["network"])
    mnist = small()["mnist@small"]
    curve, end = mnist.mean_curve(SPN), ends_at(mnist, RANDOM, 1000)
    needed = curve.index[curve.index >= stays_above(curve, end)].min()
    vgg = {n: difference(experiment("vgg-five-seeds/runs", name=n), SPN) for n in VGG}
    assert min(holm([paired_t_test(gain) for gain in vgg.values()])) > 0.05
    return {
        **{name: shown(gain) for name, gain in gains.items()},
        "digits_seeds": len(gains["margin"]),
        "end": percent(end),
        "end_spn": percent(ends_at(mnist, SPN, 1000)),
        "needed": needed,
        "vgg": by_dataset(vgg),
        "vgg_seeds": len(vgg["svhn-1k@cpu"]),
    }


#: Where SPN-CNN is behind the margin of the softmax.
_BEHIND = "fashion-mnist-1k@small"


def at_the_paper_s_counts() -> dict[str, object]:
    runs = small()
    gains = {name: after_a_choice(e, SPN) for name, e in runs.items()}
    assert all((gain > 0).all() for gain in gains.values())
    by_softmax = {name: after_a_choice(e, SOFTMAX) for name, e in runs.items()}
    chosen = {n: after_a_choice(by_network(e), SPN, SOFTMAX) for n, e in runs.items()}
    leads = {name: after_a_choice(e, SPN, SOFTMAX) for name, e in runs.items()}
    assert all(by_softmax[name].mean() > leads[name].mean() for name in runs)
    printed = accuracies().set_index(["table", "method", "labels"])["accuracy"].sort_index()
    rows = []
    for name, e in runs.items():
        theirs = printed[e.paper, RANDOM]
        over = e.mean_curve(RANDOM)[theirs.index] - theirs
        above = f"{(over >= 0).sum()} of {len(over)}"
        if over.min() < 0:
            above += f", else at most {percent(-over.min(), 1)} below"
        found = (gains[name], by_softmax[name], leads[name], chosen[name])
        rows.append([SMALL[name], str(len(gains[name])), *map(shown, found), above])
    areas = {name: difference(e, SPN, SOFTMAX) for name, e in runs.items()}
    assert [name for name, gain in areas.items() if excludes_zero(gain)] == [_BEHIND]
    assert clearly_above(-areas[_BEHIND])
    assert not any(map(clearly_above, chosen.values()))
    head = ["", "seeds", "SPN-CNN over Random", "Deterministic over Random"]
    head += ["SPN-CNN over Deterministic", "the same, by the networks", "above the paper"]
    return {
        "table": "\n".join(markdown_table(head, rows)),
        "area": by_dataset(areas),
    }


def against_competitors() -> dict[str, object]:
    return {
        "best": "\n".join(best_competitors(list(small().values()))),
        "digits": "\n".join(_on_digits()),
        "digits_seeds": len(difference(digits(), SPN)),
    }


def _on_digits() -> list[str]:
    """All methods on digits, by area."""
    e = digits()
    ranked = sorted(e.methods, key=lambda method: -e.areas[method].mean())
    others = [method for method in ranked if method != SPN]
    corrected = dict(
        zip(others, holm([paired_t_test(difference(e, SPN, m)) for m in others]), strict=True)
    )
    rows = [
        [
            title(method), area(e, method),
            "" if method == RANDOM else shown(difference(e, method)),
            "" if method == SPN else shown(difference(e, SPN, method)),
            "" if method == SPN else decimal(corrected[method]),
        ]
        for method in ranked
    ]  # fmt: skip
    return list(markdown_table(["", "area", "over Random", "SPN-CNN over it", "p (Holm)"], rows))


def ensembles() -> dict[str, object]:
    over_plain = difference(digits(), SPN_ENSEMBLE, ENSEMBLE)
    ranked = digits().areas.groupby("method").mean().sort_values(ascending=False).index
    assert list(ranked[:2]) == [SPN_ENSEMBLE, ENSEMBLE]
    cases = [("digits", "5", digits(), digits())]
    for name, e in small().items():
        for members, of_spns in (("5", e), ("4", four_members().get(name))):
            if ENSEMBLE in e.methods and of_spns is not None and SPN_ENSEMBLE in of_spns.methods:
                cases.append((SMALL[name], members, of_spns, e))
    rows, fewer, nll = [], {}, {}
    for name, members, of_spns, e in cases:
        own = of_spns.areas[SPN_ENSEMBLE]
        leads = [(own - e.areas[other]).dropna() for other in (ENSEMBLE, SPN, SOFTMAX)]
        if members == "4":
            fewer[name] = leads[0].to_numpy(float)
            nll[name] = [
                float(runs.mean_curve(method, runs.measure("nll")).mean())
                for runs, method in ((of_spns, SPN_ENSEMBLE), (e, ENSEMBLE))
            ]
        rows.append([
            name, members, area(of_spns, SPN_ENSEMBLE), area(e, ENSEMBLE),
            *(shown(lead.to_numpy(float)) for lead in leads),
            f"{cost(of_spns, SPN_ENSEMBLE, ENSEMBLE, of=e):.2f}",
        ])  # fmt: skip
    head = ["", "members", "SPN ensemble", "ensemble", "difference", "over SPN-CNN"]
    head += ["over Deterministic", "cost"]
    assert list(fewer) == ["SVHN", "CIFAR-10", "Fashion-MNIST"]
    assert all(len(lead) == 1 and abs(lead[0]) < 0.002 for lead in fewer.values())
    assert all(own < plain for own, plain in nll.values())
    return {
        "table": "\n".join(markdown_table(head, rows)),
        "digits_seeds": len(over_plain),
        "fewer": listed([f"{shown(lead)} on {name}" for name, lead in fewer.items()]),
        "nll": listed([f"{a:.3f} against {b:.3f} ({name})" for name, (a, b) in nll.items()]),
    }


def mc_dropout_on_mnist() -> dict[str, object]:
    e, pair = small()["mnist@small"], (SPN, MC_DROPOUT)
    both = sorted(set.intersection(*({run.seed for run in e.of(m)} for m in pair)))
    ends = {n: [e.accuracy.loc[n, m][both].mean() for m in pair] for n in (100, 300, 1000)}
    printed = accuracies().set_index(["table", "method", "labels"])["accuracy"]
    theirs = [
        percent(printed["mnist", method, 1000])
        for method in ("mc-dropout-max-entropy", SPN_ENTROPY)
    ]
    pairs = [f"{' and '.join(map(percent, values))} at {n:,}" for n, values in ends.items()]
    lead = difference(e, *pair)
    assert clearly_above(lead)
    return {
        "paper": " against ".join(theirs),
        "pairs": listed(pairs),
        "area": shown(lead),
        "seeds": seeds(len(lead)),
    }


def spn_batchbald() -> dict[str, object]:
    spn, other = BATCHBALD
    closed = difference(digits(), spn, other)
    areas = experiment("digits/trained", name="digits").areas[spn]
    trained = (areas - digits().areas[other]).dropna().to_numpy(float)
    assert len(trained) == len(closed)
    assert clearly_above(trained)
    assert not excludes_zero(closed)
    found = {BATCHES[name]: difference(e, spn, other) for name, e in batches().items()}
    signs = {name: [1 if x > 0 else -1 for x in lead] for name, lead in found.items()}
    assert signs == {"SVHN": [1], "CIFAR-10": [-1], "Fashion-MNIST": [-1]}
    reserved = experiment("small/reserved", name="svhn-batchbald@small").areas[spn]
    before = (reserved - batches()["svhn-batchbald@small"].areas[other]).dropna()
    return {
        "trained": shown(trained),
        "closed": shown(closed),
        "reserved": shown(before.to_numpy(float)),
        "seeds": len(closed),
        "small": listed([f"{shown(lead)} on {name}" for name, lead in found.items()]),
        "small_seeds": seeds(min(map(len, found.values()))),
    }


def bayesian_batch() -> dict[str, object]:
    e = digits()
    return {
        "digits": points(difference(e, "bayesian-batch").mean(), 1),
        "end": percent(ends_at(e, "bayesian-batch", 120), 0),
        "random": percent(ends_at(e, RANDOM, 120), 0),
    }
