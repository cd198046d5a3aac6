"""Files that name other files, with another prefix in those names.

Everything else in them stays: records of manifests are read and written with their own schema.
"""

from __future__ import annotations

import gzip
import io as byte_streams
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import fastavro
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from frazil.errors import InvalidFormatError, UnsupportedError, ValidationError
from frazil.format.puffin.files import PuffinBuilder, read_puffin_footer
from frazil.storage.avro.entry_values import FASTAVRO_FAILURES
from frazil.storage.parquet.footer import read_metadata

_PATH_COLUMN: Final = 2147483546
"""The id of `file_path` in position delete files (rule 149)."""

_GZIP: Final = b"\x1f\x8b"
_REFERENCED: Final = "referenced-data-file"


@dataclass(frozen=True, slots=True)
class PathPrefix:
    """What paths begin with, and what takes its place.

    Attributes:
        source: without a slash at its end.
        target: without a slash at its end.
    """

    source: str
    target: str

    def target_of(self, path: str) -> str:
        """Return the path below the target."""
        return f"{self.target}{self.tail(path)}"

    def tail(self, path: str) -> str:
        """Return what follows the prefix, which begins with a slash."""
        if path != self.source and not path.startswith(f"{self.source}/"):
            raise ValidationError(f"the path {path} does not begin with {self.source}")
        return path[len(self.source) :]


@dataclass(frozen=True, slots=True)
class RewrittenDeletes:
    """A delete file with other paths in it.

    Attributes:
        data: its bytes.
        vectors: where each vector of a Puffin file lies and its length, by where it lay before.
    """

    data: bytes
    vectors: Mapping[int, tuple[int, int]]


def rewritten_metadata(data: bytes, prefix: PathPrefix) -> bytes:
    """Return a metadata file that is of a table below the target; compressed as it was."""
    is_packed = data.startswith(_GZIP)
    found = json.loads(gzip.decompress(data) if is_packed else data)
    found["location"] = prefix.target_of(found["location"].rstrip("/"))
    found["properties"] = {
        name: prefix.target_of(value) if _is_below(prefix, value) else value
        for name, value in (found.get("properties") or {}).items()
    }
    for holder, name in (
        ("snapshots", "manifest-list"),
        ("metadata-log", "metadata-file"),
        ("statistics", "statistics-path"),
        ("partition-statistics", "statistics-path"),
    ):
        for entry in found.get(holder) or ():
            if "manifests" in entry:
                raise UnsupportedError(
                    "a snapshot of version 1 names its manifests without a list: rewrite the "
                    "table's manifests before its paths"
                )
            entry[name] = prefix.target_of(entry[name])
    written = json.dumps(found, separators=(",", ":"), ensure_ascii=False).encode()
    return gzip.compress(written, mtime=0) if is_packed else written


def rewritten_manifest_list(data: bytes, prefix: PathPrefix, lengths: Mapping[str, int]) -> bytes:
    """Return a manifest list that names manifests below the target.

    `lengths` are those of the manifests with other paths in them, by where they were.
    """

    def change(row: dict[str, Any]) -> None:
        row["manifest_length"] = lengths[row["manifest_path"]]
        row["manifest_path"] = prefix.target_of(row["manifest_path"])

    return _rewritten_avro(data, change)


def rewritten_manifest(
    data: bytes, prefix: PathPrefix, deletes: Mapping[str, RewrittenDeletes]
) -> bytes:
    """Return a manifest that names files below the target.

    `deletes` are delete files with other paths in them, by where they were.
    """

    def change(entry: dict[str, Any]) -> None:
        file = entry["data_file"]
        rewritten = deletes.get(file["file_path"])
        if rewritten is not None:
            file["file_size_in_bytes"] = len(rewritten.data)
            vector = rewritten.vectors.get(file.get("content_offset") or -1)
            if vector is not None:
                file["content_offset"], file["content_size_in_bytes"] = vector
        file["file_path"] = prefix.target_of(file["file_path"])
        if file.get("referenced_data_file") is not None:
            file["referenced_data_file"] = prefix.target_of(file["referenced_data_file"])
        if file.get("content") == 1:
            _rewrite_bounds(file, prefix)

    return _rewritten_avro(data, change)


def rewritten_deletes(data: bytes, file_format: str, prefix: PathPrefix) -> RewrittenDeletes:
    """Return a position delete file, or a file of vectors, for data files below the target."""
    match file_format.lower():
        case "parquet":
            return RewrittenDeletes(_rewritten_positions(data, prefix), {})
        case "puffin":
            return _rewritten_puffin(data, prefix)
    raise UnsupportedError(
        f"position deletes in {file_format} cannot be rewritten: rewrite them as Parquet first, by "
        "rewrite_position_deletes(rewrite_all=True)"
    )


def _rewritten_avro(data: bytes, change: Any) -> bytes:
    try:
        reader = fastavro.reader(byte_streams.BytesIO(data))
        schema, header = reader.writer_schema, dict(reader.metadata)
        rows: list[Any] = list(reader)
    except (*FASTAVRO_FAILURES, OverflowError) as error:
        # Of dates past the year 9999, too.
        raise InvalidFormatError(f"a manifest or its list cannot be read: {error}") from error
    for row in rows:
        change(row)
    codec = header.get("avro.codec", "null")
    kept = {name: value for name, value in header.items() if not name.startswith("avro.")}
    if schema is None:
        raise InvalidFormatError("the Avro file has no schema")
    stream = byte_streams.BytesIO()
    fastavro.writer(stream, schema, rows, codec=codec, metadata=kept)
    return stream.getvalue()


def _rewrite_bounds(file: dict[str, Any], prefix: PathPrefix) -> None:
    """Bounds of paths, or none where a bound is cut or of another prefix."""
    for name in ("lower_bounds", "upper_bounds"):
        bounds = file.get(name)
        if not bounds:
            continue
        moved = []
        for pair in bounds:
            if pair["key"] != _PATH_COLUMN:
                moved.append(pair)
                continue
            path = bytes(pair["value"]).decode("utf-8", "replace")
            if _is_below(prefix, path):
                moved.append({"key": pair["key"], "value": prefix.target_of(path).encode()})
        file[name] = moved


def _rewritten_positions(data: bytes, prefix: PathPrefix) -> bytes:
    file = pa.BufferReader(data)
    source = pq.ParquetFile(file, metadata=read_metadata(file))
    schema = source.schema_arrow
    [place] = [
        index
        for index, field in enumerate(schema)
        if (field.metadata or {}).get(b"PARQUET:field_id") == str(_PATH_COLUMN).encode()
        or field.name == "file_path"
    ][:1]
    stream = byte_streams.BytesIO()
    with pq.ParquetWriter(stream, schema, compression="zstd") as writer:
        for batch in source.iter_batches():
            paths = pl.Series("path", pl.from_arrow(batch.column(place)))
            for wrong in paths.filter(~paths.str.starts_with(f"{prefix.source}/")).head(1):
                prefix.tail(wrong)
            tails = paths.str.strip_prefix(prefix.source)
            moved = (prefix.target + tails).to_arrow(compat_level=pl.CompatLevel.oldest())
            columns = list(batch.columns)
            columns[place] = moved.cast(schema.field(place).type)
            writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=schema))
    return stream.getvalue()


def _rewritten_puffin(data: bytes, prefix: PathPrefix) -> RewrittenDeletes:
    footer = read_puffin_footer(data)
    builder = PuffinBuilder(properties=footer.properties)
    vectors = {}
    for blob in footer.blobs:
        properties = dict(blob.properties)
        if _REFERENCED in properties:
            properties[_REFERENCED] = prefix.target_of(properties[_REFERENCED])
        added = builder.add(
            blob.type,
            data[blob.offset : blob.offset + blob.length],
            fields=blob.fields,
            snapshot_id=blob.snapshot_id,
            sequence_number=blob.sequence_number,
            compression_codec=blob.compression_codec,
            properties=properties,
        )
        vectors[blob.offset] = (added.offset, added.length)
    return RewrittenDeletes(builder.to_bytes(), vectors)


def _is_below(prefix: PathPrefix, path: str) -> bool:
    return path == prefix.source or path.startswith(f"{prefix.source}/")
