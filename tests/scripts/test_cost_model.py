"""The model of costs says of the largest size that was measured what was measured there."""

from __future__ import annotations

import pytest
from bench.cost_model import (
    FAR,
    LEAST,
    MOST_WRONG,
    Prediction,
    fitted,
    measured,
    predictions,
    walls,
)


@pytest.mark.parametrize(
    ("terms", "powers"),
    [
        ({0: 40.0}, {0}),
        ({1: 3.0}, {1}),
        ({0: 100.0, 1: 2.0}, {0, 1}),
        ({0: 0.0}, {0}),
    ],
    ids=str,
)
def test_a_sum_of_powers_is_found_again(terms: dict[int, float], powers: set[int]) -> None:
    sizes = (10, 20, 40)
    growth = fitted(sizes, [sum(f * n**p for p, f in terms.items()) for n in sizes])
    assert set(growth.terms) == powers
    assert growth.at(80) == pytest.approx(sum(f * 80**p for p, f in terms.items()), abs=1e-9)


def test_a_little_noise_makes_no_square() -> None:
    growth = fitted((10, 20, 40), (100, 205, 398))
    assert growth.at(1_000) == pytest.approx(10_000, rel=0.05)
    assert growth.size_of(5_000) == pytest.approx(500, rel=0.05)
    assert fitted((1, 2, 4), (7, 7, 7)).size_of(8) is None


def test_the_model_says_what_the_largest_size_costs() -> None:
    found = list(predictions(measured()))
    assert {each.by for each in found} == set(FAR)
    assert {each.what for each in found} == set(LEAST)
    assert MOST_WRONG == 0.25
    assert [told(each) for each in found if each.error > MOST_WRONG] == []


def test_the_largest_size_is_far_from_the_others() -> None:
    sizes: dict[str, set[int]] = {}
    for each in measured():
        sizes.setdefault(each.by, set()).add(each.size)
    told = {by: sorted(of)[-1] / sorted(of)[-2] for by, of in sizes.items()}
    assert all(len(of) == 4 for of in sizes.values())
    assert told["files"] == 4
    assert min(told.values()) >= 2


def test_far_away_stands_a_wall() -> None:
    found = {(operation, what): wall for operation, _, what, _, wall in walls(measured())}
    assert found["plan all", "memory"] is not None
    assert found["append", "requests"] is None


def told(each: Prediction) -> str:
    return (
        f"{each.operation}, {each.size:,} {each.by}: {each.what} is {each.measured:,.3f}, "
        f"predicted {each.predicted:,.3f}"
    )
