"""Manifests as columns hold what fastavro reads, row by row and field by field id."""

from __future__ import annotations

import io
import struct
from collections.abc import Mapping
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from planning_tables import FIXTURES, manifest_files

from ci_share import examples
from frazil.errors import InvalidManifestError, UnsupportedError
from frazil.format.manifests import ManifestContent, ManifestFile
from frazil.format.partitions.partitioning import PartitionSpec
from frazil.format.schema import Schema
from frazil.format.types import LongType, NestedField
from frazil.storage.avro.columns import decode_manifests
from frazil.storage.avro.container import read_container
from frazil.storage.avro.manifest_layout import FILE_FIELDS, MAP_FIELDS

MANIFESTS = list(manifest_files()) if FIXTURES.is_dir() else []
SCHEMA = Schema((NestedField(1, "id", LongType()),))
SPECS = {0: PartitionSpec(0, ())}


def columns_of(manifest: ManifestFile, data: bytes, **asked: Any) -> pl.DataFrame:
    return many_columns_of([(manifest, data)], **asked)[0]


def many_columns_of(files: list[tuple[ManifestFile, bytes]], **asked: Any) -> list[pl.DataFrame]:
    read = [(each, read_container(data, file=each.manifest_path)) for each, data in files]
    decoded = decode_manifests(read, **{"specs": SPECS, "schema": SCHEMA, **asked})
    return [each.entries for each in decoded]


def by_field_id(record: Any, kind: Any) -> Any:
    """A record that fastavro read, keyed by field id."""
    if isinstance(kind, list):
        kind = next((branch for branch in kind if branch != "null"), None)
    if not isinstance(record, dict) or not isinstance(kind, dict):
        return record
    return {
        field.get("field-id"): by_field_id(record[field["name"]], field["type"])
        for field in kind["fields"]
    }


def plain(value: Any) -> Any:
    """A value without its Python dress: dates as days, timestamps as microseconds."""
    match value:
        case datetime():
            epoch = datetime(1970, 1, 1, tzinfo=value.tzinfo)
            delta = value - epoch
            return (delta.days * 86_400 + delta.seconds) * 1_000_000 + delta.microseconds
        case date():
            return (value - date(1970, 1, 1)).days
        case _ if hasattr(value, "hour"):
            whole = value.hour * 3600 + value.minute * 60 + value.second
            return whole * 1_000_000 + value.microsecond
        case _:
            return value


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: f"{path.parts[-4]}-{path.name[:12]}")
def test_every_fixture_manifest_reads_as_fastavro_reads_it(path: Path) -> None:
    """Rules 91, 101, 107, 114-116; partition values by the Avro types of their writer."""
    with path.open("rb") as stream:
        reader = fastavro.reader(stream)
        kind = reader.writer_schema
        rows = [by_field_id(row, kind) for row in reader]
    manifest = ManifestFile(
        manifest_path=str(path),
        manifest_length=path.stat().st_size,
        added_snapshot_id=77,
        sequence_number=5,
    )
    of_v1 = any(row[0] == 0 and row.get(3) is None for row in rows)
    if of_v1:
        # Existing files without numbers: only a list that says 0 may hold them (rule 135).
        with pytest.raises(InvalidManifestError, match="sequence number"):
            columns_of(manifest, path.read_bytes())
        manifest = replace(manifest, sequence_number=0)
    frame = columns_of(manifest, path.read_bytes())
    assert len(frame) == len(rows)
    for row, entry in zip(frame.iter_rows(named=True), rows, strict=True):
        file = entry[2]
        for field_id, name in {**FILE_FIELDS}.items():
            expected = file.get(field_id)
            if name == "file_format":
                expected = expected.lower()
            if name == "content":
                expected = expected or 0
            assert row[name] == expected, name
        for field_id, name in MAP_FIELDS.items():
            pairs = file.get(field_id)
            found = None if pairs is None else [{"key": k, "value": v} for k, v in _items(pairs)]
            assert row[name] == found, name
        for field_id, expected in (file.get(102) or {}).items():
            found = row[f"partition.{field_id}"]
            assert found == plain(expected), field_id
        assert row["status"] == entry[0]
        assert row["snapshot_id"] == (77 if entry.get(1) is None else entry[1])
        inherited = 0 if of_v1 else 5 if entry[0] == 1 else None
        assert row["sequence_number"] == (inherited if entry.get(3) is None else entry[3])
        assert row["file_sequence_number"] == (inherited if entry.get(4) is None else entry[4])


def _items(pairs: list[Any]) -> list[tuple[Any, Any]]:
    return [(pair["key"], pair["value"]) for pair in pairs]


def _avro_map(key_id: int, value_id: int, value: str) -> list[Any]:
    pair = [
        {"name": "key", "type": "int", "field-id": key_id},
        {"name": "value", "type": value, "field-id": value_id},
    ]
    items = {"type": "record", "name": f"k{key_id}_v{value_id}", "fields": pair}
    return ["null", {"type": "array", "logicalType": "map", "items": items}]


def _entry_schema(**changed: Any) -> dict[str, Any]:
    file_fields = {
        "content": (134, "int"),
        "file_path": (100, "string"),
        "file_format": (101, "string"),
        "partition": (102, {"type": "record", "name": "r102", "fields": []}),
        "record_count": (103, "long"),
        "file_size_in_bytes": (104, "long"),
        "column_sizes": (108, _avro_map(117, 118, "long")),
        "null_value_counts": (110, _avro_map(121, 122, "long")),
        "lower_bounds": (125, _avro_map(126, 127, "bytes")),
        "upper_bounds": (128, _avro_map(129, 130, "bytes")),
        "first_row_id": (142, ["null", "long"]),
        **changed,
    }
    data_file = {
        "type": "record",
        "name": "r2",
        "fields": [{"name": n, "type": t, "field-id": i} for n, (i, t) in file_fields.items()],
    }
    return {
        "type": "record",
        "name": "manifest_entry",
        "fields": [
            {"name": "status", "type": "int", "field-id": 0},
            {"name": "snapshot_id", "type": ["null", "long"], "field-id": 1},
            {"name": "sequence_number", "type": ["null", "long"], "field-id": 3},
            {"name": "file_sequence_number", "type": ["null", "long"], "field-id": 4},
            {"name": "data_file", "type": data_file, "field-id": 2},
        ],
    }


def _manifest_bytes(rows: list[dict[str, Any]], codec: str = "deflate", **changed: Any) -> bytes:
    out = io.BytesIO()
    fastavro.writer(out, _entry_schema(**changed), rows, codec=codec, sync_interval=500)
    return out.getvalue()


def _row(number: int, maps: Mapping[str, Any] | None = None, **stated: Any) -> dict[str, Any]:
    file = {
        "content": 0,
        "file_path": f"f{number}",
        "file_format": "PARQUET",
        "partition": {},
        "record_count": 10,
        "file_size_in_bytes": 100,
        "first_row_id": None,
    }
    for name in ("column_sizes", "null_value_counts", "lower_bounds", "upper_bounds"):
        found = (maps or {}).get(name)
        file[name] = None if found is None else [{"key": k, "value": v} for k, v in found.items()]
    entry = {"status": 1, "snapshot_id": None, "sequence_number": None}
    entry = {**entry, "file_sequence_number": None, "data_file": {**file, **stated.pop("file", {})}}
    return {**entry, **stated}


def _decode(data: bytes, **stated: Any) -> pl.DataFrame:
    asked = {key: stated.pop(key) for key in ("statistics", "values") if key in stated}
    manifest = ManifestFile(
        **{"manifest_path": "m.avro", "manifest_length": len(data), "sequence_number": 5, **stated}
    )
    return columns_of(manifest, data, **asked)


def test_row_ids_are_inherited_in_the_order_of_the_manifest() -> None:
    """Rule 153: an existing file keeps its id, a deleted one has none to inherit."""
    rows = [
        _row(0, status=0, sequence_number=1, file_sequence_number=1, file={"first_row_id": 800}),
        _row(1, file={"record_count": 50}),
        _row(2, status=2, snapshot_id=3, sequence_number=1, file_sequence_number=1),
        _row(3),
    ]
    data = _manifest_bytes(rows)
    assert _decode(data, first_row_id=1000)["first_row_id"].to_list() == [800, 1000, None, 1050]
    assert _decode(data)["first_row_id"].to_list() == [800, None, None, None]
    deletes = _decode(data, first_row_id=1000, content=ManifestContent.DELETES)
    assert deletes["first_row_id"].to_list() == [800, None, None, None]


def test_many_manifests_decode_as_each_alone() -> None:
    """What they inherit is each one's own, and row ids start anew in each."""
    files = []
    for index in range(5):
        data = _manifest_bytes([_row(10 * index + j) for j in range(index)])
        files.append(
            (
                ManifestFile(
                    manifest_path=f"m{index}",
                    manifest_length=len(data),
                    sequence_number=index + 1,
                    added_snapshot_id=100 + index,
                    first_row_id=None if index == 3 else 1000 * index,
                ),
                data,
            )
        )
    together = many_columns_of(files)
    for file, frame in zip(files, together, strict=True):
        [alone] = many_columns_of([file])
        assert frame.equals(alone)
    assert together[4]["first_row_id"].to_list() == [4000, 4010, 4020, 4030]
    assert together[3]["first_row_id"].to_list() == [None] * 3
    assert together[2]["snapshot_id"].to_list() == [102, 102]


def test_an_error_in_one_of_many_names_its_file() -> None:
    good, bad = _manifest_bytes([_row(0)]), _manifest_bytes([_row(1, status=7)])
    files = [
        (ManifestFile(manifest_path=name, manifest_length=1, sequence_number=1), data)
        for name, data in (("good.avro", good), ("bad.avro", bad), ("good2.avro", good))
    ]
    with pytest.raises(InvalidManifestError, match=r"7 is not 0, 1 or 2.*bad\.avro"):
        many_columns_of(files)


bounds = st.dictionaries(st.integers(1, 4), st.binary(max_size=9), max_size=4)


@settings(
    max_examples=examples(30), deadline=None, suppress_health_check=[HealthCheck.data_too_large]
)
@given(
    usual=st.tuples(bounds, st.dictionaries(st.integers(1, 4), st.integers(0, 2**40))),
    odd=st.lists(st.tuples(st.integers(0, 299), st.none() | bounds), max_size=3),
    wanted=st.sets(st.integers(1, 5), min_size=1),
)
def test_values_of_single_columns_are_right_whatever_the_layout(
    usual: tuple[Any, Any], odd: list[tuple[int, Any]], wanted: set[int]
) -> None:
    """Manifests whose maps hold the same keys everywhere take a shorter way, others must not."""
    maps = {"lower_bounds": usual[0], "upper_bounds": usual[0], "null_value_counts": usual[1]}
    rows = [{**maps, "column_sizes": {1: number}} for number in range(300)]
    for at, changed in odd:
        rows[at]["lower_bounds"] = changed
    data = _manifest_bytes([_row(i, each) for i, each in enumerate(rows)])
    values = dict.fromkeys(maps, wanted)
    frame = _decode(data, statistics=(), values=values)
    for name in maps:
        for key in wanted:
            expected = [(row[name] or {}).get(key) for row in rows]
            assert frame[f"{name}.{key}"].to_list() == expected
    assert frame["file_path"].to_list() == [f"f{i}" for i in range(300)]


def test_of_a_key_that_a_map_holds_twice_the_last_counts() -> None:
    """As in a Java map, which is what the entries are of."""
    row = _row(0)
    pairs = [(1, b"first"), (2, b"other"), (1, b"last")]
    row["data_file"]["lower_bounds"] = [{"key": key, "value": value} for key, value in pairs]
    data = _manifest_bytes([row, _row(1), _row(2, {"lower_bounds": {}})])
    frame = _decode(data, statistics=(), values={"lower_bounds": {1, 2, 3}})
    found = [frame[f"lower_bounds.{key}"].to_list() for key in (1, 2, 3)]
    assert found == [[b"last", None, None], [b"other", None, None], [None, None, None]]


@pytest.mark.parametrize("codec", ["null", "deflate", "bzip2", "xz", "zstandard", "snappy"])
def test_every_codec(codec: str) -> None:
    """Rule 105; fastavro writes, the last two are read through pyarrow."""
    data = _manifest_bytes([_row(i) for i in range(100)], codec)
    assert _decode(data)["file_path"].to_list() == [f"f{i}" for i in range(100)]


def test_names_and_order_of_the_writer_do_not_matter() -> None:
    """Rules 52, 127: fields are found by id; unions may put null last; equality ids may be long."""
    data_file = {
        "type": "record",
        "name": "whatever",
        "fields": [
            {"name": "x_size", "type": ["long", "null"], "field-id": 104},
            {
                "name": "x_ids",
                "type": [{"type": "array", "items": "long"}, "null"],
                "field-id": 135,
            },
            {"name": "x_new", "type": {"type": "map", "values": "string"}, "field-id": 999},
            {"name": "x_rows", "type": "long", "field-id": 103},
            {"name": "x_part", "field-id": 102, "type": ["null", _partition()]},
            {"name": "x_path", "type": "string", "field-id": 100},
            {"name": "x_format", "type": "string", "field-id": 101},
        ],
    }
    schema = {
        "type": "record",
        "name": "entry",
        "fields": [
            {"name": "x_file", "type": ["null", data_file], "field-id": 2},
            {"name": "x_status", "type": ["null", "int"], "field-id": 0},
        ],
    }
    row = {
        "x_size": 9,
        "x_ids": [1, 2],
        "x_new": {"a": "b"},
        "x_rows": 3,
        "x_part": {"p": Decimal("-1.25"), "u": "f79c3e09-677c-4bbd-a479-3f349cb785e7"},
        "x_path": "f",
        "x_format": "orc",
    }
    out = io.BytesIO()
    fastavro.writer(out, schema, [{"x_file": row, "x_status": 1}])
    found = _decode(out.getvalue()).to_dicts()[0]
    assert found["file_size_in_bytes"] == 9
    assert found["equality_ids"] == [1, 2]
    assert (found["record_count"], found["file_path"], found["file_format"]) == (3, "f", "orc")
    assert found["partition.1000"] == Decimal("-1.25")
    assert found["partition.1001"].hex() == "f79c3e09677c4bbda4793f349cb785e7"
    assert found["lower_bounds"] is None


def _partition() -> dict[str, Any]:
    decimal = {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}
    return {
        "type": "record",
        "name": "p",
        "fields": [
            {"name": "p", "type": ["null", decimal], "field-id": 1000},
            {"name": "u", "type": {"type": "string", "logicalType": "uuid"}, "field-id": 1001},
        ],
    }


def _partitioned(schema: dict[str, Any], partition: dict[str, Any]) -> bytes:
    return _manifest_bytes([_row(0, file={"partition": partition})], partition=(102, schema))


def _of_ids(first: int, second: int) -> dict[str, Any]:
    one, other = _partition()["fields"]
    fields = [{**one, "field-id": first}, {**other, "field-id": second}]
    return {**_partition(), "fields": fields}


HUGE = {"p": Decimal(10**39), "u": "f79c3e09-677c-4bbd-a479-3f349cb785e7"}
WIDE = {"type": "bytes", "logicalType": "decimal", "precision": 60, "scale": 0}
GOOD = _manifest_bytes([_row(i, {"lower_bounds": {1: b"abcdefgh"}}) for i in range(40)], "null")


@pytest.mark.parametrize(
    ("data", "error", "message"),
    [
        (b"", InvalidManifestError, "not an Avro file"),
        (b"PAR1 and more", InvalidManifestError, "not an Avro file"),
        (b"AGS1 and more", UnsupportedError, "encrypted"),
        (GOOD[:-100], InvalidManifestError, "cut short"),
        (GOOD[:-1] + bytes([GOOD[-1] ^ 1]), InvalidManifestError, "sync marker"),
        (GOOD[:100], InvalidManifestError, "damaged"),
        (
            GOOD.replace(b"manifest_entry", b"manifest_entr\xff"),
            InvalidManifestError,
            "not JSON|malformed",
        ),
        (
            _manifest_bytes([_row(0, file={"content": 9})]),
            InvalidManifestError,
            "9 is not 0, 1 or 2",
        ),
        (
            _manifest_bytes([_row(0, status=0)]),
            InvalidManifestError,
            "existing file has no sequence number",
        ),
        (
            _manifest_bytes(
                [_row(0, file={"file_path": None})], file_path=(100, ["null", "string"])
            ),
            InvalidManifestError,
            "file_path",
        ),
        (
            _partitioned(_of_ids(1000, 1000), {**HUGE, "p": Decimal(1)}),
            InvalidManifestError,
            "two partition fields have the id 1000",
        ),
        (
            _partitioned(
                {**_partition(), "fields": [{"name": "p", "type": WIDE, "field-id": 1000}]},
                {"p": HUGE["p"]},
            ),
            InvalidManifestError,
            "partition values .* do not fit",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_not_a_manifest_is_a_typed_error_with_the_file(
    data: bytes, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message) as raised:
        _decode(data)
    assert "m.avro" in str(raised.value)


def test_wrong_partition_spec_is_named() -> None:
    with pytest.raises(InvalidManifestError, match="partition spec 4"):
        _decode(_manifest_bytes([_row(0)]), partition_spec_id=4)


def test_bounds_of_other_lengths_become_values_by_their_length() -> None:
    """Rule 46: what a column was promoted from."""
    maps = {"lower_bounds": {1: struct.pack("<i", -7)}}
    frame = _decode(_manifest_bytes([_row(0, maps)]), values={"lower_bounds": {1}})
    assert frame["lower_bounds.1"].to_list() == [struct.pack("<i", -7)]
