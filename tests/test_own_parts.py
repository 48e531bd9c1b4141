"""Parts of one's own: classifiers, registered names, module:name, models trained elsewhere."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from torch import nn

import spinal
from spinal import ActiveLearner, Pool, load_dataset, register
from spinal.acquisition import Candidates, make_acquisition
from spinal.circuits import DGCSPN
from spinal.data import make_dataset
from spinal.encoders import encode, load_encoder
from spinal.errors import DataError, SpinalError
from spinal.experiments import Protocol, make_runs, run_grid
from spinal.experiments.protocol import NetworkProtocol
from spinal.files import write_checksums
from spinal.learner import Callback, NotFittedError, ProgressBar
from spinal.methods import Method, find_method
from spinal.networks import NetworkError, TrainSettings, build_network
from spinal.posteriors import Deterministic, Estimator, Posterior

N = 60
LABELS = np.arange(N) % 3
VECTORS = (np.random.default_rng(0).normal(size=(N, 4)) + 3 * LABELS[:, None]).astype(np.float32)
QUICK = TrainSettings(min_steps=5, max_steps=5)
CLASSES = ("ash", "oak", "elm")


def make(**options) -> ActiveLearner:
    pool = options.pop("pool", None) or Pool(VECTORS, CLASSES)
    network = options.pop("network", ("dense", {"width": 0.125}))
    return ActiveLearner(pool, network, training=QUICK, device="cpu", **options)


def fitted(**options) -> ActiveLearner:
    learner = make(**options)
    learner.tell(np.arange(30), LABELS[:30])
    learner.fit()
    return learner


def test_a_classifier_of_scikit_learn_is_a_method() -> None:
    given = LogisticRegression(C=0.5)
    learner = fitted(method=given)
    alone = LogisticRegression(C=0.5).fit(VECTORS[:30], LABELS[:30])
    np.testing.assert_allclose(
        learner.predict_proba(VECTORS), alone.predict_proba(VECTORS), atol=1e-4
    )
    assert not hasattr(given, "coef_")  # a clone is fitted
    assert "estimator: Network, Estimator, Ranked" in repr(learner)
    probs = np.sort(alone.predict_proba(VECTORS[30:]), axis=1)
    least = 30 + np.argsort(probs[:, -1] - probs[:, -2])[:3]
    assert set(learner.ask(3)) == set(least)


def test_classes_without_labels_and_a_single_class() -> None:
    learner = make(posterior=RandomForestClassifier(5), acquisition="max-entropy")
    learner.tell([0, 3], [0, 0])
    learner.fit()
    assert (learner.predict(VECTORS) == 0).all()
    learner.tell([1], [1])
    learner.fit()
    probs = learner.predict_proba(VECTORS)
    assert np.isfinite(np.log(probs)).all()
    np.testing.assert_allclose(probs.sum(1), 1, rtol=1e-5)
    assert probs[:, 2].max() < 1e-5


def test_a_saved_classifier_is_fitted_again_and_never_unpickled(tmp_path: Path) -> None:
    learner = fitted(method=RandomForestClassifier(10))
    learner.save(tmp_path / "learner")
    with pytest.raises(SpinalError, match="your own posterior: give it again, as `posterior=`"):
        ActiveLearner.load(tmp_path / "learner", Pool(VECTORS, CLASSES))
    again = ActiveLearner.load(
        tmp_path / "learner", Pool(VECTORS, CLASSES), posterior=RandomForestClassifier(10)
    )
    np.testing.assert_array_equal(again.predict_proba(VECTORS), learner.predict_proba(VECTORS))
    assert not list((tmp_path / "learner").rglob("*.pkl"))


def test_what_is_no_classifier_is_refused() -> None:
    with pytest.raises(SpinalError, match="needs fit and predict_proba"):
        Estimator(LinearSVC())
    with pytest.raises(SpinalError, match=r"posterior: .*LinearSVC"):
        make(posterior=LinearSVC())


OWN = """
from dataclasses import dataclass
import numpy as np
import torch
from torch import nn
from spinal.data import make_dataset
from spinal.methods import Method
from spinal.posteriors import Deterministic
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

def first(candidates):
    return -candidates.ids.double()

first.needs = ()

@dataclass
class Twice(Deterministic):
    def predict(self, view, *, seed=0):
        return (2 * super().predict(view)).log_softmax(1)

METHOD = Method("Mine", "{path}:Twice", "{path}:first", ("{path}:first",), "my own")
BAYES = GaussianNB()

def points():
    x = np.arange(40.0).reshape(20, 2)
    return make_dataset(x, np.arange(20) // 10)

class Letters:
    name, fingerprint, width = "letters", "1", 1
    def prepare(self, item):
        return item
    def embed(self, prepared):
        return np.array([[len(text)] for text in prepared], np.float32)

number = 3
"""


@pytest.fixture
def own(tmp_path: Path) -> str:
    path = tmp_path / "mine.py"
    path.write_text(OWN.replace("{path}", str(path)))
    return str(path)


def test_everything_in_a_file_has_a_name(own: str, tmp_path: Path) -> None:
    network = NetworkProtocol("dense", 0.125, training={"min-steps": 3, "max-steps": 3})
    protocol = Protocol(
        "mine", dataset=f"{own}:points", initial=6, batch=2, rounds=1, network=network
    )
    methods = [f"{own}:METHOD", f"{own}:BAYES", "sklearn.naive_bayes:GaussianNB"]
    runs = make_runs([protocol], methods, [], [0], tmp_path / "runs")
    run_grid(runs, workers=1)
    splits = json.loads((tmp_path / "runs/mine/splits/seed-0.json").read_text())
    assert list(runs[0].rounds()[0].picks) == splits["pool"][:2]  # by `first`
    assert runs[1].rounds()[-1].accuracy == runs[2].rounds()[-1].accuracy
    by_first = make_runs([protocol], ["logistic"], [f"{own}:first"], [0], tmp_path / "runs")
    assert by_first[0].acquisition == f"{own}:first"
    assert encode(load_encoder(f"{own}:Letters"), ["abc"]).tolist() == [[3]]


def test_continued_training_finds_own_parts_again(own: str, tmp_path: Path) -> None:
    network = NetworkProtocol(
        "dense", 0.125, training={"min-steps": 3, "max-steps": 3}, retrain="continue"
    )
    protocol = Protocol("mine", dataset=f"{own}:points", initial=6, rounds=2, batch=2,
                        network=network)  # fmt: skip
    (whole,) = make_runs([protocol], [f"{own}:METHOD"], [], [0], tmp_path / "whole")
    run_grid([whole], workers=1)
    for rounds in (1, 2):
        short = replace(protocol, rounds=rounds)
        (parts,) = make_runs([short], [f"{own}:METHOD"], [], [0], tmp_path / "parts")
        run_grid([parts], workers=1)
    assert [r.picks for r in parts.rounds()] == [r.picks for r in whole.rounds()]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("no_such_module:x", "No module named 'no_such_module'"),
        ("nowhere/file.py:x", "there is no file nowhere/file.py"),
        ("math:copysing", "math has no 'copysing': did you mean 'copysign'"),
    ],
)
def test_a_name_that_leads_nowhere(name: str, message: str) -> None:
    for find in (find_method, make_acquisition, load_dataset, load_encoder):
        with pytest.raises(SpinalError, match=message):
            find(name)


def test_a_part_of_another_kind_is_refused(own: str) -> None:
    for find, message in (
        (find_method, "is neither a Method"),
        (make_acquisition, "is not a function of candidates"),
        (load_dataset, "gives a int, not a Dataset"),
        (load_encoder, "int"),
    ):
        with pytest.raises(SpinalError, match=message):
            find(f"{own}:number")


def test_registered_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spinal.registry._REGISTERED", {})

    def by_last(candidates: Candidates) -> torch.Tensor:
        return candidates.ids.double()

    by_last.needs = ()  # type: ignore[attr-defined]
    register("acquisition", "last", by_last)
    register("method", "bayes", GaussianNB())
    register("method", "plain", Method("Plain", "mine", "last", ("last",), ""))
    register("posterior", "mine", Deterministic)
    register("dataset", "few", make_dataset(VECTORS, LABELS))
    assert load_dataset("few").train_labels.shape == (45,)
    learner = fitted(method="plain")
    assert learner.ask(2).tolist() == [59, 58]
    assert (fitted(method="bayes").predict(VECTORS) == LABELS).mean() > 0.9
    with pytest.raises(SpinalError, match="did you mean 'bayes'"):
        find_method("baies")
    with pytest.raises(SpinalError, match="no kind of part 'metod': did you mean 'method'"):
        register("metod", "x", None)  # type: ignore[arg-type]
    with pytest.raises(SpinalError, match="without a colon"):
        register("method", "a:b", None)


def test_a_saved_learner_never_imports_what_its_folder_names(own: str, tmp_path: Path) -> None:
    learner = fitted(method=f"{own}:METHOD")
    learner.save(tmp_path / "learner")
    parts = {"posterior": learner.posterior, "acquisition": learner.acquisition}
    Path(own).write_text("raise RuntimeError('imported')")
    again = ActiveLearner.load(tmp_path / "learner", Pool(VECTORS, CLASSES), **parts)
    assert again.settings.method == f"{own}:METHOD"
    again.fit()


def test_a_name_in_a_saved_folder_leads_to_no_code(own: str, tmp_path: Path) -> None:
    learner = fitted(method="deterministic")
    learner.save(tmp_path / "learner")
    path = tmp_path / "learner" / "learner.json"
    path.write_text(path.read_text().replace('"deterministic",\n    {', f'"{own}:Twice",\n    {{'))
    assert own in path.read_text()
    write_checksums(tmp_path / "learner")
    with pytest.raises(SpinalError, match="saved with your own posterior"):
        ActiveLearner.load(tmp_path / "learner", Pool(VECTORS, CLASSES))


def test_a_module_in_the_working_directory_is_found(
    own: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(Path(own).parent)
    assert find_method("mine:METHOD").title == "Mine"
    assert find_method("mine:BAYES").posterior == "mine:BAYES"


class Plain:
    """A classifier with scikit-learn's interface and nothing else, as those of other packages."""

    def get_params(self, deep: bool = True) -> dict:
        return {}

    def fit(self, x: np.ndarray, y: np.ndarray) -> Plain:
        assert x.dtype == np.float32
        assert y.dtype == np.int64
        self.classes_ = np.unique(y)
        self.means = np.stack([x[y == c].mean(0) for c in self.classes_])
        return self

    def predict_proba(self, x: np.ndarray) -> np.ndarray:
        distances = ((x[:, None] - self.means) ** 2).sum(-1)
        return np.exp(-distances) / np.exp(-distances).sum(1, keepdims=True)


def test_a_classifier_of_another_package() -> None:
    learner = fitted(method=Plain())
    assert (learner.predict(VECTORS) == LABELS).mean() > 0.9
    assert not learner.posterior.takes_missing


def test_a_network_of_skorch_is_a_method() -> None:
    skorch = pytest.importorskip("skorch")
    module = nn.Sequential(nn.Linear(VECTORS.shape[1], int(LABELS.max()) + 1), nn.Softmax(1))
    method = skorch.NeuralNetClassifier(
        module, max_epochs=100, lr=0.05, optimizer=torch.optim.Adam, train_split=None, verbose=0
    )
    learner = fitted(method=method)
    assert (learner.predict(VECTORS) == LABELS).mean() > 0.7  # by chance: 0.33


def test_a_pool_grows_and_known_points_keep_their_indices() -> None:
    learner = fitted(pool=Pool(VECTORS[:40], CLASSES), method="logistic")
    before = learner.predict(VECTORS)
    new = learner.pool.extend(VECTORS[40:50])
    assert new.tolist() == list(range(40, 50))
    assert learner.pool.extend(VECTORS[50:]).tolist() == list(range(50, 60))
    assert repr(learner.pool) == "Pool(60 points: 30 labelled, 0 asked, 30 unlabelled)"
    at = np.array([55, 3, 45, 59, 0])
    np.testing.assert_array_equal(learner.pool.points[at], VECTORS[at])
    np.testing.assert_array_equal(learner.predict(VECTORS), before)
    asked = learner.ask(30)
    assert set(asked) == set(range(30, 60))
    learner.tell(asked, LABELS[asked])
    learner.fit()
    with pytest.raises(DataError, match=r"shape \(3,\), in a pool of \(4,\)"):
        learner.pool.extend(VECTORS[:, :3])


def test_a_pool_of_texts_grows_without_another_encoder() -> None:
    texts = [f"word{i % 7} other{i % 3}" for i in range(20)]
    pool = Pool(texts, 2)
    before = pool.points[np.arange(20)]
    pool.extend(["word1 new", "other2"])
    np.testing.assert_array_equal(pool.points[np.arange(20)], before)
    assert pool.points_like(["word1"]).shape[1:] == pool.points.shape[1:]
    with pytest.raises(DataError, match="n_fitted = 20, the pool 22"):
        Pool([*texts, "word1 new", "other2"], 2).load_state_dict(pool.state_dict())


@pytest.mark.parametrize("retrain", ["scratch", "continue"])
def test_classes_grow(retrain: str) -> None:
    learner = make(pool=Pool(VECTORS, CLASSES[:2]), method="spn-cnn", retrain=retrain)
    known = np.flatnonzero(LABELS < 2)[:20]
    learner.tell(known, LABELS[known])
    learner.fit()
    assert learner.pool.add_class("elm") == 2
    learner.tell([2, 5, 8, 11], ["elm"] * 4)
    learner.fit()
    assert learner.predict_proba(VECTORS).shape == (N, 3)
    assert learner.predict_proba(VECTORS, by="network").shape == (N, 3)
    assert (learner.predict(VECTORS[LABELS == 2]) == 2).mean() > 0.8
    with pytest.raises(DataError, match="class 'elm' already"):
        learner.pool.add_class("elm")


def test_members_of_an_ensemble_start_again_if_classes_grow() -> None:
    learner = make(pool=Pool(VECTORS, CLASSES[:2]), method="ensemble", retrain="continue")
    learner.tell([0, 1], [0, 1])
    learner.fit()
    learner.pool.add_class("elm")
    learner.tell([2], ["elm"])
    learner.fit()
    assert learner.predict_proba(VECTORS).shape == (N, 3)


def test_a_class_that_was_added_after_the_last_fit_survives_the_disk(tmp_path: Path) -> None:
    learner = make(pool=Pool(VECTORS, CLASSES[:2]), method="deterministic")
    learner.tell([0, 1], [0, 1])
    learner.fit()
    learner.pool.add_class("elm")
    learner.tell([2], ["elm"])
    learner.save(tmp_path / "learner")
    again = ActiveLearner.load(tmp_path / "learner", Pool(VECTORS, CLASSES), device="cpu")
    np.testing.assert_array_equal(again.predict_proba(VECTORS), learner.predict_proba(VECTORS))
    for each in (learner, again):
        each.fit()
        assert each.predict_proba(VECTORS).shape == (N, 3)
    np.testing.assert_array_equal(again.predict_proba(VECTORS), learner.predict_proba(VECTORS))


def test_a_validation_set_is_encoded_as_the_pool_is() -> None:
    texts = [f"{CLASSES[y]} leaf{i % 4}" for i, y in enumerate(LABELS)]
    learner = fitted(
        pool=Pool(texts, CLASSES), method="deterministic", validation=(texts[:6], LABELS[:6])
    )
    assert learner.validation is not None
    np.testing.assert_allclose(learner.validation[0], learner.pool.points[np.arange(6)], atol=1e-6)


def test_classes_do_not_grow_in_a_network_of_ones_own() -> None:
    module = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    learner = make(pool=Pool(VECTORS, CLASSES[:2]), network=module, method="deterministic")
    learner.tell([0, 1], [0, 1])
    learner.pool.add_class("elm")
    with pytest.raises(NetworkError, match="3 classes now, and your own network fewer outputs"):
        learner.fit()


def test_a_classifier_trained_elsewhere_begins() -> None:
    names = np.array(CLASSES)[LABELS]
    model = GaussianNB().fit(VECTORS, names)  # its classes are sorted by name
    learner = make(method="spn-batchbald")
    learner.start_from(model)
    wanted = model.predict_proba(VECTORS)[:, [0, 2, 1]]
    np.testing.assert_allclose(learner.predict_proba(VECTORS), wanted, atol=1e-5)
    probs = np.sort(wanted, axis=1)
    asked = learner.ask(2)  # by margin: a classifier has no samples
    assert set(asked) == set(np.argsort(probs[:, -1] - probs[:, -2])[:2])
    learner.tell(asked, LABELS[asked])
    learner.tell(np.setdiff1d(np.arange(12), asked), LABELS[np.setdiff1d(np.arange(12), asked)])
    learner.fit()
    assert np.abs(learner.predict_proba(VECTORS) - wanted).max() > 0.01
    with pytest.raises(SpinalError, match="already fitted"):
        learner.start_from(model)


def test_a_network_trained_elsewhere_begins_and_is_trained_further() -> None:
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
    still = TrainSettings(min_steps=5, max_steps=5, learning_rate=1e-7)
    learner = ActiveLearner(Pool(VECTORS, CLASSES), method="deterministic", training=still)
    learner.start_from(module)
    scale = learner.network.preprocess
    logits = module((torch.from_numpy(VECTORS) - scale.mean) / scale.std)
    wanted = logits.softmax(1).detach().numpy()
    np.testing.assert_allclose(learner.predict_proba(VECTORS), wanted, atol=1e-5)
    learner.tell(np.arange(10), LABELS[:10])
    learner.fit()  # hardly moves the weights, but would start from others
    np.testing.assert_allclose(learner.predict_proba(VECTORS), wanted, atol=1e-4)
    named = build_network("dense", (4,), 3, width=0.125)
    other = make(method="deterministic")
    other.start_from(named)
    assert other.predict_proba(VECTORS).shape == (N, 3)


def test_before_the_first_fit_there_is_no_trained_network() -> None:
    learner = make(method="spn-cnn")
    learner.start_from(GaussianNB().fit(VECTORS, LABELS))
    with pytest.raises(NotFittedError, match="network is not trained"):
        learner.predict(VECTORS, by="network")
    with pytest.raises(NotFittedError, match="network is not trained"):
        learner.fit_beside("logistic")
    with pytest.raises(NotFittedError, match="network is not trained"):
        learner.fitted_share()


@pytest.mark.parametrize("acquisition", ["auto", "k-center", "typiclust", "bait"])
@pytest.mark.parametrize("kind", ["module", "classifier"])
def test_a_model_trained_elsewhere_chooses_before_the_first_label(
    acquisition: str, kind: str
) -> None:
    images = np.random.default_rng(0).integers(0, 256, (30, 8, 8, 1), np.uint8)
    learner = ActiveLearner(
        Pool(images, CLASSES), "lenet", acquisition=acquisition, training=QUICK, device="cpu"
    )
    learner.start_from(
        build_network("lenet", (8, 8, 1), 3, width=0.1)
        if kind == "module"
        else GaussianNB().fit(images.reshape(30, -1), LABELS[:30])
    )
    assert len(set(learner.ask(4))) == 4


def test_parts_of_a_pipeline_are_seeded(tmp_path: Path) -> None:
    def probs(seed: int) -> np.ndarray:
        forest = make_pipeline(StandardScaler(), RandomForestClassifier(5))
        return fitted(method=forest, seed=seed).predict_proba(VECTORS)

    np.testing.assert_array_equal(probs(0), probs(0))
    assert (probs(0) != probs(1)).any()


def test_a_loaded_learner_has_callbacks(tmp_path: Path) -> None:
    calls: list[int] = []

    class Log(Callback):
        def on_round(self, learner):
            calls.append(learner.rounds)

    fitted(method="deterministic").save(tmp_path)
    ActiveLearner.load(tmp_path, Pool(VECTORS, CLASSES), device="cpu", callbacks=[Log()]).fit()
    assert calls == [2]


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (object(), "give a trained nn.Module"),
        (GaussianNB(), "give a trained nn.Module"),  # not fitted
        (GaussianNB().fit(VECTORS, LABELS + 5), "classes of the model are 5, 6, 7"),
        (nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)), "2 outputs, the pool 3"),
    ],
)
def test_a_model_that_does_not_fit_cannot_begin(model, message: str) -> None:
    with pytest.raises(SpinalError, match=message):
        make().start_from(model)


def test_callbacks_are_told_of_steps_and_rounds() -> None:
    calls: list = []

    class Log(Callback):
        def on_step(self, learner, part, step, steps):
            calls.append((part, step, steps))

        def on_round(self, learner):
            calls.append(len(learner.pool.labelled_indices))

    learner = fitted(method="deterministic", callbacks=[Log(), ProgressBar(disable=True)])
    assert calls == [*(("network", i, 5) for i in range(1, 6)), 30]
    learner.fit(on_step=lambda *step: calls.append(step))
    assert calls.count(("network", 5, 5)) == 3


def test_representations_in_a_notebook() -> None:
    learner = fitted(method="deterministic")
    assert "<th style" in learner._repr_html_()
    html = learner.pool._repr_html_()
    assert "Pool of 60 points, 4" in html
    assert ">oak</th>" in html
    assert "parameters" in DGCSPN((4, 4), 3)._repr_html_()
    odd = Pool(VECTORS, ["<b>", "x"])._repr_html_()
    assert "<b>" not in odd


def test_the_default_network_fits_the_points() -> None:
    assert ActiveLearner(Pool(VECTORS, 3)).network.config["name"] == "dense"
    images = np.zeros((4, 8, 8, 1), np.uint8)
    assert ActiveLearner(Pool(images, 3)).network.config["name"] == "lenet"
    assert spinal.register is register


@dataclass
class Even(Posterior):
    def fit(self, labelled, labels, context):
        pass

    def predict(self, view, *, seed=0):
        return torch.zeros(len(view), 3).log_softmax(1)


def test_a_posterior_of_ones_own_by_module_and_name() -> None:
    learner = fitted(posterior=f"{__name__}:Even", method="deterministic")
    np.testing.assert_allclose(learner.predict_proba(VECTORS), 1 / 3, rtol=1e-6)
