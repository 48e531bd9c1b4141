"""What holds for every acquisition function, whatever it goes by."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest
import torch
from torch import Tensor

from spinal.acquisition import (
    ACQUISITIONS,
    Acquisition,
    AcquisitionError,
    Candidates,
    make_acquisition,
)
from spinal.errors import DataError, SpinalError

every = pytest.mark.parametrize("name", ACQUISITIONS)
by_probability = pytest.mark.parametrize(
    "name", [name for name in ACQUISITIONS if "log_probs" in make_acquisition(name).needs]
)


def candidates(
    n: int = 40, k: int = 6, c: int = 4, dtype: torch.dtype = torch.float32, seed: int = 0
) -> Candidates:
    """Candidates with everything that any strategy needs."""
    generator = torch.Generator().manual_seed(seed)

    def draw(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    return Candidates(
        log_probs=(2 * draw(n, k, c)).log_softmax(-1).to(dtype),
        features=draw(n, 5).to(dtype),
        labelled_features=draw(3, 5).to(dtype),
        moments=draw(n, 2, c).square().to(dtype),
        log_density=10 * draw(n).to(dtype),
        ids=torch.randperm(10 * n, generator=generator)[:n],
        labelled_log_probs=(2 * draw(3, k, c)).log_softmax(-1).to(dtype),
    )


def pick(acquisition: Acquisition, given: Candidates, b: int, seed: int = 0) -> list[int]:
    chosen = acquisition.select(given, b, torch.Generator().manual_seed(seed))
    assert chosen.dtype == torch.long
    assert chosen.device.type == "cpu"
    assert chosen.shape == (min(b, len(given)),)
    return chosen.tolist()


@every
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("b", [1, 7, 39])
def test_a_batch_is_b_distinct_candidates(name, dtype, b):
    chosen = pick(make_acquisition(name), candidates(dtype=dtype), b)
    assert len(set(chosen)) == b
    assert set(chosen) <= set(range(40))


@every
@pytest.mark.parametrize("b", [40, 41, 1000])
def test_all_are_taken_if_there_are_not_more(name, b):
    assert sorted(pick(make_acquisition(name), candidates(), b)) == list(range(40))


@every
def test_nothing_is_taken_if_nothing_is_asked_or_there(name):
    assert pick(make_acquisition(name), candidates(), 0) == []
    assert pick(make_acquisition(name), candidates(n=0), 3) == []


@every
def test_a_batch_of_less_than_nothing_is_refused(name):
    with pytest.raises(AcquisitionError, match="-1"):
        make_acquisition(name).select(candidates(), -1, torch.Generator())


@every
@pytest.mark.parametrize(("k", "c"), [(1, 4), (6, 1), (1, 1), (6, 2)])
def test_one_sample_or_one_class_is_enough(name, k, c):
    assert len(set(pick(make_acquisition(name), candidates(k=k, c=c), 5))) == 5


@every
def test_the_same_seed_gives_the_same_picks(name):
    acquisition = make_acquisition(name)
    assert pick(acquisition, candidates(), 9, seed=5) == pick(acquisition, candidates(), 9, seed=5)


@every
@pytest.mark.parametrize("b", [1, 9])
def test_chance_comes_from_the_generator_alone(name, b):
    first = pick(make_acquisition(name), candidates(), b)
    torch.manual_seed(17)
    state = torch.get_rng_state()
    assert pick(make_acquisition(name), candidates(), b) == first
    assert torch.equal(torch.get_rng_state(), state)


@every
@pytest.mark.parametrize("alike", [False, True])
def test_the_order_of_the_pool_does_not_matter(name, alike):
    given = candidates()
    if alike:
        given = all_alike()
    shuffled = torch.randperm(len(given), generator=torch.Generator().manual_seed(8))
    chosen = pick(make_acquisition(name), given, 9)
    again = pick(make_acquisition(name), given.take(shuffled), 9)
    assert shuffled[again].tolist() == chosen


def all_alike(n: int = 30) -> Candidates:
    """Candidates that differ in nothing but their ids."""
    one = candidates(1)
    return Candidates(
        one.log_probs.expand(n, -1, -1),
        one.features.expand(n, -1),
        one.labelled_features,
        one.moments.expand(n, -1, -1),
        one.log_density.expand(n),
        torch.arange(n),
        one.labelled_log_probs,
    )


@every
def test_ties_are_broken_by_the_seed(name):
    acquisition, given = make_acquisition(name), all_alike()
    batches = {tuple(sorted(pick(acquisition, given, 5, seed=seed))) for seed in range(12)}
    assert all(len(set(batch)) == 5 for batch in batches)
    assert len(batches) >= 6


@every
def test_inputs_are_left_as_they_were(name):
    given, same = candidates(), candidates()
    pick(make_acquisition(name), given, 9)
    for field in fields(Candidates):
        now, before = getattr(given, field.name), getattr(same, field.name)
        assert now is before is None or torch.equal(now, before)


@every
def test_only_what_is_needed_has_to_be_given(name):
    acquisition, given = make_acquisition(name), candidates()
    enough = Candidates(ids=given.ids, **{need: getattr(given, need) for need in acquisition.needs})
    assert pick(acquisition, enough, 9) == pick(acquisition, given, 9)
    for need in acquisition.needs:
        others = acquisition.needs - {need}
        lacking = Candidates(ids=given.ids, **{other: getattr(given, other) for other in others})
        with pytest.raises(DataError, match=need):
            acquisition.select(lacking, 9, torch.Generator())


@every
def test_what_is_not_a_number_is_refused(name):
    acquisition = make_acquisition(name)
    for need in acquisition.needs:
        given = candidates()
        getattr(given, need)[2] = torch.nan
        with pytest.raises(DataError, match=need):
            acquisition.select(given, 3, torch.Generator())


@by_probability
def test_what_is_not_a_log_probability_is_refused(name):
    acquisition, given = make_acquisition(name), candidates()
    log_probs = given.log_probs
    wrong = {
        "sum to": [log_probs.exp(), log_probs / torch.log(torch.tensor(2.0)), log_probs + 0.01],
        "3 axes": [log_probs[:, 0], log_probs.long()],
        "torch tensor": [log_probs.numpy()],
        "at least one": [log_probs[:, :0]],
    }
    for message, arrays in wrong.items():
        for array in arrays:
            with pytest.raises(DataError, match=message):
                acquisition.select(replace(given, log_probs=array), 3, torch.Generator())


def test_arrays_that_do_not_belong_together_are_refused():
    given = candidates()
    for changed, message in [
        (Candidates(given.log_probs, given.features[1:]), "39 rows"),
        (Candidates(features=given.features, labelled_features=torch.zeros(2, 9)), "5 features"),
        (Candidates(given.log_probs, log_density=given.features), "give 1 axis"),
        (Candidates(given.log_probs, ids=torch.zeros(40).long()), "same id"),
        (Candidates(given.log_probs, ids=torch.rand(40)), "integers"),
    ]:
        with pytest.raises(DataError, match=message):
            make_acquisition("random").select(changed, 3, torch.Generator())


def test_an_unknown_name_gets_the_nearest_suggestion():
    with pytest.raises(AcquisitionError, match="did you mean 'max-entropy'"):
        make_acquisition("maxentropy")
    with pytest.raises(AcquisitionError, match="there are auto"):
        make_acquisition("xyzzy")
    with pytest.raises(AcquisitionError, match="did you mean 'power'"):
        make_acquisition("bald", powr=1.0)
    assert issubclass(AcquisitionError, SpinalError)
