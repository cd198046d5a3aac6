"""Counts of rows: by the manifest list where that is certain, else by entries, some at a time."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from table_cases import (
    CountingIO,
    data_file,
    equality_deletes,
    make_table,
    open_catalog,
    position_deletes,
    short,
    vector,
)

from ci_share import in_circles
from frazil.errors import InvalidManifestError
from frazil.format.manifests import EntryStatus, ManifestContent, ManifestEntry, ManifestFile
from frazil.format.metadata import TableMetadata
from frazil.format.predicates import AlwaysTrue, Expression, bind, parse_predicate
from frazil.planning.counts.rows import CountedRows, count_rows
from frazil.planning.plan import plan
from frazil.storage import avro
from frazil.storage.files import FileIO
from frazil.table.handle import TableHandle

NO_MERGE = {"commit.manifest-merge.enabled": "false"}


def counted(
    metadata: TableMetadata, io: FileIO, where: str | None = None, *, files_at_once: int = 1000
) -> CountedRows:
    snapshot, schema = metadata.current_snapshot, metadata.schema
    bound: Expression = AlwaysTrue()
    if where is not None:
        bound = bind(parse_predicate(where), schema)
    return count_rows(
        metadata,
        snapshot,
        io,
        where=bound,
        schema=schema,
        whole_plan=lambda: plan(metadata, snapshot, io, where=bound),
        files_at_once=files_at_once,
    )


def opened(table: TableHandle, io: CountingIO) -> tuple[CountedRows, int]:
    """The count of a table, and how many manifests it opened."""
    io.caches.clear()
    io.opened.clear()
    found = counted(table.metadata, io)
    return found, io.opened["manifest"]


def made(tmp_path: Path, io: CountingIO, *, version: int = 2, **settings: str) -> TableHandle:
    catalog = open_catalog("filesystem", tmp_path, io=io)
    return make_table(catalog, version=version, properties=settings or NO_MERGE)


@pytest.mark.parametrize("version", [2, pytest.param(3, marks=pytest.mark.check), pytest.param(1)])
def test_a_count_is_that_of_a_model(tmp_path: Path, version: int) -> None:
    """After each kind of change; no manifest is opened from version 2 on."""
    io = CountingIO()
    table = made(tmp_path, io, version=version, **{"commit.manifest.min-count-to-merge": "3"})
    assert opened(table, io) == (CountedRows(0, None), 0)
    model: dict[str, int] = {}
    steps: list[tuple[dict[str, int], list[str]]] = [
        ({"a": 7, "b": 20}, []),
        ({"c": 300}, []),
        ({}, ["b"]),
        ({"d": 4_000, "e": 0}, ["a"]),
        ({"f": 50_000}, []),
        ({}, ["c", "d", "e", "f"]),
        ({"g": 600_000}, []),
    ]
    for added, removed in steps:
        new = [data_file(name, rows=rows) for name, rows in added.items()]
        old = [data_file(name, rows=model.pop(name)) for name in removed]
        if old and new:
            table.files.overwrite(new, removed=old)
        elif old:
            table.files.delete(removed=old)
        else:
            table.files.append(new)
        model.update(added)
        found, manifests = opened(table, io)
        assert (found.known, found.rest) == (sum(model.values()), None)
        assert manifests == 0 or version == 1


def test_only_manifests_that_deletes_reach_are_opened(tmp_path: Path) -> None:
    io = CountingIO()
    table = made(tmp_path, io)
    table.files.append([data_file("a", rows=10)])
    table.files.row_delta(
        added=[data_file("b", rows=200)], added_deletes=[position_deletes("p", about="a")]
    )
    table.files.append([data_file("c", rows=3000)])
    found, manifests = opened(table, io)
    # The position delete reaches b by its number, but is about a; c came later.
    assert manifests == 3
    assert found.known == 3200
    assert found.rest is not None
    assert list(map(short, found.rest.files["file_path"])) == ["a"]
    table.files.row_delta(added_deletes=[equality_deletes("q")])
    found, _ = opened(table, io)
    assert found.known == 0
    assert found.rest is not None
    assert found.rest.file_count == 3


def test_deletion_vectors_count_by_their_cardinality(tmp_path: Path) -> None:
    io = CountingIO()
    table = made(tmp_path, io, version=3)
    for number in range(6):
        table.files.append([data_file(f"f{number}", rows=10)])
    table.files.row_delta(added_deletes=[vector("v", "f2"), vector("w", "f4")])
    assert counted(table.metadata, io).known == 60 - 2 * 2
    assert counted(table.metadata, io, files_at_once=2).known == 60 - 2 * 2


@pytest.mark.parametrize("files_at_once", in_circles([4, 1, 1000], test=1))
def test_a_condition_is_counted_some_manifests_at_a_time(
    tmp_path: Path, files_at_once: int
) -> None:
    io = CountingIO()
    table = made(tmp_path, io)
    days = ("mon", "tue", "wed")
    for number in range(9):
        file = data_file(f"f{number}", days[number % 3], rows=10**number, ids=(0, number))
        table.files.append([file, data_file(f"g{number}", "thu", rows=10**number)])
    found = counted(table.metadata, io, "day = 'tue'", files_at_once=files_at_once)
    assert (found.known, found.rest) == (10_010_010, None)
    # What only a look at the rows tells is left, as one plan.
    found = counted(table.metadata, io, "day < 'u' and id < 3", files_at_once=files_at_once)
    assert found.known == 10**0 + 10**1
    assert found.rest is not None
    names = {short(path) for path in found.rest.files["file_path"]}
    assert names == {"f3", "f4", "f6", "f7", *(f"g{number}" for number in range(9))}
    assert found.rest.file_count == len(names)


def with_list(table: TableHandle, change: Callable[[ManifestFile], ManifestFile]) -> TableMetadata:
    """The table with another list for its snapshot."""
    metadata, snapshot = table.metadata, table.current_snapshot
    assert snapshot is not None
    path = f"{table.location}/metadata/snap-{uuid.uuid4()}.avro"
    avro.write_manifest_list(
        table.io,
        path,
        [change(manifest) for manifest in avro.manifests_of(table.io, snapshot)],
        format_version=metadata.format_version,
        snapshot_id=snapshot.snapshot_id,
        parent_snapshot_id=snapshot.parent_snapshot_id,
        sequence_number=snapshot.sequence_number,
    )
    return replace(metadata, snapshots=(replace(snapshot, manifest_list=path),))


def test_a_list_that_the_summary_contradicts_is_not_believed(tmp_path: Path) -> None:
    table = made(tmp_path, CountingIO())
    table.files.append([data_file("a", rows=10), data_file("b", rows=20)])
    wrong = with_list(table, lambda manifest: replace(manifest, added_rows_count=31))
    assert counted(wrong, table.io).known == 30
    negative = with_list(table, lambda manifest: replace(manifest, existing_rows_count=-1))
    assert counted(negative, table.io).known == 30


def test_unknown_counts_of_version_1_are_not_summed(tmp_path: Path) -> None:
    """Old releases of the Java library gave Avro files that they added a count of -1."""
    table = made(tmp_path, CountingIO(), version=1)
    table.files.append([data_file("a", rows=10), data_file("b", rows=20)])
    snapshot = table.current_snapshot
    assert snapshot is not None
    unknown = replace(data_file("b", rows=0), record_count=-1)
    entries = [
        ManifestEntry(status=EntryStatus.ADDED, snapshot_id=snapshot.snapshot_id, data_file=file)
        for file in (data_file("a", rows=10), unknown)
    ]
    manifest = avro.write_manifest(
        table.io,
        f"{table.location}/metadata/unknown.avro",
        entries,
        spec=table.metadata.spec,
        schema=table.schema,
        format_version=1,
        content=ManifestContent.DATA,
        snapshot_id=snapshot.snapshot_id,
    )
    assert (manifest.added_rows_count, manifest.existing_rows_count) == (9, 0)
    older = with_list(table, lambda _: manifest)
    for metadata in (older, replace(older, format_version=2)):
        # A sum of the list would be 9.
        with pytest.raises(InvalidManifestError, match="-1 is not a count"):
            counted(metadata, table.io)
