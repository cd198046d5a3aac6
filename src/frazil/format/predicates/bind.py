"""Binding: names become field ids, literals become internal values, NOT disappears.

A bound predicate keeps exactly the rows that the unbound one keeps under SQL's three-valued logic:
NOT is pushed into the leaves (De Morgan holds with NULL), each leaf then says for itself what it
does with NULL, and what can never be TRUE is `AlwaysFalse`. A literal that the column cannot hold
folds to what the comparison means: ``i < 3000000000`` on an int keeps every row that is not NULL.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import tzinfo

from frazil.errors import PredicateError
from frazil.format.arguments import what_there_is
from frazil.format.predicates.expressions import (
    AlwaysFalse,
    AlwaysNull,
    AlwaysTrue,
    And,
    BoundRef,
    Comparison,
    Expression,
    In,
    IsNaN,
    IsNull,
    Leaf,
    NotIn,
    NotNaN,
    NotNull,
    NotStartsWith,
    Op,
    Reference,
    StartsWith,
    all_of,
    any_of,
    fold,
    push_down_not,
    with_ref,
)
from frazil.format.predicates.literals import Inside, Outside, Place, place_literal
from frazil.format.predicates.sql.quoting import quote_name
from frazil.format.schema import Schema
from frazil.format.types import (
    DoubleType,
    FloatType,
    NestedField,
    StringType,
    StructType,
    UnknownType,
)


def bind(
    expression: Expression,
    schema: Schema,
    *,
    case_sensitive: bool = True,
    time_zone: str | tzinfo = "UTC",
) -> Expression:
    """Bind a predicate to a schema.

    `time_zone` is that of text and dates which are compared with ``timestamptz`` columns; a
    datetime without a zone is local time of the process.
    Leaves of the result have a `BoundRef` and internal values of its type; the values of `In` and
    `NotIn` are sorted and distinct. A part that is bound already stays as it is.
    """
    refs: dict[tuple[str, ...], BoundRef] = {}

    def leaf(node: Expression) -> Expression:
        if isinstance(node, AlwaysNull):
            return AlwaysFalse()
        if not isinstance(node, Leaf) or isinstance(node.ref, BoundRef):
            return node
        parts = node.ref.parts
        if parts not in refs:
            refs[parts] = resolve(node.ref, schema, case_sensitive=case_sensitive)
        return _bind_leaf(node, refs[parts], time_zone)

    def combine(node: Expression, parts: list[Expression]) -> Expression:
        if isinstance(node, And):
            return all_of(_without_implied(parts))
        return any_of(parts)

    return fold(push_down_not(expression), leaf, combine)


def resolve(ref: Reference, schema: Schema, *, case_sensitive: bool = True) -> BoundRef:
    """Find a column by its parts, going into structs."""
    struct: object = schema.as_struct()
    path: list[str] = []
    field: NestedField | None = None
    for part in ref.parts:
        if not isinstance(struct, StructType):
            assert field is not None
            raise PredicateError(
                f"there is no column {quote_name(ref.parts)}: {'.'.join(path)!r} is of type "
                f"{field.field_type}, and a predicate can only go into structs"
            )
        field = _child(struct, part, ref, path, case_sensitive=case_sensitive)
        path.append(field.name)
        struct = field.field_type
    assert field is not None
    return BoundRef(field.field_id, field.field_type, tuple(path))


def _child(
    struct: StructType, name: str, ref: Reference, path: list[str], *, case_sensitive: bool
) -> NestedField:
    found = [
        field
        for field in struct.fields
        if field.name == name or (not case_sensitive and field.name.lower() == name.lower())
    ]
    if len(found) == 1:
        return found[0]
    if found:
        raise PredicateError(
            f"column {quote_name(ref.parts)} is ambiguous without regard to case: it may be "
            + " or ".join(repr(field.name) for field in found)
        )
    where = f"struct {'.'.join(path)!r}" if path else "table"
    known = what_there_is(name, (field.name for field in struct.fields), holder="it")
    raise PredicateError(
        f"there is no column {quote_name(ref.parts)}: the {where} has no field {name!r}{known}"
    )


def _bind_leaf(node: Leaf, ref: BoundRef, time_zone: str | tzinfo) -> Expression:
    match node:
        case IsNull() | NotNull():
            return with_ref(node, ref)
        case IsNaN() | NotNaN():
            if not isinstance(ref.type, FloatType | DoubleType | UnknownType):
                raise PredicateError(
                    f"column {ref.name!r} of type {ref.type} has no NaN: only float and double do"
                )
            return with_ref(node, ref)
        case StartsWith() | NotStartsWith():
            return _bind_prefix(node, ref)
        case Comparison() | In() | NotIn() if isinstance(ref.type, UnknownType):
            # Every value is NULL, so no comparison is TRUE.
            return AlwaysFalse()
        case Comparison(op=op, literal=literal):
            place = place_literal(ref.type, literal, column=ref.name, time_zone=time_zone)
            return compare(ref, op, place)
        case In(values=values):
            return _bind_in(ref, _places(ref, values, time_zone))
        case NotIn(values=values):
            return _bind_not_in(ref, _places(ref, values, time_zone), empty=not values)
        case _:
            raise PredicateError(f"{type(node).__name__} is not a predicate that can be bound")


def _bind_prefix(node: StartsWith | NotStartsWith, ref: BoundRef) -> Expression:
    if isinstance(ref.type, UnknownType):
        return AlwaysFalse()
    if not isinstance(ref.type, StringType):
        raise PredicateError(
            f"column {ref.name!r} of type {ref.type} cannot be compared with the prefix "
            f"{node.prefix!r}: only a string starts with one"
        )
    if node.prefix:
        return with_ref(node, ref)
    return NotNull(ref) if isinstance(node, StartsWith) else AlwaysFalse()


def _places(ref: BoundRef, values: Iterable[object], time_zone: str | tzinfo) -> list[Place]:
    return [place_literal(ref.type, v, column=ref.name, time_zone=time_zone) for v in values]


def compare(ref: BoundRef, op: Op, place: Place) -> Expression:
    """The comparison of a column with a place among its values."""
    match place:
        case Inside(value=value, exact=True):
            return Comparison(op, ref, value)
        case Inside(value=value):
            match op:
                case Op.EQ:
                    return AlwaysFalse()
                case Op.NE:
                    return NotNull(ref)
                case Op.LT | Op.LE:
                    return Comparison(Op.LE, ref, value)
                case Op.GT | Op.GE:
                    return Comparison(Op.GT, ref, value)
        case Outside.NAN:
            return _compare_with_nan(ref, op)
        case Outside.BELOW:
            return NotNull(ref) if op in (Op.NE, Op.GT, Op.GE) else AlwaysFalse()
        case Outside.ABOVE:
            return NotNull(ref) if op in (Op.NE, Op.LT, Op.LE) else AlwaysFalse()
    raise AssertionError(place)


def _compare_with_nan(ref: BoundRef, op: Op) -> Expression:
    match op:
        case Op.EQ | Op.GE:
            return IsNaN(ref)
        case Op.NE | Op.LT:
            return And(NotNaN(ref), NotNull(ref))
        case Op.LE:
            return NotNull(ref)
        case Op.GT:
            return AlwaysFalse()


def in_values(ref: BoundRef, values: Iterable[object]) -> Expression:
    """IN of internal values, sorted and distinct; ``=`` of one, FALSE of none."""
    distinct = tuple(sorted(set(values)))  # type: ignore[type-var]
    if not distinct:
        return AlwaysFalse()
    return Comparison(Op.EQ, ref, distinct[0]) if len(distinct) == 1 else In(ref, distinct)


def not_in_values(ref: BoundRef, values: Iterable[object]) -> Expression:
    """NOT IN of internal values, sorted and distinct; not NULL where there are none."""
    distinct = tuple(sorted(set(values)))  # type: ignore[type-var]
    if not distinct:
        return NotNull(ref)
    return Comparison(Op.NE, ref, distinct[0]) if len(distinct) == 1 else NotIn(ref, distinct)


def _bind_in(ref: BoundRef, places: list[Place]) -> Expression:
    values = [place.value for place in places if isinstance(place, Inside) and place.exact]
    found = in_values(ref, values)
    return any_of([found, IsNaN(ref)]) if Outside.NAN in places else found


def _bind_not_in(ref: BoundRef, places: list[Place], *, empty: bool) -> Expression:
    if empty:
        return AlwaysTrue()
    values = [place.value for place in places if isinstance(place, Inside) and place.exact]
    found = not_in_values(ref, values)
    return all_of([found, NotNaN(ref)]) if Outside.NAN in places else found


def rejects_null(node: Expression) -> bool:
    """True for a bound leaf that keeps no row whose column is NULL."""
    return isinstance(node, Leaf) and not isinstance(node, IsNull | NotNaN)


def _without_implied(parts: list[Expression]) -> list[Expression]:
    """Drop ``a IS NOT NULL`` beside a predicate that keeps no NULL of a."""
    rejected = {
        part.bound_ref
        for part in parts
        if isinstance(part, Leaf) and rejects_null(part) and not isinstance(part, NotNull)
    }
    return [part for part in parts if not (isinstance(part, NotNull) and part.ref in rejected)]
