"""Plans that are made in parts: those that are made at once, in little memory."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from planning_tables import manifest_of, open_table, snapshot_of, table_lines

from frazil.format.manifests import (
    Content,
    DataFile,
    ManifestContent,
    ManifestFile,
)
from frazil.format.metadata import TableMetadata
from frazil.format.new_table import new_table_metadata
from frazil.format.partitions.partitioning import PartitionField, PartitionSpec
from frazil.format.partitions.transforms import parse_transform
from frazil.format.predicates import bind, parse_predicate
from frazil.format.schema import Schema
from frazil.format.snapshots import Snapshot
from frazil.format.types import LongType, NestedField
from frazil.format.values import to_bytes
from frazil.planning import load
from frazil.planning.cache import ManifestCache
from frazil.planning.plan import KeptFiles, files_of_manifests, plan
from frazil.planning.scan_plan import ScanPlan
from frazil.planning.scan_report import PlannedScan
from frazil.spark.read.pruning import _from_text, _to_text
from frazil.storage.files import FileIO

SCHEMA = Schema((NestedField(1, "part", LongType()), NestedField(2, "id", LongType())))
BY_PART = PartitionSpec(0, (PartitionField((1,), 1000, parse_transform("identity"), "part"),))
BY_BUCKET = PartitionSpec(1, (PartitionField((2,), 1001, parse_transform("bucket[4]"), "b"),))
LINES = [line for line in table_lines() if "lineitem" not in line["table"]]


def one_by_one(loader: Any, pruner: Any, manifests: Sequence[ManifestFile], **of: Any) -> Any:
    """Each manifest on its own, as other processes send what they keep."""
    parts: list[KeptFiles] = []
    pruner = pickle.loads(pickle.dumps(pruner))
    for first, manifest in enumerate(manifests):
        kept = files_of_manifests(loader, pruner, [manifest], first=first, **of)
        parts.append(_from_text(_to_text(kept)))
    return parts


def assert_same(metadata: TableMetadata, found: ScanPlan, expected: ScanPlan) -> None:
    assert found.files.schema == expected.files.schema
    # Which number a scope has says nothing.
    for one, other in ((found.files, expected.files), (found.deletes, expected.deletes)):
        assert one.drop("scope").equals(other.drop("scope"))
        apart = {*zip(one["scope"], other["scope"], strict=True)}
        assert len(apart) == one["scope"].n_unique() == other["scope"].n_unique()
    assert found.pairs.equals(expected.pairs)
    assert found.skipped == expected.skipped
    assert found.residual == expected.residual
    assert found.summary() == expected.summary()
    reports = [
        PlannedScan(metadata=metadata, plan=each, columns={}, nanoseconds=0).report("t")
        for each in (found, expected)
    ]
    assert reports[0] == reports[1]


def assert_made_in_parts(
    monkeypatch: pytest.MonkeyPatch,
    metadata: TableMetadata,
    snapshot: Snapshot | None,
    io: FileIO,
    where: str | None,
) -> ScanPlan:
    bound = None if where is None else bind(parse_predicate(where), metadata.schema)

    def planned(**how: Any) -> ScanPlan:
        return plan(metadata, snapshot, io, where=bound, cache=ManifestCache(), **how)

    expected = planned()
    assert_same(metadata, planned(elsewhere=one_by_one), expected)
    with monkeypatch.context() as small:
        small.setattr(load, "FILES_AT_ONCE", 1)
        assert_same(metadata, planned(), expected)
    return expected


@pytest.mark.parametrize("line", LINES, ids=lambda line: line["table"])
def test_a_fixture_plan_made_in_parts_is_that_made_at_once(
    monkeypatch: pytest.MonkeyPatch, line: dict[str, Any]
) -> None:
    table = open_table(line)
    metadata = table.metadata
    columns = [f for f in metadata.schema.fields if isinstance(f.field_type, LongType)]
    asked = [None, *(f"{field.name} > 10" for field in columns[:1])]
    for where in asked:
        assert_made_in_parts(monkeypatch, metadata, metadata.current_snapshot, table.io, where)


def data_file(
    number: int, part: int, *, spec_id: int = 0, rows: int = 10, content: int = 0
) -> DataFile:
    low, high = (to_bytes(LongType(), value) for value in (number * 10, number * 10 + 9))
    return DataFile(
        content=Content(content),
        file_path=f"file:///t/{number}-{content}.parquet",
        partition=(part,),
        spec_id=spec_id,
        record_count=rows,
        file_size_in_bytes=100 + number,
        lower_bounds={2: low},
        upper_bounds={2: high},
        value_counts={2: rows},
        null_value_counts={2: 0},
        equality_ids=(2,) if content == Content.EQUALITY_DELETES else None,
    )


@pytest.fixture
def two_specs(tmp_path: Path) -> tuple[TableMetadata, Snapshot, FileIO]:
    """Files of two specs in turns, an empty one, and deletes of each kind."""
    io = FileIO()
    metadata = new_table_metadata(SCHEMA, BY_PART, location=f"file://{tmp_path}", format_version=2)
    metadata = replace(metadata, partition_specs=(BY_PART, BY_BUCKET))
    written = [
        (0, ManifestContent.DATA, [data_file(0, 1), data_file(1, 2), data_file(2, 3, rows=0)]),
        (1, ManifestContent.DATA, [data_file(3, 0, spec_id=1), data_file(4, 3, spec_id=1)]),
        (0, ManifestContent.DATA, [data_file(5, 1), data_file(6, 2)]),
        (0, ManifestContent.DELETES, [data_file(7, 1, content=1)]),
        (0, ManifestContent.DELETES, [data_file(0, 2, content=2)]),
    ]
    manifests = [
        manifest_of(
            io, metadata, f"m{number}", files, spec=(BY_PART, BY_BUCKET)[spec_id], content=content
        )
        for number, (spec_id, content, files) in enumerate(written)
    ]
    # The deletes are newer than the files.
    snapshot = snapshot_of(io, metadata, manifests, sequence_number=2)
    return metadata, snapshot, io


@pytest.mark.parametrize(
    ("where", "files"),
    [
        (None, "0123456"),
        ("part = 1", "0345"),
        ("id >= 35", "3456"),
        ("part = 2 and id < 20", "1"),
        ("part = 3", "34"),
        ("id = 1000", ""),
    ],
)
def test_files_of_two_specs_are_planned_in_parts(
    monkeypatch: pytest.MonkeyPatch,
    two_specs: tuple[TableMetadata, Snapshot, FileIO],
    where: str | None,
    files: str,
) -> None:
    found = assert_made_in_parts(monkeypatch, *two_specs, where)
    assert "".join(found.files["file_path"].str.extract(r"(\d+)-0\.parquet$")) == files


def test_what_all_files_have_in_common_is_held_once(tmp_path: Path) -> None:
    """The rest of a plan is the paths of its files and what they do not have in common."""
    io = FileIO()
    metadata = new_table_metadata(SCHEMA, BY_PART, location=f"file://{tmp_path}", format_version=2)
    many = [data_file(number, 1) for number in range(2_000)]
    manifest = manifest_of(io, metadata, "m", many, spec=BY_PART)
    snapshot = snapshot_of(io, metadata, [manifest], sequence_number=1)
    files = plan(metadata, snapshot, io).files
    alike = files.select(
        "file_format", "spec_id", "sequence_number", "snapshot_id", "key_metadata", "scope"
    )
    assert alike.estimated_size() < 2_000
    assert alike.unique().rows() == [("parquet", 0, 1, 1, None, 0)]
    assert files.select(pl.col("ordinal").n_unique()).item() == 2_000
