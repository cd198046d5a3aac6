"""Partitioning: specs, what users write for them, their evolution (rules 68-92, 208)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from frazil.errors import ValidationError
from frazil.format.arguments import one_or_several
from frazil.format.partitions.evolution import PartitionEvolution
from frazil.format.partitions.specs import (
    FIRST_PARTITION_FIELD_ID,
    UNPARTITIONED,
    PartitionField,
    PartitionSpec,
    check_new_fields,
    check_source,
    field_result_type,
)
from frazil.format.partitions.transform_exprs import (
    PartitionExpr,
    default_field_name,
    parse_partition_expr,
)
from frazil.format.schema import Schema
from frazil.format.types import NestedField, StructType

__all__ = [
    "FIRST_PARTITION_FIELD_ID",
    "UNPARTITIONED",
    "PartitionEvolution",
    "PartitionExpr",
    "PartitionField",
    "PartitionSpec",
    "field_result_type",
    "parse_partition_expr",
    "rebind_spec",
    "spec_for",
    "unified_partition_type",
]


def spec_for(
    schema: Schema,
    fields: str | Iterable[str | PartitionExpr | PartitionField],
    *,
    spec_id: int = 0,
    case_sensitive: bool = True,
) -> PartitionSpec:
    """The spec of what a user writes: ``["month(ts)", "bucket(16, id) as shard"]``.

    Names are as in Java where none is given: ``ts_month``, ``id_bucket``, ``s_trunc``, ``x_null``
    and, for the value itself, the column's own. New field ids count on from 1000 (rule 72).
    """
    built: list[PartitionField] = []
    for given in one_or_several(fields, PartitionExpr, PartitionField, argument="partition_by"):
        if isinstance(given, PartitionField):
            for source_id in given.source_ids:
                check_source(schema, source_id, given.transform)
            built.append(given)
            continue
        expr = parse_partition_expr(given) if isinstance(given, str) else given
        source_id = expr.resolve(schema, case_sensitive=case_sensitive)
        check_source(schema, source_id, expr.transform)
        highest = max((field.field_id for field in built), default=FIRST_PARTITION_FIELD_ID - 1)
        column = schema.find_column_name(source_id) or expr.column
        built.append(
            PartitionField(
                source_ids=(source_id,),
                field_id=highest + 1,
                transform=expr.transform,
                name=expr.name or default_field_name(expr.transform, column),
            )
        )
    check_new_fields(schema, built)
    return PartitionSpec(spec_id, tuple(built))


def rebind_spec(spec: PartitionSpec, old: Schema, new: Schema) -> PartitionSpec:
    """The spec on the same named columns of another schema, with fresh field ids from 1000."""
    return replace(
        spec,
        fields=tuple(
            replace(
                field,
                field_id=FIRST_PARTITION_FIELD_ID + position,
                source_ids=rebound_ids(field.source_ids, old, new),
            )
            for position, field in enumerate(spec.fields)
        ),
    )


def rebound_ids(source_ids: Sequence[int], old: Schema, new: Schema) -> tuple[int, ...]:
    """The ids in ``new`` of the columns that have these ids in ``old``, found by name."""
    return tuple(
        new.find_field(".".join(old.name_path(source_id))).field_id for source_id in source_ids
    )


def unified_partition_type(specs: Iterable[PartitionSpec], schema: Schema) -> StructType:
    """The union of all fields of all specs, by field id ascending (rule 208).

    A field has the name of the newest spec that holds it, and the type of its newest transform that
    is not void. A name that an older field shares with a newer one is followed by its id.
    """
    newest_first = sorted(specs, key=lambda spec: spec.spec_id, reverse=True)
    names: dict[int, str] = {}
    chosen: dict[int, PartitionField] = {}
    for spec in newest_first:
        for field in spec.fields:
            held = chosen.get(field.field_id)
            if held is None:
                chosen[field.field_id] = field
                taken = field.name in names.values()
                names[field.field_id] = f"{field.name}_{field.field_id}" if taken else field.name
            elif held.is_void and held.source_ids == field.source_ids:
                chosen[field.field_id] = field
            elif not field.is_void and not held.is_equivalent_to(field):
                raise ValidationError(
                    f"the partition field id {field.field_id} stands for [{held}] in one spec and "
                    f"for [{field}] in another; their partitions have no common type"
                )
    return StructType(
        tuple(
            NestedField(field_id, names[field_id], field_result_type(chosen[field_id], schema))
            for field_id in sorted(chosen)
        )
    )
