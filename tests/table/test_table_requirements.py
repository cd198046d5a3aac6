"""What a commit asks of the table (rule 213)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from table_cases import data_file, head, make_table

from frazil.catalog.protocol import Catalog, LoadedTable
from frazil.format import changes as C
from frazil.table.commit.operation import Changes
from frazil.table.commit.requirements import requirements_for
from frazil.table.handle import TableHandle


def evolved(catalog: Catalog) -> TableHandle:
    table = make_table(catalog)
    with table.update_schema() as schema:
        schema.add_column("x", "int")
    with table.update_spec() as spec:
        spec.add_field("bucket(4, id)")
    return table


def test_what_the_table_has_is_chosen_by_its_id(files_catalog: Catalog) -> None:
    """Nothing is added then, so that a REST server knows of no last added one."""
    table = evolved(files_catalog)
    metadata = table.metadata
    order = [C.AddSortOrder(metadata.sort_order), C.SetDefaultSortOrder()]
    for added, default in (
        (C.AddSchema(metadata.schemas_by_id[0]), C.SetCurrentSchema(0)),
        (C.AddSpec(metadata.specs_by_id[0]), C.SetDefaultSpec(0)),
    ):
        last = replace(default, **{next(iter(default.__dataclass_fields__)): C.LAST_ADDED})
        assert Changes.of(metadata, [added, last]).updates == (added, default)
    assert Changes.of(metadata, order).updates[1] == C.SetDefaultSortOrder(0)


def test_ids_that_a_snapshot_names_are_asked_for(
    files_catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, real = evolved(files_catalog), files_catalog.commit_table
    sent: list[C.Update] = []

    def commit_table(
        identifier: Any, requirements: Any, updates: Sequence[C.Update], **base: Any
    ) -> LoadedTable:
        sent.extend(updates)
        return real(identifier, requirements, updates, **base)

    monkeypatch.setattr(files_catalog, "commit_table", commit_table)
    with table.replace_transaction(table.schema, partition_by=["note"]) as tx:
        spec_id = tx.metadata.default_spec_id
        tx.files.append([data_file("a", spec_id=spec_id, partition=("x",))])
    assert C.SetDefaultSpec(spec_id) in sent
    assert C.SetDefaultSpec() not in sent


def test_a_staged_snapshot_asks_for_the_branch_that_it_builds_on(files_catalog: Catalog) -> None:
    table = make_table(files_catalog)
    table.files.append([data_file("a")])
    before = table.metadata
    table.files.append([data_file("b")], wap_id="w")
    [staged] = [s for s in table.metadata.snapshots if s.snapshot_id != head(table)]
    assert set(requirements_for(before, [C.AddSnapshot(staged)])) == {
        C.AssertTableUUID(str(before.table_uuid)),
        C.AssertCurrentSchemaId(0),
        C.AssertDefaultSpecId(0),
        C.AssertRefSnapshotId("main", head(table)),
    }
