"""Schema, partitioning, sort order, properties, location; what PyIceberg reads of each."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from table_cases import (
    avro_files,
    avro_files_in_use,
    columns_by_pyiceberg,
    data_file,
    equality_deletes,
    head,
    make_table,
    names,
    open_catalog,
    peer,
)

from frazil.catalog.protocol import Catalog
from frazil.errors import (
    EvolutionError,
    UnsupportedVersionError,
    ValidationError,
)
from frazil.format.schema import Schema
from frazil.format.types import IntegerType, NestedField, StringType
from frazil.table.handle import TableHandle
from frazil.table.updates.references import Retention

A, B = data_file("a"), data_file("b")


def test_schema_changes_are_what_pyiceberg_reads(catalog: Catalog) -> None:
    table = make_table(catalog)
    with table.update_schema() as u:
        u.add_column("tip", "double", doc="in dollars")
        u.rename_column("note", "remark")
        u.move_first("tip")
    assert columns_by_pyiceberg(table) == [
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
    assert columns_by_pyiceberg(table)[-1] == (5, "tip", "int")
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


@pytest.mark.parametrize("builder", ["update_schema", "update_spec", "transaction"])
def test_an_exception_in_the_block_commits_nothing(catalog: Catalog, builder: str) -> None:
    table = make_table(catalog, files=[A])
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
        u.files.append([B])
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
    with table.update_spec() as u:
        u.add_field("bucket(16, id)")
        u.remove_field("day")
    fields = [(f.field_id, f.name, str(f.transform)) for f in peer(table).spec().fields]
    bucket = (1001, "id_bucket_16", "bucket[16]")
    assert fields == ([(1000, "day", "void"), bucket] if version == 1 else [bucket])
    with table.update_spec() as u:
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
    "at least 1": lambda t: t.maintenance.expire_snapshots(retain_last=0),
    "no name": lambda t: t.create_tag(" "),
    "staged": lambda t: t.files.append([B], branch="x", wap_id="w"),
    "must remove files": lambda t: t.files.rewrite(added=[B], from_snapshot=head(t)),
    "cannot add 20 rows": lambda t: t.files.rewrite(
        removed=[A], added=[data_file("n", rows=20)], from_snapshot=head(t)
    ),
}


@pytest.mark.parametrize("message", REFUSED)
def test_what_contradicts_the_table_is_refused(files_catalog: Catalog, message: str) -> None:
    table = make_table(files_catalog, files=[A])
    before = table.metadata_location
    with pytest.raises(ValidationError, match=message):
        REFUSED[message](table)
    assert table.refresh().metadata_location == before


def test_a_file_that_is_there_twice_is_replaced_as_often(files_catalog: Catalog) -> None:
    table = make_table(files_catalog)
    for _ in range(2):
        table.files.append([A])
    new = data_file("n", rows=20)
    before = table.metadata_location
    with pytest.raises(ValidationError, match="2 times and the rewrite replaces 1 of them"):
        table.files.rewrite(removed=[A], added=[data_file("m")], from_snapshot=head(table))
    assert table.refresh().metadata_location == before
    table.files.rewrite(removed=[A, A], added=[new], from_snapshot=head(table))
    assert names(table) == ["n"]


def test_versions_that_are_not_adopted_are_refused(files_catalog: Catalog) -> None:
    """Rule 1."""
    with pytest.raises(UnsupportedVersionError, match="4"):
        make_table(files_catalog).upgrade(4)


def test_the_location_of_new_files_moves(tmp_path: Path) -> None:
    table = make_table(open_catalog("sql", tmp_path), files=[A])
    table.set_location(f"{tmp_path}/elsewhere")
    table.files.append([B])
    assert "/elsewhere/metadata/" in table.metadata_location
    assert names(table) == ["a", "b"]


# A column changes its type while equality deletes compare it.


KEYED = Schema(
    (
        NestedField(1, "id", IntegerType(), False),
        NestedField(2, "day", StringType(), False),
        NestedField(3, "n", IntegerType(), False),
    )
)


@pytest.mark.parametrize(("column", "is_told"), [("id", True), ("n", False)])
def test_a_warning_counts_the_deletes_by_a_promoted_column(files_catalog, column, is_told):
    table = make_table(files_catalog, schema=KEYED, files=[data_file("a")])
    deletes = [replace(equality_deletes(name), equality_ids=(1,)) for name in ("e", "f")]
    table.files.row_delta(added_deletes=deletes)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        with table.update_schema() as change:
            change.update_column(column, "long")
    texts = [str(each.message) for each in told]
    assert [text.startswith("2 live equality delete files delete by 'id'") for text in texts] == (
        [True] if is_told else []
    )
    assert all("convert_equality_deletes" in text for text in texts)
    assert str(table.schema.find_type(column)) == "long"
