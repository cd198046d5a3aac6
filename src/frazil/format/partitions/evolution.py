"""Changing how a table is partitioned, by the rules of v1 and of v2 (SPEC rules 70-74, 90)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Self

from frazil.errors import EvolutionError, ValidationError
from frazil.format.partitions.specs import (
    PartitionField,
    PartitionSpec,
    check_new_fields,
    check_source,
)
from frazil.format.partitions.transform_exprs import (
    PartitionExpr,
    evolved_field_name,
    parse_partition_expr,
)
from frazil.format.partitions.transforms import (
    TimeTransform,
    Transform,
    UnknownTransform,
    VoidTransform,
)
from frazil.format.schema import Schema


class PartitionEvolution:
    """Collects changes to the default spec; ``apply`` makes the spec that results.

    Args:
        schema: the table's current schema.
        specs: all specs of the table.
        default_spec_id: the spec to change.
        last_partition_id: the highest partition field id that was ever assigned (rule 72).
        format_version: in version 1 a removed field stays as void (rule 90).
        case_sensitive: how column names are compared.

    Raises:
        EvolutionError: where the spec holds a transform that is not known.
    """

    def __init__(
        self,
        schema: Schema,
        specs: Iterable[PartitionSpec],
        *,
        default_spec_id: int,
        last_partition_id: int,
        format_version: int,
        case_sensitive: bool = True,
    ) -> None:
        self._schema = schema
        self._specs = tuple(specs)
        self._spec = self._default_spec(default_spec_id)
        self.last_partition_id = max(
            last_partition_id, *(spec.last_assigned_field_id for spec in self._specs)
        )
        """The highest partition field id that is assigned, new fields included."""
        self._format_version = format_version
        self._case_sensitive = case_sensitive
        self._added: list[PartitionField] = []
        self._removed: set[int] = set()
        self._renamed: dict[int, str] = {}

    def add_field(self, expr: str | PartitionExpr, *, name: str | None = None) -> Self:
        """Partition by one more transform: `"day(ts)"`, `"bucket(16, id)"`, `"country"`.

        The name is as Java's by default. From version 2 on, a field that an earlier spec had comes
        back under its id (rule 74).

        Raises:
            EvolutionError: the spec has such a field or such a name already.
            ValidationError: the column is missing or of a wrong type.
        """
        parsed = parse_partition_expr(expr) if isinstance(expr, str) else expr
        wanted = name or parsed.name
        source_id = parsed.resolve(self._schema, case_sensitive=self._case_sensitive)
        check_source(self._schema, source_id, parsed.transform)
        held = self._current_field(source_id, parsed.transform)
        if held is not None:
            if held.field_id not in self._removed:
                raise EvolutionError(
                    f"the table is partitioned by {parsed.transform}({parsed.column}) already: "
                    f"the field {held.name!r}"
                )
            self._removed.discard(held.field_id)
            return self if wanted in (None, held.name) else self.rename_field(held.name, wanted)
        for added in self._added:
            if added.source_ids == (source_id,) and _kind(added.transform) == _kind(
                parsed.transform
            ):
                raise EvolutionError(
                    f"{parsed.transform}({parsed.column}) is redundant: "
                    f"the field {added.name!r} is being added"
                )
        field = self._earlier_field(source_id, parsed.transform, wanted) or self._new_field(
            source_id, parsed.transform, wanted
        )
        self._make_room_for(field.name)
        self._added.append(field)
        return self

    def remove_field(self, name_or_expr: str) -> Self:
        """Stop partitioning by a field, by name or as `"day(ts)"`; EvolutionError if unknown."""
        field = self._find(name_or_expr)
        if field in self._added:
            raise EvolutionError(f"the field {field.name!r} is being added; leave the adding out")
        if field.field_id in self._renamed:
            raise EvolutionError(f"the field {field.name!r} cannot be renamed and removed at once")
        if field.field_id in self._removed:
            raise EvolutionError(f"the field {field.name!r} is being removed already")
        self._removed.add(field.field_id)
        return self

    def rename_field(self, name: str, new_name: str) -> Self:
        """Give a field another name; its id stays.

        EvolutionError if it is unknown or the new name is taken.
        """
        field = self._spec.field_by_name(name)
        if any(added.name == name for added in self._added):
            raise EvolutionError(f"the field {name!r} is being added; add it under {new_name!r}")
        if field is None:
            raise EvolutionError(self._no_field(name))
        if field.field_id in self._removed:
            raise EvolutionError(f"the field {name!r} cannot be renamed and removed at once")
        if new_name == name:
            self._renamed.pop(field.field_id, None)
            return self
        self._make_room_for(new_name)
        self._renamed[field.field_id] = new_name
        return self

    def apply(self) -> PartitionSpec:
        """Return the spec that results: an equivalent one of before (rule 73), or a new one."""
        kept: list[PartitionField] = []
        for field in self._spec.fields:
            named = replace(field, name=self._renamed.get(field.field_id, field.name))
            if field.field_id not in self._removed:
                kept.append(named)
            elif self._format_version < 2:
                # v1 finds partition values by position, so a dropped field keeps its place.
                kept.append(replace(named, transform=VoidTransform()))
        fields = (*kept, *self._added)
        new_id = max(spec.spec_id for spec in self._specs) + 1
        try:
            changed = [field for field in kept if field.field_id in self._renamed]
            check_new_fields(self._schema, [*self._added, *changed])
            spec = PartitionSpec(new_id, fields)
        except ValidationError as error:
            raise EvolutionError(str(error)) from error
        if spec.is_equivalent_to(self._spec):
            return self._spec
        return next((held for held in self._specs if held.is_equivalent_to(spec)), spec)

    def _default_spec(self, spec_id: int) -> PartitionSpec:
        spec = next((spec for spec in self._specs if spec.spec_id == spec_id), None)
        if spec is None:
            raise EvolutionError(f"the table has no partition spec of id {spec_id}")
        for field in spec.fields:
            if isinstance(field.transform, UnknownTransform):
                raise EvolutionError(
                    f"the partition spec {spec_id} cannot be changed: "
                    f"the transform of [{field}] is not known"
                )
        return spec

    def _current_field(self, source_id: int, transform: Transform) -> PartitionField | None:
        return next(
            (
                field
                for field in self._spec.fields
                if field.source_ids == (source_id,) and field.transform == transform
            ),
            None,
        )

    def _earlier_field(
        self, source_id: int, transform: Transform, name: str | None
    ) -> PartitionField | None:
        """The equivalent field of an earlier spec, of that name if one is wanted (rule 74)."""
        if self._format_version < 2:
            return None
        for spec in sorted(self._specs, key=lambda spec: spec.spec_id, reverse=True):
            for field in spec.fields:
                if (
                    field.source_ids == (source_id,)
                    and field.transform == transform
                    and name in (None, field.name)
                ):
                    return field
        return None

    def _new_field(self, source_id: int, transform: Transform, name: str | None) -> PartitionField:
        self.last_partition_id += 1
        column = self._schema.find_column_name(source_id) or ""
        return PartitionField(
            source_ids=(source_id,),
            field_id=self.last_partition_id,
            transform=transform,
            name=name or evolved_field_name(transform, column),
        )

    def _make_room_for(self, name: str) -> None:
        """Move a void or removed field out of the way of a name; a living field keeps it."""
        if any(added.name == name for added in self._added) or name in self._renamed.values():
            raise EvolutionError(f"two partition fields would be named {name!r}")
        held = self._spec.field_by_name(name)
        if held is None or held.field_id in self._renamed:
            return
        if not held.is_void and held.field_id not in self._removed:
            raise EvolutionError(
                f"the table has a partition field named {name!r} already: [{held}]"
            )
        self._renamed[held.field_id] = f"{held.name}_{held.field_id}"

    def _find(self, name_or_expr: str) -> PartitionField:
        fields = (*self._spec.fields, *self._added)
        by_name = next((field for field in fields if field.name == name_or_expr), None)
        if by_name is not None:
            return by_name
        try:
            expr = parse_partition_expr(name_or_expr)
            source_id = expr.resolve(self._schema, case_sensitive=self._case_sensitive)
        except ValidationError as error:
            raise EvolutionError(self._no_field(name_or_expr)) from error
        for field in fields:
            if field.source_ids == (source_id,) and field.transform == expr.transform:
                return field
        raise EvolutionError(self._no_field(name_or_expr))

    def _no_field(self, name: str) -> str:
        names = ", ".join(field.name for field in self._spec.fields) or "none"
        return f"there is no partition field {name!r}; the fields are: {names}"


def _kind(transform: Transform) -> str:
    return "time" if isinstance(transform, TimeTransform) else str(transform)
