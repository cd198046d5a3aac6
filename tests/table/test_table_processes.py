"""Real processes: writers that are killed at every storage call, and wherever they are."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from fork_program import DONE, REFUSED
from table_cases import (
    CATALOGS,
    data_file,
    make_table,
    names,
    open_catalog,
)

from ci_share import only_in_check
from programs import run_program

WORKER = Path(__file__).with_name("table_worker.py")


@pytest.mark.parametrize(
    ("kind", "killer"),
    [
        (CATALOGS[0], ("kill",)),
        *(only_in_check(kind, ("kill",)) for kind in CATALOGS[1:]),
        only_in_check(CATALOGS[0], ("interrupt", "40")),
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


# Processes forked from one that worked on tables: Polars' threads do not live on there.


PROGRAM = Path(__file__).with_name("fork_program.py")
ON_LINUX = pytest.mark.skipif(sys.platform != "linux", reason="threads have names in /proc")


@pytest.fixture
def with_a_table(tmp_path: Path) -> Path:
    table = make_table(open_catalog("sql", tmp_path))
    table.files.append([data_file("a")])
    return tmp_path


@pytest.mark.skipif(sys.platform == "win32", reason="there are no forks")
@pytest.mark.parametrize(
    ("before", "method", "use", "outcome"),
    [
        ("plan", "fork", "plan", REFUSED),
        pytest.param("plan", "fork", "inspect", REFUSED, marks=pytest.mark.soak),
        only_in_check("plan", "fork", "rewrite", REFUSED),
        ("plan", "spawn", "plan", DONE),
        only_in_check("nothing", "fork", "plan", DONE),
        pytest.param("polars", "fork", "plan", REFUSED, marks=ON_LINUX),
    ],
)
def test_a_child_works_or_is_told_at_once(
    with_a_table: Path, before: str, method: str, use: str, outcome: int
) -> None:
    printed = run_program(PROGRAM, with_a_table, before, method, use, code=outcome, seconds=60)
    if outcome == REFUSED:
        assert "UnsupportedError process " in printed
        assert "'spawn'" in printed
