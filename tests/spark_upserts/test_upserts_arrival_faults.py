"""A fault at a call to the store while arriving changes are applied: all of them, or nothing."""

from __future__ import annotations

import itertools
import os
from pathlib import Path

import pytest
from test_upserts_arrival import K, apply, arriving, content

from faulty_io import ERRORS, FaultyIO, watch_for_swap
from frazil.catalog.pointer.filesystem import FilesystemCatalog
from frazil.spark.lake import Lake

pytestmark = pytest.mark.check

CASES = [
    (2, "typed", False),
    pytest.param(3, "interrupt", True, marks=pytest.mark.soak),
    pytest.param(2, "bug", True, marks=pytest.mark.soak),
    pytest.param(3, "memory", False, marks=pytest.mark.soak),
]
STRIDE = int(os.environ.get("FRAZIL_FAULT_STRIDE", "13"))
"""One call of so many; a soak takes each."""

FIRST = [(1, 1, "x", "u"), (2, 1, "x", "u"), (3, 1, "y", "u")]
CHANGES = [
    (1, 2, "x", "u"),
    (4, 1, "y", "u"),
    (4, 2, "y", "u"),
    (2, None, None, "d"),
    (5, 1, "x", "u"),
]
BEFORE = {1: (1, "x"), 2: (1, "x"), 3: (1, "y")}
AFTER = {1: (2, "x"), 3: (1, "y"), 4: (2, "y"), 5: (1, "x")}


def lying(folder):
    """The files of rows and of deletes."""
    return {p for p in Path(folder).rglob("*") if p.suffix in (".parquet", ".puffin")}


@pytest.mark.parametrize(("version", "error", "after"), CASES)
def test_a_fault_at_any_call_leaves_all_or_nothing(spark, tmp_path, version, error, after):
    io = FaultyIO()
    catalog = FilesystemCatalog("test", {"warehouse": f"{tmp_path}/lake"}, io=io)
    lake = Lake(spark, catalog)
    lake.create_namespace("db")
    sent: list[bool] = []
    watch_for_swap(catalog, sent)
    io.error, io.after = ERRORS[error], after
    raised = 0
    for step in itertools.count(1 + version % STRIDE, STRIDE):
        table = lake.create_table(
            f"db.t{step}",
            "k int, n int not null, part string",
            partition_by=["part"],
            format_version=version,
            properties={"commit.retry.num-retries": "0"},
        )
        apply(table, arriving(spark, K, FIRST))
        before = lying(tmp_path)
        io.caches.clear()
        sent.clear()
        io.left = step
        try:
            apply(table, arriving(spark, K, CHANGES))
        except type(ERRORS[error]("")):
            raised += 1
        ended, io.left = io.left > 0, None
        table = lake.load_table(f"db.t{step}")
        found = content(table)
        assert found in ((AFTER,) if ended else (BEFORE, AFTER)), step
        if found == BEFORE and not sent:
            assert lying(tmp_path) == before, step
        assert table.maintenance.check().is_sound, step
        apply(table, arriving(spark, K, CHANGES))
        assert content(table) == AFTER, step
        if ended:
            break
    assert raised
