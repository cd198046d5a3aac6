"""Branches, tags, roll back, staged snapshots, time travel, statistics."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from table_cases import (
    data_file,
    equality_deletes,
    ids,
    live_entries,
    make_table,
    names,
    peer,
    position_deletes,
    short,
    summary,
)

from frazil.catalog.protocol import Catalog
from frazil.errors import (
    AlreadyExistsError,
    ConflictError,
    NoSuchRefError,
    NoSuchSnapshotError,
    ValidationError,
)
from frazil.format.manifests import ManifestContent
from frazil.format.metadata.statistics import PartitionStatisticsFile, StatisticsFile
from frazil.storage.avro import manifests_of
from frazil.table.handle import TableHandle
from frazil.table.snapshots.merging import MergingProducer
from frazil.table.updates.references import Retention

A, B, C = data_file("a"), data_file("b"), data_file("c", "tue")


def test_branches_and_tags_are_what_pyiceberg_reads(catalog: Catalog) -> None:
    table = make_table(catalog, files=[A])
    table.create_tag("first", retention=Retention(max_ref_age_ms=1000))
    table.files.append([B])
    table.create_branch("side", snapshot_id=ids(table)[0])
    table.files.append([C], branch="side")
    refs = peer(table).metadata.refs
    assert {name: (ref.snapshot_id, str(ref.snapshot_ref_type)) for name, ref in refs.items()} == {
        "main": (ids(table)[1], "branch"),
        "first": (ids(table)[0], "tag"),
        "side": (ids(table)[2], "branch"),
    }
    assert refs["first"].max_ref_age_ms == 1000
    assert names(table, ref="side") == ["a", "c"]
    table.rename_branch("side", "other")
    table.remove_tag("first")
    assert sorted(table.metadata.refs) == ["main", "other"]


def test_a_commit_keeps_the_retention_of_its_branch(files_catalog: Catalog) -> None:
    table = make_table(files_catalog, files=[A])
    kept = Retention(min_snapshots_to_keep=7, max_snapshot_age_ms=5)
    table.set_retention("main", kept)
    table.files.append([B])
    main = table.metadata.refs["main"]
    assert (main.min_snapshots_to_keep, main.max_snapshot_age_ms) == (7, 5)


def test_names_of_references_are_checked(files_catalog: Catalog) -> None:
    table = make_table(files_catalog)
    with pytest.raises(NoSuchSnapshotError, match="empty"):
        table.create_tag("g")
    table.files.append([A])
    table.create_tag("g")
    with pytest.raises(AlreadyExistsError, match="g"):
        table.create_branch("g")
    with pytest.raises(NoSuchRefError, match="tag"):
        table.remove_branch("g")
    with pytest.raises(NoSuchRefError, match="nope"):
        table.replace_branch("nope")


def test_a_branch_of_an_empty_table_starts_empty(files_catalog: Catalog) -> None:
    table = make_table(files_catalog)
    table.create_branch("side")
    assert table.current_snapshot is None
    table.files.append([A], branch="side")
    assert names(table, ref="side") == ["a"]
    table.fast_forward("main", "side")
    assert names(table) == ["a"]


def test_rolling_back_and_setting_the_current_snapshot(catalog: Catalog) -> None:
    table = make_table(catalog)
    for file in (A, B, C):
        table.files.append([file])
    first, second, third = ids(table)
    table.rollback_to_snapshot(first)
    assert names(table) == ["a"]
    with pytest.raises(ValidationError, match="not an ancestor"):
        table.rollback_to_snapshot(third)
    table.set_current_snapshot(third)
    assert names(table) == ["a", "b", "c"]
    moment = table.metadata.snapshot_by_id(third).timestamp_ms
    times = {s.snapshot_id: s.timestamp_ms for s in table.metadata.snapshots}
    older = [s for s in (first, second) if times[s] < moment]
    if older:
        table.rollback_to_timestamp(moment)
        assert table.metadata.current_snapshot_id == older[-1]
    with pytest.raises(NoSuchSnapshotError, match="older"):
        table.rollback_to_timestamp("2000-01-01")


def test_fast_forward_needs_an_ancestor(files_catalog: Catalog) -> None:
    table = make_table(files_catalog, files=[A])
    table.create_branch("side")
    table.files.append([B], branch="side")
    table.files.append([C])
    with pytest.raises(ValidationError, match="ancestor"):
        table.fast_forward("main", "side")
    table.fast_forward("copy", "side")
    assert names(table, ref="copy") == ["a", "b"]


def test_staged_changes_are_published_once(files_catalog: Catalog) -> None:
    table = make_table(files_catalog, files=[A])
    table.files.append([B], wap_id="w1")
    assert names(table) == ["a"]
    table.files.append([C])
    table.publish_changes("w1")
    assert data_names(table) == ["a", "b", "c"]
    assert summary(table)["published-wap-id"] == "w1"
    assert summary(table)["source-snapshot-id"] == str(ids(table)[1])
    with pytest.raises(ConflictError, match="already"):
        table.publish_changes("w1")
    with pytest.raises(NoSuchSnapshotError, match="w2"):
        table.publish_changes("w2")


def test_a_staged_child_of_the_head_becomes_the_head(files_catalog: Catalog) -> None:
    table = make_table(files_catalog, files=[A])
    table.files.delete(where="true", wap_id="w1")
    table.cherrypick_snapshot(ids(table)[1])
    assert table.metadata.current_snapshot_id == ids(table)[1]
    assert len(table.metadata.snapshots) == 2


def test_a_dynamic_overwrite_is_picked_only_while_its_partitions_are_as_they_were(
    files_catalog: Catalog,
) -> None:
    table = make_table(files_catalog, files=[A, C])
    table.files.replace_partitions([B], wap_id="w1")
    table.files.append([data_file("d", "tue")])
    table.publish_changes("w1")
    assert data_names(table) == ["b", "c", "d"]
    table.files.replace_partitions([data_file("e")], wap_id="w2")
    table.files.append([data_file("f")])
    with pytest.raises(ConflictError):
        table.publish_changes("w2")


def test_only_appends_and_dynamic_overwrites_are_picked(files_catalog: Catalog) -> None:
    table = make_table(files_catalog, files=[A])
    table.files.delete(removed=[A], wap_id="w1")
    table.files.append([B])
    with pytest.raises(ValidationError, match="neither an append"):
        table.publish_changes("w1")


def with_deletes(catalog: Catalog) -> TableHandle:
    """A table with several manifests of deletes."""
    table = make_table(catalog, properties={"commit.manifest.min-count-to-merge": "2"})
    table.set_properties({"commit.manifest-merge.enabled": "false"})
    table.files.fast_append([A, C])
    for number in range(3):
        table.files.row_delta(added_deletes=[position_deletes(f"p{number}", about="c", day="tue")])
    table.files.row_delta(added_deletes=[position_deletes("q", about="a"), equality_deletes("e")])
    table.set_properties({"commit.manifest-merge.enabled": "true"})
    return table


def delete_manifests(table: TableHandle) -> list[str]:
    """Their paths."""
    assert table.current_snapshot is not None
    listed = manifests_of(table.io, table.current_snapshot)
    return [one.manifest_path for one in listed if one.content is ManifestContent.DELETES]


APPENDS = {
    "append": lambda table, **to: table.files.append([B], **to),
    "row delta": lambda table, **to: table.files.row_delta(added=[B], **to),
    "overwrite": lambda table, **to: table.files.overwrite([B], **to),
}
"""Operations that add data and do nothing else."""


@pytest.mark.parametrize("how", APPENDS)
def test_what_only_adds_data_leaves_delete_manifests_alone(
    files_catalog: Catalog, how: str
) -> None:
    table = with_deletes(files_catalog)
    before = delete_manifests(table)
    assert len(before) > 2
    APPENDS[how](table)
    assert delete_manifests(table) == before


def data_names(table: TableHandle) -> list[str]:
    """The live data files; `names` has delete files, too."""
    data = (each.data_file for each in live_entries(table) if not each.data_file.content)
    return sorted(short(file.file_path) for file in data)


@pytest.mark.parametrize("is_merged", [False, True])
@pytest.mark.parametrize("how", ["append", "row delta"])
def test_a_staged_append_is_published_beside_deletes(
    files_catalog: Catalog, monkeypatch: pytest.MonkeyPatch, how: str, is_merged: bool
) -> None:
    """Also one of a writer whose appends merge delete manifests and drop what is too old."""
    table = with_deletes(files_catalog)
    with monkeypatch.context() as patched:
        if is_merged:
            patched.setattr(MergingProducer, "_only_adds_data", False)
        APPENDS[how](table, wap_id="w1")
    staged = table.refresh().metadata.snapshots[-1]
    assert int((staged.summary or {})["manifests-replaced"]) > 2 * is_merged
    table.files.fast_append([data_file("d", "tue")])
    deletes = [each for each in live_entries(table) if each.data_file.content]
    table.publish_changes("w1")
    assert data_names(table) == ["a", "b", "c", "d"]
    assert [each for each in live_entries(table) if each.data_file.content] == deletes


def test_a_staged_append_that_dropped_deletes_of_nothing_is_published(
    files_catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = make_table(files_catalog)
    table.files.row_delta(added_deletes=[equality_deletes("old")])
    table.files.fast_append([A])
    with monkeypatch.context() as patched:
        patched.setattr(MergingProducer, "_only_adds_data", False)
        table.files.append([B], wap_id="w1")
    staged = table.refresh().metadata.snapshots[-1]
    assert (staged.summary or {})["removed-equality-delete-files"] == "1"
    table.files.fast_append([C])
    table.publish_changes("w1")
    assert data_names(table) == ["a", "b", "c"]


def test_a_dynamic_overwrite_of_a_partition_with_deletes_is_published(
    files_catalog: Catalog,
) -> None:
    table = with_deletes(files_catalog)
    table.files.replace_partitions([B], wap_id="w1")
    table.files.fast_append([data_file("d", "tue")])
    table.publish_changes("w1")
    assert data_names(table) == ["b", "c", "d"]


def test_deletes_are_not_published_beside_other_commits(files_catalog: Catalog) -> None:
    table = with_deletes(files_catalog)
    table.files.row_delta(added=[B], added_deletes=[equality_deletes("f")], wap_id="w1")
    table.files.row_delta(added_deletes=[equality_deletes("g")], wap_id="w2")
    table.files.fast_append([data_file("d", "tue")])
    for wap_id in ("w1", "w2"):
        with pytest.raises(ValidationError, match="neither an append"):
            table.publish_changes(wap_id)


def test_snapshots_are_found_by_time_reference_and_id(files_catalog: Catalog) -> None:
    """Rule 188."""
    table = make_table(files_catalog)
    assert table.snapshot() is None
    table.files.append([A])
    table.create_tag("g")
    first = table.current_snapshot
    assert first is not None
    at = first.timestamp_ms
    moment = datetime.fromtimestamp(at / 1000, tz=UTC)
    for found in (
        table.snapshot(first.snapshot_id),
        table.snapshot(ref="g"),
        table.snapshot(as_of=at),
        table.snapshot(as_of=moment.isoformat()),
        table.snapshot(as_of=datetime.fromtimestamp(at / 1000)),
        table.snapshot(as_of="2999-01-01"),
    ):
        assert found == first
    with pytest.raises(NoSuchSnapshotError):
        table.snapshot(as_of=at - 1)
    with pytest.raises(ValidationError, match="point in time"):
        table.snapshot(as_of="yesterday")
    with pytest.raises(ValidationError, match="both"):
        table.snapshot(1, ref="g")


def test_statistics_are_registered_and_forgotten(files_catalog: Catalog) -> None:
    table = make_table(files_catalog, files=[A])
    snapshot = ids(table)[0]
    table.maintenance.set_statistics(
        StatisticsFile(
            snapshot_id=snapshot,
            statistics_path="file:///s.puffin",
            file_size_in_bytes=10,
            file_footer_size_in_bytes=5,
        )
    )
    table.maintenance.set_statistics(
        PartitionStatisticsFile(
            snapshot_id=snapshot, statistics_path="file:///p.parquet", file_size_in_bytes=10
        )
    )
    assert peer(table).metadata.statistics[0].statistics_path == "file:///s.puffin"
    assert len(peer(table).metadata.partition_statistics) == 1
    table.maintenance.remove_statistics(snapshot)
    table.maintenance.remove_partition_statistics(snapshot)
    assert (table.metadata.statistics, table.metadata.partition_statistics) == ((), ())
