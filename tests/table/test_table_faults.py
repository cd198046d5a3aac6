"""Anything that is raised at any call to the store or the catalog: all of a commit, or nothing."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

import pytest
from table_cases import (
    CATALOGS,
    SCHEMA,
    avro_files,
    avro_files_in_use,
    data_file,
    make_table,
    open_catalog,
    short,
)

from ci_share import one_of_each
from faulty_io import ERRORS, FaultyIO, watch_for_swap
from frazil.errors import FrazilError
from frazil.format.manifests import DataFile
from frazil.format.new_table import new_table_metadata
from frazil.format.partitions.partitioning import spec_for
from frazil.storage.files import local_path
from frazil.table.handle import TableHandle
from frazil.table.operations import TableOperations
from frazil.table.transaction import CreateTransaction


def written(table: TableOperations, name: str, day: str = "mon") -> DataFile:
    """A data file that lies in the table's folder, as executors write it."""
    path = f"{table.metadata.location}/data/{name}.parquet"
    Path(local_path(path)).parent.mkdir(parents=True, exist_ok=True)
    Path(local_path(path)).write_bytes(b"rows")
    return data_file(name, day, path=path)


def append(table: TableOperations) -> None:
    """One commit of one step."""
    new = [written(table, "new"), written(table, "newer", "tue")]
    table.files.append(new, own_files=tuple(file.file_path for file in new))


def transaction(table: TableHandle) -> None:
    """One commit of three steps."""
    with table.transaction() as tx:
        tx.set_properties(step="1")
        append(tx)
        new = written(tx, "newest", "tue")
        tx.files.overwrite([new], where="day = 'tue'", own_files=(new.file_path,))


CHANGES: dict[str, Callable[[TableHandle], None]] = {
    "append": append,
    "transaction": transaction,
}
BEFORE = {"old", "older"}
AFTER = {"append": BEFORE | {"new", "newer"}, "transaction": {"old", "new", "newest"}}
NEW = ("new", "newer", "newest")
TRIMMING = {
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "1",
    "commit.manifest.min-count-to-merge": "2",
}


@pytest.mark.parametrize(
    ("kind", "change", "error", "after"),
    one_of_each(CATALOGS, CHANGES, ERRORS, (False, True), test=2),
)
def test_a_fault_at_any_call_leaves_a_whole_commit_or_none(
    tmp_path: Path, kind: str, change: str, error: str, after: bool
) -> None:
    io = FaultyIO()
    io.error, io.after = ERRORS[error], after
    catalog = open_catalog(kind, tmp_path, io=io)
    sent: list[bool] = []
    watch_for_swap(catalog, sent)
    ended = False
    for step in itertools.count(1):
        name = f"db.t{step}"
        table = make_table(catalog, name=name, properties=TRIMMING)
        table.files.append([written(table, "old")])
        table.files.append([written(table, "older", "tue")])
        sent.clear()
        io.left = step
        try:
            CHANGES[change](table)
            raised = False
        except (FrazilError, RuntimeError, MemoryError, KeyboardInterrupt):
            raised = True
        ended, io.left = io.left > 0, None
        fresh = TableHandle(catalog, catalog.load_table(name))
        used, found = avro_files_in_use(fresh), whole_table(fresh)
        assert used <= avro_files(fresh), f"step {step}"
        if not raised:
            assert found == AFTER[change], f"step {step}"
        elif not sent:
            # Nothing was sent to the catalog: nothing is there, and nothing is left behind.
            assert found == BEFORE, f"step {step}"
            assert avro_files(fresh) == used, f"step {step}"
            left = [name for name in NEW if io.exists(f"{fresh.location}/data/{name}.parquet")]
            assert not left, f"step {step}"
        else:
            assert found in (BEFORE, AFTER[change]), f"step {step}"
        if ended:
            break
    assert step > 8


@pytest.mark.parametrize(
    ("kind", "error", "after"), one_of_each(CATALOGS, ERRORS, (False, True), test=2)
)
def test_a_fault_at_any_call_of_a_creation_leaves_a_whole_table_or_none(
    tmp_path: Path, kind: str, error: str, after: bool
) -> None:
    io = FaultyIO()
    io.error, io.after = ERRORS[error], after
    catalog = open_catalog(kind, tmp_path, io=io)
    catalog.create_namespace("db")
    ended = False
    for step in itertools.count(1):
        name = f"db.t{step}"
        metadata = new_table_metadata(
            SCHEMA, spec_for(SCHEMA, ["day"]), location=catalog.default_table_location(name)
        )
        creation = CreateTransaction(catalog, catalog.stage_table(name, metadata))
        asked = raised = False
        io.left = step
        try:
            with creation:
                append(creation)
                asked = True
        except (FrazilError, RuntimeError, MemoryError, KeyboardInterrupt):
            raised = True
        ended, io.left = io.left > 0, None
        if catalog.table_exists(name):
            assert asked, f"step {step}"
            table = TableHandle(catalog, catalog.load_table(name))
            assert whole_table(table) == AFTER["append"] - BEFORE, f"step {step}"
            assert avro_files_in_use(table) <= avro_files(table), f"step {step}"
        else:
            assert raised, f"step {step}"
            if not asked:
                assert not list(io.list(metadata.location)), f"step {step}"
        if ended:
            break
    assert step > 3


def whole_table(table: TableHandle) -> set[str]:
    """The live files of a table, all of which are there."""
    paths = table.inspect.files()["file_path"].to_list()
    for path in paths:
        assert table.io.exists(path), path
    return {short(path) for path in paths}
