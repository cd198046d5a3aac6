"""How much of what could be tried runs in CI, and what only `make soak` runs."""

from __future__ import annotations

import itertools
import os
from collections.abc import Collection
from typing import Any

import pytest

_TIMES = int(os.environ.get("FRAZIL_EXAMPLES", "1"))


def examples(in_ci: int) -> int:
    """The number of random examples, from the number that CI takes."""
    return in_ci * _TIMES


def one_of_each(*choices: Collection[Any]) -> list[Any]:
    """Parameters: in CI each choice is there at least once, in a soak with every other."""
    listed = [list(one) for one in choices]
    longest = max(map(len, listed))
    in_ci = {tuple(i % len(one) for one in listed) for i in range(longest)}
    return [
        pytest.param(
            *(one[i] for one, i in zip(listed, places, strict=True)),
            marks=[] if places in in_ci else pytest.mark.soak,
        )
        for places in itertools.product(*(range(len(one)) for one in listed))
    ]


def only_in_soak(*values: Any) -> Any:
    """One parameter that CI leaves out."""
    return pytest.param(*values, marks=pytest.mark.soak)
