"""Predicates over the rows of a history: as SQL text, and as plain Python by SQL's rules."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from history_oracle import Field, Row, leaves, value_at
from hypothesis import strategies as st

_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}

Test = Callable[[Row], bool | None]


@dataclass(frozen=True)
class Question:
    """A predicate.

    Attributes:
        text: as SQL.
        test: of a row: True, False or None, as SQL says.
    """

    text: str
    test: Test


@dataclass(frozen=True)
class Asked:
    """A question about what a table held.

    Attributes:
        snapshot: the place of the snapshot in the history.
    """

    snapshot: int
    question: Question

    def __repr__(self) -> str:
        return f"{self.question.text!r} of snapshot {self.snapshot}"


def questions(
    fields: Sequence[Field], values: dict[str, st.SearchStrategy[Any]]
) -> st.SearchStrategy[Question]:
    """Predicates of one or two leaves of a schema, with values for each type."""
    one = st.sampled_from(list(leaves(fields))).flatmap(
        lambda way: _of_leaf(way, values[way[-1]["type"]])
    )
    either = one | st.builds(_negated, one)
    return either | st.builds(_joined, st.sampled_from(["and", "or"]), either, either)


def _of_leaf(way: tuple[Field, ...], values: st.SearchStrategy[Any]) -> st.SearchStrategy[Question]:
    name = ".".join(part["name"] for part in way)
    ways = [
        st.sampled_from([True, False]).map(lambda is_null: _nullness(name, way, is_null)),
        st.builds(
            lambda sign, value: _comparison(name, way, sign, value),
            st.sampled_from(sorted(_COMPARISONS)),
            values.filter(_can_be_said),
        ),
        st.lists(values.filter(_can_be_said), min_size=1, max_size=2).map(
            lambda chosen: _membership(name, way, chosen)
        ),
    ]
    if way[-1]["type"] == "string":
        ways.append(st.just(_start(name, way, "p")))
    return st.one_of(ways)


def _can_be_said(value: Any) -> bool:
    return not (isinstance(value, float) and math.isnan(value))


def _said(value: Any) -> str:
    if isinstance(value, str | date):
        return f"'{value}'"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _ordered(value: Any) -> Any:
    """NaN is above all numbers and equals itself, as in Spark."""
    if not isinstance(value, float):
        return value
    return (True, 0.0) if math.isnan(value) else (False, value)


def _nullness(name: str, way: tuple[Field, ...], is_null: bool) -> Question:
    text = f"{name} is null" if is_null else f"{name} is not null"
    return Question(text, lambda row: (value_at(way, row) is None) is is_null)


def _comparison(name: str, way: tuple[Field, ...], sign: str, value: Any) -> Question:
    compare = _COMPARISONS[sign]

    def test(row: Row) -> bool | None:
        found = value_at(way, row)
        return None if found is None else compare(_ordered(found), _ordered(value))

    return Question(f"{name} {sign} {_said(value)}", test)


def _membership(name: str, way: tuple[Field, ...], values: list[Any]) -> Question:
    def test(row: Row) -> bool | None:
        found = value_at(way, row)
        return None if found is None else _ordered(found) in [_ordered(value) for value in values]

    return Question(f"{name} in ({', '.join(map(_said, values))})", test)


def _start(name: str, way: tuple[Field, ...], prefix: str) -> Question:
    def test(row: Row) -> bool | None:
        found = value_at(way, row)
        return None if found is None else found.startswith(prefix)

    return Question(f"{name} like '{prefix}%'", test)


def _negated(question: Question) -> Question:
    def test(row: Row) -> bool | None:
        found = question.test(row)
        return None if found is None else not found

    return Question(f"not ({question.text})", test)


def _joined(word: str, left: Question, right: Question) -> Question:
    decisive = word == "or"

    def test(row: Row) -> bool | None:
        found = (left.test(row), right.test(row))
        if decisive in found:
            return decisive
        return None if None in found else not decisive

    return Question(f"({left.text}) {word} ({right.text})", test)
