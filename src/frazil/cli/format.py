"""Metadata tables as rows of plain values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from frazil.format.metadata import TableMetadata
from frazil.format.metadata.partition_sources import schema_with_sources
from frazil.format.partitions.partitioning import unified_partition_type
from frazil.format.values import coerce


def rows_of(frame: pl.DataFrame) -> list[dict[str, Any]]:
    """The rows of a frame; lists of key and value become dicts."""
    return [
        {name: _plain_value(value, frame.schema[name]) for name, value in row.items()}
        for row in frame.iter_rows(named=True)
    ]


def partition_text(
    metadata: TableMetadata, spec_id: int, partition: Mapping[str, Any] | None
) -> str:
    """A partition as people read it, ``ts_month=2024-01, city=Oslo``."""
    spec = metadata.spec_by_id(spec_id)
    sources = schema_with_sources(metadata)
    names = {
        field.field_id: field.name
        for field in unified_partition_type(metadata.partition_specs, sources).fields
    }
    kinds = spec.partition_type(sources).fields
    parts = []
    for field, kind in zip(spec.fields, kinds, strict=True):
        shown = (partition or {}).get(names.get(field.field_id, field.name))
        value = coerce(kind.field_type, shown)
        parts.append(f"{field.name}={field.transform.human_string(kind.field_type, value)}")
    return ", ".join(parts)


def _plain_value(value: Any, dtype: Any) -> Any:
    if isinstance(dtype, pl.Struct) and value is not None:
        return {field.name: _plain_value(value[field.name], field.dtype) for field in dtype.fields}
    if not isinstance(dtype, pl.List) or value is None:
        return value
    inner = dtype.inner
    if isinstance(inner, pl.Struct) and [field.name for field in inner.fields] == ["key", "value"]:
        return {entry["key"]: entry["value"] for entry in value}
    return [_plain_value(entry, inner) for entry in value]
