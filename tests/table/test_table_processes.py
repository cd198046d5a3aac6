"""Real processes: many writers of one table, and writers that are killed at every storage call."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from table_cases import (
    CATALOGS,
    WRITTEN_BY_SEVERAL,
    data_file,
    make_table,
    names,
    open_catalog,
    short,
)

from ci_share import only_in_soak
from frazil.table.handle import TableHandle
from programs import run_program

WORKER = Path(__file__).with_name("table_worker.py")
PATIENT = {
    "commit.retry.num-retries": "100000",
    "commit.retry.max-wait-ms": "200",
}


@pytest.mark.parametrize(("writers", "commits"), [(4, 10), only_in_soak(8, 25)])
@pytest.mark.parametrize("kind", WRITTEN_BY_SEVERAL)
def test_every_append_of_many_processes_is_there_once(
    tmp_path: Path, kind: str, writers: int, commits: int
) -> None:
    catalog = open_catalog(kind, tmp_path)
    make_table(catalog, properties=PATIENT)
    acknowledged = run_program(WORKER, "append", kind, tmp_path, writers, commits).split()
    assert len(acknowledged) == writers * commits
    table = TableHandle(catalog, catalog.load_table("db.t"))
    assert len(table.metadata.snapshots) == writers * commits
    assert [s.sequence_number for s in table.metadata.snapshots] == list(
        range(1, writers * commits + 1)
    )
    assert sorted(map(short, table.inspect.files()["file_path"])) == sorted(acknowledged)
    assert names(table) == sorted(acknowledged)


@pytest.mark.parametrize(
    ("kind", "killer"),
    [
        *((kind, ("kill",)) for kind in CATALOGS),
        (CATALOGS[0], ("interrupt", "40")),
        *(only_in_soak(kind, ("interrupt", "40")) for kind in CATALOGS[1:]),
    ],
)
def test_a_killed_writer_leaves_whole_commits_or_none(
    tmp_path: Path, kind: str, killer: tuple[str, ...]
) -> None:
    catalog = open_catalog(kind, tmp_path)
    table = make_table(catalog)
    table.files.append([data_file("first")])
    mode, *rest = killer
    printed = run_program(WORKER, mode, kind, tmp_path, *rest)
    outcomes = [json.loads(line) for line in printed.splitlines()]
    deaths = [one for one in outcomes if one["killed"]]
    # Two commits read and write at least two manifests, a list and a metadata file each.
    assert len(deaths) > 10
    assert {len(one["acknowledged"]) for one in deaths} >= {0, 1}
    lived = [one for one in outcomes if one["exit"] == 0]
    assert lived
    assert all(one["acknowledged"] == ["append", "overwrite"] for one in lived)
    assert len(lived) + len(deaths) == len(outcomes)
    expected = {"first"}
    found = set(names(table.refresh()))
    for outcome in outcomes:
        step, acknowledged = outcome["step"], outcome["acknowledged"]
        appended = {f"a{step}-x", f"a{step}-y"}
        overwritten = {f"b{step}-x", f"b{step}-y"}
        here = found & (appended | overwritten)
        # What was under way when the process died is there as a whole, or not at all.
        allowed = {
            0: (set(), appended),
            1: (appended, overwritten),
            2: (overwritten,),
        }[len(acknowledged)]
        assert here in allowed, outcome
        expected |= here
    assert found == expected
    table.files.append([data_file("last")])
    assert set(names(table)) == expected | {"last"}
