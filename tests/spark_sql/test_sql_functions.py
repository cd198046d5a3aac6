"""The functions of a lake beside models of the specification, and the files that they leave out."""

import random
from datetime import datetime, timedelta
from decimal import Decimal, localcontext

import mmh3
import pytest
from pyspark.errors import AnalysisException

from ci_share import in_circles, only_in_check, only_in_soak

MOST = (1 << 31) - 1
RANDOM = random.Random(7)
EDGES = (0, 1, -1, 127, 128, -128, -129, 255, 256, 32767, 32768, -32769, 1 << 63, -(1 << 63),
         (1 << 63) - 1, -(1 << 63) - 1, 1 << 64, (1 << 64) - 1, -(1 << 64))  # fmt: skip


def bucket_of(data):
    return (mmh3.hash(data, signed=True) & MOST) % MOST


def of_long(value):
    return bucket_of(value.to_bytes(8, "little", signed=True))


def of_decimal(unscaled):
    length = (8 + (unscaled + (unscaled < 0)).bit_length()) // 8
    return bucket_of(unscaled.to_bytes(length, "big", signed=True))


def decimals(precision, scale):
    """Values of a type, without those whose multiple of 10 has one digit more."""
    most = 10**precision - 1
    chosen = [*EDGES, *(RANDOM.randrange(-most + 10, most) for _ in range(20)), most, 10 - most]
    return [each for each in chosen if 10 - most <= each <= most]


def exact(unscaled, scale):
    with localcontext() as context:
        context.prec = 60
        return Decimal(unscaled).scaleb(-scale)


TEXTS = ["", "a", "iceberg", "aé", "日本語", "\U0001f600x", "abcd", "0123456789", "é" * 9]
BYTES = [RANDOM.randbytes(length) for length in range(20)]
WHOLE = {"int": 31, "bigint": 63}


@pytest.mark.check
def test_whole_numbers_texts_and_bytes(lake, spark):
    for kind, bits in WHOLE.items():
        values = [0, 34, -1, (1 << bits) - 1, 16 - (1 << bits)]
        values += [RANDOM.randrange(100 - (1 << bits), 1 << bits) for _ in range(20)]
        df = spark.createDataFrame([(each,) for each in values], f"v {kind}").coalesce(1)
        query = f"SELECT v, system.bucket({MOST}, v), system.truncate(10, v), " \
            f"system.truncate(10, v + 0) FROM {{df}}"  # fmt: skip
        expected = [(v, of_long(v), v - v % 10, v - v % 10) for v in values]
        assert sorted(map(tuple, lake.sql(query, df=df).collect())) == sorted(expected)
    query = f"SELECT v, system.bucket({MOST}, v), system.truncate(3, v) FROM {{df}}"
    for values, encode in ((TEXTS, str.encode), (BYTES, bytes)):
        kind = type(values[0]).__name__.replace("str", "string").replace("bytes", "binary")
        df = spark.createDataFrame([(each,) for each in values], f"v {kind}").coalesce(1)
        expected = [(v, bucket_of(encode(v)), v[:3]) for v in values]
        assert [tuple(row) for row in lake.sql(query, df=df).collect()] == expected


SIZES = ((9, 2), (38, 10), (18, 18), (20, 5), (38, 0), (38, 38))
"""Precisions and scales; the first are stored as a number, and as bytes."""


@pytest.mark.parametrize(
    ("ansi", "sizes"),
    [("true", SIZES[:2]), only_in_check("true", SIZES[2:]), only_in_soak("false", SIZES)],
)
def test_decimals(lake, spark, session, ansi, sizes):
    session(spark__sql__ansi__enabled=ansi)
    for precision, scale in sizes:
        values = decimals(precision, scale)
        df = spark.createDataFrame(
            [(exact(each, scale),) for each in values], f"v decimal({precision},{scale})"
        ).coalesce(1)
        query = f"SELECT system.bucket({MOST}, v), system.truncate(10, v) FROM {{df}}"
        expected = [(of_decimal(each), exact(each - each % 10, scale)) for each in values]
        found = [tuple(row) for row in lake.sql(query, df=df).collect()]
        assert found == expected, (precision, scale)


MOMENTS = [datetime(1, 1, 1), datetime(1582, 10, 15, 1),
           datetime(1969, 12, 31, 23, 59, 59, 999999),
           datetime(1970, 1, 1), datetime(2024, 3, 10, 2, 30),
           datetime(9999, 12, 31, 23)]  # fmt: skip


def test_times_in_any_zone(lake, spark, session):
    session(spark__sql__session__timeZone="America/New_York")
    texts = ", ".join(f"('{each.isoformat()}')" for each in MOMENTS)
    values = f"VALUES {texts}"
    expected = [
        (
            each.year - 1970,
            (each.year - 1970) * 12 + each.month - 1,
            each.date(),
            (each - datetime(1970, 1, 1)) // timedelta(hours=1),
            of_long((each - datetime(1970, 1, 1)) // timedelta(microseconds=1)),
        )
        for each in MOMENTS
    ]
    for kind, value in (
        ("TIMESTAMP_NTZ", "CAST(s AS TIMESTAMP_NTZ)"),
        ("TIMESTAMP", "CAST(concat(s, 'Z') AS TIMESTAMP)"),
    ):
        query = f"SELECT system.years(v), system.months(v), system.days(v), system.hours(v), " \
            f"system.bucket({MOST}, v) FROM (SELECT {value} AS v FROM {values} x(s))"  # fmt: skip
        assert [tuple(row) for row in lake.sql(query).collect()] == expected, kind


def test_columns_are_called_as_they_are_written(lake):
    found = lake.sql("SELECT system.bucket(4, 1), 1 + system.days(DATE '2024-01-01') FROM range(1)"
                     .replace("1 + ", "")).columns  # fmt: skip
    assert found == ["system.bucket(4, 1)", "system.days(DATE '2024-01-01')"]


@pytest.mark.parametrize("name", ["other.system.bucket", "x.lake.system.bucket"])
def test_functions_of_what_is_no_lake_are_sparks(lake, name):
    with pytest.raises(AnalysisException, match=r"other|system"):
        lake.sql(f"SELECT {name}(4, 1)").collect()


def test_a_value_is_computed_once(lake, spark):
    found = lake.sql("SELECT system.truncate(10, CAST(rand() * 1000 AS INT)) AS t FROM range(200)")
    assert all(row.t % 10 == 0 for row in found.collect())


def with_parts(lake, spark):
    """Eight files, of four days and two buckets of two."""
    lake.sql("CREATE TABLE db.p (id BIGINT, name STRING, ts TIMESTAMP) "
             "PARTITIONED BY (days(ts), bucket(2, id))")  # fmt: skip
    rows = [(each, f"n{each}", datetime(2024, 3, 1 + each % 4, 12)) for each in range(40)]
    df = spark.createDataFrame(rows, "id bigint, name string, ts timestamp")
    lake.load_table("db.p").append(df.coalesce(1))
    return lake


@pytest.fixture
def parted(lake, spark):
    return with_parts(lake, spark)


@pytest.fixture(scope="module")
def kept(shared_lake, spark):
    """The table, which no test changes."""
    return with_parts(shared_lake, spark)


PRUNED = {
    "system.days(ts) = DATE '2024-03-02'": 2,
    "system.days(ts) < DATE '2024-03-02' AND system.bucket(2, id) = 1": 1,
    "'2024-03-03' <= system.days(p.ts)": 4,
    "system.hours(ts) = 474804": 2,
    "system.months(ts) IN (650)": 8,
    "system.years(ts) = 53": 0,
    "system.bucket(2, p.id) = 0": 4,
    "system.bucket(2, p.id) IN (0, 5) AND id < 39": 4,
    "system.bucket(3, id) = 0": 8,
    "system.bucket(2, id) = 0 OR id = 3": 8,
    "NOT system.days(ts) = DATE '2024-03-02'": 6,
    "system.truncate(10, id) = 50": 0,
    "system.truncate(2, name) = 'x1'": 0,
    "system.bucket(2, id) = 0 AND id IN (SELECT q.id FROM db.p q WHERE 1 = system.bucket(2, q.id))"
    : 8,
}  # fmt: skip


@pytest.mark.check
@pytest.mark.parametrize("where", PRUNED)
def test_files_that_hold_no_such_rows_are_not_read(kept, where):
    found = kept.sql(f"SELECT id FROM db.p WHERE {where}")
    assert len(found.inputFiles()) == PRUNED[where]
    whole = kept.sql(f"SELECT id FROM (SELECT * FROM db.p LIMIT 1000) p WHERE {where}")
    assert sorted(found.collect()) == sorted(whole.collect())


@pytest.mark.parametrize(
    "where", in_circles(["", " AND system.bucket(2, p.id) = 1", " AND id IN (SELECT 4L)"], test=1)
)
def test_a_delete_by_a_day_reads_no_other_files(parted, where):
    condition = f"system.days(p.ts) = DATE '2024-03-01'{where}"
    expected = parted.sql(f"SELECT id FROM db.p WHERE NOT ({condition})").collect()
    parted.sql(f"DELETE FROM db.p WHERE {condition}")
    assert sorted(parted.sql("SELECT id FROM db.p").collect()) == sorted(expected)
    changed = parted.load_table("db.p").metadata.current_snapshot.summary
    assert int(changed.get("deleted-data-files", 0)) <= 2
    if not where:
        # Whole partitions go by their metadata.
        assert "added-data-files" not in changed
        assert changed["deleted-data-files"] == "2"


def test_another_partitioning_since(parted):
    parted.sql("ALTER TABLE db.p REPLACE PARTITION FIELD bucket(2, id) WITH bucket(4, id)")
    parted.sql(
        "INSERT INTO db.p SELECT 100 + id, 'x', TIMESTAMP '2024-03-01 01:00:00' FROM range(20)"
    )
    query = "SELECT id FROM db.p WHERE system.bucket({}, id) = 1"
    for count, files in ((2, 4 + 4), (4, 8 + 1)):
        found = parted.sql(query.format(count))
        assert len(found.inputFiles()) == files
        rows = {row.id for row in parted.sql("SELECT id FROM db.p").collect()}
        expected = {each for each in rows if _bucket(each, count) == 1}
        assert {row.id for row in found.collect()} == expected


def _bucket(value, count):
    return (mmh3.hash(value.to_bytes(8, "little", signed=True), signed=True) & MOST) % count
