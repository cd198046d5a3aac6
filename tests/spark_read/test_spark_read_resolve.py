"""Equality deletes as bitmaps of keys and resolved to positions, against the plain model."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from spark_read_model import MadeTable, with_id

import frazil
from ci_share import only_in_soak
from frazil.errors import ConfigurationError, InvalidDataFileError
from frazil.format.manifests import Content, DataFile
from frazil.spark.deletes import joins, resolve, small_files
from frazil.spark.deletes.resolve import EQUALITY_SETTING, EqualityReading
from frazil.spark.session import costs
from frazil.spark.session.facts import prepare_session, temporary_settings

RESOLVE, KNOWN = EqualityReading.RESOLVE, EqualityReading.KNOWN


@pytest.fixture
def made(tmp_path: Path, spark: Any) -> MadeTable:
    prepare_session(spark)
    return MadeTable(tmp_path)


def rows(count: int, start: int = 0) -> list[tuple[Any, ...]]:
    return [
        (i, None if i % 7 == 0 else i % 5, None if i % 11 == 0 else f"n{i % 13}")
        for i in range(start, start + count)
    ]


def forget_deletes(made: MadeTable) -> None:
    """Remove the equality delete files: what reads on does so from memory."""
    for delete in made.deletes:
        if delete["content"] == 2:
            Path(delete["file_path"].removeprefix("file://")).unlink(missing_ok=True)


@pytest.mark.check
def test_resolved_once_for_every_later_read(spark: Any, made: MadeTable) -> None:
    """NULL keys, two id lists, files newer than some deletes; deletes that come later."""
    made.add(rows(300), sequence=1)
    made.add(rows(300, 150), sequence=3, file_format="orc")
    made.add(rows(100, 400), sequence=9)
    made.delete_keys([2, 3], [(None, "n1"), (3, None), (2, "n5")], sequence=2)
    made.delete_keys([3], [("n2",), ("n3",)], sequence=4)
    made.delete_positions([(0, 5), (1, 7)], sequence=4)
    expected = made.live()
    assert 0 < len(expected) < 700
    assert made.read(spark, equality=RESOLVE) == expected
    forget_deletes(made)
    assert made.read(spark, equality=RESOLVE) == expected
    assert made.read(spark, ["id"], equality=KNOWN) == sorted([(r[0],) for r in expected], key=repr)
    told = made.read(spark, ["id", "_deleted"], equality=KNOWN)
    assert len(told) == 700
    assert sum(deleted for _, deleted in told) == 700 - len(expected)

    made.delete_keys([3], [("n7",)], sequence=10)
    assert len(made.live()) < len(expected)
    assert made.read(spark, equality=KNOWN) == made.live()
    assert made.read(spark, equality=RESOLVE) == made.live()
    forget_deletes(made)
    assert made.read(spark, equality=RESOLVE) == made.live()


@pytest.mark.parametrize("small", [True, only_in_soak(False)])
def test_a_new_commit_costs_its_own_keys(
    spark: Any, made: MadeTable, monkeypatch: pytest.MonkeyPatch, small: bool
) -> None:
    """Later files have deletes older and newer than they are; keys that come again and NULL."""
    opened: list[str] = []
    read = small_files.read_batches

    def recorded(io: Any, part: Any, *more: Any) -> Any:
        opened.append(part.path)
        return read(io, part, *more)

    monkeypatch.setattr(small_files, "read_batches", recorded)
    if not small:
        monkeypatch.setattr(costs, "SMALL_FILE_ROWS", 0)
    made.add(rows(200), sequence=1)
    for number in range(2, 7):
        before = len(opened)
        keys = [f"n{number}", "n1"] if number % 2 else [f"n{number}", None]
        made.delete_keys([3], [(key,) for key in keys], sequence=number)
        made.delete_keys([1, 2], [(number, number % 5), (7, None)], sequence=number)
        made.add([*rows(20, number), (99, None, None)], sequence=number)
        assert made.read(spark, equality=RESOLVE) == made.live()
        # Two delete files, and the newest data file by two lists of columns.
        assert len(opened) - before == (4 if small else 0)
    forget_deletes(made)
    assert made.read(spark, ["name"], equality=KNOWN) == sorted(
        [(row[2],) for row in made.live()], key=repr
    )


def test_the_newest_files_are_resolved_here_and_others_by_spark(
    spark: Any, made: MadeTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(costs, "SMALL_ROWS_HERE", 40)
    for number in range(3):
        made.add(rows(30, 20 * number), sequence=1 + number)
    made.delete_keys([3], [("n2",), (None,)], sequence=3)
    made.delete_keys([3], [("n4",)], sequence=9)
    assert made.read(spark, equality=RESOLVE) == made.live()


def test_a_small_file_that_lacks_a_key_is_left_to_spark(spark: Any, made: MadeTable) -> None:
    made.add(rows(100), sequence=1)
    made.add(rows(30, 200), sequence=1)
    path = Path(made.files[1]["file_path"].removeprefix("file://"))
    pq.write_table(pq.read_table(path).drop_columns(["name"]), path)
    made.files[1]["file_size_in_bytes"] = path.stat().st_size
    made.rows[1] = [(*row[:2], None) for row in made.rows[1]]
    made.delete_keys([3], [("n2",), (None,)], sequence=2)
    assert [row[2] for row in made.live()].count(None) == 0
    assert made.read(spark, equality=RESOLVE) == made.live()


@pytest.mark.parametrize("array_bytes", [joins.ARRAY_BYTES, 0])
def test_integer_keys_are_read_once(
    spark: Any, made: MadeTable, monkeypatch: pytest.MonkeyPatch, array_bytes: int
) -> None:
    """As one value, and as rows that are joined."""
    monkeypatch.setattr(joins, "ARRAY_BYTES", array_bytes)
    made.add(
        [*rows(200, -100), (None, 1, "n1"), (-(2**63), 1, "n1"), (2**63 - 1, 3, "n1")], sequence=1
    )
    made.add(rows(200, 70_000), sequence=1)
    made.delete_keys([1], [(-100,), (-1,), (0,), (70_003,), (5,)], sequence=2)
    made.delete_keys([1], [(70_004,), (99,)], sequence=3)
    made.delete_keys([2], [(2,)], sequence=4)
    assert made.read(spark) == made.live()
    assert len(made.read(spark, ["id", "_deleted"])) == 403
    forget_deletes(made)
    assert made.read(spark) == made.live()


def test_keys_too_many_to_read_here_are_joined(
    spark: Any, made: MadeTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(costs, "KEYS_HERE", 1)
    made.add(rows(200), sequence=1)
    made.delete_keys([1], [(3,), (50,)], sequence=2)
    assert made.read(spark) == made.live()
    assert made.read(spark, equality=RESOLVE) == made.live()
    forget_deletes(made)
    assert made.read(spark, equality=RESOLVE) == made.live()


def test_a_null_key_that_the_manifest_does_not_count_is_refused(
    spark: Any, made: MadeTable
) -> None:
    made.add(rows(10), sequence=1)
    made.delete_keys([1], [(3,), (None,)], sequence=2)
    made.deletes[-1]["may_hold_null_keys"] = False
    with pytest.raises(InvalidDataFileError, match="holds NULL in 'id'"):
        made.dataframe(spark)


def test_an_unknown_setting_is_refused(spark: Any, tmp_path: Path) -> None:
    with (
        temporary_settings(spark, {EQUALITY_SETTING: "sometimes"}),
        pytest.raises(ConfigurationError, match="auto, resolve, known, join"),
    ):
        resolve.equality_reading(spark)


def _delete_file(table: frazil.Table, name: str, keys: pa.Table, nulls: dict[int, int]) -> DataFile:
    sink = pa.BufferOutputStream()
    pq.write_table(keys, sink)
    content = sink.getvalue().to_pybytes()
    path = f"{table.location}/data/{name}.parquet"
    table.io.write(path, content)
    return DataFile(
        content=Content.EQUALITY_DELETES,
        file_path=path,
        record_count=len(keys),
        file_size_in_bytes=len(content),
        equality_ids=tuple(nulls),
        value_counts=dict.fromkeys(nulls, len(keys)),
        null_value_counts=nulls,
    )


def test_a_plan_says_how_its_deletes_are_applied(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By what is kept and by figures alone; the first read changes what the next one does."""
    monkeypatch.setattr(costs, "SMALL_FILE_ROWS", 0)
    monkeypatch.setattr(costs, "RESOLVED_ROWS", 100)
    with frazil.connect(spark, warehouse=str(tmp_path), name="ways") as lake:
        lake.create_namespace("db")
        table = lake.create_table("db.t", "id bigint, s string", format_version=2)
        table.append(spark.range(100).selectExpr("id", "'n' || id as s"))
        assert table.scan().plan().delete_ways == ()
        strings = pa.table([pa.array(["n1"])], schema=pa.schema([with_id("s", pa.string(), 2)]))
        ids = pa.table([pa.array([3, 4])], schema=pa.schema([with_id("id", pa.int64(), 1)]))
        deletes = [
            _delete_file(table, "strings", strings, {2: 0}),
            _delete_file(table, "ids", ids, {1: 0}),
        ]
        table.files.row_delta(added_deletes=deletes)

        def told(where: str | None = None) -> list[tuple[str, str]]:
            ways = table.refresh().scan(where).plan().delete_ways
            assert {way.files for way in ways} == {table.scan(where).plan().file_count}
            return [(way.way, way.reason) for way in ways]

        bits = ("compared with bits of keys", "1 of at most 256 files, 2 of at most")
        joined = ("joined, sent to every executor", "1 of at most 1,000,000 keys")
        once = ("left to a join once", "100 rows, more than 99; 1 of at most 500,000 keys")
        first = told()
        assert [way for way, _ in first] == [once[0], bits[0], joined[0]]
        for (_, reason), (_, expected) in zip(first, (once, bits, joined), strict=True):
            assert reason.startswith(expected)
        assert told() == first
        assert [way for way, _ in told("s <> 'n5'")] == [bits[0], joined[0]]
        assert table.scan().to_df().count() == 97
        assert told()[0][0] == "resolved by a job"
        assert table.scan().to_df().count() == 97
        assert told()[0] == ("resolved to positions", "kept from an earlier read")
        assert told()[1][1].startswith("0 of at most 256 files")
        assert "2 files compared with bits of keys: 0 of" in str(table.scan().plan())


@pytest.mark.check
def test_scans_resolve_by_the_session_setting(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A whole read of enough rows resolves, a filtered one uses what is resolved."""
    day = datetime.date(2024, 1, 1)
    kept = [(i, f"n{i}", day + datetime.timedelta(i)) for i in range(100)]
    with frazil.connect(spark, warehouse=str(tmp_path), name="resolve") as lake:
        lake.create_namespace("db")
        table = lake.create_table("db.t", "id bigint, s string, day date")
        table.append(spark.createDataFrame(kept, "id bigint, s string, day date"))
        strings = pa.table(
            [pa.array(["n1", "n50", None])], schema=pa.schema([with_id("s", pa.string(), 2)])
        )
        days = pa.table([[kept[2][2]]], schema=pa.schema([with_id("day", pa.date32(), 3)]))
        deletes = [
            _delete_file(table, "strings", strings, {2: 1}),
            _delete_file(table, "days", days, {3: 0}),
        ]
        table.files.row_delta(added_deletes=deletes)
        expected = sorted(row for row in kept if row[0] not in (1, 2, 50))

        def read(where: str | None = None) -> list[tuple[Any, ...]]:
            found = table.refresh().scan(where=where).to_df().collect()
            return sorted(tuple(row) for row in found)

        monkeypatch.setattr(costs, "SMALL_FILE_ROWS", 0)
        assert read() == expected
        monkeypatch.setattr(costs, "RESOLVED_ROWS", 100)
        assert read("id < 60") == [row for row in expected if row[0] < 60]
        for _ in range(2):  # the first joins, the second would pay again
            assert read() == expected
        for delete in deletes:
            table.io.delete(delete.file_path)
        assert read() == expected
        assert read("id < 60") == [row for row in expected if row[0] < 60]
        assert table.scan().count() == len(expected)
        with (
            temporary_settings(spark, {EQUALITY_SETTING: "join"}),
            pytest.raises(Exception, match=r"strings\.parquet"),
        ):
            read()
