"""What a commit asks of the table, beside that nothing was committed meanwhile (rule 213)."""

from __future__ import annotations

import pytest
from table_cases import data_file, head, make_table

from frazil.catalog.protocol import Catalog
from frazil.format.changes import (
    AssertCurrentSchemaId,
    AssertDefaultSpecId,
    AssertRefSnapshotId,
    AssertTableUUID,
    RemovePartitionSpecs,
    RemoveSchemas,
    RemoveSnapshots,
    Requirement,
    Update,
)
from frazil.table.commit.requirements import requirements_for
from frazil.table.handle import TableHandle

# What each removal asks beside the uuid and that no reference moved.
REMOVALS: dict[str, tuple[Update, list[Requirement]]] = {
    "snapshots": (RemoveSnapshots((1,)), []),
    "schemas": (RemoveSchemas((0,)), [AssertCurrentSchemaId(1)]),
    "specs": (RemovePartitionSpecs((0,)), [AssertDefaultSpecId(1)]),
}


def evolved(catalog: Catalog) -> TableHandle:
    table = make_table(catalog)
    with table.update_schema() as schema:
        schema.add_column("x", "int")
    with table.update_spec() as spec:
        spec.add_field("bucket(4, id)")
    return table


def asked(table: TableHandle, *updates: Update) -> set[Requirement]:
    assert table.uuid is not None
    found = requirements_for(table.metadata, updates)
    assert len(found) == len(set(found))
    assert AssertTableUUID(table.uuid) in found
    return set(found) - {AssertTableUUID(table.uuid)}


@pytest.mark.parametrize("removal", REMOVALS)
def test_a_removal_asks_that_no_branch_or_tag_moved(files_catalog: Catalog, removal: str) -> None:
    table = evolved(files_catalog)
    spec = table.metadata.default_spec_id
    table.files.append([data_file("a", spec_id=spec, partition=("mon", 1))])
    first = head(table)
    table.create_branch("side")
    table.create_tag("kept")
    table.files.append([data_file("b", spec_id=spec, partition=("mon", 1))])
    update, more = REMOVALS[removal]
    refs = {"main": head(table), "side": first, "kept": first}
    assert asked(table, update) == {*more, *(AssertRefSnapshotId(*ref) for ref in refs.items())}


@pytest.mark.parametrize("removal", REMOVALS)
def test_without_main_a_removal_asks_that_it_is_not_there_yet(
    files_catalog: Catalog, removal: str
) -> None:
    table = evolved(files_catalog)
    update, more = REMOVALS[removal]
    assert asked(table, update) == {*more, AssertRefSnapshotId("main", None)}


def test_removals_in_one_commit_ask_once(files_catalog: Catalog) -> None:
    table = evolved(files_catalog)
    updates, more = zip(*REMOVALS.values(), strict=True)
    assert asked(table, *updates) == {
        AssertRefSnapshotId("main", None),
        *(each for some in more for each in some),
    }
