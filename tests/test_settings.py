"""Settings survive the way to plain values and back."""

from __future__ import annotations

from spinal.circuits import FitSettings, Recipe
from spinal.experiments import load_protocol
from spinal.experiments.protocol import Protocol
from spinal.learner import LearnerSettings
from spinal.networks import TrainSettings
from spinal.settings import from_mapping, to_mapping


def test_settings_come_back_as_they_were() -> None:
    for settings in (
        Recipe(sums=(3, 4), depth=2, fit=FitSettings(batch_size=7)),
        TrainSettings(patience=3),
        LearnerSettings(candidates=9, training=TrainSettings(epochs=2)),
        load_protocol("mnist"),
    ):
        assert from_mapping(type(settings), to_mapping(settings), "here") == settings


def test_none_survives_where_it_can_be_written() -> None:
    settings = FitSettings(batch_size=None)
    assert from_mapping(FitSettings, to_mapping(settings, none=True), "here") == settings


def test_a_base_keeps_what_is_not_changed() -> None:
    base = Recipe(scale=2.0, fit=FitSettings(steps=5, learning_rate=0.5))
    changed = from_mapping(Recipe, {"fit": {"steps": 6}}, "here", base)
    assert (changed.scale, changed.fit.steps, changed.fit.learning_rate) == (2.0, 6, 0.5)
    assert isinstance(load_protocol("digits"), Protocol)
