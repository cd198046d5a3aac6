"""Sort orders: fields, JSON, and what users write for them (SPEC rules 93-97, 200)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from frazil.errors import InvalidMetadataError, ValidationError
from frazil.format.arguments import one_or_several
from frazil.format.partitions.partitioning import rebound_ids
from frazil.format.partitions.specs import (
    check_source,
    integer_of,
    sources_from_json,
    sources_to_json,
    text_of,
    transform_from_json,
)
from frazil.format.partitions.transform_exprs import parse_partition_expr
from frazil.format.partitions.transforms import Transform
from frazil.format.schema import Schema


class SortDirection(StrEnum):
    """Ascending or descending, by the name in metadata."""

    ASC = "asc"
    DESC = "desc"


class NullOrder(StrEnum):
    """Where nulls stand, by the name in metadata."""

    NULLS_FIRST = "nulls-first"
    NULLS_LAST = "nulls-last"


@dataclass(frozen=True, slots=True)
class SortField:
    """One key of a sort order: a transform of one source column, or of several (rules 92, 93)."""

    source_ids: tuple[int, ...]
    transform: Transform
    direction: SortDirection
    null_order: NullOrder

    @property
    def source_id(self) -> int:
        """The id of the first source column, the only one of every known transform."""
        return self.source_ids[0]

    def satisfies(self, other: SortField) -> bool:
        """True where rows in the order of this key are in the order of the other, too."""
        return (
            self.source_ids == other.source_ids
            and self.direction is other.direction
            and self.null_order is other.null_order
            and self.transform.satisfies_order_of(other.transform)
        )

    def to_json(self) -> dict[str, Any]:
        """The JSON of the field (rules 200, 202)."""
        return {
            "transform": str(self.transform),
            **sources_to_json(self.source_ids),
            "direction": self.direction.value,
            "null-order": self.null_order.value,
        }

    def __str__(self) -> str:
        sources = ", ".join(str(source_id) for source_id in self.source_ids)
        return (
            f"{self.transform}({sources}) {self.direction.value} "
            f"{self.null_order.value.replace('-', ' ')}"
        )


@dataclass(frozen=True, slots=True)
class SortOrder:
    """How rows are sorted within data files; id 0 is unsorted and has no fields (rule 94)."""

    order_id: int = 0
    fields: tuple[SortField, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "fields", tuple(self.fields))
        if (self.order_id == 0) != (len(self.fields) == 0):
            raise ValidationError(
                f"a sort order of id {self.order_id} with {len(self.fields)} fields is not "
                "possible: id 0 is the order without fields, and only that one"
            )

    @property
    def is_unsorted(self) -> bool:
        """True for the order without fields."""
        return not self.fields

    def is_equivalent_to(self, other: SortOrder) -> bool:
        """True where both have the same fields, whatever their ids are."""
        return self.fields == other.fields

    def satisfies(self, other: SortOrder) -> bool:
        """True where rows in this order are in the other one, too."""
        return len(self.fields) >= len(other.fields) and all(
            mine.satisfies(theirs) for mine, theirs in zip(self.fields, other.fields, strict=False)
        )

    def check_against(self, schema: Schema) -> None:
        """Every source is there and of a type that its transform takes.

        Raises:
            ValidationError: naming the column and what is wrong.
        """
        for field in self.fields:
            for source_id in field.source_ids:
                check_source(schema, source_id, field.transform)

    def with_id(self, order_id: int) -> SortOrder:
        """Return the same fields under another id."""
        return replace(self, order_id=order_id)

    def to_json(self) -> dict[str, Any]:
        """Return the JSON of the order (rule 200)."""
        return {"order-id": self.order_id, "fields": [field.to_json() for field in self.fields]}

    @classmethod
    def from_json(cls, json_value: Any) -> SortOrder:
        """Return the order of its JSON (rule 200).

        Raises:
            InvalidMetadataError: where it is malformed.
        """
        if not isinstance(json_value, Mapping):
            raise InvalidMetadataError(f"{json_value!r} is not a sort order")
        order_id = integer_of(json_value, "order-id", "a sort order")
        fields = json_value.get("fields")
        if not isinstance(fields, list):
            raise InvalidMetadataError(
                f"the fields of the sort order {order_id} are {fields!r}, not a list"
            )
        try:
            return cls(order_id, tuple(_field_from_json(field, order_id) for field in fields))
        except ValidationError as error:
            raise InvalidMetadataError(str(error)) from error

    def __str__(self) -> str:
        return "[" + ", ".join(str(field) for field in self.fields) + "]"


UNSORTED = SortOrder()
"""The order without fields, of id 0."""

_SORT_EXPR = re.compile(
    r"(?P<term>.+?)(?:\s+(?P<direction>asc|desc))?(?:\s+nulls\s+(?P<nulls>first|last))?",
    re.IGNORECASE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class SortExpr:
    """A sort key of a named column, as a user writes it."""

    transform: Transform
    column: str
    direction: SortDirection
    null_order: NullOrder


def parse_sort_expr(text: str) -> SortExpr:
    """``ts``, ``ts desc``, ``bucket(4, id) asc nulls last``.

    Ascending by default; nulls first where ascending and last where descending.
    """
    match = _SORT_EXPR.fullmatch(text.strip())
    if match is None:
        raise ValidationError(f"{text!r} is not a sort key like 'ts desc nulls last'")
    term = parse_partition_expr(match["term"])
    if term.name is not None:
        raise ValidationError(f"{text!r} is not a sort key: it has no name of its own")
    direction = SortDirection((match["direction"] or "asc").lower())
    nulls = match["nulls"] or ("first" if direction is SortDirection.ASC else "last")
    return SortExpr(
        transform=term.transform,
        column=term.column,
        direction=direction,
        null_order=NullOrder(f"nulls-{nulls.lower()}"),
    )


def order_for(
    schema: Schema,
    fields: str | Iterable[str | SortExpr | SortField],
    *,
    order_id: int = 1,
    case_sensitive: bool = True,
) -> SortOrder:
    """The order of what a user writes: ``["ts desc", "bucket(4, id)"]``; UNSORTED of nothing."""
    built: list[SortField] = []
    for given in one_or_several(fields, SortExpr, SortField, argument="sort_by"):
        if isinstance(given, SortField):
            built.append(given)
            continue
        expr = parse_sort_expr(given) if isinstance(given, str) else given
        source = schema.find_field(expr.column, case_sensitive=case_sensitive)
        built.append(SortField((source.field_id,), expr.transform, expr.direction, expr.null_order))
    if not built:
        return UNSORTED
    order = SortOrder(order_id, tuple(built))
    order.check_against(schema)
    return order


def reuse_order(orders: Iterable[SortOrder], wanted: SortOrder) -> SortOrder:
    """The order of ``orders`` that is equivalent to the wanted one, or that under a new id."""
    held = tuple(orders)
    if wanted.is_unsorted:
        return UNSORTED
    equivalent = next((order for order in held if order.is_equivalent_to(wanted)), None)
    if equivalent is not None:
        return equivalent
    return wanted.with_id(max((order.order_id for order in held), default=0) + 1)


def rebind_order(order: SortOrder, old: Schema, new: Schema) -> SortOrder:
    """The order on the columns of the same names in another schema."""
    return replace(
        order,
        fields=tuple(
            replace(field, source_ids=rebound_ids(field.source_ids, old, new))
            for field in order.fields
        ),
    )


def _field_from_json(json_value: Any, order_id: int) -> SortField:
    if not isinstance(json_value, Mapping):
        raise InvalidMetadataError(f"{json_value!r} is not a sort field")
    holder = f"a field of the sort order {order_id}"
    source_ids = sources_from_json(json_value, holder)
    direction = text_of(json_value, "direction", holder).lower()
    null_order = text_of(json_value, "null-order", holder).lower()
    if direction not in list(SortDirection):
        raise InvalidMetadataError(
            f"the direction of {holder} is {direction!r}; expected asc or desc", field="direction"
        )
    if null_order not in list(NullOrder):
        raise InvalidMetadataError(
            f"the null order of {holder} is {null_order!r}; expected nulls-first or nulls-last",
            field="null-order",
        )
    return SortField(
        source_ids=source_ids,
        transform=transform_from_json(json_value, source_ids, holder),
        direction=SortDirection(direction),
        null_order=NullOrder(null_order),
    )
