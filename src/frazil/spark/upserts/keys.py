"""Keys: the columns that tell rows apart, as equality deletes can compare them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as F

from frazil.errors import UnsupportedError, ValidationError
from frazil.format import types as I
from frazil.format.arguments import one_or_several
from frazil.format.partitions.partitioning import PartitionSpec
from frazil.format.predicates.sql.quoting import quote_name_always
from frazil.format.schema import Schema


@dataclass(frozen=True, slots=True)
class Keys:
    """The columns that tell rows apart, in the schema's order; NULL equals NULL in them.

    Attributes:
        fields: top-level columns of the table.
    """

    fields: tuple[I.NestedField, ...]

    @classmethod
    def of(cls, names: Collection[str], schema: Schema, *, case_sensitive: bool) -> Keys:
        """Find the columns of these names, or the schema's identifier fields for no names.

        Raises:
            ValidationError: there is no such column, none at all, or rows cannot be told apart by
                values of its type.
            UnsupportedError: a key lies inside of a struct.
        """
        found = [schema.find_field(name, case_sensitive=case_sensitive) for name in names]
        if not names:
            found = [schema.find_field(i) for i in schema.identifier_field_ids]
        if not found:
            raise ValidationError(
                "changes need keys: name the columns that tell rows apart, as keys=['id'], or set "
                "the schema's identifier fields"
            )
        for field in found:
            _check(field, schema)
        wanted = {field.field_id for field in found}
        return cls(tuple(field for field in schema.fields if field.field_id in wanted))

    @property
    def ids(self) -> tuple[int, ...]:
        """The field ids."""
        return tuple(field.field_id for field in self.fields)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(field.name for field in self.fields)

    @property
    def columns(self) -> list[Column]:
        """The columns, of rows in the table's form."""
        return [F.col(quote_name_always([name])) for name in self.names]

    @property
    def schema(self) -> Schema:
        """The schema of files that hold the keys alone."""
        return Schema(self.fields)

    @property
    def shown_text(self) -> Column:
        """The keys of a row as text."""
        parts = [
            F.concat(F.lit(f"{name}="), F.coalesce(column.cast("string"), F.lit("NULL")))
            for name, column in zip(self.names, self.columns, strict=True)
        ]
        return F.concat_ws(", ", *parts)

    def tell_partition(self, spec: PartitionSpec) -> bool:
        """Whether the partition of a row follows from its keys."""
        sources = {
            source for field in spec.fields if not field.is_void for source in field.source_ids
        }
        return sources <= set(self.ids)


def names_of_keys(keys: str | Sequence[str] | None) -> tuple[str, ...]:
    """Return the names that a user gave.

    Raises:
        ValidationError: they are no names, or a name comes twice.
    """
    names = () if keys is None else one_or_several(keys, argument="keys")
    if len(set(names)) != len(names):
        raise ValidationError(f"keys name a column twice: {list(names)}")
    return names


def _check(field: I.NestedField, schema: Schema) -> None:
    if field.field_id in schema.parent_ids:
        raise UnsupportedError(
            f"the key {schema.find_column_name(field.field_id)!r} lies inside of another column; "
            "use top-level columns as keys"
        )
    if isinstance(field.field_type, I.FloatType | I.DoubleType):
        raise ValidationError(
            f"the column {field.name!r} is {field.field_type}, and equality deletes compare no "
            "floating-point numbers; use keys of other types"
        )
    if not isinstance(field.field_type, I.EXACT_TYPES):
        raise ValidationError(
            f"the column {field.name!r} is {field.field_type}, and rows cannot be told apart by "
            "such values; use keys of simple types"
        )
