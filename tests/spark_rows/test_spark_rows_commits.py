"""Row-level commands on branches, staged, in transactions, on tables with others' deletes."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from row_case import Case, as_multiset, rows_of

from ci_share import only_in_soak
from frazil.spark.lake import Lake
from programs import run_program

pytestmark = pytest.mark.check

KV = "id int, v int"
TWO = Case(name="two rows", ddl=KV, rows=[[(1, 1), (2, 2)]], do=lambda _: None)
COPIES, MARKS = ("copy-on-write", 2), ("merge-on-read", 3)
BY_COPIES = pytest.mark.parametrize(("mode", "version"), [COPIES, only_in_soak(*MARKS)], ids=str)
BY_MARKS = pytest.mark.parametrize(("mode", "version"), [only_in_soak(*COPIES), MARKS], ids=str)
PROGRAM = Path(__file__).with_name("connect_rows.py")


@BY_COPIES
def test_commands_of_a_transaction_are_one_commit(rows_lake: Lake, mode: str, version: int) -> None:
    """Each sees what those before it did."""
    bench = TWO.made(rows_lake, mode, version)
    table = bench.table
    with table.transaction() as tx:
        tx.append(bench.frame(KV, (3, 3)))
        source = bench.frame(KV, (2, 20), (3, 30), (4, 40))
        merge = tx.merge(source, ["id"]).when_matched_update_all()
        merge.when_not_matched_insert_all().when_not_matched_by_source_delete().execute()
        tx.update({"v": "v + 1"}, "id = 3")
        tx.delete("id = 4")
        assert rows_of(table) == as_multiset([(1, 1), (2, 2)])
    assert rows_of(table) == as_multiset([(2, 20), (3, 31)])
    with suppress(ZeroDivisionError), table.transaction() as tx:
        tx.delete("true")
        raise ZeroDivisionError
    assert rows_of(table) == as_multiset([(2, 20), (3, 31)])


@BY_MARKS
def test_commands_on_a_branch_leave_main_alone(rows_lake: Lake, mode: str, version: int) -> None:
    bench = TWO.made(rows_lake, mode, version)
    table = bench.table
    table.create_branch("b")
    table.upsert(bench.frame(KV, (2, 200), (9, 90)), ["id"], branch="b")
    table.delete("id = 2 and v = 2")
    table.update({"v": 0}, "id = 9", branch="b")
    table.delete("id = 1", branch="b")
    assert rows_of(table) == as_multiset([(1, 1)])
    assert rows_of(table, ref="b") == as_multiset([(2, 200), (9, 0)])


@BY_MARKS
def test_rows_that_equality_deletes_of_others_took_stay_away(
    rows_lake: Lake, mode: str, version: int
) -> None:
    """A later row of the same key is another row: the old delete does not apply to it."""
    bench = Case(
        name="four rows", ddl=KV, rows=[[(1, 1), (2, 2), (3, 3), (None, 4)]], do=lambda _: None
    ).made(rows_lake, mode, version)
    table = bench.table
    gone = bench.frame("id int, op string", (2, "d"), (None, "d"))
    table.apply_changes(gone, keys="id", op="op", mode="equality-deletes")
    assert table.delete("v = 2 or v = 4").changes_nothing
    assert table.update({"v": "v + 100"}, "id <> 3").rows_updated == 1
    done = table.upsert(bench.frame(KV, (2, 22), (3, 33)), "id")
    assert (done.rows_updated, done.rows_inserted) == (1, 1)
    assert rows_of(table) == as_multiset([(1, 101), (2, 22), (3, 33)])


@pytest.mark.parametrize("mode", ["copy-on-write", only_in_soak("merge-on-read")])
def test_row_ids_are_kept_by_changed_rows_and_new_for_others(rows_lake: Lake, mode: str) -> None:
    bench = Case(
        name="lineage", ddl=KV, rows=[[(1, 1), (2, 2), (3, 3)], [(4, 4), (5, 5)]], do=lambda _: None
    ).made(rows_lake, mode, 3)
    table = bench.table

    def lineage() -> dict[int, tuple[int, int]]:
        columns = ["id", "_row_id", "_last_updated_sequence_number"]
        found = table.scan(columns=columns).to_df().collect()
        return {row[0]: (row[1], row[2]) for row in found}

    at = {1: (0, 1), 2: (1, 1), 3: (2, 1), 4: (3, 2), 5: (4, 2)}
    assert lineage() == at
    table.update({"v": 0}, "id in (2, 4)")
    at |= {2: (1, 3), 4: (3, 3)}
    assert lineage() == at
    (
        table.merge(bench.frame(KV, (1, 9), (2, 9), (8, 8)), ["id"])
        .when_matched_update_all(condition="target.id = 1")
        .when_matched_delete()
        .when_not_matched_insert_all()
        .when_not_matched_by_source_update({"v": "-v"}, condition="id = 5")
        .execute()
    )
    found = lineage()
    new_id, changed_at = found.pop(8)
    at |= {1: (0, 4), 5: (4, 4)}
    at.pop(2)
    assert found == at
    assert changed_at == 4
    assert new_id > max(row for row, _ in at.values())
    table.delete("id = 5")
    at.pop(5)
    assert lineage() == {**at, 8: (new_id, 4)}


@pytest.mark.parametrize(("mode", "version"), [MARKS, only_in_soak(*COPIES)], ids=str)
def test_commands_work_over_spark_connect(
    connect_url: str, tmp_path: Path, mode: str, version: int
) -> None:
    said = run_program(PROGRAM, connect_url, tmp_path / "lake", mode, version)
    lines = [line.removeprefix("ROWS ") for line in said.splitlines() if line.startswith("ROWS ")]
    assert lines == [
        "[[1, 10, '2.5000000001'], [3, 36, None], [5, 50, None]]",
        "[[1, 7]]",
        "[[2, 2], [3, 1]]",
        "[[2, 2], [3, 1]]",
        "1 ['DELETE', 'DELETE', 'INSERT', 'INSERT', 'INSERT', 'INSERT']",
        "ValidationError PredicateError SchemaMismatchError",
    ]
