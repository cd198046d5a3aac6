"""How much of what could be tried runs in CI, and what only `make soak` runs."""

from __future__ import annotations

import itertools
import os
from collections import Counter
from collections.abc import Collection
from typing import Any

import pytest

Places = tuple[int, ...]
_TIMES = int(os.environ.get("FRAZIL_EXAMPLES", "1"))


def examples(in_ci: int) -> int:
    """The number of random examples, from the number that CI takes."""
    return in_ci * _TIMES


def one_of_each(*choices: Collection[Any], without: Collection[Any] = ()) -> list[Any]:
    """Parameters: in CI each choice is there at least once, in a soak with every other.

    CI takes as many cases as the longest dimension has choices. No two dimensions go in step where
    that can be helped: a choice comes next that was taken least, then least beside those before it.

    Args:
        without: choices that CI leaves out, since another one is like each of them.
    """
    kept = [[i for i, choice in enumerate(one) if choice not in without] for one in choices]
    taken: Counter[Any] = Counter()
    in_ci = set()
    for _ in range(max(map(len, kept))):
        places: Places = ()
        for one in kept:
            places += (min(one, key=lambda i: times_taken(taken, (*places, i))),)
        taken.update([*enumerate(places), *pairs(places)])
        in_ci.add(places)
    return _parameters(choices, in_ci)


def these(in_ci: Collection[tuple[Any, ...]], *choices: Collection[Any]) -> list[Any]:
    """Parameters: CI takes these cases, a soak every combination of the choices.

    Args:
        in_ci: the values of each case.
    """
    listed = [list(one) for one in choices]
    chosen = {tuple(one.index(v) for one, v in zip(listed, case, strict=True)) for case in in_ci}
    return _parameters(choices, chosen)


def pairwise(*choices: Collection[Any]) -> list[Any]:
    """Parameters: in CI each choice is there beside each of every other dimension, once at least.

    For cheap cases: CI takes about as many as the two longest dimensions have together.
    """
    every = list(itertools.product(*(range(len(one)) for one in choices)))
    left = {pair for places in every for pair in pairs(places)}
    in_ci = set()
    while left:
        best = max(every, key=lambda places: len(left & pairs(places)))
        left -= pairs(best)
        in_ci.add(best)
    return _parameters(choices, in_ci)


def pairs(places: Places) -> set[Any]:
    """Each two choices of a case, with their dimensions."""
    return set(itertools.combinations(enumerate(places), 2))


def times_taken(taken: Counter[Any], places: Places) -> tuple[int, int]:
    """How often the last choice was taken, and how often beside those before it."""
    *before, last = enumerate(places)
    return taken[last], sum(taken[one, last] for one in before)


def _parameters(choices: tuple[Collection[Any], ...], in_ci: set[Places]) -> list[Any]:
    listed = [list(one) for one in choices]
    return [
        pytest.param(
            *(one[i] for one, i in zip(listed, places, strict=True)),
            marks=[] if places in in_ci else pytest.mark.soak,
        )
        for places in itertools.product(*(range(len(one)) for one in listed))
    ]


def one_in(count: int, cases: Collection[Any]) -> list[Any]:
    """Parameters of one kind: CI takes the first of each so many, a soak all.

    A case that is a tuple has a value for each argument.
    """
    return [
        case if place % count == 0 else only_in_soak(*(case if isinstance(case, tuple) else [case]))
        for place, case in enumerate(cases)
    ]


def one_share(count: int, cases: Collection[Any], *, first: int = 0) -> list[Any]:
    """Parameters that are lists: CI takes the first of so many shares, a soak the others too.

    For cases that one test tries one after the other, since what they begin with is dear. The
    share that CI takes has each so many cases from `first` on.
    """
    listed = list(cases)
    shares = [listed[(first + n) % count :: count] for n in range(count)]
    return [shares[0], *map(only_in_soak, shares[1:])]


def only_in_soak(*values: Any) -> Any:
    """One parameter that CI leaves out."""
    return pytest.param(*values, marks=pytest.mark.soak)
