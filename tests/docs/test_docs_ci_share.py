"""What CONTRIBUTING.md says of `tests/ci_share.py`: which cases of a matrix CI takes."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from ci_share import one_in, one_of_each, one_share, pairwise, these

MATRICES = [
    ("ab", "cd", "vwxyz", "ft"),
    ("ab", "cde", "vwxyz", "ft"),
    ("abc",) * 4,
    ("ab", "vwxyz"),
]


def in_ci(cases: list[Any]) -> list[tuple[Any, ...]]:
    return [case.values for case in cases if not case.marks]


@pytest.mark.parametrize("matrix", MATRICES)
def test_each_choice_once_in_no_more_cases_than_that_takes(matrix: tuple[str, ...]) -> None:
    cases = one_of_each(*matrix)
    assert {case.values for case in cases} == set(itertools.product(*matrix))
    taken = in_ci(cases)
    assert len(taken) == max(map(len, matrix))
    assert [set(column) for column in zip(*taken, strict=True)] == [set(one) for one in matrix]


def test_dimensions_of_one_length_are_not_in_step() -> None:
    """Four cases are enough for every pair of two short dimensions."""
    taken = in_ci(one_of_each("wxyz", "ab", "ft"))
    assert {case[1:] for case in taken} == set(itertools.product("ab", "ft"))


def test_choices_that_ci_leaves_out() -> None:
    cases = one_of_each("abcd", "xy", without="bd")
    assert in_ci(cases) == [("a", "x"), ("c", "y")]
    assert {case.values for case in cases} == set(itertools.product("abcd", "xy"))


def test_these_cases() -> None:
    cases = these([("b", "x"), ("a", "y")], "abc", "xy")
    assert in_ci(cases) == [("a", "y"), ("b", "x")]
    assert {case.values for case in cases} == set(itertools.product("abc", "xy"))


@pytest.mark.parametrize("matrix", MATRICES)
def test_each_pair_of_choices(matrix: tuple[str, ...]) -> None:
    cases = pairwise(*matrix)
    assert {case.values for case in cases} == set(itertools.product(*matrix))
    taken = in_ci(cases)
    for one, other in itertools.combinations(range(len(matrix)), 2):
        beside = {(case[one], case[other]) for case in taken}
        assert beside == set(itertools.product(matrix[one], matrix[other]))
    longest, second = sorted(map(len, matrix))[:-3:-1]
    assert len(taken) == longest * second


def test_one_in_so_many() -> None:
    assert one_in(2, "abc") == ["a", pytest.param("b", marks=pytest.mark.soak), "c"]
    assert one_in(2, [(1, 2), (3, 4)]) == [(1, 2), pytest.param(3, 4, marks=pytest.mark.soak)]


def test_one_share_of_so_many() -> None:
    assert one_share(2, "abc") == [["a", "c"], pytest.param(["b"], marks=pytest.mark.soak)]
    assert one_share(2, "abc", first=1) == [["b"], pytest.param(["a", "c"], marks=pytest.mark.soak)]
