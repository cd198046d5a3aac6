"""Which circle a case is in: `make test`, `make check` or `make soak`.

A case without a mark is in `make test`, which everybody runs. `pytest.mark.check` puts it into
`make check`, which guards main besides; `pytest.mark.soak` into `make soak`, which goes deep. A
mark stands on a module, a function or one parameter; where a case has both, `soak` counts. CI runs
the first two circles. `pytest.mark.interop` is for what only `make interop` runs of the cases with
other engines. The functions here choose parameters, the likeliest to find a fault first.
"""

from __future__ import annotations

import itertools
import os
from collections import Counter
from collections.abc import Collection, Container, Iterable
from typing import Any

import pytest
from _pytest.mark.structures import ParameterSet

Places = tuple[int, ...]
_TIMES = int(os.environ.get("FRAZIL_EXAMPLES", "1"))


def circle_of(marks: Container[str]) -> str:
    """The circle of a case, from the names of its marks."""
    return next((name for name in ("soak", "interop", "check") if name in marks), "test")


def examples(in_ci: int) -> int:
    """The number of random examples, from the number that CI takes."""
    return in_ci * _TIMES


def in_circles(cases: Iterable[Any], *, test: int, check: int | None = None) -> list[Any]:
    """Parameters of one kind: `make test` takes the first, `make check` those after them.

    A case that is a tuple has a value for each argument: where one argument is a tuple, cases come
    as `map(pytest.param, cases)`. One that only a soak takes is not counted.

    Args:
        test: how many `make test` takes.
        check: how many `make check` takes besides; all others where it is None, else a soak takes
            the rest.
    """
    taken = itertools.count()
    parameters = []
    for case in cases:
        place = -1 if _is_for_soak(case) else next(taken)
        if place < test:
            parameters.append(case)
        else:
            is_check = check is None or place < test + check
            parameters.append(_marked(case, "check" if is_check else "soak"))
    return parameters


def one_of_each(
    *choices: Collection[Any], without: Collection[Any] = (), test: int | None = None
) -> list[Any]:
    """Parameters: in CI each choice is there at least once, in a soak with every other.

    CI takes as many cases as the longest dimension has choices. No two dimensions go in step where
    that can be helped: a choice comes next that was taken least, then least beside those before it.

    Args:
        without: choices that CI leaves out, since another one is like each of them.
        test: how many of CI's cases `make test` takes; all where it is None.
    """
    kept = [[i for i, choice in enumerate(one) if choice not in without] for one in choices]
    taken: Counter[Any] = Counter()
    in_ci: list[Places] = []
    for _ in range(max(map(len, kept))):
        places: Places = ()
        for one in kept:
            places += (min(one, key=lambda i: times_taken(taken, (*places, i))),)
        taken.update([*enumerate(places), *pairs(places)])
        in_ci.append(places)
    return _parameters(choices, in_ci, test)


def these(
    in_ci: Collection[tuple[Any, ...]], *choices: Collection[Any], test: int | None = None
) -> list[Any]:
    """Parameters: CI takes these cases, a soak every combination of the choices.

    Args:
        in_ci: the values of each case.
        test: how many of them `make test` takes, from the first on; all where it is None.
    """
    listed = [list(one) for one in choices]
    chosen = [tuple(one.index(v) for one, v in zip(listed, case, strict=True)) for case in in_ci]
    return _parameters(choices, chosen, test)


def pairwise(*choices: Collection[Any], test: int | None = None) -> list[Any]:
    """Parameters: in CI each choice is there beside each of every other dimension, once at least.

    For cheap cases: CI takes about as many as the two longest dimensions have together.

    Args:
        test: how many of CI's cases `make test` takes; all where it is None.
    """
    every = list(itertools.product(*(range(len(one)) for one in choices)))
    left = {pair for places in every for pair in pairs(places)}
    in_ci: list[Places] = []
    while left:
        best = max(every, key=lambda places: len(left & pairs(places)))
        left -= pairs(best)
        in_ci.append(best)
    return _parameters(choices, in_ci, test)


def pairs(places: Places) -> set[Any]:
    """Each two choices of a case, with their dimensions."""
    return set(itertools.combinations(enumerate(places), 2))


def times_taken(taken: Counter[Any], places: Places) -> tuple[int, int]:
    """How often the last choice was taken, and how often beside those before it."""
    *before, last = enumerate(places)
    return taken[last], sum(taken[one, last] for one in before)


def _parameters(
    choices: tuple[Collection[Any], ...], in_ci: list[Places], test: int | None
) -> list[Any]:
    listed = [list(one) for one in choices]
    in_test, in_check = set(in_ci[:test]), set(in_ci)
    parameters = []
    for places in itertools.product(*(range(len(one)) for one in listed)):
        case = tuple(one[i] for one, i in zip(listed, places, strict=True))
        circle = "check" if places in in_check else "soak"
        parameters.append(pytest.param(*case) if places in in_test else _marked(case, circle))
    return parameters


def one_in(count: int, cases: Collection[Any]) -> list[Any]:
    """Parameters of one kind: CI takes the first of each so many, a soak all.

    A case that is a tuple has a value for each argument.
    """
    return [
        case if place % count == 0 else _marked(case, "soak") for place, case in enumerate(cases)
    ]


def one_share(count: int, cases: Collection[Any], *, first: int = 0) -> list[Any]:
    """Parameters that are lists: CI takes the first of so many shares, a soak the others too.

    For cases that one test tries one after the other, since what they begin with is dear. The
    share that CI takes has each so many cases from `first` on.
    """
    listed = list(cases)
    shares = [listed[(first + n) % count :: count] for n in range(count)]
    return [shares[0], *map(only_in_soak, shares[1:])]


def only_in_check(*values: Any, id: str | None = None) -> Any:
    """One parameter that `make test` leaves out."""
    return pytest.param(*values, marks=pytest.mark.check, id=id)


def only_in_interop(*values: Any) -> Any:
    """One parameter of a case with other engines that `make check` leaves out."""
    return pytest.param(*values, marks=pytest.mark.interop)


def only_in_soak(*values: Any) -> Any:
    """One parameter that CI leaves out."""
    return pytest.param(*values, marks=pytest.mark.soak)


def _is_for_soak(case: Any) -> bool:
    return isinstance(case, ParameterSet) and any(mark.name == "soak" for mark in case.marks)


def _marked(case: Any, circle: str) -> Any:
    """The case in a circle; what marks it and its id, where it has some, stay."""
    mark = getattr(pytest.mark, circle)
    if isinstance(case, ParameterSet):
        return case._replace(marks=[*case.marks, mark])
    return pytest.param(*(case if isinstance(case, tuple) else [case]), marks=mark)
