"""Partition specs: fields, JSON, partition types and paths (rules 68-92, 199, 202, 208)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote_plus

from frazil.errors import InvalidMetadataError, ValidationError
from frazil.format.partitions.transforms import (
    IdentityTransform,
    TimeTransform,
    Transform,
    UnknownTransform,
    VoidTransform,
    parse_transform,
)
from frazil.format.schema import Schema
from frazil.format.types import IcebergType, NestedField, StructType

FIRST_PARTITION_FIELD_ID = 1000
"""Where partition field ids start by convention (rule 72)."""


@dataclass(frozen=True, slots=True)
class PartitionField:
    """One part of a partition: a transform of one source column, or of several (rule 92).

    Attributes:
        source_ids: the ids of the source columns; one, but for multi-argument transforms.
        field_id: the id of the field in partition tuples (rule 91).
        transform: from source values to partition values.
        name: the field's name in partition tuples and paths.
    """

    source_ids: tuple[int, ...]
    field_id: int
    transform: Transform
    name: str

    @property
    def source_id(self) -> int:
        """The id of the first source column, the only one of every known transform."""
        return self.source_ids[0]

    @property
    def is_void(self) -> bool:
        """True for a field that v1 dropped (rule 90)."""
        return isinstance(self.transform, VoidTransform)

    def is_equivalent_to(self, other: PartitionField) -> bool:
        """True where sources and transform agree, whatever the names and ids (rule 74)."""
        return self.source_ids == other.source_ids and self.transform == other.transform

    def to_json(self) -> dict[str, Any]:
        """The JSON of the field (rules 199, 202)."""
        return {
            **sources_to_json(self.source_ids),
            "field-id": self.field_id,
            "name": self.name,
            "transform": str(self.transform),
        }

    def __str__(self) -> str:
        sources = ", ".join(str(source_id) for source_id in self.source_ids)
        return f"{self.field_id}: {self.name}: {self.transform}({sources})"


@dataclass(frozen=True, slots=True)
class PartitionSpec:
    """How the rows of data files are partitioned; a spec without fields is unpartitioned."""

    spec_id: int = 0
    fields: tuple[PartitionField, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "fields", tuple(self.fields))
        _check_unique("name", [field.name for field in self.fields], self.spec_id)
        _check_unique("id", [field.field_id for field in self.fields], self.spec_id)

    @property
    def is_unpartitioned(self) -> bool:
        """True without fields, or with void ones only."""
        return all(field.is_void for field in self.fields)

    @property
    def last_assigned_field_id(self) -> int:
        """The highest field id, 999 without fields."""
        return max((field.field_id for field in self.fields), default=FIRST_PARTITION_FIELD_ID - 1)

    @property
    def identity_source_ids(self) -> frozenset[int]:
        """The source columns whose value in a partition is the column's value (rule 53)."""
        return frozenset(
            field.source_id
            for field in self.fields
            if isinstance(field.transform, IdentityTransform)
        )

    def fields_of_source(self, source_id: int) -> tuple[PartitionField, ...]:
        """Return the fields that are made from a column."""
        return tuple(field for field in self.fields if source_id in field.source_ids)

    def field_by_name(self, name: str) -> PartitionField | None:
        """Return the field of exactly that name, if there is one."""
        return next((field for field in self.fields if field.name == name), None)

    def is_equivalent_to(self, other: PartitionSpec) -> bool:
        """True where fields, sources, transforms and names agree in order (rule 73)."""
        return len(self.fields) == len(other.fields) and all(
            mine.is_equivalent_to(theirs) and mine.name == theirs.name
            for mine, theirs in zip(self.fields, other.fields, strict=True)
        )

    def partition_type(self, schema: Schema) -> StructType:
        """Return the struct of partition tuples (rule 91); every field is optional.

        A field whose source column is dropped has the type that its transform always has, or
        unknown.

        Raises:
            ValidationError: where a transform does not take the type of its source.
        """
        return StructType(
            tuple(
                NestedField(field.field_id, field.name, field_result_type(field, schema))
                for field in self.fields
            )
        )

    def partition_path(self, schema: Schema, values: Sequence[Any]) -> str:
        """Return ``name=value/name=value`` of a partition tuple, both sides URL-encoded (rule 307).

        Raises:
            ValidationError: where the tuple has not one value for each field.
        """
        if len(values) != len(self.fields):
            raise ValidationError(
                f"a partition of spec {self.spec_id} has {len(self.fields)} values, "
                f"not {len(values)}"
            )
        return "/".join(
            f"{_url_encoded(field.name)}="
            + _url_encoded(field.transform.human_string(field_result_type(field, schema), value))
            for field, value in zip(self.fields, values, strict=True)
        )

    def check_against(self, schema: Schema) -> None:
        """Every source is a primitive outside of lists and maps that its transform takes.

        Rules 70, 77-80; void fields may name a column that is gone.

        Raises:
            ValidationError: naming the field and what is wrong.
        """
        for field in self.fields:
            if not field.is_void:
                for source_id in field.source_ids:
                    check_source(schema, source_id, field.transform)

    def with_id(self, spec_id: int) -> PartitionSpec:
        """Return the same fields under another id."""
        return replace(self, spec_id=spec_id)

    def fields_to_json(self) -> list[dict[str, Any]]:
        """Return the fields alone, as manifests and v1's ``partition-spec`` hold them."""
        return [field.to_json() for field in self.fields]

    def to_json(self) -> dict[str, Any]:
        """Return the JSON of the spec (rule 199)."""
        return {"spec-id": self.spec_id, "fields": self.fields_to_json()}

    @classmethod
    def from_json(cls, json_value: Any) -> PartitionSpec:
        """Return the spec of its JSON (rule 199).

        Raises:
            InvalidMetadataError: where it is malformed.
        """
        if not isinstance(json_value, Mapping):
            raise InvalidMetadataError(f"{json_value!r} is not a partition spec")
        return cls.from_fields_json(
            json_value.get("fields"), spec_id=integer_of(json_value, "spec-id", "a partition spec")
        )

    @classmethod
    def from_fields_json(cls, fields: Any, *, spec_id: int = 0) -> PartitionSpec:
        """Return the spec of a list of fields; ids that v1 left out count from 1000 (rule 199).

        Raises:
            InvalidMetadataError: where it is malformed.
        """
        if not isinstance(fields, list):
            raise InvalidMetadataError(
                f"the fields of the partition spec {spec_id} are {fields!r}, not a list"
            )
        try:
            return cls(
                spec_id,
                tuple(
                    _field_from_json(field, FIRST_PARTITION_FIELD_ID + position)
                    for position, field in enumerate(fields)
                ),
            )
        except ValidationError as error:
            raise InvalidMetadataError(str(error)) from error

    def __str__(self) -> str:
        return "[" + ", ".join(str(field) for field in self.fields) + "]"


def field_result_type(field: PartitionField, schema: Schema) -> IcebergType:
    """The type of a partition field's values."""
    source = schema.field_or_none(field.source_id)
    if source is None:
        return field.transform.result_type_of_dropped_source()
    return field.transform.result_type(source.field_type)


def check_source(schema: Schema, source_id: int, transform: Transform) -> None:
    """A column may be the source of a transform (rules 70, 77-80)."""
    source = schema.find_field(source_id)
    name = schema.find_column_name(source_id)
    if not source.field_type.is_primitive and not isinstance(transform, VoidTransform):
        raise ValidationError(
            f"{transform}({name}) is not possible: {source.field_type} is not a primitive type"
        )
    if schema.is_inside_collection(source_id):
        raise ValidationError(f"{transform}({name}) is not possible: it is in a list or a map")
    if not transform.can_transform(source.field_type):
        raise ValidationError(
            f"{transform}({name}) is not possible: the column is of type {source.field_type}"
        )


def check_new_fields(schema: Schema, fields: Sequence[PartitionField]) -> None:
    """Names are not those of other columns, and no two fields say the same.

    An identity field may have its own source's name. Of one column there is at most one of year,
    month, day and hour, since the finer one holds the coarser.
    """
    seen: dict[tuple[tuple[int, ...], str], PartitionField] = {}
    for field in fields:
        if not field.name:
            raise ValidationError(f"the partition field [{field}] has no name")
        column = schema.field_or_none(field.name)
        own = isinstance(field.transform, IdentityTransform) or field.is_void
        if column is not None and not (own and column.field_id == field.source_id):
            raise ValidationError(
                f"a partition field cannot be named {field.name!r}: the column of that name is "
                f"not its own value; give another name with '... as name'"
            )
        kind = "time" if isinstance(field.transform, TimeTransform) else str(field.transform)
        held = seen.setdefault((field.source_ids, kind), field)
        if held is not field:
            raise ValidationError(f"the partition fields [{held}] and [{field}] are redundant")


def sources_to_json(source_ids: tuple[int, ...]) -> dict[str, Any]:
    """``source-id`` of one source, ``source-ids`` of several (rule 202)."""
    if len(source_ids) == 1:
        return {"source-id": source_ids[0]}
    return {"source-ids": list(source_ids)}


def sources_from_json(json_value: Mapping[str, Any], holder: str) -> tuple[int, ...]:
    """The source ids of a partition or sort field's JSON."""
    several = json_value.get("source-ids")
    if several is None:
        return (integer_of(json_value, "source-id", holder),)
    if (
        not isinstance(several, list)
        or not several
        or not all(isinstance(i, int) and not isinstance(i, bool) for i in several)
    ):
        raise InvalidMetadataError(
            f"the source ids of {holder} are {several!r}, not a list of ids", field="source-ids"
        )
    return tuple(several)


def transform_from_json(
    json_value: Mapping[str, Any], source_ids: tuple[int, ...], holder: str
) -> Transform:
    """The transform of a partition or sort field's JSON; of several sources, an unknown one."""
    text = text_of(json_value, "transform", holder)
    if len(source_ids) > 1:
        return UnknownTransform(text)
    try:
        return parse_transform(text)
    except ValidationError as error:
        raise InvalidMetadataError(f"the transform of {holder} is wrong: {error}") from error


def integer_of(json_value: Mapping[str, Any], key: str, holder: str) -> int:
    """A whole number of a JSON object, or InvalidMetadataError."""
    value = json_value.get(key)
    if not isinstance(value, int) or isinstance(value, bool):
        raise InvalidMetadataError(f"the {key} of {holder} is {value!r}, not a number", field=key)
    return value


def text_of(json_value: Mapping[str, Any], key: str, holder: str) -> str:
    """A string of a JSON object, or InvalidMetadataError."""
    value = json_value.get(key)
    if not isinstance(value, str):
        raise InvalidMetadataError(f"the {key} of {holder} is {value!r}, not a string", field=key)
    return value


def _field_from_json(json_value: Any, default_id: int) -> PartitionField:
    if not isinstance(json_value, Mapping):
        raise InvalidMetadataError(f"{json_value!r} is not a partition field")
    name = text_of(json_value, "name", "a partition field")
    holder = f"the partition field {name!r}"
    source_ids = sources_from_json(json_value, holder)
    return PartitionField(
        source_ids=source_ids,
        field_id=integer_of(json_value, "field-id", holder)
        if json_value.get("field-id") is not None
        else default_id,
        transform=transform_from_json(json_value, source_ids, holder),
        name=name,
    )


def _check_unique(what: str, values: Sequence[object], spec_id: int) -> None:
    seen: set[object] = set()
    for value in values:
        if value in seen:
            raise ValidationError(
                f"two fields of the partition spec {spec_id} have the {what} {value!r}"
            )
        seen.add(value)


def _url_encoded(text: str) -> str:
    # As Java's URLEncoder: a space becomes '+', '*' stays and '~' does not.
    return quote_plus(text, safe="*").replace("~", "%7E")


UNPARTITIONED = PartitionSpec()
"""The spec without fields, of id 0."""
