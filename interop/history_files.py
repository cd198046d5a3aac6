"""Data and delete files of random histories, written with PyArrow under field ids."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from history_oracle import Data, Delete, Field, Row, in_schema, leaves, value_at
from pyiceberg.transforms import parse_transform
from pyiceberg.types import DateType, DecimalType, IntegerType, LongType, StringType
from pyiceberg.types import IcebergType as PyIcebergType

from frazil.format.manifests import Content, DataFile
from frazil.format.puffin import PuffinBuilder, deletion_vector_to_bytes

_EPOCH = date(1970, 1, 1)
_DECIMAL = re.compile(r"decimal\((\d+), ?(\d+)\)")
_PATH, _POS = 2147483546, 2147483545


def partition_of(spec: Mapping[str, Any], fields: Sequence[Field], row: Row) -> tuple[Any, ...]:
    """The partition value of a row, as the internal values of Frazil's entries."""
    by_id = {part["id"]: part for part in fields}
    found = []
    for part in spec["fields"]:
        source = by_id[part["source-id"]]
        value = row.get(part["source-id"], source.get("initial-default"))
        if part["transform"] == "void":
            value = None
        elif part["transform"] != "identity":
            transform = parse_transform(part["transform"])
            days = (value - _EPOCH).days if isinstance(value, date) else value
            value = transform.transform(_pyiceberg_type(source["type"]))(days)
        found.append((value - _EPOCH).days if isinstance(value, date) else value)
    return tuple(found)


def _pyiceberg_type(kind: str) -> PyIcebergType:
    decimal = _DECIMAL.fullmatch(kind)
    if decimal:
        return DecimalType(int(decimal[1]), int(decimal[2]))
    types = {"int": IntegerType(), "long": LongType(), "string": StringType(), "date": DateType()}
    return types[kind]


class FileMaker:
    """Writes files into a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._written = 0

    def data(
        self, fields: Sequence[Field], place: tuple[int, Any], rows: Sequence[Row], *, stats: bool
    ) -> Data:
        """A data file of a schema; its rows are of one partition."""
        path = self._path("parquet")
        named = [in_schema(fields, row) for row in rows]
        pq.write_table(pa.Table.from_pylist(named, schema=pa.schema(map(_arrow, fields))), path)
        entry = entry_of(path, place, len(rows), **(_stats(fields, rows) if stats else {}))
        return Data(entry, entry.file_path, place, [as_written(fields, row) for row in rows])

    def positions(self, chosen: Mapping[str, Iterable[int]], data: Data) -> Delete:
        """A position delete file, in the partition of a data file."""
        path = self._path("parquet")
        pairs = sorted((name, place) for name, places in chosen.items() for place in places)
        schema = pa.schema(
            [_with_id("file_path", pa.string(), _PATH), _with_id("pos", pa.int64(), _POS)]
        )
        pq.write_table(
            pa.table([list(column) for column in zip(*pairs, strict=True)], schema), path
        )
        entry = entry_of(
            path,
            data.place,
            len(pairs),
            content=Content.POSITION_DELETES,
            referenced_data_file=data.path if len(chosen) == 1 else None,
        )
        return Delete(entry, data.place, is_global=False, positions=frozenset(pairs))

    def vector(self, places: Iterable[int], data: Data) -> Delete:
        """A deletion vector in a Puffin file of its own."""
        path = self._path("puffin")
        chosen = sorted(places)
        puffin = PuffinBuilder()
        blob = puffin.add_deletion_vector(
            deletion_vector_to_bytes(chosen),
            referenced_data_file=data.path,
            cardinality=len(chosen),
        )
        path.write_bytes(puffin.to_bytes())
        entry = entry_of(
            path,
            data.place,
            len(chosen),
            content=Content.POSITION_DELETES,
            file_format="puffin",
            referenced_data_file=data.path,
            content_offset=blob.offset,
            content_size_in_bytes=blob.length,
        )
        pairs = frozenset((data.path, place) for place in chosen)
        return Delete(entry, data.place, is_global=False, positions=pairs, vector_of=data.path)

    def keys(
        self,
        ways: Sequence[tuple[Field, ...]],
        keys: Iterable[tuple[Any, ...]],
        place: tuple[int, Any],
        *,
        is_global: bool,
        stats: bool,
    ) -> Delete:
        """An equality delete file of some leaves."""
        path = self._path("parquet")
        chosen = sorted(set(keys), key=repr)
        fields = _cut(ways)
        rows: list[Row] = []
        for key in chosen:
            row: Row = {}
            for way, value in zip(ways, key, strict=True):
                inner = row
                for part in way[:-1]:
                    inner = inner.setdefault(part["id"], {})
                inner[way[-1]["id"]] = value
            rows.append(row)
        named = [in_schema(fields, row) for row in rows]
        pq.write_table(pa.Table.from_pylist(named, schema=pa.schema(map(_arrow, fields))), path)
        entry = entry_of(
            path,
            place,
            len(chosen),
            content=Content.EQUALITY_DELETES,
            equality_ids=tuple(way[-1]["id"] for way in ways),
            **(_stats(fields, rows) if stats else {}),
        )
        return Delete(entry, place, is_global, ways=tuple(ways), keys=frozenset(chosen))

    def _path(self, suffix: str) -> Path:
        self._written += 1
        return self._folder / f"{self._written:03}.{suffix}"


def entry_of(path: Path, place: tuple[int, Any], count: int, **more: Any) -> DataFile:
    return DataFile(
        file_path=f"file://{path}",
        record_count=count,
        file_size_in_bytes=path.stat().st_size,
        spec_id=place[0],
        partition=place[1],
        **more,
    )


def as_written(fields: Sequence[Field], row: Row) -> Row:
    """A row with a value for every field of its schema, at any depth."""
    full: Row = {}
    for part in fields:
        value = row[part["id"]] if part["id"] in row else part.get("initial-default")
        if value is not None and isinstance(part["type"], Mapping):
            value = as_written(part["type"]["fields"], value)
        full[part["id"]] = value
    return full


def _with_id(name: str, kind: pa.DataType, field_id: int) -> pa.Field:
    return pa.field(name, kind, metadata={"PARQUET:field_id": str(field_id)})


def _arrow(part: Field) -> pa.Field:
    kind = part["type"]
    if isinstance(kind, Mapping):
        return _with_id(part["name"], pa.struct(list(map(_arrow, kind["fields"]))), part["id"])
    decimal = _DECIMAL.fullmatch(kind)
    types = {
        "boolean": pa.bool_(),
        "int": pa.int32(),
        "long": pa.int64(),
        "float": pa.float32(),
        "double": pa.float64(),
        "date": pa.date32(),
        "string": pa.string(),
    }
    arrow = pa.decimal128(int(decimal[1]), int(decimal[2])) if decimal else types[kind]
    return _with_id(part["name"], arrow, part["id"])


def _cut(ways: Sequence[tuple[Field, ...]]) -> list[Field]:
    """The fields that lead to some leaves, and no others."""
    fields: dict[int, Field] = {}
    below: dict[int, list[tuple[Field, ...]]] = {}
    for way in ways:
        fields.setdefault(way[0]["id"], way[0])
        if len(way) > 1:
            below.setdefault(way[0]["id"], []).append(way[1:])
    return [
        {**part, "type": {"type": "struct", "fields": _cut(below[field_id])}}
        if field_id in below
        else part
        for field_id, part in fields.items()
    ]


_BYTES = {
    "int": lambda v: struct.pack("<i", v),
    "long": lambda v: struct.pack("<q", v),
    "date": lambda v: struct.pack("<i", (v - _EPOCH).days),
    "string": lambda v: v.encode(),
}


def _stats(fields: Sequence[Field], rows: Sequence[Row]) -> dict[str, Any]:
    """Counts of every leaf and bounds where they are simple, as a writer would give them."""
    counts: dict[int, int] = {}
    nulls: dict[int, int] = {}
    lower: dict[int, bytes] = {}
    upper: dict[int, bytes] = {}
    for way in leaves(fields):
        values = [value_at(way, row) for row in rows]
        present = [value for value in values if value is not None]
        field_id, kind = way[-1]["id"], way[-1]["type"]
        counts[field_id], nulls[field_id] = len(values), len(values) - len(present)
        if present and kind in _BYTES:
            lower[field_id], upper[field_id] = (
                _BYTES[kind](min(present)),
                _BYTES[kind](max(present)),
            )
    return {
        "value_counts": counts,
        "null_value_counts": nulls,
        "lower_bounds": lower,
        "upper_bounds": upper,
    }
