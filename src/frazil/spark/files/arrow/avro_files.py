"""Avro data files as Arrow batches, with the ids of their columns (rules 251-254)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, BinaryIO, Final

import fastavro
import pyarrow as pa
from fastavro.read import BLOCK_READERS

from frazil.errors import InvalidDataFileError, UnsupportedError
from frazil.spark.files.layout.footers import columns_of_arrow
from frazil.storage.parquet.field_ids import PARQUET_FIELD_ID, field_id_metadata

_BATCH: Final = 8192


class AvroFile:
    """One Avro data file."""

    def __init__(self, stream: BinaryIO, path: str) -> None:
        try:
            self._reader = fastavro.reader(stream)
        except (ValueError, EOFError, KeyError, IndexError, TypeError) as error:
            raise InvalidDataFileError(f"this is no Avro file: {error}", file=path) from None
        if self._reader.codec not in BLOCK_READERS:
            raise UnsupportedError(f"the Avro codec {self._reader.codec!r} is not known ({path})")
        self._path = path
        schema: Any = self._reader.writer_schema
        if not isinstance(schema, Mapping) or schema.get("type") != "record":
            raise InvalidDataFileError("the Avro schema of a data file is a record", file=path)
        self._named: dict[str, Any] = {}
        self._type = self._arrow_struct(schema)
        self.columns = columns_of_arrow(pa.schema(list(self._type)), PARQUET_FIELD_ID)

    def batches(self) -> Iterator[pa.StructArray]:
        """The rows in order, some thousands at a time, as structs of all columns."""
        records = iter(self._reader)
        while True:
            try:
                rows = list(islice(records, _BATCH))
                if not rows:
                    return
                yield pa.array(rows, self._type)
            except (ValueError, EOFError, KeyError, IndexError, TypeError, pa.ArrowException) as e:
                raise InvalidDataFileError(
                    f"the Avro file is damaged: {e}", file=self._path
                ) from None

    def _arrow_struct(self, schema: Mapping[str, Any]) -> pa.DataType:
        self._remember(schema)
        return pa.struct(
            [self._field(f["name"], f.get("field-id"), f["type"]) for f in schema["fields"]]
        )

    def _field(self, name: str, field_id: Any, schema: Any) -> pa.Field:
        metadata = field_id_metadata(field_id) if isinstance(field_id, int) else None
        return pa.field(name, self._arrow(schema), metadata=metadata)

    def _arrow(self, schema: Any) -> pa.DataType:
        schema = self._resolve(schema)
        if not isinstance(schema, Mapping):
            return self._plain_type(schema)
        logical = schema.get("logicalType")
        kind = schema["type"]
        self._remember(schema)
        if kind == "record":
            return self._arrow_struct(schema)
        if kind == "array" and logical == "map":
            key, value = self._resolve(schema["items"])["fields"]
            return pa.map_(
                self._field("key", key.get("field-id"), key["type"]).with_nullable(False),
                self._field("value", value.get("field-id"), value["type"]),
            )
        if kind == "array":
            return pa.list_(self._field("element", schema.get("element-id"), schema["items"]))
        if kind == "map":
            return pa.map_(
                self._field("key", schema.get("key-id"), "string").with_nullable(False),
                self._field("value", schema.get("value-id"), schema["values"]),
            )
        if logical == "decimal":
            return pa.decimal128(schema["precision"], schema.get("scale", 0))
        if logical == "uuid":
            return pa.binary(16) if kind == "fixed" else pa.string()
        if kind == "fixed":
            return pa.binary(schema["size"])
        if logical in _MOMENTS:
            return pa.timestamp(_MOMENTS[logical], "UTC" if schema.get("adjust-to-utc") else None)
        return _LOGICAL.get(str(logical)) or self._plain_type(kind)

    def _plain_type(self, kind: Any) -> pa.DataType:
        if isinstance(kind, str) and kind in _PLAIN:
            return _PLAIN[kind]
        raise InvalidDataFileError(f"the Avro type {kind!r} is not known", file=self._path)

    def _resolve(self, schema: Any) -> Any:
        """The schema without its union with null (rule 252) and behind a name."""
        if isinstance(schema, list):
            branches = [branch for branch in schema if branch != "null"]
            if len(branches) != 1:
                raise InvalidDataFileError(
                    "an Avro union is not of null and one type", file=self._path
                )
            return self._resolve(branches[0])
        if isinstance(schema, str) and schema in self._named:
            return self._named[schema]
        if isinstance(schema, Mapping) and isinstance(schema.get("type"), Mapping | list):
            return self._resolve(schema["type"])
        return schema

    def _remember(self, schema: Mapping[str, Any]) -> None:
        if "name" in schema:
            self._named[schema["name"]] = schema


_PLAIN: Final = {
    "null": pa.null(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "bytes": pa.binary(),
}
_LOGICAL: Final = {"date": pa.date32(), "time-micros": pa.time64("us")}
_MOMENTS: Final = {
    "timestamp-micros": "us",
    "timestamp-millis": "ms",
    "timestamp-nanos": "ns",
    "local-timestamp-micros": "us",
    "local-timestamp-millis": "ms",
}
