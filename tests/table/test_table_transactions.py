"""Several changes in one commit; tables made or replaced with their first rows."""

from __future__ import annotations

from itertools import pairwise

import polars as pl
import pytest
from table_cases import (
    SCHEMA,
    avro_files,
    avro_files_in_use,
    columns_by_pyiceberg,
    data_file,
    make_table,
    names,
    row_ids,
    short,
)

from frazil.catalog.protocol import Catalog
from frazil.errors import (
    ConflictError,
    TableAlreadyExistsError,
    ValidationError,
)
from frazil.format.new_table import new_table_metadata
from frazil.format.schema import Schema
from frazil.format.types import LongType, NestedField, StringType
from frazil.table.handle import TableHandle
from frazil.table.transaction import CreateTransaction

A, B, C = data_file("a"), data_file("b"), data_file("c", "tue")


def test_a_transaction_is_one_commit_and_each_step_sees_the_last(catalog: Catalog) -> None:
    table = make_table(catalog)
    versions = len(table.metadata.metadata_log)
    with table.transaction() as tx:
        with tx.update_schema() as u:
            u.add_column("hour", "int")
        with tx.update_spec() as u:
            u.add_field("hour")
        new = data_file("n", spec_id=tx.metadata.default_spec_id, partition=("mon", 3))
        tx.files.append([A, new])
        tx.files.delete(removed=[A])
        tx.set_properties(x="y")
        assert table.metadata.current_snapshot is None
    assert names(table) == ["n"]
    assert len(table.metadata.metadata_log) == versions + 1
    # The log tells what was current, and the first snapshot never was (rule 189).
    assert len(table.metadata.snapshot_log) == 1
    assert len(table.metadata.snapshots) == 2
    with pytest.raises(ValidationError, match="closed"):
        tx.set_properties(x="z")


def test_a_transaction_is_run_again_as_a_whole(catalog: Catalog) -> None:
    table = make_table(catalog, files=[A])
    other = TableHandle(catalog, catalog.load_table("db.t"))
    with table.transaction() as tx:
        tx.files.append([B])
        tx.files.delete(removed=[A])
        other.files.append([C])
    assert names(table) == ["b", "c"]
    assert [s.sequence_number for s in table.metadata.snapshots] == [1, 2, 3, 4]
    assert avro_files(table) == avro_files_in_use(table)


@pytest.mark.parametrize("min_count", ["2", "100"])
def test_a_retry_gives_rows_the_numbers_of_its_own_try(
    files_catalog: Catalog, min_count: str
) -> None:
    """Rules 132, 137: the second step merges or carries the first one's manifest."""
    table = make_table(
        files_catalog, version=3, properties={"commit.manifest.min-count-to-merge": min_count}
    )
    table.files.append([data_file("base", rows=3)])
    other = TableHandle(files_catalog, files_catalog.load_table("db.t"))
    with table.transaction() as tx:
        tx.files.append([data_file("one", rows=2)])
        tx.files.append([data_file("two", rows=2)])
        tx.files.delete(removed=[data_file("base", rows=3)])
        other.files.append([data_file("rival", rows=5)])
    found = {
        short(path): (number, first)
        for path, number, first in table.inspect.entries()
        .filter(pl.col("status") < 2)
        .select(
            pl.col("data_file").struct.field("file_path"),
            "sequence_number",
            pl.col("data_file").struct.field("first_row_id"),
        )
        .iter_rows()
    }
    assert {name: number for name, (number, _) in found.items()} == {
        "rival": 2, "one": 3, "two": 4,
    }  # fmt: skip
    starts = {name: first for name, (_, first) in found.items()}
    ranges = sorted((starts[name], starts[name] + n) for name, n in ROWS.items())
    assert all(end <= start for (_, end), (start, _) in pairwise(ranges))
    # What the rival published stays what it was.
    assert starts["rival"] == row_ids(other)["rival"]


ROWS = {"rival": 5, "one": 2, "two": 2}


def test_rows_keep_the_ids_that_a_rival_published_after_an_upgrade(
    files_catalog: Catalog,
) -> None:
    table = make_table(files_catalog, files=[A])
    table.upgrade(3)
    other = TableHandle(files_catalog, files_catalog.load_table("db.t"))
    with table.transaction() as tx:
        tx.files.append([B])
        other.files.append([C])
        published = row_ids(other)
    assert published == {key: row_ids(table)[key] for key in published}


def test_changes_that_a_transaction_staged_are_published_together(catalog: Catalog) -> None:
    table = make_table(catalog, files=[A])
    with table.transaction() as tx:
        tx.files.append([B], wap_id="w")
        tx.files.append([C], wap_id="w")
    assert names(table) == ["a"]
    table.publish_changes("w")
    assert names(table) == ["a", "b", "c"]
    with pytest.raises(ConflictError, match="already"):
        table.publish_changes("w")


def test_a_branch_and_its_first_snapshot_are_one_commit(catalog: Catalog) -> None:
    table = make_table(catalog, files=[A])
    before = len(table.metadata.metadata_log)
    table.files.append([B], branch="audit", starts_branch=True)
    assert len(table.metadata.metadata_log) == before + 1
    assert (names(table), names(table, ref="audit")) == (["a"], ["a", "b"])


def test_a_table_is_created_with_its_first_rows(catalog: Catalog) -> None:
    catalog.create_namespace("db")
    metadata = new_table_metadata(SCHEMA, location=catalog.default_table_location("db.new"))
    late = CreateTransaction(catalog, catalog.stage_table("db.new", metadata))
    with CreateTransaction(catalog, catalog.stage_table("db.new", metadata)) as tx:
        tx.files.append([data_file("a", partition=())])
        assert not catalog.table_exists("db.new")
    table = TableHandle(catalog, tx.created_table)
    assert names(table) == ["a"]
    assert table.metadata.metadata_log == ()
    before = avro_files(table)
    late.files.append([data_file("b", partition=())])
    with pytest.raises(TableAlreadyExistsError):
        late.commit()
    assert avro_files(table) == before


def test_a_replaced_table_keeps_its_history(catalog: Catalog) -> None:
    table = make_table(catalog, properties={"kept": "1"}, files=[A])
    uuid = table.uuid
    schema = Schema(
        (NestedField(1, "note", StringType(), False), NestedField(2, "size", LongType(), False))
    )
    replacing = table.replace_transaction(schema, partition_by=["note"], properties={"new": "2"})
    with replacing as tx:
        tx.files.append([data_file("n", spec_id=tx.metadata.default_spec_id, partition=("x",))])
    assert names(table) == ["n"]
    assert columns_by_pyiceberg(table) == [(3, "note", "string"), (4, "size", "long")]
    assert table.uuid == uuid
    assert (table.properties["kept"], table.properties["new"]) == ("1", "2")
    assert len(table.metadata.snapshots) == 2
    assert table.current_snapshot is not None
    assert table.current_snapshot.parent_snapshot_id is None


def test_a_replacement_gives_way_to_a_concurrent_schema_change(catalog: Catalog) -> None:
    table = make_table(catalog)
    schema = Schema((NestedField(1, "other", LongType(), False),))
    replacing = table.replace_transaction(schema)
    replacing.files.append([data_file("n", spec_id=1, partition=())])
    with TableHandle(catalog, catalog.load_table("db.t")).update_schema() as u:
        u.add_column("x", "int")
    with pytest.raises(ConflictError, match="definition"):
        replacing.commit()
