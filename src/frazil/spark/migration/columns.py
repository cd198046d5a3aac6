"""The columns of a file that another writer left, as columns of the table.

Such a file has no field ids: its columns are found by name. What the table's name mapping must
have besides is told: a name that differs from the table's in upper and lower case alone, and the
columns that the table lacks, so that a later column of such a name does not show their values.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from frazil.errors import SchemaMismatchError
from frazil.format import types as I
from frazil.format.evolution.promotion import can_promote
from frazil.format.schema import Schema
from frazil.format.schema.name_mapping import FileNames, MappedField, NameMapping
from frazil.format.types.inside import fields_inside
from frazil.spark.files.layout.footers import INT96, FooterColumn, has_ids
from frazil.spark.files.layout.stored_types import FIXED, MOMENT, number_or_text, plain_kind

_OF_ORC: Final = " (ORC keeps it in the zone of its writer, which the footer does not tell)"
_BYTES: Final = (I.StringType, I.BinaryType, I.GeometryType, I.GeographyType)
_LIKE_BYTES: Final = ("binary", "large_binary")


@dataclass(frozen=True, slots=True)
class _Level:
    """The columns of a table, or the fields in one of them, as files are looked through for them.

    Attributes:
        field_id: of the field that they are in; None at the top.
        mapped: the name mapping's part.
        fields: the table's own.
        place: what stands before their names in errors.
        is_known: whether the table has a place for what is in a file here.
    """

    field_id: int | None
    mapped: Sequence[MappedField]
    fields: Sequence[I.NestedField]
    place: str
    is_known: bool = True


@dataclass(frozen=True, slots=True)
class _Names:
    """The names of a file that the mapping is to have, as they are found."""

    spellings: set[tuple[int, str]] = field(default_factory=set)
    of_files_only: set[tuple[int | None, str]] = field(default_factory=set)


@dataclass(frozen=True)
class ColumnMatcher:
    """Finds a file's columns in a table and refuses what does not fit; for executors too.

    Attributes:
        schema: the table's.
        mapping: the table's name mapping.
        partition_ids: columns whose values stand in folders.
        format_version: of the table.
        file_format: of the files.
        is_case_sensitive: whether names match with their case only.
    """

    schema: Schema
    mapping: NameMapping
    partition_ids: frozenset[int]
    format_version: int
    file_format: str
    is_case_sensitive: bool

    def match(
        self, columns: tuple[FooterColumn, ...]
    ) -> tuple[tuple[FooterColumn, ...], FileNames]:
        """Return a file's columns as the table takes them.

        Returns:
            The columns with the ids of the table's fields, and names that the name mapping must
            have besides its own.

        Raises:
            SchemaMismatchError: naming each column that does not fit, and how.
        """
        names = _Names()
        if has_ids(columns):
            found = columns
            self._check_ids(columns)
        else:
            top = _Level(None, self.mapping.fields, self.schema.fields, "")
            found = self._name_columns(columns, top, names)
        problems = list(self._problems(found, self.schema.fields, ""))
        rest = {f.field_id for f in self.schema.fields} - self.partition_ids
        if columns and rest and not any(column.field_id in rest for column in found):
            there = [column.name for column in columns]
            problems.append(f"none of its columns {there} is one of the table's")
        if problems:
            raise SchemaMismatchError("; ".join(problems))
        return found, FileNames(frozenset(names.spellings), frozenset(names.of_files_only))

    def _name_columns(
        self, columns: Sequence[FooterColumn], level: _Level, names: _Names
    ) -> tuple[FooterColumn, ...]:
        found: list[FooterColumn] = []
        taken: dict[int, str] = {}
        for column in columns:
            own = self._map_name(column.name, level.mapped)
            self._refuse_reused_name(column.name, own, level)
            if own is None or own.field_id is None:
                if own is None and level.is_known:
                    names.of_files_only.add((level.field_id, column.name))
                found.append(replace(column, field_id=None))
                continue
            if own.field_id in taken:
                both = f"{level.place}{taken[own.field_id]} and {level.place}{column.name}"
                raise SchemaMismatchError(f"its columns {both} are one column of the table")
            taken[own.field_id] = column.name
            if column.name not in own.names:
                names.spellings.add((own.field_id, column.name))
            inside = self._inside(own, own.field_id, f"{level.place}{column.name}.")
            if column.kind == "struct":
                children = self._name_columns(column.children, inside, names)
            else:
                # A mapping names the inside of lists and maps in one way (rule 60).
                parts = ("element",) if column.kind == "list" else ("key", "value")
                named = [replace(c, name=p) for c, p in zip(column.children, parts, strict=False)]
                inner = self._name_columns(named, inside, names)
                children = tuple(
                    replace(each, name=stored.name)
                    for each, stored in zip(inner, column.children, strict=True)
                )
            found.append(replace(column, field_id=own.field_id, children=children))
        return tuple(found)

    def _inside(self, mapped: MappedField, field_id: int, place: str) -> _Level:
        known = self.schema.field_or_none(field_id)
        # What a variant is made of is none of the table's fields.
        is_known = known is not None and not isinstance(known.field_type, I.VariantType)
        fields = () if known is None else fields_inside(known.field_type)
        return _Level(field_id, mapped.fields, fields, place, is_known)

    def _refuse_reused_name(self, name: str, own: MappedField | None, level: _Level) -> None:
        """Refuse a column whose name is one field's now and another's by the name mapping."""
        now = self._of_name(name, level.fields)
        if now is None or (own is not None and own.field_id == now.field_id):
            return
        known = None if own is None else self.schema.field_or_none(own.field_id or -1)
        if own is None:
            means = "no field"
        elif known is None:
            means = (
                "another column of earlier files, "
                + (f"the field {own.field_id}, " if own.field_id else "")
                + "which was deleted, or which the table lacked when its files were added"
            )
        else:
            means = f"the field {own.field_id}, now {level.place}{known.name}"
        raise SchemaMismatchError(
            f"its column {level.place}{name} may be the table's {level.place}{now.name}, the field "
            f"{now.field_id}, but by the table's name mapping the name means {means}, and readers "
            "would take it for that: append the rows in place of the file, or give the column "
            "another name in the file"
        )

    def _of_name(self, name: str, fields: Sequence[I.NestedField]) -> I.NestedField | None:
        """The field of the table that has the name now."""
        exact = next((each for each in fields if each.name == name), None)
        if exact is not None or self.is_case_sensitive:
            return exact
        return next((each for each in fields if each.name.lower() == name.lower()), None)

    def _map_name(self, name: str, mapped: Sequence[MappedField]) -> MappedField | None:
        exact = next((each for each in mapped if name in each.names), None)
        if exact is not None or self.is_case_sensitive:
            return exact
        lowered = name.lower()
        alike = [each for each in mapped if lowered in {n.lower() for n in each.names}]
        if len(alike) > 1:
            raise SchemaMismatchError(
                f"its column {name} may be any of the fields {[e.field_id for e in alike]}, whose "
                "names differ in case alone"
            )
        return alike[0] if alike else None

    def _check_ids(self, columns: Sequence[FooterColumn]) -> None:
        """Refuse a file whose own ids stand for other columns than its names do."""
        for column in columns:
            known = self.schema.field_or_none(column.field_id) if column.field_id else None
            names = self.mapping.names_of(column.field_id) if column.field_id else ()
            if known is not None and column.name.lower() not in {
                name.lower() for name in (known.name, *names)
            }:
                raise SchemaMismatchError(
                    f"its column {column.name} has the field id {column.field_id}, which is "
                    f"{known.name} in the table: the file was written for another table"
                )
            if known is None and self._stands_for_a_column(column.name):
                raise SchemaMismatchError(
                    f"its column {column.name} has "
                    + (f"the field id {column.field_id}" if column.field_id else "no field id")
                    + ", by which readers do not find it in the table: the file was written for "
                    "another table"
                )

    def _stands_for_a_column(self, name: str) -> bool:
        mapped = self._map_name(name, self.mapping.fields)
        by_mapping = mapped is not None and mapped.field_id in self.schema.field_ids
        return by_mapping or self._of_name(name, self.schema.fields) is not None

    def _problems(
        self, columns: Sequence[FooterColumn], fields: Sequence[I.NestedField], prefix: str
    ) -> Iterator[str]:
        by_id = {column.field_id: column for column in columns if column.field_id is not None}
        for each in fields:
            column = by_id.get(each.field_id)
            place = f"{prefix}{each.name}"
            if column is not None:
                yield from self._misfits(column, each.field_type, place)
            elif (
                each.required
                and each.initial_default is None
                and each.field_id not in self.partition_ids
            ):
                yield f"it lacks the column {place}, which the table requires"

    def _misfits(self, column: FooterColumn, kind: I.IcebergType, place: str) -> Iterator[str]:
        match kind:
            case I.StructType(fields=fields) if column.kind == "struct":
                yield from self._problems(column.children, fields, f"{place}.")
            case I.ListType() if column.kind == "list":
                yield from self._misfits(column.children[0], kind.element_type, f"{place}.element")
            case I.MapType() if column.kind == "map":
                yield from self._misfits(column.children[0], kind.key_type, f"{place}.key")
                yield from self._misfits(column.children[1], kind.value_type, f"{place}.value")
            case I.VariantType() if column.kind == "struct" or "variant" in column.kind:
                pass
            case I.UnknownType():
                pass
            case _ if not self._fits(column.kind, kind):
                why = _OF_ORC if self.file_format == "orc" and "timestamp" in column.kind else ""
                yield (
                    f"its column {place} is stored as {column.kind}, and the table's is {kind}{why}"
                )
            case _:
                pass

    def _fits(self, stored: str, kind: I.IcebergType) -> bool:
        stored = plain_kind(stored)
        if isinstance(kind, I.TimestampType | I.TimestamptzType):
            if stored == INT96:
                return True
            moment = MOMENT.fullmatch(stored)
            if moment is not None:
                has_zone = isinstance(kind, I.TimestamptzType)
                return self._fits_moment(moment[1], "tz=" in stored, has_zone)
        if isinstance(kind, I.TimestampNanoType | I.TimestamptzNanoType):
            has_zone = isinstance(kind, I.TimestamptzNanoType)
            moment = MOMENT.fullmatch(stored)
            return moment is not None and moment[1] == "ns" and ("tz=" in stored) is has_zone
        if stored in _LIKE_BYTES and isinstance(kind, _BYTES):
            return True
        fixed = FIXED.fullmatch(stored)
        if fixed is not None:
            length = 16 if isinstance(kind, I.UUIDType) else getattr(kind, "length", None)
            return length == int(fixed[1])
        written = number_or_text(stored)
        return written is not None and (
            written == kind or can_promote(written, kind, self.format_version)
        )

    def _fits_moment(self, unit: str, is_zoned: bool, has_zone: bool) -> bool:
        """Whether readers take a timestamp of this unit as the instant or time that it is."""
        match self.file_format:
            case "parquet":
                return unit in ("us", "ms") and is_zoned is has_zone
            case "orc":
                # One without a zone is in the zone of its writer, which the footer does not tell.
                return is_zoned and has_zone
            case _:
                # Avro's own timestamp is an instant and says no more.
                return unit in ("us", "ms") and (has_zone or not is_zoned)
