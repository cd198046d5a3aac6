"""New delete files read without Frazil: by PyArrow, and by the layout of Puffin files."""

from __future__ import annotations

import json
import struct
import zlib
from pathlib import Path

import pyarrow.parquet as pq
from pyroaring import BitMap64

PATH, POSITION = 2147483546, 2147483545


def local(path: str) -> Path:
    """The file of a path in metadata."""
    return Path(path.removeprefix("file://"))


def rows_of(file) -> list[tuple[str, int]]:
    """The (data file, position) rows of a position delete file or a vector, checked as such."""
    if file.file_format == "puffin":
        return _of_vector(file)
    parquet = pq.ParquetFile(local(file.file_path))
    schema = parquet.schema_arrow
    ids = {f.name: int(f.metadata[b"PARQUET:field_id"]) for f in schema}
    assert ids == {"file_path": PATH, "pos": POSITION}
    assert [f.nullable for f in schema] == [False, False]
    table = parquet.read()
    rows = list(zip(table["file_path"].to_pylist(), table["pos"].to_pylist(), strict=True))
    by_bytes = [(path.encode(), position) for path, position in rows]
    assert by_bytes == sorted(set(by_bytes))
    paths, positions = [p for p, _ in rows], [n for _, n in rows]
    assert file.content == 1
    assert file.record_count == len(rows)
    assert file.file_size_in_bytes == local(file.file_path).stat().st_size
    bounds = {PATH: (min(paths), max(paths)), POSITION: (min(positions), max(positions))}
    lower, upper = dict(file.lower_bounds), dict(file.upper_bounds)
    assert (lower[PATH].decode(), upper[PATH].decode()) == bounds[PATH]
    assert (*struct.unpack("<q", lower[POSITION]), *struct.unpack("<q", upper[POSITION])) == bounds[
        POSITION
    ]
    assert file.value_counts == {PATH: len(rows), POSITION: len(rows)}
    assert file.null_value_counts == {PATH: 0, POSITION: 0}
    assert set(file.column_sizes) == {PATH, POSITION}
    assert file.referenced_data_file == (paths[0] if len(set(paths)) == 1 else None)
    assert file.sort_order_id is None
    return rows


def _of_vector(file) -> list[tuple[str, int]]:
    data = local(file.file_path).read_bytes()
    assert len(data) == file.file_size_in_bytes
    assert data[:4] == data[-4:] == b"PFA1"
    (size,) = struct.unpack("<i", data[-12:-8])
    blobs = json.loads(data[-12 - size : -12])["blobs"]
    (blob,) = [b for b in blobs if b["offset"] == file.content_offset]
    assert blob["length"] == file.content_size_in_bytes
    assert blob["type"] == "deletion-vector-v1"
    assert "compression-codec" not in blob
    assert (blob["snapshot-id"], blob["sequence-number"]) == (-1, -1)
    assert blob["properties"] == {
        "referenced-data-file": file.referenced_data_file,
        "cardinality": str(file.record_count),
    }
    content = data[blob["offset"] : blob["offset"] + blob["length"]]
    assert struct.unpack(">I", content[:4]) == (len(content) - 8,)
    assert content[4:8] == b"\xd1\xd3\x39\x64"
    assert struct.unpack(">I", content[-4:]) == (zlib.crc32(content[4:-4]),)
    positions = list(BitMap64.deserialize(content[8:-4]))
    assert len(positions) == file.record_count
    assert file.content == 1
    return [(file.referenced_data_file, position) for position in positions]


def places_of(files) -> dict[str, set[int]]:
    """The positions that files say are deleted, by data file; no place is in two of them."""
    found: dict[str, set[int]] = {}
    for file in files:
        for path, position in rows_of(file):
            assert position not in found.setdefault(path, set())
            found[path].add(position)
    return found
