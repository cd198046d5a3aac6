"""How a data file is to be read, from what its footer says and what the scan wants.

Most files go through Spark's reader by field id. Files without ids go through it by their own
names once ids are given to them (name mapping, else position). What Spark's reader cannot do
(nested defaults, types that it refuses) is left to the Arrow reader.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum

from frazil.errors import UnsupportedError
from frazil.format import types as I
from frazil.format.schema.name_mapping import NameMapping
from frazil.format.types.forms import form_of
from frazil.format.types.inside import fields_inside
from frazil.spark.files.layout.footers import OF_UNSIGNED_LONGS, FooterColumn


class Reader(Enum):
    """What reads a file."""

    BY_ID = "Spark, by field id"
    BY_NAME = "Spark, by name"
    ARROW = "Arrow, on the executors"


@dataclass(frozen=True, slots=True)
class Layout:
    """How files of one shape are read.

    Attributes:
        columns: the file's top-level columns with the ids that hold for them.
        missing: ids of the scan's top-level columns that the files do not have.
    """

    reader: Reader
    columns: tuple[FooterColumn, ...]
    missing: frozenset[int]

    @property
    def is_complete_by_id(self) -> bool:
        """Whether Spark reads the files by id and every column is in them."""
        return self.reader is Reader.BY_ID and not self.missing


def layout_of(
    columns: tuple[FooterColumn, ...],
    *,
    has_ids: bool,
    fields: Sequence[I.NestedField],
    mapping: NameMapping | None,
    table_fields: Sequence[I.NestedField],
) -> Layout:
    """The layout of a Parquet file's columns for a scan of these fields.

    Args:
        columns: the file's columns.
        has_ids: whether any of them has a field id; the mapping counts only without (rule 63).
        fields: the top-level columns to read.
        mapping: the table's name mapping, if it has one (rule 54).
        table_fields: the table's columns, for ids by position where there is no mapping
            (rule 260).
    """
    resolved = columns if has_ids else with_ids(columns, mapping, table_fields)
    by_id = {column.field_id: column for column in resolved if column.field_id is not None}
    missing = frozenset(field.field_id for field in fields if field.field_id not in by_id)
    present = [field for field in fields if field.field_id in by_id]
    fits = all(_fits(by_id[field.field_id], field.field_type) for field in present)
    # An initial default of a struct that the file lacks is built from its fields' (rule 40).
    fits = fits and not any(
        field.initial_default is not None and field.field_type.is_nested
        for field in fields
        if field.field_id in missing
    )
    if not fits:
        return Layout(Reader.ARROW, resolved, missing)
    if has_ids:
        return Layout(Reader.BY_ID, resolved, missing)
    reader = Reader.BY_NAME if _have_clear_names(columns) else Reader.ARROW
    return Layout(reader, resolved, missing)


def with_ids(
    columns: Sequence[FooterColumn],
    mapping: NameMapping | None,
    table_fields: Sequence[I.NestedField],
) -> tuple[FooterColumn, ...]:
    """The columns of a file without ids, with the ids that the table gives them.

    Raises:
        UnsupportedError: nested columns without a name mapping, whose parts do not have the names
            of the table's.
    """
    if mapping is not None:
        return tuple(_map_column(column, mapping, (column.name,)) for column in columns)
    fields = {field.field_id: field for field in table_fields}
    return tuple(
        _positional(column, position, fields.get(position))
        for position, column in enumerate(columns, 1)
    )


def names_of_columns(
    columns: Sequence[FooterColumn], prefix: str = ""
) -> dict[str, frozenset[int]]:
    """Dotted names, lower case, of columns and fields of structs, with the ids behind them."""
    names: dict[str, frozenset[int]] = {}
    for column in columns:
        name = prefix + column.name.lower()
        ids = frozenset({column.field_id if column.field_id is not None else -1})
        names[name] = names.get(name, frozenset()) | ids
        if column.kind == "struct":
            for below, below_ids in names_of_columns(column.children, name + ".").items():
                names[below] = names.get(below, frozenset()) | below_ids
    return names


def _map_column(column: FooterColumn, mapping: NameMapping, path: tuple[str, ...]) -> FooterColumn:
    """The column with its ids; `path`: its names in the mapping, from the top down."""
    children = tuple(
        _map_column(child, mapping, (*path, part))
        for child, part in zip(column.children, _parts(column), strict=True)
    )
    return replace(column, field_id=mapping.field_id(path), children=children)


def _parts(column: FooterColumn) -> tuple[str, ...]:
    # A mapping names the inside of lists and maps in one way, whatever the file does (rule 60).
    if column.kind == "list":
        return ("element",)
    if column.kind == "map":
        return ("key", "value")
    return tuple(child.name for child in column.children)


def _positional(column: FooterColumn, position: int, field: I.NestedField | None) -> FooterColumn:
    if field is None or not column.children:
        return replace(column, field_id=position)
    return _by_names(replace(column, field_id=position), field.field_type)


def _by_names(column: FooterColumn, field_type: I.IcebergType) -> FooterColumn:
    named = {field.name.lower(): field for field in fields_inside(field_type)}
    children = []
    for child, part in zip(column.children, _parts(column), strict=True):
        field = named.get(part.lower())
        if field is None:
            raise UnsupportedError(
                f"the column {column.name!r} of a file without field ids has a part {part!r} that "
                "the table does not know: give the table a name mapping "
                "(schema.name-mapping.default)"
            )
        children.append(_by_names(replace(child, field_id=field.field_id), field.field_type))
    return replace(column, children=tuple(children))


def _have_clear_names(columns: Sequence[FooterColumn]) -> bool:
    """Whether no two columns beside each other, at any depth, have one name in whatever case."""
    names = {column.name.lower() for column in columns}
    return len(names) == len(columns) and all(_have_clear_names(c.children) for c in columns)


def _fits(column: FooterColumn, field_type: I.IcebergType) -> bool:
    """Whether Spark reads this stored column as that type, with nothing left to Frazil."""
    match field_type:
        case I.StructType(fields=fields):
            return column.kind == "struct" and all(_fits_child(column, field) for field in fields)
        case I.ListType(element_type=element_type):
            return column.kind == "list" and _fits(column.children[0], element_type)
        case I.MapType(key_type=key_type, value_type=value_type):
            return (
                column.kind == "map"
                and _fits(column.children[0], key_type)
                and _fits(column.children[1], value_type)
            )
        case I.VariantType() | I.UnknownType():
            return True
        case _:
            return _is_readable(column.kind, field_type)


def _fits_child(column: FooterColumn, field: I.NestedField) -> bool:
    if isinstance(field.field_type, I.UnknownType):
        return True
    for child in column.children:
        if child.field_id == field.field_id:
            return _fits(child, field.field_type)
    # Spark fills a missing field of a struct with NULL and knows no default there.
    return field.initial_default is None and not field.required


def _is_readable(kind: str, field_type: I.IcebergType) -> bool:
    form = form_of(field_type)
    match field_type:
        case I.DecimalType():
            return _is_decimal(kind, field_type)
        case I.FixedType(length=length) if kind == f"fixed_size_binary[{length}]":
            return True
        case I.GeometryType() | I.GeographyType() if kind.startswith("extension<geoarrow"):
            return True
        case _:
            return kind == form.arrow or kind in form.readable


def _is_decimal(kind: str, field_type: I.DecimalType) -> bool:
    if kind == "uint64":
        return (field_type.precision, field_type.scale) == OF_UNSIGNED_LONGS
    if not kind.startswith("decimal"):
        return False
    precision, scale = kind[kind.index("(") + 1 : -1].split(",")
    return int(scale) == field_type.scale and int(precision) <= field_type.precision
