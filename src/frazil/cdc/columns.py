"""Columns of PostgreSQL beside those of the table: what fits, what is new, what stops."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from frazil.cdc.catalog import TypeCatalog
from frazil.cdc.pgoutput import Relation, RelationColumn
from frazil.cdc.source.known import KnownSource
from frazil.cdc.source.tables import Attribute, SourceTable
from frazil.cdc.types import value_type
from frazil.cdc.values import ValueColumn
from frazil.errors import EvolutionError, UnsupportedError, ValidationError
from frazil.format import types as I
from frazil.format.schema import Schema


def new_schema(source: SourceTable, types: TypeCatalog) -> Schema:
    """Return the schema of a table for a source; its keys are required, and identify rows.

    Raises:
        UnsupportedError: a column's type is not taken over, or keys of its type are not.
    """
    fields, keys = [], []
    columns = kept_columns(source, None, types)
    # Ids of the elements of lists come behind those of the columns.
    free = len(columns) + 1
    for place, column in enumerate(columns, start=1):
        kind = column.type.iceberg
        if isinstance(kind, I.ListType):
            kind, free = I.ListType(free, kind.element_type, kind.element_required), free + 1
        is_key = column.number in source.keys
        if is_key and isinstance(kind, I.FloatType | I.DoubleType | I.ListType):
            raise UnsupportedError(
                f"the key {column.name!r} of {source} is {kind}, by which rows cannot be told apart"
            )
        keys += [place] if is_key else []
        fields.append(I.NestedField(place, column.name, kind, required=is_key))
    return Schema(tuple(fields), identifier_field_ids=tuple(keys))


def evolved_fields(columns: Sequence[ValueColumn], schema: Schema) -> Schema:
    """Return columns as a schema to unite a table's with: new ones are optional."""
    there = {each.name.lower(): each for each in schema.fields}
    fields = []
    for place, column in enumerate(columns, start=1):
        known = there.get(column.name.lower())
        kind = column.type.iceberg
        if isinstance(kind, I.ListType):
            kind = I.ListType(len(columns) + place, kind.element_type, False)
        fields.append(
            I.NestedField(
                place,
                column.name if known is None else known.name,
                kind,
                required=known is not None and known.required,
                doc=None if known is None else known.doc,
            )
        )
    return Schema(tuple(fields))


def kept_columns(
    source: SourceTable, schema: Schema | None, types: TypeCatalog
) -> tuple[ValueColumn, ...]:
    """Return how a source's columns are kept under their names, in a table or in a new one.

    Raises:
        UnsupportedError: a column's type is not taken over.
    """
    there = {} if schema is None else {each.name.lower(): each for each in schema.fields}
    found = []
    for column in source.columns:
        known = there.get(column.name.lower())
        kind = value_type(
            types.type_of(column.type_oid),
            column.modifier,
            column=column.name,
            wanted=None if known is None else known.field_type,
        )
        name = column.name if known is None else known.name
        found.append(ValueColumn(column.number, column.name, name, kind))
    return tuple(found)


@dataclass(slots=True, kw_only=True)
class ColumnPlan:
    """Where the columns of the log's relations are kept, one relation after the other.

    Attributes:
        schema: of the table.
        fields: the ids of its columns, by the numbers of PostgreSQL's.
        adds_columns: whether the table takes new ones.
        names: of the columns once the table's schema follows, by the numbers of PostgreSQL's.
    """

    schema: Schema
    fields: Mapping[int, int]
    types: TypeCatalog
    adds_columns: bool
    names: dict[int, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.names.update(
            (number, name)
            for number, field_id in self.fields.items()
            if (name := self.schema.find_column_name(field_id)) is not None
        )

    def columns(
        self,
        relation: Relation,
        numbers: Sequence[int],
        *,
        before: KnownSource,
        now: SourceTable,
    ) -> tuple[tuple[ValueColumn, ...], tuple[int, ...]]:
        """Return the columns of a relation that are taken over, and their places in it.

        Args:
            numbers: of its columns.
            before: the columns before the relation.
            now: the source as it is now.

        Raises:
            EvolutionError: the table cannot follow what happened to the source's columns.
            UnsupportedError: a column's type is not taken over.
        """
        found, places, added = [], [], []
        for place, (number, column) in enumerate(zip(numbers, relation.columns, strict=True)):
            attribute = now.attribute(number)
            if number in self.fields:
                self._follow_name(number, column, before, now)
            elif attribute is None or attribute.is_dropped:
                # It came and went meanwhile: nobody asks for its values any more.
                continue
            else:
                if number not in self.names:
                    added.append((attribute, column))
                self.names[number] = column.name
            places.append(place)
            found.append(number)
        self._check_added(added, now)
        self._check_names(now)
        kept = [
            self._kept_column(number, relation.columns[place])
            for number, place in zip(found, places, strict=True)
        ]
        return tuple(kept), tuple(places)

    def renamed_columns(self) -> dict[str, str]:
        """The table's columns that get other names, by those that they have."""
        return {
            name: self.names[number]
            for number, field_id in self.fields.items()
            if (name := self.schema.find_column_name(field_id)) is not None
            and self.names[number] != name
        }

    def renamed_schema(self) -> Schema:
        """The table's schema with the names that its columns get."""
        renamed = self.renamed_columns()
        fields = (
            replace(each, name=renamed.get(each.name, each.name)) for each in self.schema.fields
        )
        return Schema(tuple(fields), identifier_field_ids=self.schema.identifier_field_ids)

    def _kept_column(self, number: int, column: RelationColumn) -> ValueColumn:
        name = self.names[number]
        field_id = self.fields.get(number)
        if field_id is None:
            known = self._field_named(name)
            # The user's own column, made for the one to come.
            self.names[number] = name = name if known is None else known.name
        else:
            known = self.schema.find_field(field_id)
        kind = value_type(
            self.types.type_of(column.type_oid),
            column.modifier,
            column=column.name,
            wanted=None if known is None else known.field_type,
        )
        return ValueColumn(number, column.name, name, kind)

    def _follow_name(
        self, number: int, column: RelationColumn, before: KnownSource, now: SourceTable
    ) -> None:
        name = self.names.get(number)
        if name is None:
            raise EvolutionError(
                f"the table no longer has the column that {column.name} of {now} was loaded into: "
                "load it again, with --load-again, or leave the column out of the publication first"
            )
        known = before.columns.get(number)
        was_ours = known is not None and known.name.lower() == name.lower()
        if known is not None and was_ours and known.name != column.name:
            self.names[number] = column.name

    def _field_named(self, name: str) -> I.NestedField | None:
        return next((e for e in self.schema.fields if e.name.lower() == name.lower()), None)

    def _check_added(
        self, added: Sequence[tuple[Attribute, RelationColumn]], now: SourceTable
    ) -> None:
        unasked = [each for each in added if self._field_named(each[1].name) is None]
        names = ", ".join(column.name for _, column in unasked)
        if unasked and not self.adds_columns:
            raise EvolutionError(
                f"{now} has the new columns {names}, and the table's property "
                "write.spark.auto-schema-evolution.enabled is false: add them, or set it to true"
            )
        filled = [
            column.name
            for attribute, column in unasked
            if attribute.has_missing or (now.is_partitioned and attribute.has_default)
        ]
        if filled:
            raise EvolutionError(
                f"{now} has the new columns {', '.join(filled)} with a default: earlier rows have "
                "values that the log does not hold; add the columns to the table with what those "
                "rows are to have, or load it again, with --load-again"
            )

    def _check_names(self, now: SourceTable) -> None:
        """Two columns of PostgreSQL never share one of the table."""
        taken: dict[str, int] = {}
        for number, name in self.names.items():
            other = taken.setdefault(name.lower(), number)
            if other != number:
                gone, here = sorted((number, other))
                raise EvolutionError(
                    f"the name {name} was that of the column {gone} of {now}, and is that of the "
                    f"column {here}: the table keeps the values of the one that is gone under it. "
                    "Rename or drop the table's column, or load it again, with --load-again"
                )
        mine = set(self.fields.values())
        others = {each.name.lower() for each in self.schema.fields if each.field_id not in mine}
        for name in self.renamed_columns().values():
            if name.lower() in others:
                raise EvolutionError(
                    f"a column of {now} was renamed to {name}, and the table has another column of "
                    "that name: rename or drop the table's, or load it again, with --load-again"
                )


def check_relation_key(
    relation: Relation, numbers: Sequence[int], before: KnownSource, now: SourceTable
) -> None:
    """Check that the log tells rows apart by the key by which the table does.

    Args:
        numbers: of the relation's columns.

    Raises:
        ValidationError: it does by another one, or by none.
    """
    pairs = list(zip(numbers, relation.columns, strict=True))
    wanted = set(before.keys)
    if relation.identity == "f":
        # All columns are marked then: the catalog knows whether the key is there all the time.
        is_same, key = now.key_id == before.key_id and wanted <= set(numbers), set[int]()
    else:
        key = {number for number, column in pairs if column.is_key}
        is_same = key == wanted
    if not is_same:
        names = ", ".join(column.name for number, column in pairs if number in key) or "none"
        were = ", ".join(each.name for each in before.columns.values() if each.number in wanted)
        raise ValidationError(
            f"the log has rows of {now} by another key ({names}) than {were}: load the table "
            "again, with --load-again"
        )
