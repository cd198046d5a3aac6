"""Manifest entries on their way from executors to the driver: one line of JSON each."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from functools import partial
from typing import Any

from frazil.format.manifests import Content, DataFile
from frazil.format.types import StructType
from frazil.format.values import from_bytes, to_bytes
from frazil.spark.session.tasks import Wire

_BYTES = ("lower_bounds", "upper_bounds")
_COUNTS = ("column_sizes", "value_counts", "null_value_counts", "nan_value_counts")


def entry_wire(partition_type: StructType) -> Wire[DataFile]:
    """Return how entries with such partitions come from executors."""
    return Wire(
        partial(entry_to_text, partition_type=partition_type),
        partial(entry_from_text, partition_type=partition_type),
    )


def entry_to_text(entry: DataFile, partition_type: StructType) -> str:
    """An entry as JSON; bounds and partition values as hex of their single-value bytes."""
    text: dict[str, Any] = {f.name: getattr(entry, f.name) for f in fields(entry)}
    text["partition"] = [
        None if value is None else to_bytes(field.field_type, value).hex()
        for field, value in zip(partition_type.fields, entry.partition, strict=True)
    ]
    for name in _BYTES:
        bounds: Mapping[int, bytes] | None = text[name]
        text[name] = bounds and {key: value.hex() for key, value in bounds.items()}
    return json.dumps({key: value for key, value in text.items() if value is not None})


def entry_from_text(text: str, partition_type: StructType) -> DataFile:
    """The entry of `entry_to_text`."""
    found: dict[str, Any] = json.loads(text)
    found["content"] = Content(found["content"])
    found["partition"] = tuple(
        None if value is None else from_bytes(field.field_type, bytes.fromhex(value))
        for field, value in zip(partition_type.fields, found["partition"], strict=True)
    )
    for name in _BYTES:
        if name in found:
            found[name] = {int(key): bytes.fromhex(value) for key, value in found[name].items()}
    for name in _COUNTS:
        if name in found:
            found[name] = {int(key): value for key, value in found[name].items()}
    for name in ("split_offsets", "equality_ids"):
        if name in found:
            found[name] = tuple(found[name])
    return DataFile(**found)
