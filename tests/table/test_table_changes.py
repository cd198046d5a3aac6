"""Schema, partitioning, order, properties, references, transactions, expiry."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.table import StaticTable
from table_cases import (
    SCHEMA,
    avro_files,
    avro_files_in_use,
    data_file,
    make_table,
    names,
    open_catalog,
    position_deletes,
    summary,
)

from frazil.catalog.base import Catalog
from frazil.errors import (
    AlreadyExistsError,
    ConflictError,
    EvolutionError,
    NoSuchRefError,
    NoSuchSnapshotError,
    TableAlreadyExistsError,
    UnsupportedVersionError,
    ValidationException,
)
from frazil.format.new_table import new_table_metadata
from frazil.format.schema import Schema
from frazil.format.statistics import PartitionStatisticsFile, StatisticsFile
from frazil.format.types import LongType, NestedField, StringType
from frazil.table.handle import TableHandle
from frazil.table.references import Retention
from frazil.table.transaction import CreateTransaction

A, B, C = data_file("a"), data_file("b"), data_file("c", "tue")


def peer(table: TableHandle) -> StaticTable:
    """The table as PyIceberg reads it."""
    return StaticTable.from_metadata(table.metadata_location)


def columns(table: TableHandle) -> list[tuple[int, str, str]]:
    """Ids, names and types by PyIceberg."""
    return [(f.field_id, f.name, str(f.field_type)) for f in peer(table).schema().fields]


def ids(table: TableHandle) -> list[int]:
    """Snapshot ids in the order of commits."""
    return [snapshot.snapshot_id for snapshot in table.snapshot_list]


# -- schema, partitioning, order, properties


def test_schema_changes_are_what_pyiceberg_reads(catalog: Catalog) -> None:
    table = make_table(catalog)
    with table.update_schema() as u:
        u.add_column("tip", "double", doc="in dollars")
        u.rename_column("note", "remark")
        u.move_first("tip")
    assert columns(table) == [
        (4, "tip", "double"),
        (1, "id", "long"),
        (2, "day", "string"),
        (3, "remark", "string"),
    ]
    assert peer(table).schema().find_field("tip").doc == "in dollars"
    with table.update_schema() as u:
        u.delete_column("tip")
    with table.update_schema() as u:
        u.add_column("tip", "int")
    # An id is never used again (rule 51).
    assert columns(table)[-1] == (5, "tip", "int")
    assert len(peer(table).schemas()) == 4


def test_going_back_to_a_schema_takes_its_id(catalog: Catalog) -> None:
    table = make_table(catalog)
    for new in ("remark", "note"):
        with table.update_schema() as u:
            u.rename_column("remark" if new == "note" else "note", new)
    assert table.metadata.current_schema_id == 0
    assert len(table.schemas) == 2


def test_a_source_of_the_partitioning_stays(files_catalog: Catalog) -> None:
    table = make_table(files_catalog)
    with pytest.raises(EvolutionError, match="day"):
        table.update_schema().delete_column("day")


@pytest.mark.parametrize("builder", ["update_schema", "update_partitioning", "transaction"])
def test_an_exception_in_the_block_commits_nothing(catalog: Catalog, builder: str) -> None:
    table = make_table(catalog)
    table.commit_append([A])
    before = table.metadata_location
    with pytest.raises(ZeroDivisionError), getattr(table, builder)() as u:
        fail_after(u)
    assert table.refresh().metadata_location == before
    assert avro_files(table) == avro_files_in_use(table)


def fail_after(u: Any) -> None:
    """Change something, then fail."""
    if hasattr(u, "add_column"):
        u.add_column("x", "int")
    elif hasattr(u, "add_field"):
        u.add_field("bucket(4, id)")
    else:
        u.commit_append([B])
        u.set_properties(x="y")
    raise ZeroDivisionError


def test_properties_follow_their_column(files_catalog: Catalog) -> None:
    prefix = "write.metadata.metrics.column."
    mapping = json.dumps([{"field-id": 3, "names": ["note"]}])
    table = make_table(
        files_catalog,
        properties={
            f"{prefix}note": "full",
            f"{prefix}id": "none",
            "schema.name-mapping.default": mapping,
        },
    )
    with table.update_schema() as u:
        u.rename_column("note", "remark")
        u.delete_column("id")
    found = table.properties
    assert {k: v for k, v in found.items() if k.startswith(prefix)} == {f"{prefix}remark": "full"}
    assert sorted(json.loads(found["schema.name-mapping.default"])[0]["names"]) == [
        "note",
        "remark",
    ]


@pytest.mark.parametrize("version", [1, 2])
def test_partitioning_evolves_as_pyiceberg_reads_it(catalog: Catalog, version: int) -> None:
    """Rules 72, 74, 90: v1 keeps what it drops as void, v2 takes an id back."""
    table = make_table(catalog, version=version)
    with table.update_partitioning() as u:
        u.add_field("bucket(16, id)")
        u.remove_field("day")
    fields = [(f.field_id, f.name, str(f.transform)) for f in peer(table).spec().fields]
    bucket = (1001, "id_bucket_16", "bucket[16]")
    assert fields == ([(1000, "day", "void"), bucket] if version == 1 else [bucket])
    with table.update_partitioning() as u:
        u.add_field("day")
    fields = [(f.field_id, str(f.transform)) for f in peer(table).spec().fields]
    if version == 1:
        assert fields == [(1000, "void"), (1001, "bucket[16]"), (1002, "identity")]
    else:
        assert fields == [(1001, "bucket[16]"), (1000, "identity")]


def test_sort_orders_are_kept_and_found_again(catalog: Catalog) -> None:
    table = make_table(catalog)
    for keys in (("id desc",), ("day", "id"), ("id desc",), ()):
        table.replace_sort_order(*keys)
    assert sorted(table.sort_orders) == [0, 1, 2]
    assert table.sort_order.order_id == 0
    table.replace_sort_order("id desc")
    order = peer(table).sort_order()
    assert (order.order_id, str(order.fields[0].direction), order.fields[0].source_id) == (
        1,
        "DESC",
        1,
    )


def test_properties_are_set_and_removed(catalog: Catalog) -> None:
    table = make_table(catalog)
    table.set_properties({"a.b": "1", "c": "2"})
    table.set_properties(c="3")
    table.remove_properties("a.b", "missing")
    found = peer(table).properties
    assert (found.get("a.b"), found["c"]) == (None, "3")


REFUSED: dict[str, Callable[[TableHandle], None]] = {
    "reserved": lambda t: t.set_properties({"current-snapshot-id": "1"}),
    "use upgrade": lambda t: t.set_properties({"format-version": "3"}),
    "strings": lambda t: t.set_properties({"a": 1}),  # type: ignore[dict-item]
    "cannot go back": lambda t: t.upgrade(1),
    "main cannot be removed": lambda t: t.remove_branch("main"),
    "for branches": lambda t: t.create_tag("g", retention=Retention(min_snapshots_to_keep=3)),
    "must be positive": lambda t: t.create_branch("b", retention=Retention(max_ref_age_ms=0)),
    "at least 1": lambda t: t.expire_snapshots(retain_last=0),
    "no name": lambda t: t.create_tag(" "),
    "staged": lambda t: t.commit_append([B], branch="x", wap_id="w"),
    "must remove files": lambda t: t.commit_rewrite(added=[B]),
    "cannot add 20 rows": lambda t: t.commit_rewrite(removed=[A], added=[data_file("n", rows=20)]),
}


@pytest.mark.parametrize("message", REFUSED)
def test_what_contradicts_the_table_is_refused(files_catalog: Catalog, message: str) -> None:
    table = make_table(files_catalog)
    table.commit_append([A])
    before = table.metadata_location
    with pytest.raises(ValidationException, match=message):
        REFUSED[message](table)
    assert table.refresh().metadata_location == before


def test_versions_that_are_not_adopted_are_refused(files_catalog: Catalog) -> None:
    """Rule 1."""
    with pytest.raises(UnsupportedVersionError, match="4"):
        make_table(files_catalog).upgrade(4)


def test_the_location_of_new_files_moves(tmp_path: Path) -> None:
    table = make_table(open_catalog("sql", tmp_path))
    table.commit_append([A])
    table.set_location(f"{tmp_path}/elsewhere")
    table.commit_append([B])
    assert "/elsewhere/metadata/" in table.metadata_location
    assert names(table) == ["a", "b"]


# -- references


def test_branches_and_tags_are_what_pyiceberg_reads(catalog: Catalog) -> None:
    table = make_table(catalog)
    table.commit_append([A])
    table.create_tag("first", retention=Retention(max_ref_age_ms=1000))
    table.commit_append([B])
    table.create_branch("side", snapshot_id=ids(table)[0])
    table.commit_append([C], branch="side")
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
    assert sorted(table.references) == ["main", "other"]


def test_a_commit_keeps_the_retention_of_its_branch(files_catalog: Catalog) -> None:
    table = make_table(files_catalog)
    table.commit_append([A])
    kept = Retention(min_snapshots_to_keep=7, max_snapshot_age_ms=5)
    table.set_retention("main", kept)
    table.commit_append([B])
    main = table.references["main"]
    assert (main.min_snapshots_to_keep, main.max_snapshot_age_ms) == (7, 5)


def test_names_of_references_are_checked(files_catalog: Catalog) -> None:
    table = make_table(files_catalog)
    with pytest.raises(NoSuchSnapshotError, match="empty"):
        table.create_tag("g")
    table.commit_append([A])
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
    table.commit_append([A], branch="side")
    assert names(table, ref="side") == ["a"]
    table.fast_forward("main", "side")
    assert names(table) == ["a"]


def test_rolling_back_and_setting_the_current_snapshot(catalog: Catalog) -> None:
    table = make_table(catalog)
    for file in (A, B, C):
        table.commit_append([file])
    first, second, third = ids(table)
    table.rollback_to_snapshot(first)
    assert names(table) == ["a"]
    with pytest.raises(ValidationException, match="not an ancestor"):
        table.rollback_to_snapshot(third)
    table.set_current_snapshot(third)
    assert names(table) == ["a", "b", "c"]
    moment = table.metadata.snapshot_by_id(third).timestamp_ms
    times = {s.snapshot_id: s.timestamp_ms for s in table.snapshot_list}
    older = [s for s in (first, second) if times[s] < moment]
    if older:
        table.rollback_to_timestamp(moment)
        assert table.metadata.current_snapshot_id == older[-1]
    with pytest.raises(NoSuchSnapshotError, match="older"):
        table.rollback_to_timestamp("2000-01-01")


def test_fast_forward_needs_an_ancestor(files_catalog: Catalog) -> None:
    table = make_table(files_catalog)
    table.commit_append([A])
    table.create_branch("side")
    table.commit_append([B], branch="side")
    table.commit_append([C])
    with pytest.raises(ValidationException, match="ancestor"):
        table.fast_forward("main", "side")
    table.fast_forward("copy", "side")
    assert names(table, ref="copy") == ["a", "b"]


def test_staged_changes_are_published_once(files_catalog: Catalog) -> None:
    table = make_table(files_catalog)
    table.commit_append([A])
    table.commit_append([B], wap_id="w1")
    assert names(table) == ["a"]
    table.commit_append([C])
    table.publish_changes("w1")
    assert names(table) == ["a", "b", "c"]
    assert summary(table)["published-wap-id"] == "w1"
    assert summary(table)["source-snapshot-id"] == str(ids(table)[1])
    with pytest.raises(ConflictError, match="already"):
        table.publish_changes("w1")
    with pytest.raises(NoSuchSnapshotError, match="w2"):
        table.publish_changes("w2")


def test_a_staged_child_of_the_head_becomes_the_head(files_catalog: Catalog) -> None:
    table = make_table(files_catalog)
    table.commit_append([A])
    table.commit_delete(where="true", wap_id="w1")
    table.cherrypick_snapshot(ids(table)[1])
    assert table.metadata.current_snapshot_id == ids(table)[1]
    assert len(table.snapshot_list) == 2


def test_a_dynamic_overwrite_is_picked_only_while_its_partitions_are_as_they_were(
    files_catalog: Catalog,
) -> None:
    table = make_table(files_catalog)
    table.commit_append([A, C])
    table.commit_replace_partitions([B], wap_id="w1")
    table.commit_append([data_file("d", "tue")])
    table.publish_changes("w1")
    assert names(table) == ["b", "c", "d"]
    table.commit_replace_partitions([data_file("e")], wap_id="w2")
    table.commit_append([data_file("f")])
    with pytest.raises(ConflictError):
        table.publish_changes("w2")


def test_only_appends_and_dynamic_overwrites_are_picked(files_catalog: Catalog) -> None:
    table = make_table(files_catalog)
    table.commit_append([A])
    table.commit_delete(removed=[A], wap_id="w1")
    table.commit_append([B])
    with pytest.raises(ValidationException, match="neither an append"):
        table.publish_changes("w1")


def test_snapshots_are_found_by_time_reference_and_id(files_catalog: Catalog) -> None:
    """Rule 188."""
    table = make_table(files_catalog)
    assert table.snapshot() is None
    table.commit_append([A])
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
        table.snapshot(as_of=moment.replace(tzinfo=None)),
        table.snapshot(as_of="2999-01-01"),
    ):
        assert found == first
    with pytest.raises(NoSuchSnapshotError):
        table.snapshot(as_of=at - 1)
    with pytest.raises(ValidationException, match="point in time"):
        table.snapshot(as_of="yesterday")
    with pytest.raises(ValidationException, match="both"):
        table.snapshot(1, ref="g")


def test_statistics_are_registered_and_forgotten(files_catalog: Catalog) -> None:
    table = make_table(files_catalog)
    table.commit_append([A])
    snapshot = ids(table)[0]
    table.set_statistics(
        StatisticsFile(
            snapshot_id=snapshot,
            statistics_path="file:///s.puffin",
            file_size_in_bytes=10,
            file_footer_size_in_bytes=5,
        )
    )
    table.set_statistics(
        PartitionStatisticsFile(
            snapshot_id=snapshot, statistics_path="file:///p.parquet", file_size_in_bytes=10
        )
    )
    assert peer(table).metadata.statistics[0].statistics_path == "file:///s.puffin"
    assert len(peer(table).metadata.partition_statistics) == 1
    table.remove_statistics(snapshot)
    table.remove_partition_statistics(snapshot)
    assert (table.metadata.statistics, table.metadata.partition_statistics) == ((), ())


# -- transactions


def test_a_transaction_is_one_commit_and_each_step_sees_the_last(catalog: Catalog) -> None:
    table = make_table(catalog)
    versions = len(table.metadata.metadata_log)
    with table.transaction() as tx:
        with tx.update_schema() as u:
            u.add_column("hour", "int")
        with tx.update_partitioning() as u:
            u.add_field("hour")
        new = data_file("n", spec_id=tx.metadata.default_spec_id, partition=("mon", 3))
        tx.commit_append([A, new])
        tx.commit_delete(removed=[A])
        tx.set_properties(x="y")
        assert table.metadata.current_snapshot is None
    assert names(table) == ["n"]
    assert len(table.metadata.metadata_log) == versions + 1
    # The log tells what was current, and the first snapshot never was (rule 189).
    assert len(table.metadata.snapshot_log) == 1
    assert len(table.snapshot_list) == 2
    with pytest.raises(ValidationException, match="closed"):
        tx.set_properties(x="z")


def test_a_transaction_is_run_again_as_a_whole(catalog: Catalog) -> None:
    table = make_table(catalog)
    table.commit_append([A])
    other = TableHandle(catalog, catalog.load_table("db.t"))
    with table.transaction() as tx:
        tx.commit_append([B])
        tx.commit_delete(removed=[A])
        other.commit_append([C])
    assert names(table) == ["b", "c"]
    assert [s.sequence_number for s in table.snapshot_list] == [1, 2, 3, 4]
    assert avro_files(table) == avro_files_in_use(table)


def test_a_table_is_created_with_its_first_rows(catalog: Catalog) -> None:
    catalog.create_namespace("db")
    metadata = new_table_metadata(SCHEMA, location=catalog.default_table_location("db.new"))
    with CreateTransaction(catalog, "db.new", metadata) as tx:
        tx.commit_append([data_file("a", partition=())])
        assert not catalog.table_exists("db.new")
    table = TableHandle(catalog, tx.created)
    assert names(table) == ["a"]
    assert table.metadata.metadata_log == ()
    before = avro_files(table)
    late = CreateTransaction(catalog, "db.new", metadata)
    late.commit_append([data_file("b", partition=())])
    with pytest.raises(TableAlreadyExistsError):
        late.create()
    assert avro_files(table) == before


def test_a_replaced_table_keeps_its_history(catalog: Catalog) -> None:
    table = make_table(catalog, properties={"kept": "1"})
    table.commit_append([A])
    uuid = table.uuid
    schema = Schema(
        (NestedField(1, "note", StringType(), False), NestedField(2, "size", LongType(), False))
    )
    replacing = table.replace_transaction(schema, partition_by=["note"], properties={"new": "2"})
    with replacing as tx:
        tx.commit_append([data_file("n", spec_id=tx.metadata.default_spec_id, partition=("x",))])
    assert names(table) == ["n"]
    assert columns(table) == [(3, "note", "string"), (4, "size", "long")]
    assert table.uuid == uuid
    assert (table.properties["kept"], table.properties["new"]) == ("1", "2")
    assert len(table.snapshot_list) == 2
    assert table.current_snapshot is not None
    assert table.current_snapshot.parent_snapshot_id is None


def test_a_replacement_gives_way_to_a_concurrent_schema_change(catalog: Catalog) -> None:
    table = make_table(catalog)
    schema = Schema((NestedField(1, "other", LongType(), False),))
    replacing = table.replace_transaction(schema)
    replacing.commit_append([data_file("n", spec_id=1, partition=())])
    with TableHandle(catalog, catalog.load_table("db.t")).update_schema() as u:
        u.add_column("x", "int")
    with pytest.raises(ConflictError, match="definition"):
        replacing.commit()


# -- expiry


def real_files(table: TableHandle, *files: str) -> dict[str, Any]:
    """Data files that exist, in the table's folder."""
    made = {}
    for name in files:
        path = f"{table.location}/data/{name}.parquet"
        table.io.create(path, name.encode())
        made[name] = replace(data_file(name), file_path=path)
    return made


def lying(table: TableHandle) -> set[str]:
    """Names of the data files that exist."""
    return {
        info.path.rsplit("/", 1)[-1].split(".")[0]
        for info in table.io.list(table.location + "/data")
    }


@pytest.mark.parametrize("version", [1, 2, 3])
def test_expiry_deletes_what_nothing_reaches_any_more(files_catalog: Catalog, version: int) -> None:
    table = make_table(files_catalog, version=version)
    made = real_files(table, "a", "b", "c", "d")
    table.commit_append([made["a"], made["b"]])
    table.create_tag("kept")
    table.commit_append([made["c"]])
    table.commit_delete(removed=[made["c"]])
    table.commit_append([made["d"]])
    result = table.expire_snapshots(older_than="2999-01-01")
    # The tag keeps a and b; only the second and third snapshot reached c.
    assert lying(table) == {"a", "b", "d"}
    assert (result.deleted_data_files, len(result.snapshot_ids)) == (1, 2)
    assert avro_files(table) == avro_files_in_use(table)
    table.remove_tag("kept")
    table.commit_delete(removed=[made["a"]])
    table.expire_snapshots(older_than="2999-01-01")
    assert lying(table) == {"b", "d"}
    assert len(table.snapshot_list) == 1
    assert avro_files(table) == avro_files_in_use(table)


def test_expiry_keeps_the_newest_and_the_young(files_catalog: Catalog) -> None:
    table = make_table(files_catalog)
    for name in "abcd":
        table.commit_append([data_file(name)])
    assert table.expire_snapshots().snapshot_ids == ()
    assert len(table.expire_snapshots(older_than="2999-01-01", retain_last=3).snapshot_ids) == 1
    assert len(table.snapshot_list) == 3
    middle = ids(table)[1]
    table.expire_snapshots(snapshot_ids=[middle])
    assert middle not in ids(table)
    with pytest.raises(ValidationException, match="main"):
        table.expire_snapshots(snapshot_ids=[ids(table)[-1]])


def test_expiry_counts_by_kind_and_keeps_files_when_told(files_catalog: Catalog) -> None:
    table = make_table(files_catalog)
    made = real_files(table, "a", "b")
    table.commit_append([made["a"]])
    table.commit_row_delta(added_deletes=[position_deletes("gone")])
    table.commit_delete(where="true")
    kept = table.expire_snapshots_keeping_files(older_than="2999-01-01", retain_last=2)
    assert (len(kept.snapshot_ids), lying(table)) == (1, {"a", "b"})
    result = table.expire_snapshots(older_than="2999-01-01")
    assert result.deleted_data_files == 1
    assert result.deleted_position_delete_files == 1
    assert lying(table) == {"b"}


def test_expiry_needs_gc(files_catalog: Catalog) -> None:
    table = make_table(files_catalog, properties={"gc.enabled": "false"})
    table.commit_append([A])
    with pytest.raises(ValidationException, match=r"gc\.enabled"):
        table.expire_snapshots(older_than="2999-01-01")


def test_unused_specs_and_schemas_go(files_catalog: Catalog) -> None:
    table = make_table(files_catalog)
    table.commit_append([A])
    with table.update_schema() as u:
        u.add_column("x", "int")
    for field in ("bucket(4, id)", "bucket(8, id)"):
        with table.update_partitioning() as u:
            u.add_field(field) if field == "bucket(4, id)" else u.rename_field(
                "id_bucket_4", "shard"
            )
    table.commit_append([data_file("n", spec_id=2, partition=("mon", 1))])
    table.remove_unused_specs_and_schemas()
    assert sorted(table.specs) == [0, 2]
    table.commit_delete(removed=[A])
    table.expire_snapshots(older_than="2999-01-01")
    table.commit_rewrite(
        removed=[data_file("n", spec_id=2, partition=("mon", 1))],
        added=[data_file("m", spec_id=2, partition=("mon", 1))],
    )
    table.expire_snapshots(older_than="2999-01-01")
    table.remove_unused_specs_and_schemas()
    assert (sorted(table.specs), sorted(table.schemas)) == ([2], [1])
    assert names(table) == ["m"]
