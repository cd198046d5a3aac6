"""Columns of PostgreSQL beside those of the table: what fits, what is new, what stops."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from frazil.cdc.catalog import ServerColumn, SourceTable, TypeCatalog
from frazil.cdc.pgoutput import Relation
from frazil.cdc.types import value_type
from frazil.cdc.values import ValueColumn
from frazil.errors import EvolutionError, UnsupportedError, ValidationError
from frazil.format import types as I
from frazil.format.schema import Schema


def new_schema(source: SourceTable) -> Schema:
    """Return the schema of a table for a source; its keys are required, and identify rows.

    Raises:
        UnsupportedError: a column's type is not taken over, or keys of its type are not.
    """
    fields, keys = [], []
    # Ids of the elements of lists come behind those of the columns.
    free = len(source.columns) + 1
    for number, column in enumerate(kept_columns(source.columns, None), start=1):
        kind = column.type.iceberg
        if isinstance(kind, I.ListType):
            kind, free = I.ListType(free, kind.element_type, kind.element_required), free + 1
        is_key = column.name in source.keys
        if is_key and isinstance(kind, I.FloatType | I.DoubleType | I.ListType):
            raise UnsupportedError(
                f"the key {column.name!r} of {source} is {kind}, by which rows cannot be told apart"
            )
        keys += [number] if is_key else []
        fields.append(I.NestedField(number, column.name, kind, required=is_key))
    return Schema(tuple(fields), identifier_field_ids=tuple(keys))


def evolved_fields(columns: Sequence[ValueColumn], schema: Schema) -> Schema:
    """Return columns as a schema to unite a table's with: new ones are optional."""
    there = {field.name.lower(): field for field in schema.fields}
    fields = []
    for number, column in enumerate(columns, start=1):
        known = there.get(column.name.lower())
        kind = column.type.iceberg
        if isinstance(kind, I.ListType):
            kind = I.ListType(len(columns) + number, kind.element_type, False)
        fields.append(
            I.NestedField(
                number,
                column.name if known is None else known.name,
                kind,
                required=known is not None and known.required,
                doc=None if known is None else known.doc,
            )
        )
    return Schema(tuple(fields))


def kept_columns(columns: Sequence[ServerColumn], schema: Schema | None) -> list[ValueColumn]:
    """Return how a source's columns are kept, in a table that there is or in a new one.

    Raises:
        UnsupportedError: a column's type is not taken over.
    """
    wanted = {} if schema is None else {f.name.lower(): f.field_type for f in schema.fields}
    return [
        ValueColumn(
            column.name,
            value_type(
                column.type,
                column.modifier,
                column=column.name,
                wanted=wanted.get(column.name.lower()),
            ),
        )
        for column in columns
    ]


def columns_of_relation(
    relation: Relation,
    *,
    source: SourceTable,
    now: Sequence[ServerColumn],
    schema: Schema,
    types: TypeCatalog,
    adds_columns: bool,
) -> list[ValueColumn]:
    """Return how the columns of a relation of the log are kept.

    Args:
        now: the columns that the source has by now.
        schema: of the table.
        adds_columns: whether the table takes new columns.

    Raises:
        EvolutionError: the table cannot follow what happened to the source's columns.
        ValidationError: the key is another one.
        UnsupportedError: a column's type is not taken over.
    """
    names = {column.name.lower() for column in relation.columns}
    there = {field.name.lower() for field in schema.fields}
    added = [column.name for column in relation.columns if column.name.lower() not in there]
    gone = [field.name for field in schema.fields if field.name.lower() not in names]
    _check_key(relation, source)
    if added and not adds_columns:
        raise EvolutionError(
            f"{source} has the new columns {', '.join(added)}, and the table's property "
            "write.spark.auto-schema-evolution.enabled is false: add them, or set it to true"
        )
    if added and gone:
        raise EvolutionError(
            f"{source} has {', '.join(added)} and no longer {', '.join(gone)}, which may be the "
            "same columns under new names: rename or drop those columns of the table, or load it "
            "again, with --load-again"
        )
    filled = _with_default(added, now)
    if filled:
        raise EvolutionError(
            f"{source} has the new columns {', '.join(filled)} with a default: earlier rows have "
            "values that the log does not hold; add the columns to the table with what those rows "
            "are to have, or load it again, with --load-again"
        )
    columns = [
        ServerColumn(each.name, types.type_of(each.type_oid), each.modifier, False)
        for each in relation.columns
    ]
    return kept_columns(columns, schema)


def _check_key(relation: Relation, source: SourceTable) -> None:
    names = [column.name for column in relation.columns]
    key = {column.name for column in relation.columns if column.is_key}
    missing = [each for each in source.keys if each not in names]
    if missing or (relation.identity != "f" and key != set(source.keys)):
        raise ValidationError(
            f"the log has rows of {source} by another key ({', '.join(sorted(key)) or 'none'}) "
            f"than {', '.join(source.keys)}: load the table again, with --load-again"
        )


def _with_default(added: Collection[str], now: Sequence[ServerColumn]) -> list[str]:
    return [column.name for column in now if column.name in added and column.has_default]
