"""Schema evolution: a builder of the next schema (rules 30-51, 65)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import UTC, tzinfo
from typing import Any, Final, Self

from frazil.errors import EvolutionError, FrazilError, ValidationError
from frazil.format.evolution.promotion import (
    PROMOTIONS,
    can_promote,
    keeps_partition_values,
    promote_value,
)
from frazil.format.partitions.partitioning import PartitionField
from frazil.format.schema import Schema
from frazil.format.schema.defaults import check_default_value, check_new_defaults
from frazil.format.schema.ids import assign_fresh_type_ids
from frazil.format.schema.tree import SchemaTree
from frazil.format.types import (
    IcebergType,
    ListType,
    MapType,
    NestedField,
    PrimitiveType,
    StructType,
    UnknownType,
    as_type,
)
from frazil.format.values import coerce

_UNCHANGED: Final[Any] = object()

ColumnName = str | Sequence[str]
"""A column's dotted name, or its parts where a name holds a dot."""


class SchemaEvolution:
    """Changes of a schema, one call each; `apply` gives the schema that has them all.

    A column is named as before the changes, or as it was added, so that two columns can exchange
    their names; the name that a change gave it finds it, too. A field in a list is named through
    ``element``, one in a map through ``value``; where these are structs the word may be left out.

    Args:
        base: the current schema.
        last_column_id: the highest id ever used in the table; new ids follow it (rule 51).
        format_version: decides on types, defaults and promotions (rules 29, 44, 45).
        partition_fields: the fields of all specs of the table: they may forbid a promotion
            (rule 47).
        kept_source_ids: the source columns of the default spec and the default sort order, which
            cannot be deleted.
        case_sensitive: whether names must match in case.
        text_zone: the zone of a default that is text or a date, for a timestamp with zone.
        type_of: makes a type of what is given for one.

    Every method raises `EvolutionError` where the change is not possible.
    """

    def __init__(
        self,
        base: Schema,
        last_column_id: int,
        format_version: int,
        *,
        partition_fields: Iterable[PartitionField] = (),
        kept_source_ids: Iterable[int] = (),
        case_sensitive: bool = True,
        text_zone: str | tzinfo = UTC,
        type_of: Callable[[Any], IcebergType] = as_type,
    ) -> None:
        self._base = base
        self._given_type = type_of
        self._text_zone = text_zone
        self._last_column_id = max(last_column_id, base.highest_field_id)
        self._format_version = format_version
        self._partition_fields = tuple(partition_fields)
        self._kept_source_ids = frozenset(kept_source_ids)
        self._tree = SchemaTree(base, case_sensitive=case_sensitive)
        self._added: set[int] = set()
        self._updated: set[int] = set()
        self._identifiers: tuple[int, ...] = base.identifier_field_ids
        self._allows_incompatible = False

    @property
    def last_column_id(self) -> int:
        """The highest id ever used, with those of the added columns."""
        return self._last_column_id

    def allow_incompatible_changes(self) -> Self:
        """Allow to require columns that may hold NULL: readers of older rows may then fail."""
        self._allows_incompatible = True
        return self

    def add_column(
        self,
        name: ColumnName,
        field_type: IcebergType | str,
        *,
        doc: str | None = None,
        default: Any = None,
        required: bool = False,
    ) -> Self:
        """Add a column at the end of the table, or of the struct that the name's front part is.

        Args:
            field_type: a type, or its text: a primitive one as ``decimal(9, 2)``, and of a table
                in a session what DDL takes, ``struct<a: int, b: array<string>>``. Ids are new.
            default: the value of existing rows and of rows written without one (rules 34, 35);
                format version 3. ``{}`` for a struct takes its fields' own defaults (rule 39).
            required: needs a default (rule 36), unless incompatible changes are allowed.
        """
        parent, own_name = self._parent_of_new(name)
        new_type = self._type_of(field_type, own_name)
        value = self._default_of(own_name, new_type, default)
        field = NestedField(0, own_name, new_type, required, doc, value, value)
        self._add(parent, field)
        return self

    def delete_column(self, name: ColumnName) -> Self:
        """Delete a column with everything in it; its id is never used again (rules 48, 51)."""
        field_id = self._tree.find(name, "delete")
        shown = self._tree.name_of(field_id)
        self._refuse_in_collection(field_id, "delete")
        inside = self._tree.with_descendants(field_id)
        if inside & (self._added | self._updated):
            raise EvolutionError(
                f"cannot delete column {shown!r}: it is added or changed by the same evolution"
            )
        for kept in sorted(inside & self._kept_source_ids):
            raise EvolutionError(
                f"cannot delete column {shown!r}: the partition spec or sort order is made from "
                f"{self._tree.name_of(kept)!r}; remove it there first"
            )
        if len(self._tree.siblings_of(field_id)) == 1 and self._tree.parent_of(field_id):
            raise EvolutionError(
                f"cannot delete column {shown!r}: its struct would have no field left; delete the "
                "struct"
            )
        self._tree.remove(field_id)
        return self

    def rename_column(self, name: ColumnName, new_name: str) -> Self:
        """Give a column another name; ``new_name`` is its own name, without those around it."""
        field_id = self._tree.find(name, "rename")
        self._refuse_in_collection(field_id, "rename")
        if not new_name:
            raise EvolutionError(
                f"cannot rename column {self._tree.name_of(field_id)!r} to an empty name"
            )
        self._change(field_id, name=new_name)
        return self

    def update_column(
        self,
        name: ColumnName,
        field_type: IcebergType | str | None = None,
        *,
        doc: str | None = _UNCHANGED,
        default: Any = _UNCHANGED,
        required: bool | None = None,
    ) -> Self:
        """Change what is given of a column: its type by promotion (rules 44-47), doc, default.

        Args:
            default: the value of rows written from now on without one (rule 35); None for none.
            required: True as `require_column`, False as `make_column_optional`.
        """
        field_id = self._tree.find(name, "update")
        if field_type is not None:
            self._promote(field_id, self._type_of(field_type, self._tree.name_of(field_id)))
        if doc is not _UNCHANGED:
            self._change(field_id, doc=doc)
        if default is not _UNCHANGED:
            field = self._tree.field(field_id)
            value = self._default_of(field.name, self._tree.type_of(field_id), default)
            self._change(field_id, write_default=value)
        if required is not None:
            self._set_required(field_id, required=required)
        return self

    def make_column_optional(self, name: ColumnName) -> Self:
        """Allow NULL in a column."""
        self._set_required(self._tree.find(name, "make optional"), required=False)
        return self

    def require_column(self, name: ColumnName) -> Self:
        """Forbid NULL in a column: incompatible unless it is added here, with a default."""
        self._set_required(self._tree.find(name, "require"), required=True)
        return self

    def move_first(self, name: ColumnName) -> Self:
        """Move a column to the front of its table or struct."""
        field_id = self._find_movable(name)
        siblings = self._tree.siblings_of(field_id)
        siblings.remove(field_id)
        siblings.insert(0, field_id)
        return self

    def move_before(self, name: ColumnName, other: ColumnName) -> Self:
        """Move a column right before another one of the same table or struct."""
        self._move_beside(name, other, "before", 0)
        return self

    def move_after(self, name: ColumnName, other: ColumnName) -> Self:
        """Move a column right behind another one of the same table or struct."""
        self._move_beside(name, other, "after", 1)
        return self

    def set_identifier_fields(self, *names: ColumnName) -> Self:
        """Name the columns that identify a row (rules 64, 65), in place of those so far."""
        self._identifiers = tuple(self._tree.find(name, "identify rows by") for name in names)
        return self

    def union_by_name(self, other: Schema) -> Self:
        """Add what another schema has besides, by name, also inside of structs, lists and maps.

        A column of both is promoted where the other's type is wider, made optional where the other
        is, and takes the other's doc. Columns that are missing are added as optional ones behind
        the existing ones. Nothing is deleted, narrowed or moved.
        """
        self._unite_struct(None, other.as_struct())
        return self

    def apply(self) -> Schema:
        """Return the schema with all changes, under the base's schema id.

        Raises:
            EvolutionError: where two fields of a struct end up with one name, an identifier field
                is deleted or no longer allowed (rule 65), or a type or default does not fit the
                format version.
        """
        for field_id in self._identifiers:
            if field_id not in self._tree:
                raise EvolutionError(
                    f"cannot delete column {self._base.find_column_name(field_id)!r}: it is, or "
                    "holds, an identifier field; call set_identifier_fields without it as well"
                )
        try:
            schema = Schema(self._tree.fields(), self._base.schema_id, self._identifiers)
            schema.check_types_for(self._format_version)
        except EvolutionError:
            raise
        except ValidationError as error:
            raise EvolutionError(f"the schema cannot be changed so: {error}") from error
        return schema

    def _parent_of_new(self, name: ColumnName) -> tuple[int | None, str]:
        parts = tuple(name.rsplit(".", 1)) if isinstance(name, str) else tuple(name)
        if not parts or not all(isinstance(part, str) and part for part in parts):
            raise EvolutionError(f"cannot add column {name!r}: it is not a column name")
        own_name = parts[-1]
        if len(parts) == 1:
            return None, own_name
        front: ColumnName = parts[0] if isinstance(name, str) else parts[:-1]
        parent = self._tree.struct_in(self._tree.find(front, f"add {own_name!r} to"))
        if parent is None:
            raise EvolutionError(
                f"cannot add column {own_name!r} to {front!r}: it is no struct, nor a list or map "
                "of structs"
            )
        if self._tree.is_in_map_key(parent):
            raise EvolutionError(
                f"cannot add column {own_name!r} to {front!r}: the keys of a map cannot change"
            )
        return parent, own_name

    def _add(self, parent: int | None, field: NestedField) -> None:
        shown = self._tree.child_name(parent, field.name)
        existing = self._tree.child_named(parent, field.name)
        if existing is not None:
            raise EvolutionError(
                f"cannot add column {shown!r}: there is a column {self._tree.name_of(existing)!r} "
                f"of type {self._tree.type_of(existing)}"
            )
        if field.required and field.initial_default is None and not self._allows_incompatible:
            raise EvolutionError(
                f"cannot add the required column {shown!r} without a default: existing rows have "
                "no value for it; add it as optional, give a default (format version 3), or call "
                "allow_incompatible_changes()"
            )
        field_id = self._last_column_id + 1
        new_type = assign_fresh_type_ids(field.field_type, after=field_id)
        field = replace(field, field_id=field_id, field_type=new_type)
        try:
            check_new_defaults(Schema((field,)).fields_by_id.values())
        except ValidationError as error:
            raise EvolutionError(f"cannot add column {field.name!r}: {error}") from error
        inside = self._tree.insert(parent, field)
        self._last_column_id = max(inside)
        self._added |= inside

    def _type_of(self, field_type: IcebergType | str, name: str) -> IcebergType:
        try:
            return self._given_type(field_type)
        except FrazilError as error:
            raise EvolutionError(
                f"{field_type!r} is not a type for column {name!r}: {error}"
            ) from error

    def _default_of(self, name: str, field_type: IcebergType, default: Any) -> Any:
        if default is None:
            return None
        if self._format_version < 3:
            raise EvolutionError(
                f"column {name!r} cannot have the default {default!r}: defaults need format "
                f"version 3, and the table has version {self._format_version}"
            )
        if isinstance(field_type, StructType) and not default:
            return ()
        try:
            value = coerce(field_type, default, zone=self._text_zone)
            check_default_value(name, value)
            return value
        except FrazilError as error:
            raise EvolutionError(
                f"{default!r} cannot be the default of column {name!r} of type {field_type}: "
                f"{error}"
            ) from error

    def _change(self, field_id: int, **changes: Any) -> None:
        if self._tree.update(field_id, **changes):
            self._updated.add(field_id)

    def _refuse_in_collection(self, field_id: int, action: str) -> None:
        container = self._tree.collection_of(field_id)
        if container is not None:
            raise EvolutionError(
                f"cannot {action} {self._tree.name_of(field_id)!r}: it is the "
                f"{self._tree.field(field_id).name} of the {container}"
            )

    def _refuse_map_key(self, field_id: int, action: str) -> None:
        if self._tree.is_in_map_key(field_id):
            raise EvolutionError(
                f"cannot {action} {self._tree.name_of(field_id)!r}: the keys of a map cannot change"
            )

    def _set_required(self, field_id: int, *, required: bool) -> None:
        field = self._tree.field(field_id)
        if field.required == required:
            return
        shown = self._tree.name_of(field_id)
        self._refuse_map_key(field_id, "require" if required else "make optional")
        is_defaulted = field_id in self._added and field.initial_default is not None
        if required and not is_defaulted and not self._allows_incompatible:
            raise EvolutionError(
                f"cannot change column {shown!r} from optional to required: existing rows may hold "
                "NULL; call allow_incompatible_changes() if none does"
            )
        self._change(field_id, required=required)

    def _promote(self, field_id: int, target: IcebergType) -> None:
        source, shown = self._tree.type_of(field_id), self._tree.name_of(field_id)
        if source == target:
            return
        change = f"cannot change column {shown!r} from {source} to {target}"
        self._refuse_map_key(field_id, "change the type of")
        if not can_promote(source, target, self._format_version):
            raise EvolutionError(
                f"{change} in format version {self._format_version}: allowed is {PROMOTIONS}"
            )
        for field in self._partition_fields:
            if field_id in field.source_ids and not keeps_partition_values(
                source, target, field.transform
            ):
                raise EvolutionError(
                    f"{change}: the partition field {field.name!r} is made from it by "
                    f"{field.transform}, whose values would change"
                )
        field_now = self._tree.field(field_id)
        if not isinstance(target, PrimitiveType):
            target = assign_fresh_type_ids(target, after=self._last_column_id)
        self._tree.replace_type(
            field_id,
            target,
            initial_default=promote_value(source, target, field_now.initial_default),
            write_default=promote_value(source, target, field_now.write_default),
        )
        self._last_column_id = max(self._last_column_id, *self._tree.with_descendants(field_id))
        self._updated.add(field_id)

    def _find_movable(self, name: ColumnName) -> int:
        field_id = self._tree.find(name, "move")
        self._refuse_in_collection(field_id, "move")
        self._refuse_map_key(field_id, "move")
        return field_id

    def _move_beside(self, name: ColumnName, other: ColumnName, side: str, offset: int) -> None:
        field_id = self._find_movable(name)
        other_id = self._tree.find(other, f"move {self._tree.name_of(field_id)!r} {side}")
        shown, beside = self._tree.name_of(field_id), self._tree.name_of(other_id)
        if field_id == other_id:
            raise EvolutionError(f"cannot move column {shown!r} {side} itself")
        if self._tree.parent_of(field_id) != self._tree.parent_of(other_id):
            raise EvolutionError(
                f"cannot move column {shown!r} {side} {beside!r}: they are in different structs"
            )
        siblings = self._tree.siblings_of(field_id)
        siblings.remove(field_id)
        siblings.insert(siblings.index(other_id) + offset, field_id)

    def _unite_struct(self, parent: int | None, other: StructType) -> None:
        for field in other.fields:
            existing = self._tree.child_named(parent, field.name)
            if existing is None:
                self._add(parent, replace(field, required=False))
            else:
                self._unite_field(existing, field)

    def _unite_field(self, field_id: int, other: NestedField) -> None:
        if other.optional:
            self._set_required(field_id, required=False)
        if other.doc is not None:
            self._change(field_id, doc=other.doc)
        ours, theirs = self._tree.type_of(field_id), other.field_type
        match ours, theirs:
            case StructType(), StructType():
                self._unite_struct(field_id, theirs)
            case ListType(), ListType():
                self._unite_field(ours.element_id, theirs.element_field)
            case MapType(), MapType():
                self._unite_field(ours.key_id, theirs.key_field)
                self._unite_field(ours.value_id, theirs.value_field)
            case _:
                # A narrower type fits into the column as it is.
                is_narrower = isinstance(theirs, UnknownType) or can_promote(
                    theirs, ours, self._format_version
                )
                if not is_narrower:
                    self._promote(field_id, theirs)
