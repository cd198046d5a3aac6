"""Manifests rewritten by pieces: each is read once, and entries keep what they say."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from table_cases import CountingIO, avro_files, data_file, live_entries, open_catalog
from table_cases import make_table as made_by

from ci_share import in_circles
from frazil.format.manifests import ManifestFile
from frazil.format.properties.table import MANIFEST_TARGET_SIZE
from frazil.planning import load
from frazil.table.handle import TableHandle
from frazil.table.manifests.clusters import (
    ClusterWriter,
    ManifestClusters,
    cluster_order,
    write_here,
)
from frazil.table.snapshots.rewrite_manifests import RewriteManifests

DAYS = ("mon", "tue", "wed", None)
SOURCES = 6
NO_MERGE = {"commit.manifest-merge.enabled": "false"}


def never_small(manifests: Sequence[ManifestFile]) -> bool:
    return False


def told(table: TableHandle) -> list[tuple[Any, ...]]:
    """What PyIceberg reads of the live entries."""
    return sorted(
        (
            entry.data_file.file_path,
            entry.snapshot_id,
            entry.sequence_number,
            entry.file_sequence_number,
            repr(entry.data_file.partition),
            entry.data_file.record_count,
            repr(entry.data_file.lower_bounds),
        )
        for entry in live_entries(table)
    )


def filled(tmp_path: Path, io: CountingIO, version: int) -> TableHandle:
    """Six manifests, of which each has a file of every day."""
    catalog = open_catalog("filesystem", tmp_path, io=io)
    table = made_by(catalog, version=version, properties=NO_MERGE)
    for number in range(SOURCES):
        if version == 1 and number == SOURCES // 2:
            # The older manifests have no sequence numbers, and are laid out in another way.
            table.upgrade(2)
        table.files.append([data_file(f"{day}{number}", day, ids=(0, number)) for day in DAYS])
    table.files.delete(removed=[data_file("mon3", "mon")])
    return table


def in_three(table: TableHandle) -> None:
    """Let new manifests be so small that there are three."""
    size = sum(table.inspect.manifests()["length"])
    table.set_properties({MANIFEST_TARGET_SIZE.name: str(-(-size // 3))})


@pytest.mark.parametrize("version", in_circles([2, 3, 1], test=1))
def test_each_manifest_is_read_once_for_its_pieces(tmp_path: Path, version: int) -> None:
    io = CountingIO()
    table = filled(tmp_path, io, version)
    in_three(table)
    before, files = told(table), avro_files(table)
    opened: list[int] = []

    def write(writer: ClusterWriter, clusters: ManifestClusters) -> list[ManifestFile]:
        assert len(clusters.paths) == 3
        io.opened.clear()
        written = write_here(writer, clusters)
        opened.append(io.opened["manifest"])
        return written

    operation = RewriteManifests(io, is_small=never_small, write=write)
    table.port.run(operation)
    assert told(table) == before
    assert opened == [len(operation.rewritten)]
    assert len(operation.rewritten) == SOURCES
    assert len(avro_files(table) - files) == 1 + len(operation.added)
    # Neighbours by day are together: each manifest has two days at most.
    days = [m["partition_summaries"][0] for m in table.inspect.manifests().to_dicts()]
    assert len(days) == 3
    assert [day["contains_null"] for day in days].count(True) == 1


def test_a_single_manifest_above_the_target_is_cut(tmp_path: Path) -> None:
    io = CountingIO()
    table = made_by(open_catalog("filesystem", tmp_path, io=io), version=2)
    table.files.append([data_file(day, day) for day in ("mon", "tue", "wed", "thu")])
    before = told(table)
    (length,) = table.inspect.manifests()["length"]
    table.set_properties({MANIFEST_TARGET_SIZE.name: str(-(-length // 2))})
    operation = RewriteManifests(io)
    table.port.run(operation)
    assert (len(operation.rewritten), len(operation.added)) == (1, 2)
    assert told(table) == before


def test_entries_of_few_files_make_no_more_manifests_than_entries(tmp_path: Path) -> None:
    io = CountingIO()
    table = filled(tmp_path, io, 2)
    gone = [(day, number) for number in range(SOURCES) for day in DAYS][2:]
    table.files.delete(removed=[data_file(f"{d}{n}", d) for d, n in gone if (d, n) != ("mon", 3)])
    table.set_properties({MANIFEST_TARGET_SIZE.name: "100"})
    before = told(table)
    operation = RewriteManifests(io, is_small=never_small)
    table.port.run(operation)
    assert told(table) == before
    assert len(operation.added) == len(before) == 2


@pytest.mark.parametrize("removed", [("mon0",), ("mon0", "tue0")], ids=["some", "all"])
def test_a_rewrite_forgets_the_removed_files_of_a_single_manifest(
    tmp_path: Path, removed: Sequence[str]
) -> None:
    io = CountingIO()
    table = made_by(open_catalog("filesystem", tmp_path, io=io), version=2, properties=NO_MERGE)
    table.files.append([data_file(f"{day}0", day, ids=(0, 1)) for day in ("mon", "tue")])
    table.files.delete(removed=[data_file(name, name[:3]) for name in removed])
    assert sum(table.inspect.manifests()["deleted_data_files_count"]) == len(removed)
    left = told(table)

    operation = RewriteManifests(io)
    table.port.run(operation)

    assert len(operation.rewritten) == 1
    assert told(table) == left
    assert sum(table.inspect.manifests()["deleted_data_files_count"]) == 0
    again = RewriteManifests(io)
    table.port.run(again)
    assert again.rewritten == ()


@pytest.mark.parametrize("columns", [("f", "s"), ("s",), ()], ids=["two", "one", "none"])
def test_clusters_are_equal_parts_of_the_entries_by_partition(columns: Sequence[str]) -> None:
    chance = random.Random(4)
    floats, texts = (None, -1.5, 0.0, 2.5, float("nan")), (None, "", "a", "b")
    sources = [
        [
            (chance.choice((0, 1, 2)), chance.choice(floats), chance.choice(texts))
            for _ in range(chance.randrange(30))
        ]
        for _ in range(7)
    ]
    # A manifest of an older spec lacks a partition field.
    kinds = {"status": pl.Int32, "f": pl.Float64, "s": pl.String}
    frames = [pl.DataFrame(rows, schema=kinds, orient="row") for rows in sources]
    frames[3] = frames[3].drop("f")
    sources[3] = [(status, None, text) for status, _, text in sources[3]]

    def key(entry: tuple[int, int, tuple[Any, ...]]) -> tuple[Any, ...]:
        values = {"f": entry[2][1], "s": entry[2][2]}
        told = (values[name] for name in columns)
        # NULL comes first and NaN last.
        return tuple((v is not None, v != v, "" if v is None or v != v else v) for v in told)

    every = [(s, r, row) for s, rows in enumerate(sources) for r, row in enumerate(rows)]
    ordered = sorted((entry for entry in every if entry[2][0] != 2), key=key)
    expected = {(s, r): place * 5 // len(ordered) for place, (s, r, _) in enumerate(ordered)}

    order, starts = cluster_order(iter(frames), columns, 5)

    assert (order.entries, order.clusters) == (len(ordered), 5)
    found = {
        (source, row): cluster
        for source, frame in enumerate(frames)
        for row, cluster in order.clusters_of(frame, starts[source]).rows()
    }
    assert found == expected


def test_a_check_opens_a_file_once_that_several_manifests_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    class AskedIO(CountingIO):
        def _run(self, verb: str, path: str, on_disk: Any, on_store: Any) -> Any:
            if path.endswith(".parquet"):
                asked.append(path)
            return super()._run(verb, path, on_disk, on_store)

    monkeypatch.setattr(load, "FILES_AT_ONCE", 3)
    io = AskedIO()
    table = filled(tmp_path, io, 2)
    in_three(table)
    table.port.run(RewriteManifests(io))
    result = table.maintenance.check()
    assert result.files_count == len(set(asked)) == len(asked) == SOURCES * len(DAYS)
    missing = result.frame.filter(problem="missing", kind="data")
    assert sorted(missing["file_path"]) == sorted(set(asked))


def test_a_new_manifest_has_no_more_entries_than_are_worked_on_together() -> None:
    entries = pl.DataFrame({"status": [1] * 1_000}, schema={"status": pl.Int32})
    order, starts = cluster_order([entries] * 600, (), 1)
    assert (order.entries, order.clusters, len(starts)) == (600_000, 3, 600)
    assert cluster_order([entries.clear()], (), 3)[0].clusters == 0
