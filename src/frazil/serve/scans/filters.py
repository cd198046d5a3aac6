"""Filters of the protocol as predicates that say which files may hold a client's rows.

Clients differ in what ``not-eq`` says of NULL: Java's expressions keep such rows, SQL does not. So
files are kept by the wider meaning, and the rows of such a filter are left to the client.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from frazil.errors import PredicateError
from frazil.format.predicates.bind import bind, compare, in_values, not_in_values, resolve
from frazil.format.predicates.expressions import (
    AlwaysFalse,
    AlwaysTrue,
    BoundRef,
    Comparison,
    Expression,
    In,
    IsNaN,
    IsNull,
    NotIn,
    NotNaN,
    NotNull,
    NotStartsWith,
    Op,
    StartsWith,
    all_of,
    any_of,
)
from frazil.format.predicates.literals import Inside
from frazil.format.predicates.terms import Reference
from frazil.format.schema import Schema
from frazil.format.types import (
    TEMPORAL_TYPES,
    BinaryType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
)

_LONGEST_SHOWN: Final = 100
_DEEPEST: Final = 200
"""And in or, or the other way round; chains of one of them are flat."""

_MOST_NODES: Final = 100_000
_OPS: Final = {
    "eq": Op.EQ,
    "not-eq": Op.NE,
    "lt": Op.LT,
    "lt-eq": Op.LE,
    "gt": Op.GT,
    "gt-eq": Op.GE,
}
_UNARY: Final = {"is-null": IsNull, "not-null": NotNull, "is-nan": IsNaN, "not-nan": NotNaN}
_OPPOSITE_UNARY: Final = {
    "is-null": "not-null",
    "not-null": "is-null",
    "is-nan": "not-nan",
    "not-nan": "is-nan",
}


def filter_of(value: Any, schema: Schema, *, case_sensitive: bool) -> tuple[Expression, bool]:
    """Return the filter of a request.

    Args:
        value: its JSON; None keeps every row.
        schema: what the scan reads by.
        case_sensitive: whether columns are found by their exact names.

    Raises:
        PredicateError: it is malformed, names a column that is not there, or compares one with
            what is no value of its type.

    Returns:
        A predicate on the schema that keeps every row which the filter keeps by any client's
        meaning, and whether all clients mean these very rows.
    """
    if value is None:
        return AlwaysTrue(), True
    reader = _Reader(schema, case_sensitive)
    return reader.read(value, 0, is_negated=False), reader.is_exact


@dataclass(slots=True)
class _Reader:
    schema: Schema
    case_sensitive: bool
    is_exact: bool = True
    nodes: int = 0

    def read(self, value: Any, depth: int, *, is_negated: bool) -> Expression:
        value, is_negated = self._strip_negations(value, is_negated)
        if depth > _DEEPEST:
            raise PredicateError("the filter is nested too deeply")
        if isinstance(value, bool):
            return AlwaysTrue() if value is not is_negated else AlwaysFalse()
        if not isinstance(value, dict) or not isinstance(value.get("type"), str):
            raise PredicateError("a filter is true, false, or an object with a type")
        kind = value["type"]
        match kind:
            case "true" | "false":
                return self.read(kind == "true", depth + 1, is_negated=is_negated)
            case "and" | "or":
                is_and = (kind == "and") is not is_negated
                parts = [
                    self.read(part, depth + 1, is_negated=is_part_negated)
                    for part, is_part_negated in self._chain(value, is_negated, is_and=is_and)
                ]
                return all_of(parts) if is_and else any_of(parts)
        if kind in _UNARY:
            return self._unary(value, _OPPOSITE_UNARY[kind] if is_negated else kind)
        if kind in ("in", "not-in"):
            return self._set_predicate(value, is_not=(kind == "not-in") is not is_negated)
        if kind in ("starts-with", "not-starts-with"):
            return self._prefix(value, is_not=(kind == "not-starts-with") is not is_negated)
        if kind in _OPS:
            return self._comparison(value, _OPS[kind], is_negated=is_negated)
        raise PredicateError(f"{kind[:40]!r} is no type of a filter")

    def _strip_negations(self, value: Any, is_negated: bool) -> tuple[Any, bool]:
        """A part without the negations around it, and whether it is negated by them."""
        self._count()
        while isinstance(value, dict) and value.get("type") == "not":
            value, is_negated = value.get("child"), not is_negated
            self._count()
        return value, is_negated

    def _chain(
        self, value: dict[str, Any], is_negated: bool, *, is_and: bool
    ) -> Iterator[tuple[Any, bool]]:
        """The parts that one kind of connective joins, however the client has nested them."""
        waiting = [(value, is_negated)]
        while waiting:
            part, is_part_negated = self._strip_negations(*waiting.pop())
            kind = part.get("type") if isinstance(part, dict) else None
            if kind in ("and", "or") and ((kind == "and") is not is_part_negated) is is_and:
                sides = [part.get("right"), part.get("left")]
                waiting += [(side, is_part_negated) for side in sides]
            else:
                yield part, is_part_negated

    def _count(self) -> None:
        self.nodes += 1
        if self.nodes > _MOST_NODES:
            raise PredicateError("the filter has too many parts")

    def _unary(self, value: dict[str, Any], kind: str) -> Expression:
        ref = self._column(_member(value, "child", "term"))
        if ref is None:
            return self._keep_every_file()
        return bind(_UNARY[kind](Reference(ref.parts)), self.schema)

    def _set_predicate(self, value: dict[str, Any], *, is_not: bool) -> Expression:
        ref = self._column(_member(value, "child", "term"))
        listed = value.get("values")
        if isinstance(listed, dict):
            listed = listed.get("values")
        if not isinstance(listed, list):
            raise PredicateError("a filter with in or not-in needs a list of values")
        if ref is None:
            return self._keep_every_file()
        literals = [_literal(each) for each in listed]
        if isinstance(ref.type, TEMPORAL_TYPES) and all(_is_whole(each) for each in literals):
            found = (not_in_values if is_not else in_values)(ref, literals)
        else:
            values = tuple(_python(ref, each) for each in literals)
            node = (
                NotIn(Reference(ref.parts), values) if is_not else In(Reference(ref.parts), values)
            )
            found = bind(node, self.schema)
        return self._or_null(ref, found) if is_not else found

    def _prefix(self, value: dict[str, Any], *, is_not: bool) -> Expression:
        ref = self._column(_member(value, "left", "term"))
        prefix = _literal(_member(value, "right", "value"))
        if not isinstance(prefix, str):
            raise PredicateError("a filter with starts-with needs a text")
        if ref is None:
            return self._keep_every_file()
        node = (NotStartsWith if is_not else StartsWith)(Reference(ref.parts), prefix)
        found = bind(node, self.schema)
        return self._or_null(ref, found) if is_not else found

    def _comparison(self, value: dict[str, Any], op: Op, *, is_negated: bool) -> Expression:
        left, right = _member(value, "left", "term"), _member(value, "right", "value")
        if _is_term(right) and not _is_term(left):
            left, right, op = right, left, op.converse
        if _is_term(right):
            self._column(left), self._column(right)
            return self._keep_every_file()
        ref, literal = self._column(left), _literal(right)
        if ref is None:
            return self._keep_every_file()
        op = op.negation if is_negated else op
        if isinstance(ref.type, TEMPORAL_TYPES) and _is_whole(literal):
            found = compare(ref, op, Inside(literal, exact=True))
        else:
            node = Comparison(op, Reference(ref.parts), _python(ref, literal))
            found = bind(node, self.schema)
        return self._or_null(ref, found) if op is Op.NE else found

    def _column(self, term: Any) -> BoundRef | None:
        """The column of a term; None where the term is a function of one."""
        if isinstance(term, str):
            return self._reference_by_name(term)
        if not _is_term(term):
            raise PredicateError("a filter names a column by its name or by a reference")
        return self._reference(term) if term["type"] == "reference" else None

    def _reference(self, term: dict[str, Any]) -> BoundRef:
        name = term.get("name", term.get("term"))
        if isinstance(name, str):
            return self._reference_by_name(name)
        field_id = term.get("id")
        if isinstance(field_id, int) and self.schema.field_or_none(field_id) is not None:
            return self._field_ref(field_id)
        raise PredicateError("a reference of the filter names no column")

    def _reference_by_name(self, name: str) -> BoundRef:
        field = self.schema.field_or_none(name, case_sensitive=self.case_sensitive)
        if field is None:
            raise PredicateError(self.schema.missing(name[:_LONGEST_SHOWN]))
        return self._field_ref(field.field_id)

    def _field_ref(self, field_id: int) -> BoundRef:
        return resolve(Reference(self.schema.name_path(field_id)), self.schema)

    def _or_null(self, ref: BoundRef, found: Expression) -> Expression:
        self.is_exact = False
        return any_of([found, IsNull(ref)])

    def _keep_every_file(self) -> Expression:
        """What a filter says that no file is left out by."""
        self.is_exact = False
        return AlwaysTrue()


def _member(value: dict[str, Any], name: str, deprecated: str) -> Any:
    if name in value:
        return value[name]
    if deprecated in value:
        return value[deprecated]
    raise PredicateError(f"a part of the filter has no {name}")


def _is_term(value: Any) -> bool:
    return isinstance(value, dict) and value.get("type") in ("reference", "transform", "apply")


def _literal(value: Any) -> Any:
    if isinstance(value, dict) and value.get("type") == "literal":
        value = value.get("value")
    if not isinstance(value, bool | int | float | str):
        raise PredicateError("a literal of a filter is a boolean, a number or a text")
    return value


def _is_whole(literal: Any) -> bool:
    return isinstance(literal, int) and not isinstance(literal, bool) and abs(literal) < 2**63


def _python(ref: BoundRef, literal: Any) -> Any:
    """The literal as predicates take it: texts stand for values that JSON lacks."""
    if not isinstance(literal, str):
        return literal
    try:
        match ref.type:
            case BinaryType() | FixedType():
                return bytes.fromhex(literal)
            case DecimalType():
                return Decimal(literal)
            case FloatType() | DoubleType():
                return float(literal)
    except (ValueError, InvalidOperation):
        raise PredicateError(
            f"{literal[:40]!r} is no value of the column {ref.name!r}, which is of type {ref.type}"
        ) from None
    return literal
