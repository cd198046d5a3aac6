"""Every pair of commands on one table: which stand, the rows, their ids, and the files left."""

from __future__ import annotations

from typing import Any

import pytest
from rows_of_others import unnamed_files

from outcome_commands import Tables, run_both
from outcome_rules import (
    AGAIN,
    BY_ROWS,
    COMPACTIONS,
    CONFLICTS,
    LAST_DELETED,
    STANDS,
    Pair,
    in_ci,
    outcome,
    pairs,
    replaced,
    rows_after,
    rows_after_rival,
)


def cases() -> list[Any]:
    every = pairs()
    chosen = in_ci(every)
    return [
        pytest.param(pair, marks=[] if pair in chosen else pytest.mark.soak, id=str(pair))
        for pair in every
    ]


@pytest.fixture(scope="module")
def tables(shared_lake: Any) -> Tables:
    return Tables(shared_lake)


def rows_with_ids(table: Any) -> list[tuple[Any, ...]]:
    """The rows in order; in version 3 the id of each comes last."""
    lineage = ["_row_id"] if table.metadata.format_version > 2 else []
    found = table.scan(columns=["id", "p", "v", *lineage]).to_df().collect()
    return sorted(tuple(row) for row in found)


def check_rows(table: Any, expected: list[Any], ids: dict[int, int]) -> None:
    """Compare the rows, and in version 3 the ids of those that are still the same."""
    found = rows_with_ids(table)
    assert [row[:3] for row in found] == expected
    if table.metadata.format_version > 2:
        assert len({row[3] for row in found}) == len(found)
        now = {row[0]: row[3] for row in found}
        assert {n: now[n] for n in ids if n in now} == {n: i for n, i in ids.items() if n in now}


def changed_rows(done: Any) -> int:
    """How many rows a command says to have changed: without any it commits nothing."""
    return sum(n or 0 for n in (done.rows_deleted, done.rows_updated, done.rows_inserted))


@pytest.mark.check
@pytest.mark.parametrize("pair", cases())
def test_two_commands_at_once(tables: Tables, pair: Pair) -> None:
    lake = tables.lake
    table = tables.fresh(pair)
    name = table.identifier
    before = lake.load_table(name)
    left_before = unnamed_files(before)
    ids = {row[0]: row[-1] for row in rows_with_ids(before)}
    what = outcome(pair)
    done, error = run_both(lake, table, pair)
    was_given_up = pair.first in COMPACTIONS and bool(done and done.failures)
    is_refused = error is not None or was_given_up
    assert is_refused == (what == CONFLICTS), error or (done and getattr(done, "failures", done))
    if pair.first in BY_ROWS and done is not None and changed_rows(done):
        assert (done.rivals == 0) == (what == AGAIN)
    now = lake.load_table(name)
    same = {n: i for n, i in ids.items() if n not in replaced(pair, what)}
    check_rows(now, rows_after(pair, what), same)
    assert unnamed_files(now) <= left_before
    # And it goes on: each file of the first rows loses one.
    lake.load_table(name).delete(f"id in ({', '.join(map(str, LAST_DELETED))})")
    left = [row for row in rows_after(pair, what) if row[0] not in LAST_DELETED]
    check_rows(lake.load_table(name), left, same)
    assert unnamed_files(now.refresh()) <= left_before


def test_the_rules_know_every_outcome() -> None:
    found = {(pair.first in BY_ROWS, outcome(pair)) for pair in pairs()}
    of_rows = {(True, what) for what in (STANDS, AGAIN, CONFLICTS)}
    assert found == of_rows | {(False, STANDS), (False, CONFLICTS)}
    assert all(len(rows_after_rival(pair)) >= 14 for pair in pairs())
