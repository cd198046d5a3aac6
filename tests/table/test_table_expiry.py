"""Which snapshots expire, and which files nothing reaches any more."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from table_cases import (
    avro_files,
    avro_files_in_use,
    data_file,
    head,
    kind_of,
    live_entries,
    make_table,
    names,
    position_deletes,
)

from ci_share import in_circles, only_in_check
from frazil.catalog.protocol import Catalog
from frazil.errors import (
    ValidationError,
)
from frazil.format.manifests import Content, DataFile
from frazil.planning import load
from frazil.storage.files import FileIO
from frazil.table.handle import TableHandle
from frazil.table.inspect.schemas import partition_struct_type
from frazil.table.maintenance import file_paths
from frazil.table.maintenance.expire import unreachable_files
from frazil.table.maintenance.progress import DeleteProgress, Deletion
from rival_commits import before_the_commit

A, B = data_file("a"), data_file("b")


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
    table.files.append([made["a"], made["b"]])
    table.create_tag("kept")
    table.files.append([made["c"]])
    table.files.delete(removed=[made["c"]])
    table.files.append([made["d"]])
    result = table.maintenance.expire_snapshots(older_than="2999-01-01")
    # The tag keeps a and b; only the second and third snapshot reached c.
    assert lying(table) == {"a", "b", "d"}
    assert (result.deleted_data_files, len(result.snapshot_ids)) == (1, 2)
    assert avro_files(table) == avro_files_in_use(table)
    table.remove_tag("kept")
    table.files.delete(removed=[made["a"]])
    table.maintenance.expire_snapshots(older_than="2999-01-01")
    assert lying(table) == {"b", "d"}
    assert len(table.metadata.snapshots) == 1
    assert avro_files(table) == avro_files_in_use(table)


def test_expiry_counts_by_kind_and_keeps_files_when_told(files_catalog: Catalog) -> None:
    table = make_table(files_catalog)
    made = real_files(table, "a", "b")
    table.files.append([made["a"]])
    table.files.row_delta(added_deletes=[position_deletes("gone")])
    table.files.delete(where="true")
    kept = table.maintenance.expire_snapshots_keeping_files(older_than="2999-01-01", retain_last=2)
    assert (len(kept.snapshot_ids), lying(table)) == (1, {"a", "b"})
    told: list[DeleteProgress] = []
    result = table.maintenance.expire_snapshots(older_than="2999-01-01", on_progress=told.append)
    deleted = sum(result.counts.values())
    assert [(each.stage, each.files_done) for each in told] == [
        ("searching", 0),
        *(("deleting", number + 1) for number in range(deleted)),
        ("done", deleted),
    ]
    assert result.deleted_data_files == 1
    assert result.deleted_position_delete_files == 1
    assert lying(table) == {"b"}


def test_expiry_needs_gc(files_catalog: Catalog) -> None:
    table = make_table(files_catalog, properties={"gc.enabled": "false"}, files=[A])
    with pytest.raises(ValidationError, match=r"gc\.enabled"):
        table.maintenance.expire_snapshots(older_than="2999-01-01")


def test_unused_specs_and_schemas_go(files_catalog: Catalog) -> None:
    table = make_table(files_catalog, files=[A])
    with table.update_schema() as u:
        u.add_column("x", "int")
    for field in ("bucket(4, id)", "bucket(8, id)"):
        with table.update_spec() as u:
            u.add_field(field) if field == "bucket(4, id)" else u.rename_field(
                "id_bucket_4", "shard"
            )
    table.files.append([data_file("n", spec_id=2, partition=("mon", 1))])
    table.maintenance.remove_unused_specs_and_schemas()
    assert sorted(table.specs) == [0, 2]
    table.files.delete(removed=[A])
    table.maintenance.expire_snapshots(older_than="2999-01-01")
    table.files.rewrite(
        removed=[data_file("n", spec_id=2, partition=("mon", 1))],
        added=[data_file("m", spec_id=2, partition=("mon", 1))],
        from_snapshot=head(table),
    )
    table.maintenance.expire_snapshots(older_than="2999-01-01")
    table.maintenance.remove_unused_specs_and_schemas()
    assert (sorted(table.specs), sorted(table.schemas)) == ([2], [1])
    assert names(table) == ["m"]


def equality_deletes(name: str, *ids: int) -> DataFile:
    return replace(data_file(name), content=Content.EQUALITY_DELETES, equality_ids=ids)


def test_schemas_of_dropped_columns_stay_while_files_need_them(files_catalog: Catalog) -> None:
    """Their types: of a column that an equality delete compares, and of a partition's source.

    The newest schema stays in any case: its id is given to no other one.
    """
    table = make_table(files_catalog, files=[A])
    for name in ("x", "y", "z"):
        with table.update_schema() as u:
            u.add_column(name, "int")
    with table.update_schema() as u:
        u.update_column("y", "long")
    x, y, z = (table.schema.find_field(name).field_id for name in "xyz")
    table.files.row_delta(added_deletes=[equality_deletes("old", y)])
    # Taken away again, so that it asks for nothing.
    table.files.row_delta(added_deletes=[equality_deletes("gone", x)])
    table.files.rewrite(removed_deletes=[equality_deletes("gone", x)], from_snapshot=head(table))
    for name in ("x", "y", "z"):
        with table.update_schema() as u:
            u.delete_column(name)
    newest = max(table.metadata.schemas_by_id)
    table.files.append([B])
    table.maintenance.expire_snapshots(older_than="2999-01-01")
    table.maintenance.remove_unused_specs_and_schemas()
    kept = table.metadata.schemas_by_id
    [with_y] = [s for s in kept.values() if y in s.field_ids]
    assert str(with_y.find_type(y)) == "long"
    assert set(kept) == {table.schema.schema_id, with_y.schema_id, newest}
    # Nothing holds the deletes any more.
    table.files.rewrite(removed_deletes=[equality_deletes("old", y)], from_snapshot=head(table))
    table.maintenance.expire_snapshots(older_than="2999-01-01")
    table.maintenance.remove_unused_specs_and_schemas()
    assert set(table.metadata.schemas_by_id) == {table.schema.schema_id, newest}
    assert z not in table.schema.field_ids


def test_a_partition_keeps_the_type_of_a_dropped_column(files_catalog: Catalog) -> None:
    table = make_table(files_catalog, files=[A])
    with table.update_spec() as u:
        u.remove_field("day")
    with table.update_schema() as u:
        u.delete_column("day")
    spec = table.spec.spec_id
    table.files.append([data_file("n", spec_id=spec, partition=())])
    table.maintenance.expire_snapshots(older_than="2999-01-01")
    table.maintenance.remove_unused_specs_and_schemas()
    (field,) = partition_struct_type(table.metadata).fields
    assert str(field.field_type) == "string"


def test_partitions_of_no_type_are_rewritten_without_a_word(
    files_catalog: Catalog, capfd: pytest.CaptureFixture[str]
) -> None:
    """v1 keeps a void field of a dropped column; polars printed a panic where it met its nulls."""
    table = make_table(files_catalog, version=1)
    with table.update_spec() as u:
        u.remove_field("day")
    with table.update_schema() as u:
        u.delete_column("day")
    table.maintenance.remove_unused_specs_and_schemas()
    made = [data_file(name, spec_id=1, partition=(None,)) for name in "mno"]
    table.files.append(made)
    table.files.rewrite(
        removed=made[:2],
        added=[data_file("p", spec_id=1, partition=(None,))],
        from_snapshot=head(table),
    )
    assert names(table) == ["o", "p"]
    assert "panic" not in capfd.readouterr().err


@pytest.mark.parametrize(
    "at_once",
    [
        pytest.param(2, id="few at once"),
        only_in_check(250_000, id="all at once"),
    ],
)
def test_what_nothing_reaches_is_what_no_kept_snapshot_holds(
    files_catalog: Catalog, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    monkeypatch.setattr(load, "FILES_AT_ONCE", at_once)
    monkeypatch.setattr(file_paths, "FILES_AT_ONCE", at_once)
    monkeypatch.setattr(file_paths, "_COMPARED", at_once)
    table = make_table(files_catalog, properties={"commit.manifest-merge.enabled": "false"})
    held = []
    for number, day in enumerate("abcdef"):
        table.files.append([data_file(f"{day}{each}") for each in range(3)])
        if number:
            # A manifest that is written anew has what others have too.
            table.files.delete(removed=[data_file(f"{'abcdef'[number - 1]}{number % 3}")])
        table.create_tag(f"s{number}")
        held.append({entry.data_file.file_path for entry in live_entries(table, ref=f"s{number}")})
    tagged = [table.metadata.refs[f"s{number}"].snapshot_id for number in range(len(held))]
    before = table.metadata
    for kept in ([5], [0, 5], [2, 3], [0, 1, 2, 3, 4, 5], [1]):
        snapshots = tuple(s for s in before.snapshots if s.snapshot_id in {tagged[n] for n in kept})
        found = unreachable_files(table.io, before, replace(before, snapshots=snapshots))
        told = [path for paths in found.held.paths() for path in paths]
        reached = set().union(*(held[number] for number in kept))
        expected = set().union(*held) - reached
        assert (len(told), set(told)) == (len(expected), expected)


def test_expiry_reads_no_manifest_that_was_read_before(files_catalog: Catalog) -> None:
    table = make_table(files_catalog)
    made = real_files(table, "a", "b", "c")
    table.files.append([made["a"], made["b"]])
    table.files.delete(removed=[made["a"]])
    table.files.append([made["c"]])
    table.io.caches.clear()
    before, after = table.metadata, replace(table.metadata, snapshots=table.metadata.snapshots[-1:])
    first = unreachable_files(table.io, before, after)
    (paths,) = first.held.paths()
    assert [path.rsplit("/", 1)[-1] for path in paths] == ["a.parquet"]
    manifests = [path for path in avro_files(table) if kind_of(path) == "manifest"]
    table.io.delete_many(manifests)
    again = unreachable_files(table.io, before, after)
    assert (list(again.held.paths()), again.naming_files) == ([paths], first.naming_files)


def test_a_dry_run_tells_what_an_expiry_removes_and_removes_nothing(files_catalog: Catalog) -> None:
    table = make_table(files_catalog)
    made = real_files(table, "a", "b", "c")
    for file in made.values():
        table.files.append([file])
    table.files.delete(removed=[made["b"]])
    before = (lying(table), avro_files(table), table.metadata)
    told = table.maintenance.expire_snapshots(older_than="2999-01-01", dry_run=True)
    assert (lying(table), avro_files(table), table.refresh().metadata) == before
    done = table.maintenance.expire_snapshots(older_than="2999-01-01")
    assert replace(told, is_dry_run=False) == done
    assert told.counts["deleted_data_files_count"] == 1
    assert len(before[1]) - len(avro_files(table)) == (
        told.counts["deleted_manifest_files_count"] + told.counts["deleted_manifest_lists_count"]
    )
    assert "dry run" in repr(told)
    assert "1 data files" in repr(done)


@pytest.mark.parametrize("rival", ["append", "publication"])
def test_a_first_commit_to_main_during_an_expiry_is_not_lost(
    files_catalog: Catalog, rival: str
) -> None:
    """Only staged snapshots are there when the expiry looks, and no branch that could move."""
    table = make_table(files_catalog)
    made = real_files(table, "staged", "theirs")
    table.files.append([made["staged"]], wap_id="w")
    other = TableHandle(files_catalog, files_catalog.load_table("db.t"))

    def come() -> None:
        if rival == "append":
            other.files.append([made["theirs"]])
        else:
            other.publish_changes("w")

    before_the_commit(table, come)
    expired = table.maintenance.expire_snapshots(older_than="2999-01-01").snapshot_ids
    stays = "theirs" if rival == "append" else "staged"
    assert names(table.refresh()) == [stays]
    assert stays in lying(table)
    assert avro_files_in_use(table) <= avro_files(table)
    assert head(table) not in expired


@pytest.mark.parametrize("files", in_circles([25_000, 9_999, 1], test=1))
def test_a_deletion_is_told_ten_thousand_times_at_most(tmp_path: Path, files: int) -> None:
    told: list[DeleteProgress] = []
    deletion = Deletion(FileIO(), told.append, files)
    # What is not there counts as gone.
    assert deletion.delete([f"{tmp_path}/{number}" for number in range(files)]) == {}
    deletion.end()
    done = [each.files_done for each in told]
    assert done == sorted(done)
    assert (done[-1], told[-1].stage) == (files, "done")
    assert min(files, 5_000) < len(told) <= 10_001
