"""What CONTRIBUTING.md says of `tests/ci_share.py`: which circle takes which cases."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import Any

import pytest

from ci_share import (
    circle_of,
    in_circles,
    one_of_each,
    one_share,
    only_in_soak,
    pairwise,
    these,
)

MATRICES = [
    ("ab", "cd", "vwxyz", "ft"),
    ("ab", "cde", "vwxyz", "ft"),
    ("abc",) * 4,
    ("ab", "vwxyz"),
]


def in_ci(cases: list[Any]) -> list[tuple[Any, ...]]:
    return [case.values for case in cases if not case.marks]


def circles(cases: list[Any]) -> list[str]:
    return [circle_of([mark.name for mark in getattr(case, "marks", ())]) for case in cases]


def test_the_first_cases_are_everybodys_and_the_next_guard_main() -> None:
    assert circles(in_circles("abcde", test=1, check=2)) == [
        *("test", "check", "check", "soak", "soak")
    ]
    assert circles(in_circles("abc", test=1)) == ["test", "check", "check"]
    assert circles(in_circles([only_in_soak("a"), "b", "c"], test=1)) == ["soak", "test", "check"]
    assert circles(in_circles("abc", test=0, check=1)) == ["check", "soak", "soak"]


def test_a_case_keeps_its_id_and_its_marks() -> None:
    odd = pytest.param(1, 2, id="odd", marks=pytest.mark.soak)
    (kept,) = in_circles([odd], test=0)
    assert (kept.id, kept.values, circles([kept])) == ("odd", (1, 2), ["soak"])
    assert in_circles([(1, 2)], test=0)[0].values == (1, 2)


@pytest.mark.parametrize("choose", [one_of_each, pairwise])
def test_some_of_what_ci_takes_is_everybodys(choose: Any) -> None:
    before, after = choose("abc", "xy"), choose("abc", "xy", test=1)
    assert [case.values for case in after] == [case.values for case in before]
    counts = Counter(circles(after))
    assert (counts["test"], counts["check"]) == (1, len(in_ci(before)) - 1)


def test_the_first_of_these_is_everybodys() -> None:
    cases = these([("b", "x"), ("a", "y")], "abc", "xy", test=1)
    assert in_ci(cases) == [("b", "x")]
    assert Counter(circles(cases)) == {"test": 1, "check": 1, "soak": 4}


@pytest.mark.parametrize("matrix", MATRICES)
def test_each_choice_once_in_no_more_cases_than_that_takes(matrix: tuple[str, ...]) -> None:
    cases = one_of_each(*matrix)
    assert {case.values for case in cases} == set(itertools.product(*matrix))
    taken = in_ci(cases)
    assert len(taken) == max(map(len, matrix))
    assert [set(column) for column in zip(*taken, strict=True)] == [set(one) for one in matrix]


def test_dimensions_of_one_length_are_not_in_step() -> None:
    """Four cases are enough for every pair of two short dimensions; CI leaves some choices out."""
    taken = in_ci(one_of_each("wxyz", "ab", "ft"))
    assert {case[1:] for case in taken} == set(itertools.product("ab", "ft"))
    assert in_ci(one_of_each("abcd", "xy", without="bd")) == [("a", "x"), ("c", "y")]


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


def test_one_share_of_so_many() -> None:
    assert one_share(2, "abc") == [["a", "c"], pytest.param(["b"], marks=pytest.mark.soak)]
    assert one_share(2, "abc", first=1) == [["b"], pytest.param(["a", "c"], marks=pytest.mark.soak)]
