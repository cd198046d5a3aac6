"""Every kind of change of a table, by a short name, and the table that they are tried on."""

from __future__ import annotations

from collections.abc import Callable

from table_cases import SCHEMA, data_file, equality_deletes, make_table, position_deletes, vector

from frazil.catalog.protocol import Catalog
from frazil.errors import NoSuchSnapshotError
from frazil.format.metadata.statistics import PartitionStatisticsFile, StatisticsFile
from frazil.format.snapshots import Snapshot
from frazil.table.conflicts.validation import Validation
from frazil.table.handle import TableHandle
from frazil.table.maintenance.expire import ExpireSnapshots
from frazil.table.snapshots.add_files import AddFiles
from frazil.table.snapshots.correct_entries import CorrectEntries, Figures
from frazil.table.snapshots.rewrite_manifests import RewriteManifests
from frazil.table.updates.references import Retention

Change = Callable[[TableHandle], None]
MAPPING = "schema.name-mapping.default"
METRICS = "write.metadata.metrics.column."
LATER = 4_102_444_800_000


def old_table(catalog: Catalog, *, version: int) -> TableHandle:
    """A table with a past: branches, a tag, a staged snapshot, deletes, unused definitions."""
    table = make_table(catalog, version=version, properties={f"{METRICS}note": "full"})
    table.files.append([data_file("a"), data_file("b", "tue")])
    table.create_tag("old")
    table.create_branch("dev")
    table.files.append([data_file("c", "wed")])
    if version == 2:
        table.files.row_delta(added_deletes=[position_deletes("a-deletes", about="a")])
    elif version == 3:
        table.files.row_delta(added_deletes=[vector("a-vector", "a")])
    table.files.append([data_file("s")], wap_id="w")
    with table.update_schema() as schema:
        schema.add_column("size", "int")
        schema.add_column("dropped", "int")
    with table.update_schema() as schema:
        schema.delete_column("dropped")
    for change in ("add_field", "remove_field"):
        with table.update_spec() as spec:
            getattr(spec, change)("bucket(4, id)")
    table.set_properties({MAPPING: mapping_of("id")})
    table.maintenance.set_statistics(statistics_of(first(table), "old"))
    return table


def first(table: TableHandle) -> Snapshot:
    """The oldest snapshot."""
    return table.metadata.snapshots[0]


def staged(table: TableHandle) -> Snapshot:
    """The staged snapshot."""
    for snapshot in table.metadata.snapshots:
        if (snapshot.summary or {}).get("wap.id") == "w":
            return snapshot
    raise NoSuchSnapshotError("nothing is staged")


def parent(table: TableHandle) -> Snapshot:
    """The snapshot before the current one."""
    for snapshot in table.ancestors()[1:]:
        return snapshot
    raise NoSuchSnapshotError("there is no snapshot before the current one")


def head_of(table: TableHandle, ref: str = "main") -> int | None:
    """The id of the newest snapshot of a branch."""
    found = table.metadata.ref_snapshot(ref)
    return None if found is None else found.snapshot_id


def mapping_of(name: str) -> str:
    """A name mapping of one column."""
    return f'[{{"field-id": 1, "names": ["{name}"]}}]'


def statistics_of(snapshot: Snapshot, name: str) -> StatisticsFile:
    """A statistics file of a snapshot."""
    return StatisticsFile(
        snapshot_id=snapshot.snapshot_id,
        statistics_path=f"file:///s/{name}.puffin",
        file_size_in_bytes=10,
        file_footer_size_in_bytes=4,
    )


def add_column(table: TableHandle) -> None:
    with table.update_schema() as schema:
        schema.add_column("tip", "double")


def delete_column(table: TableHandle) -> None:
    with table.update_schema() as schema:
        schema.delete_column("note")


def rename_column(table: TableHandle) -> None:
    with table.update_schema() as schema:
        schema.rename_column("note", "memo")


def promote_column(table: TableHandle) -> None:
    with table.update_schema() as schema:
        schema.update_column("size", field_type="long")


def partition_by(expression: str) -> Change:
    def change(table: TableHandle) -> None:
        with table.update_spec() as spec:
            spec.add_field(expression)

    return change


def stop_partitioning(table: TableHandle) -> None:
    with table.update_spec() as spec:
        spec.remove_field("day")


def row_delta(table: TableHandle) -> None:
    # As the table began: an upgrade beside it finds the files written.
    deletes = (
        position_deletes("b-deletes", "tue", about="b")
        if first(table).first_row_id is None
        else vector("b-vector", "b", "tue")
    )
    validation = Validation(head_of(table))
    table.files.row_delta(
        added=[data_file("u", "tue")], added_deletes=[deletes], validation=validation
    )


def rewrite(table: TableHandle) -> None:
    snapshot_id = head_of(table)
    assert snapshot_id is not None
    table.files.rewrite(
        removed=[data_file("b", "tue")], added=[data_file("b2", "tue")], from_snapshot=snapshot_id
    )


def replace(table: TableHandle) -> None:
    with table.replace_transaction(SCHEMA, partition_by=["note"]) as tx:
        spec = tx.metadata.spec
        gone = (None,) * (len(spec.fields) - 1)
        tx.files.append([data_file("n", spec_id=spec.spec_id, partition=(*gone, "x"))])


def several(table: TableHandle) -> None:
    with table.transaction() as tx:
        with tx.update_schema() as schema:
            schema.add_column("both", "int")
        tx.files.append([data_file("x")])
        tx.files.delete(where="day = 'tue'")
        tx.create_tag("both")


def expire(table: TableHandle) -> None:
    table.maintenance.expire_snapshots_keeping_files(older_than=LATER, retain_last=1)


def set_partition_statistics(table: TableHandle) -> None:
    file = PartitionStatisticsFile(
        snapshot_id=first(table).snapshot_id,
        statistics_path="file:///s/p.parquet",
        file_size_in_bytes=10,
    )
    table.maintenance.set_statistics(file)


CHANGES: dict[str, Change] = {
    "append": lambda t: t.files.append([data_file("x")]),
    "fast append": lambda t: t.files.fast_append([data_file("y", "tue")]),
    "append to dev": lambda t: t.files.append([data_file("d")], branch="dev"),
    "append to a new branch": lambda t: t.files.append(
        [data_file("z")], branch="new", starts_branch=True
    ),
    "stage": lambda t: t.files.append([data_file("v")], wap_id="v"),
    "add files": lambda t: t.port.run(AddFiles(t.io, [data_file("x")])),
    "overwrite": lambda t: t.files.overwrite(
        [data_file("o")], where="day = 'mon'", validation=Validation(head_of(t))
    ),
    "overwrite dev": lambda t: t.files.overwrite(
        [data_file("o")], where="day = 'mon'", branch="dev"
    ),
    "delete": lambda t: t.files.delete(where="day = 'tue'"),
    "delete a file": lambda t: t.files.delete(removed=[data_file("c", "wed")]),
    "replace partitions": lambda t: t.files.replace_partitions([data_file("r")]),
    "row delta": row_delta,
    "equality delete": lambda t: t.files.row_delta(added_deletes=[equality_deletes("e", "wed")]),
    "rewrite": rewrite,
    "rewrite manifests": lambda t: t.port.run(RewriteManifests(t.io)),
    "correct entries": lambda t: t.port.run(
        CorrectEntries(t.io, {"file:///data/c.parquet": Figures(record_count=7)})
    ),
    "publish": lambda t: t.publish_changes("w"),
    "cherry-pick": lambda t: t.cherrypick_snapshot(staged(t).snapshot_id),
    "add column": add_column,
    "delete column": delete_column,
    "rename column": rename_column,
    "promote column": promote_column,
    "partition by a bucket": partition_by("bucket(4, id)"),
    "partition by note": partition_by("note"),
    "partition by size": partition_by("bucket(4, size)"),
    "stop partitioning": stop_partitioning,
    "sort by id": lambda t: t.replace_sort_order("id"),
    "sort by note": lambda t: t.replace_sort_order("note desc"),
    "set property": lambda t: t.set_properties({"k": "1"}),
    "set the same property": lambda t: t.set_properties({"k": "2", "l": "2"}),
    "set name mapping": lambda t: t.set_properties({MAPPING: mapping_of("ident")}),
    "set column property": lambda t: t.set_properties({f"{METRICS}note": "none"}),
    "remove property": lambda t: t.remove_properties(f"{METRICS}note", "k"),
    "turn gc off": lambda t: t.set_properties({"gc.enabled": "false"}),
    "set location": lambda t: t.set_location("file:///elsewhere"),
    "upgrade": lambda t: t.upgrade(3),
    "upgrade to 2": lambda t: t.upgrade(2),
    "create branch": lambda t: t.create_branch("b"),
    "create tag": lambda t: t.create_tag("b"),
    "create tag in the past": lambda t: t.create_tag("past", snapshot_id=parent(t).snapshot_id),
    "create tag of staged": lambda t: t.create_tag("past", snapshot_id=staged(t).snapshot_id),
    "replace branch": lambda t: t.replace_branch("dev"),
    "keep main longer": lambda t: t.set_retention("main", Retention(min_snapshots_to_keep=50)),
    "keep dev longer": lambda t: t.set_retention("dev", Retention(min_snapshots_to_keep=50)),
    "remove branch": lambda t: t.remove_branch("dev"),
    "remove tag": lambda t: t.remove_tag("old"),
    "rename branch": lambda t: t.rename_branch("dev", "was_dev"),
    "fast-forward": lambda t: t.fast_forward("dev", "main"),
    "roll back": lambda t: t.rollback_to_snapshot(first(t).snapshot_id),
    "set current": lambda t: t.set_current_snapshot(staged(t).snapshot_id),
    "expire": expire,
    "expire staged": lambda t: t.port.run(
        ExpireSnapshots(older_than_ms=0, snapshot_ids=[staged(t).snapshot_id])
    ),
    "remove unused definitions": lambda t: t.maintenance.remove_unused_specs_and_schemas(),
    "set statistics": lambda t: t.maintenance.set_statistics(statistics_of(first(t), "new")),
    "set statistics of staged": lambda t: t.maintenance.set_statistics(
        statistics_of(staged(t), "w")
    ),
    "set partition statistics": set_partition_statistics,
    "remove statistics": lambda t: t.maintenance.remove_statistics(first(t).snapshot_id),
    "replace": replace,
    "transaction": several,
}

# The changes above that move a branch.
MOVES_MAIN = {
    *("append", "fast append", "add files", "overwrite", "delete", "delete a file", "transaction"),
    *("replace partitions", "row delta", "equality delete", "rewrite", "rewrite manifests"),
    *("correct entries", "publish", "cherry-pick", "roll back", "set current", "replace"),
}
MOVES_DEV = {"append to dev", "overwrite dev", "replace branch", "fast-forward", "rename branch"}
