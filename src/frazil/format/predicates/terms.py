"""What the leaves of a predicate are made of: columns and comparisons."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from frazil.format.types import IcebergType


class Op(StrEnum):
    """A comparison of a column with a literal."""

    EQ = "="
    NE = "!="
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="

    @property
    def negation(self) -> Op:
        """The comparison that is TRUE exactly where this one is FALSE."""
        return _NEGATIONS[self]

    @property
    def converse(self) -> Op:
        """The same comparison with its two sides exchanged."""
        return _CONVERSES[self]

    def compare(self, left: Any, right: Any) -> Any:
        """What Python's own comparison of two values tells, or of columns of them."""
        return _COMPARED[self](left, right)


_NEGATIONS = {
    Op.EQ: Op.NE,
    Op.NE: Op.EQ,
    Op.LT: Op.GE,
    Op.GE: Op.LT,
    Op.GT: Op.LE,
    Op.LE: Op.GT,
}
_CONVERSES = {
    Op.EQ: Op.EQ,
    Op.NE: Op.NE,
    Op.LT: Op.GT,
    Op.GT: Op.LT,
    Op.LE: Op.GE,
    Op.GE: Op.LE,
}


_COMPARED: Final[dict[Op, Callable[[Any, Any], Any]]] = {
    Op.EQ: operator.eq,
    Op.NE: operator.ne,
    Op.LT: operator.lt,
    Op.LE: operator.le,
    Op.GT: operator.gt,
    Op.GE: operator.ge,
}


@dataclass(frozen=True, slots=True)
class Reference:
    """A column by its name: one part a level of nesting."""

    parts: tuple[str, ...]

    @property
    def name(self) -> str:
        """The dotted name."""
        return ".".join(self.parts)


@dataclass(frozen=True, slots=True)
class BoundRef:
    """A column, or a partition field, by its id.

    Attributes:
        field_id: the id of the schema's field, or of the partition field.
        type: the type of the values that literals are compared with.
        parts: the name's parts, for messages and SQL text.
    """

    field_id: int
    type: IcebergType
    parts: tuple[str, ...]

    @property
    def name(self) -> str:
        """The dotted name."""
        return ".".join(self.parts)

    @property
    def is_nested(self) -> bool:
        """True for a field of a struct column."""
        return len(self.parts) > 1
