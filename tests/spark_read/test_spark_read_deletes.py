"""Deletes of every kind against a plain model (SPEC rules 176-179, 217-235)."""

from __future__ import annotations

from pathlib import Path
from threading import Barrier
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from spark_read_model import MadeTable

from ci_share import in_circles, only_in_soak
from frazil.errors import InvalidDataFileError, UnsupportedError
from frazil.spark.deletes import joins
from frazil.spark.deletes import positions as position_deletes
from frazil.spark.read import scan_group
from frazil.spark.session import costs
from frazil.spark.session.facts import prepare_session, temporary_settings


@pytest.fixture
def made(tmp_path: Path, spark: Any) -> MadeTable:
    prepare_session(spark)
    return MadeTable(tmp_path)


def rows(count: int, start: int = 0) -> list[tuple[Any, ...]]:
    return [
        (i, None if i % 7 == 0 else i % 5, None if i % 11 == 0 else f"n{i % 3}")
        for i in range(start, start + count)
    ]


@pytest.mark.check
def test_positions_are_read_once(spark: Any, made: MadeTable) -> None:
    """Later reads, by whatever columns, need only the deletes that came since."""
    made.add(rows(70_000), sequence=1)
    made.add(rows(100, 70_000), sequence=1)
    made.add(rows(100, 80_000), sequence=1)
    made.delete_vector(0, [0, 63, 64, 65_536, 69_999], sequence=2)
    made.delete_positions([(1, 5), (2, 99), (1, 6)], sequence=2)
    made.delete_positions([(2, 3)], sequence=3, file_format="orc")
    assert made.read(spark) == made.live()
    for delete in made.deletes:
        Path(delete["file_path"].removeprefix("file://")).unlink()
    assert made.read(spark) == made.live()
    assert made.read(spark, ["id"]) == [(row[0],) for row in made.live()]
    made.delete_positions([(1, 50), (2, 3), (2, 4)], sequence=4)
    assert made.read(spark) == made.live()
    assert len(made.live()) == 70_200 - 5 - 4 - 2


@pytest.mark.parametrize("is_damaged", [False, True])
def test_deletes_are_read_while_the_scan_is_made(
    spark: Any, made: MadeTable, monkeypatch: pytest.MonkeyPatch, is_damaged: bool
) -> None:
    """Either waits here for the other to begin, so that one after the other would be seen."""
    made.add(rows(1000), sequence=1)
    made.delete_vector(0, [0, 63, 999], sequence=2)
    if is_damaged:
        vectors = Path(made.deletes[0]["file_path"].removeprefix("file://"))
        vectors.write_bytes(b"\0" * vectors.stat().st_size)
    both = Barrier(2, timeout=30)
    read, scan = position_deletes.vector_positions, scan_group.scan_by_id
    with monkeypatch.context() as patched:
        patched.setattr(position_deletes, "vector_positions", lambda *a: (both.wait(), read(*a))[1])
        patched.setattr(scan_group, "scan_by_id", lambda *a: (both.wait(), scan(*a))[1])
        if is_damaged:
            with pytest.raises(InvalidDataFileError, match=r"\.puffin"):
                made.dataframe(spark)
            return
        assert made.read(spark) == made.live()
    assert made.read(spark, ["id"]) == [(row[0],) for row in made.live()]


@pytest.mark.check
@pytest.mark.parametrize(
    ("others", "scans", "way"),
    [
        pytest.param({"parquet": [3_000]}, 1, "one value", id="a small one"),
        pytest.param({"parquet": [30_000]}, 2, "joined", id="one as large"),
        pytest.param({"parquet": [10, 10, 10]}, 2, "one value", id="more than have deletes"),
        pytest.param({"orc": [500]}, 1, "by executors", id="one of another format"),
    ],
)
def test_a_few_files_without_deletes_are_in_the_scan_of_the_others(
    spark: Any,
    made: MadeTable,
    monkeypatch: pytest.MonkeyPatch,
    way: str,
    others: dict[str, list[int]],
    scans: int,
) -> None:
    """They stand between the others, and have more rows than the deletes reach."""
    if way == "joined":
        monkeypatch.setattr(joins, "ARRAY_BYTES", 0)
    if way == "by executors":
        monkeypatch.setattr(costs, "BITMAP_BYTES_HERE", 0)
    made.add(rows(20_000), sequence=1)
    start = 20_000
    for file_format, counts in others.items():
        for count in counts:
            made.add(rows(count, start), sequence=3, file_format=file_format)
            start += count
    made.add(rows(20_000, start), sequence=1)
    last = len(made.files) - 1
    made.delete_vector(0, [0, 63, 64, 200], sequence=2)
    made.delete_positions([(last, p) for p in range(0, 200, 3)], sequence=2)
    frame = made.dataframe(spark)
    plan = frame._jdf.queryExecution().executedPlan().toString()
    # Bits that are no value are joined with their own files.
    assert plan.count("FileScan parquet") == scans or way == "joined"
    assert sorted((tuple(row) for row in frame.collect()), key=repr) == made.live()
    assert made.read(spark, ["id"]) == [(row[0],) for row in made.live()]


@pytest.mark.parametrize("are_known", [False, True])
def test_files_without_live_rows_are_not_scanned(
    spark: Any, made: MadeTable, are_known: bool
) -> None:
    """A position may be named twice, and may lie behind the last row."""
    made.add(rows(300), sequence=1)
    made.add(rows(64, 300), sequence=1)
    made.add(rows(65, 400), sequence=1)
    made.add(rows(65, 500), sequence=1)
    made.add(rows(300, 600), sequence=1)
    made.delete_vector(1, range(64), sequence=2)
    made.delete_vector(4, [299], sequence=2)
    made.delete_positions([(2, p) for p in [*range(60), *range(50, 65)]], sequence=2)
    made.delete_positions([(3, p) for p in [*range(64), 65]], sequence=2)
    if are_known:
        assert made.read(spark, ["id"]) == [(row[0],) for row in made.live()]
    # The first read makes its scan while deletes are read.
    assert len(made.dataframe(spark).inputFiles()) == (3 if are_known else 5)
    assert made.read(spark) == made.live()


@pytest.mark.parametrize("count", [-1, 0])
def test_a_file_whose_count_is_not_known_is_scanned(
    spark: Any, made: MadeTable, count: int
) -> None:
    made.add(rows(100), sequence=1)
    made.files[0]["record_count"] = count
    made.delete_vector(0, range(99), sequence=2)
    assert made.read(spark) == made.live()
    assert len(made.live()) == 1


def test_nothing_is_scanned_where_every_row_is_deleted(spark: Any, made: MadeTable) -> None:
    made.add(rows(100), sequence=1)
    made.add(rows(100, 100), sequence=1)
    made.delete_vector(0, range(100), sequence=2)
    made.delete_positions([(1, p) for p in range(100)], sequence=2)
    frame = made.dataframe(spark)
    assert frame.inputFiles() == []
    assert frame.columns == ["id", "kind", "name"]
    assert frame.collect() == []
    assert len(made.read(spark, ["id", "_deleted"])) == 200


FORMS = {
    "one value": {},
    "joined": {(joins, "ARRAY_BYTES"): 0},
    "by executors": {(costs, "POSITIONS_HERE"): 0},
    "shuffled": {(costs, "BITMAP_BYTES_HERE"): 0, (costs, "SENT_BYTES"): 0},
}
AT_EDGES = {
    # Of words, of the next file's, all of a file, beyond its end, none.
    0: {0, 63, 64, 127, 128, 199},
    1: {1, 62, 65},
    2: set(range(200)),
    3: {199, 200, 100_000},
    5: set(range(0, 70_000, 3)),
    6: set(range(1, 70_000, 997)),
}


@pytest.mark.parametrize("form", in_circles(FORMS, test=1))
def test_positions_at_the_edges_of_words(
    spark: Any, made: MadeTable, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    for (module, name), value in FORMS[form].items():
        monkeypatch.setattr(module, name, value)
    start = 0
    for file in range(7):
        count = 200 if file < 5 else 70_000
        made.add(rows(count, start), sequence=1)
        start += count
    for file, positions in AT_EDGES.items():
        if file in (0, 5):
            made.delete_vector(file, positions, sequence=2)
        else:
            made.delete_positions([(file, p) for p in sorted(positions)], sequence=2)
    if form == "shuffled":
        assert "SortMergeJoin" in made.dataframe(spark)._jdf.queryExecution().toString()
    assert made.read(spark) == made.live()
    told = made.read(spark, ["id", "_deleted"])
    assert sum(is_deleted for _, is_deleted in told) == len(told) - len(made.live())


def test_a_far_position_is_no_long_value(spark: Any, made: MadeTable) -> None:
    made.add(rows(10), sequence=1)
    made.delete_positions([(0, 3), (0, 2**36)], sequence=2)
    assert "Join" in made.dataframe(spark)._jdf.queryExecution().optimizedPlan().toString()
    assert made.read(spark) == made.live()


@pytest.mark.parametrize("array_bytes", [0, only_in_soak(300), 1200, only_in_soak(1 << 20)])
def test_files_are_read_in_parts_of_so_many_deleted_positions(
    spark: Any, made: MadeTable, monkeypatch: pytest.MonkeyPatch, array_bytes: int
) -> None:
    """Rows are the same on both sides of each bound; one file's positions are beyond most."""
    monkeypatch.setattr(joins, "ARRAY_BYTES", array_bytes)
    for start in range(0, 5000, 1000):
        made.add(rows(1000, start), sequence=1)
    made.add(rows(20_000, 5000), sequence=1)
    made.delete_positions([(f, p) for f in (0, 1, 3) for p in range(f, 1000, 3)], sequence=2)
    made.delete_vector(4, range(0, 1000, 7), sequence=2)
    made.delete_vector(5, [0, 63, 19_999], sequence=2)
    assert made.read(spark) == made.live()
    assert made.read(spark, ["id"]) == [(row[0],) for row in made.live()]
    scans = made.dataframe(spark)._jdf.queryExecution().optimizedPlan().toString().count("parquet")
    # One scan for each value; bits that are none are joined with the files that have any.
    assert scans in {0: {2}, 1 << 20: {1}}.get(array_bytes, range(2, 7))


@pytest.mark.parametrize("file_format", ["parquet", "orc"])
def test_null_keys_match_null_only(spark: Any, made: MadeTable, file_format: str) -> None:
    made.add(rows(100), sequence=1, file_format=file_format)
    made.delete_keys([2, 3], [(None, "n1"), (3, None)], sequence=2, file_format=file_format)
    assert 0 < len(made.live()) < 100
    assert made.read(spark) == made.live()


def test_several_id_lists_and_positions_together(spark: Any, made: MadeTable) -> None:
    """Positions come again, and are not for files that are newer; keys need not be projected."""
    made.add(rows(100), sequence=1)
    made.add(rows(100, 50), sequence=2)
    made.add(rows(100, 100), sequence=4)
    made.delete_keys([1], [(60,), (120,)], sequence=2)
    made.delete_keys([2, 3], [(1, "n1")], sequence=3)
    made.delete_positions([(0, 0), (0, 63), (2, 3)], sequence=3)
    made.delete_positions([(0, 63), (0, 64), (2, 2)], sequence=4, file_format="orc")
    made.delete_vector(1, [3], sequence=4)
    assert made.read(spark) == made.live()
    assert made.read(spark, ["name"]) == sorted([(r[2],) for r in made.live()], key=repr)


def test_a_column_of_an_unknown_id_is_refused(spark: Any, made: MadeTable) -> None:
    made.add(rows(3), sequence=1)
    made.delete_keys([1], [(2,)], sequence=2)
    made.deletes[-1]["equality_ids"] = [77]
    with pytest.raises(UnsupportedError, match="77"):
        made.dataframe(spark)


def test_a_delete_file_without_its_key_is_refused(spark: Any, made: MadeTable) -> None:
    made.add(rows(3), sequence=1)
    made.delete_keys([1], [(2,)], sequence=2)
    made.deletes[-1]["equality_ids"] = [2]
    with pytest.raises(Exception, match="lacks the required column"):
        made.read(spark)


def test_a_vector_of_another_cardinality_is_refused(spark: Any, made: MadeTable) -> None:
    made.add(rows(10), sequence=1)
    made.delete_vector(0, [1, 2], sequence=2)
    made.deletes[-1]["record_count"] = 3
    with pytest.raises(InvalidDataFileError, match="3"):
        made.dataframe(spark)


def test_metadata_columns_and_lineage_under_deletes(spark: Any, made: MadeTable) -> None:
    made.add(rows(5), sequence=1)
    made.add(rows(5, 5), sequence=3, file_format="orc")
    made.delete_positions([(0, 1), (1, 0)], sequence=3)
    columns = ["id", "_file", "_pos", "_spec_id", "_row_id", "_last_updated_sequence_number"]
    expected = [
        (row[0], made.files[f]["file_path"], p, 0, 1000 * f + p, made.files[f]["sequence_number"])
        for f in (0, 1)
        for p, row in enumerate(made.rows[f])
        if p not in made.gone[f]
    ]
    assert made.read(spark, columns) == sorted(expected, key=repr)


positions = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 79)), max_size=20)
keys = st.lists(
    st.tuples(st.one_of(st.none(), st.integers(0, 4)), st.sampled_from([None, "n0", "n1", "n2"])),
    min_size=1,
    max_size=3,
)


@pytest.mark.check
@settings(
    max_examples=8,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    positions=positions, keys=keys, sequences=st.lists(st.integers(1, 4), min_size=4, max_size=4)
)
def test_any_mix_of_deletes(
    spark: Any,
    tmp_path_factory: pytest.TempPathFactory,
    positions: list[tuple[int, int]],
    keys: list[tuple[Any, ...]],
    sequences: list[int],
) -> None:
    prepare_session(spark)
    made = MadeTable(tmp_path_factory.mktemp("mix"))
    made.add(rows(80), sequence=sequences[0])
    made.add(rows(80, 40), sequence=sequences[1])
    made.delete_positions(positions, sequence=sequences[2])
    made.delete_keys([2, 3], keys, sequence=sequences[3])
    assert made.read(spark) == made.live()


# A scan under deletes is a DataFrame like any other, wherever it stands in a query.


LIVE = [number for number in range(20) if number not in (3, 4)]
QUERIES: dict[str, tuple[str, list[int]]] = {
    "exists": (
        "select id from range(10) r where exists (select 1 from rows t where t.id = r.id)",
        [n for n in LIVE if n < 10],
    ),
    "not exists": (
        "select id from range(10) r where not exists (select 1 from rows t where t.id = r.id)",
        [3, 4],
    ),
    "in": ("select id from range(10) r where id in (select id from rows)", LIVE[:8]),
    "not in": ("select id from range(10) r where id not in (select id from rows)", [3, 4]),
    "correlated scalar": (
        "select (select count(*) from rows t where t.id < r.id) as n from range(3, 6) r",
        [3, 3, 3],
    ),
    "lateral": (
        "select t.id from range(5) r, lateral (select id from rows t where t.id = r.id) t",
        [0, 1, 2],
    ),
    "self join": ("select a.id from rows a join rows b on a.id = b.id", LIVE),
    "window": (
        "select id from (select id, row_number() over (order by id) as n from rows) where n > 16",
        [18, 19],
    ),
    "union": ("select id from rows where id < 6 union all select id from rows where id = 7",
              [0, 1, 2, 5, 7]),
    "with": ("with a as (select * from rows) select id from a where id in (select id from a)",
             LIVE),
    "limit": ("select count(*) from (select * from rows limit 5)", [5]),
}  # fmt: skip


@pytest.fixture
def made_with_deletes(tmp_path: Path, spark: SparkSession) -> MadeTable:
    prepare_session(spark)
    made_with_deletes = MadeTable(tmp_path / "table")
    made_with_deletes.folder.mkdir()
    made_with_deletes.add([(number, number % 3, "x") for number in range(20)], sequence=1)
    made_with_deletes.delete_positions([(0, 3), (0, 4)], sequence=2)
    return made_with_deletes


@pytest.mark.check
@pytest.mark.parametrize("adaptive", ["true", only_in_soak("false")])
def test_in_sql(spark: SparkSession, made_with_deletes: MadeTable, adaptive: str) -> None:
    made_with_deletes.dataframe(spark).createOrReplaceTempView("rows")
    with temporary_settings(spark, {"spark.sql.adaptive.enabled": adaptive}):
        for name, (query, expected) in QUERIES.items():
            found = [row[0] for row in spark.sql(query).collect()]
            assert sorted(found) == sorted(expected), name
    spark.catalog.dropTempView("rows")


def test_kept_and_handed_on(
    spark: SparkSession, made_with_deletes: MadeTable, tmp_path: Path
) -> None:
    rows = made_with_deletes.dataframe(spark)
    cached = rows.cache()
    assert cached.count() == cached.count() == len(LIVE)
    cached.unpersist()
    assert not rows.isEmpty()
    assert sorted(row.id for row in rows.toLocalIterator()) == LIVE
    assert rows.toArrow().num_rows == len(rows.toPandas()) == len(LIVE)
    assert len(rows.localCheckpoint().collect()) == len(LIVE)
    rows.write.parquet(str(tmp_path / "copy"))
    assert spark.read.parquet(str(tmp_path / "copy")).count() == len(LIVE)
    assert len(rows.take(3)) == 3


@pytest.mark.check
def test_beside_a_stream(spark: SparkSession, made_with_deletes: MadeTable, tmp_path: Path) -> None:
    """Every batch reads the rows that are not deleted."""
    (tmp_path / "in").mkdir()
    spark.range(2, 6).coalesce(1).write.mode("append").parquet(str(tmp_path / "in"))
    stream = spark.readStream.schema("id bigint").parquet(str(tmp_path / "in"))
    joined = stream.join(made_with_deletes.dataframe(spark), "id")
    found: list[Any] = []

    def keep(batch: Any, _: int) -> None:
        found.extend(row.id for row in batch.collect())

    for _ in range(2):
        query = joined.writeStream.foreachBatch(keep).option("checkpointLocation", tmp_path / "c")
        query.trigger(availableNow=True).start().awaitTermination()
        spark.range(4, 8).coalesce(1).write.mode("append").parquet(str(tmp_path / "in"))
    assert sorted(found) == [2, 5, 5, 6, 7]
