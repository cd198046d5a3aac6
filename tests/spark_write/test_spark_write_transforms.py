"""Transforms as Spark expressions against `frazil.format.partitions.transforms`, value by value."""

from __future__ import annotations

import datetime as dt
import random
import uuid
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import functions as F
from pyspark.sql import types as S

import frazil
from ci_share import in_circles
from frazil.errors import FrazilError, SchemaMismatchError
from frazil.format import types as I
from frazil.format.partitions.transforms import parse_transform
from frazil.spark.types import type_to_spark
from frazil.spark.write.columns.partition_columns import transform_column

EPOCH = dt.datetime(1970, 1, 1)
RANDOM = random.Random(20240101)


def integers(bits):
    edges = [0, 1, -1, 9, 10, -9, -10, -11, 99, 255, 256, 127, 128, -128, -129]
    limit = 2 ** (bits - 1)
    return edges + [RANDOM.randrange(-limit // 2, limit // 2) for _ in range(300)]


def moments(per_second):
    """Instants of the years 1 to 9999, many of them before 1970, on and beside the full hour."""
    hour = 3600 * per_second
    near = [hour * n + d for n in (-49, -25, -24, -1, 0, 1, 23, 24) for d in (-1, 0, 1)]
    first, last = -62_135_596_800, 253_402_300_799
    if per_second == 10**9:
        first, last = -(2**63) // 10**9 + 1, 2**63 // 10**9 - 1
    wide = [
        RANDOM.randrange(first + 86_400, last - 86_400) * per_second + RANDOM.randrange(per_second)
        for _ in range(300)
    ]
    return near + wide


def strings():
    letters = "aé漢😀z\u0000 %/"
    return [
        "",
        "iceberg",
        "😀" * 5,
        *("".join(RANDOM.choice(letters) for _ in range(RANDOM.randrange(14))) for _ in range(300)),
    ]


def blobs():
    return [b"", b"\x00\x01\x02\x03", *(RANDOM.randbytes(RANDOM.randrange(14)) for _ in range(300))]


def decimals(precision, scale):
    limit = 10**precision - 1
    unscaled = [0, 1, -1, 127, 128, -128, -129, limit // 2, -limit // 2]
    unscaled = [u for u in unscaled if abs(u) <= limit] + [
        RANDOM.randrange(-limit // 3, limit // 3) // 10 ** RANDOM.randrange(precision)
        for _ in range(300)
    ]
    return [Decimal((int(u < 0), tuple(map(int, str(abs(u)))), -scale)) for u in unscaled]


def to_datetime(micros):
    return EPOCH + dt.timedelta(microseconds=micros)


DAYS = [0, 1, -1, 17486, -365, -366, *(RANDOM.randrange(-700_000, 2_900_000) for _ in range(300))]
TIME_TRANSFORMS = ["year", "month", "day", "hour"]

# type, internal values, what Spark is given for one, transforms
CASES = [
    (I.IntegerType(), integers(32), int, ["bucket[16]", "truncate[10]", "identity"]),
    (I.LongType(), integers(64), int, ["bucket[7]", "truncate[100]"]),
    (I.DecimalType(9, 2), decimals(9, 2), Decimal, ["bucket[16]", "truncate[50]", "identity"]),
    (I.DecimalType(18, 18), decimals(18, 18), Decimal, ["bucket[16]", "truncate[7]"]),
    (I.DecimalType(38, 5), decimals(38, 5), Decimal, ["bucket[16]", "truncate[50]"]),
    (I.DecimalType(38, 10), decimals(38, 10), Decimal, ["truncate[1]", "truncate[2147483647]"]),
    (I.DecimalType(38, 0), decimals(38, 0), Decimal, ["truncate[10]"]),
    (I.DecimalType(38, 38), decimals(38, 38), Decimal, ["truncate[7]"]),
    (I.DecimalType(37, 30), decimals(37, 30), Decimal, ["truncate[7]", "truncate[1000]"]),
    (
        I.DateType(),
        DAYS,
        lambda d: dt.date(1970, 1, 1) + dt.timedelta(days=d),
        ["bucket[16]", "year", "month", "day"],
    ),
    (I.TimeType(), [0, 81_068_000_000, 86_399_999_999], int, ["bucket[16]"]),
    (I.TimestampType(), moments(10**6), to_datetime, ["bucket[16]", *TIME_TRANSFORMS]),
    (
        I.TimestamptzType(),
        moments(10**6),
        lambda m: to_datetime(m).replace(tzinfo=dt.UTC),
        ["bucket[16]", *TIME_TRANSFORMS],
    ),
    (I.TimestampNanoType(), moments(10**9), int, ["bucket[16]", *TIME_TRANSFORMS]),
    (I.TimestamptzNanoType(), moments(10**9), int, ["bucket[16]", *TIME_TRANSFORMS]),
    (I.StringType(), strings(), str, ["bucket[16]", "truncate[3]", "identity"]),
    (
        I.UUIDType(),
        [uuid.UUID(int=RANDOM.getrandbits(128)) for _ in range(300)],
        str,
        ["bucket[16]"],
    ),
    (I.FixedType(5), [RANDOM.randbytes(5) for _ in range(200)], bytes, ["bucket[16]"]),
    (I.BinaryType(), blobs(), bytes, ["bucket[16]", "truncate[3]"]),
]


def as_internal(result_type, value):
    if isinstance(value, dt.date):
        return (value - dt.date(1970, 1, 1)).days
    return bytes(value) if isinstance(value, bytearray) else value


@pytest.fixture
def time_zone(spark, request):
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", request.param)
    yield request.param
    spark.conf.set("spark.sql.session.timeZone", before)


IN_ZONES = [
    pytest.param(zone, case, id=f"{case[0]}-{zone}")
    for zone in ("UTC", "America/Los_Angeles")
    for case in CASES
    if zone == "UTC" or str(case[0]).startswith("timestamp")
]


@pytest.mark.parametrize(
    ("time_zone", "case"), in_circles(IN_ZONES, test=1), indirect=["time_zone"]
)
def test_expressions_equal_the_format_on_every_value_rules_77_to_89(spark, time_zone, case):
    source_type, values, to_spark, texts = case
    schema = S.StructType(
        [S.StructField("n", S.IntegerType()), S.StructField("v", type_to_spark(source_type))]
    )
    rows = [(n, to_spark(value)) for n, value in enumerate(values)] + [(-1, None)]
    df = spark.createDataFrame(rows, schema)
    transforms = [parse_transform(text) for text in texts]
    columns = [transform_column(t, source_type, F.col("v")) for t in transforms]
    # Dates of the first and last years do not fit Python's: they are compared as days.
    found = df.select(
        "n",
        *(
            (F.unix_date(c) if str(t) == "day" else c).alias(f"t{i}")
            for i, (t, c) in enumerate(zip(transforms, columns, strict=True))
        ),
    ).collect()
    assert len(found) == len(rows)
    for row in found:
        value = None if row["n"] == -1 else values[row["n"]]
        for i, transform in enumerate(transforms):
            expected = transform.apply(source_type, value)
            got = as_internal(source_type, row[f"t{i}"])
            assert got == expected, f"{transform} of {value!r}"


SPEC_HASHES = [
    ("date'2017-11-16'", I.DateType(), -653330422),
    ("'iceberg'", I.StringType(), 1210000089),
    ("cast(34 as int)", I.IntegerType(), 2017239379),
    ("34L", I.LongType(), 2017239379),
    ("cast('14.20' as decimal(9,2))", I.DecimalType(9, 2), -500754589),
    ("timestamp_ntz'2017-11-16 22:31:08'", I.TimestampType(), -2047944441),
    ("timestamp'2017-11-16 14:31:08-08:00'", I.TimestamptzType(), -2047944441),
    ("1510871468000001001L", I.TimestampNanoType(), -1207196810),
    ("81068000000L", I.TimeType(), -662762989),
    ("'f79c3e09-677c-4bbd-a479-3f349cb785e7'", I.UUIDType(), 1488055340),
    ("X'00010203'", I.BinaryType(), -188683207),
]


def test_buckets_of_the_specifications_vectors_rules_265_to_273(spark):
    # With 2**31 - 1 buckets the bucket is nearly the hash itself.
    buckets = parse_transform("bucket[2147483647]")
    row = (
        spark.range(1)
        .select(
            *(
                transform_column(buckets, t, F.expr(sql)).alias(f"c{i}")
                for i, (sql, t, _) in enumerate(SPEC_HASHES)
            )
        )
        .first()
    )
    assert list(row) == [(h & 0x7FFFFFFF) % 2147483647 for _, _, h in SPEC_HASHES]


@pytest.mark.parametrize(
    ("ddl", "smallest", "fits"),
    [
        ("v int", "int(-2147483648)", "int(-2147483640)"),
        ("v bigint", "-9223372036854775807L - 1L", "-9223372036854775800L"),
        ("v decimal(9,2)", "-9999999.99BD", "-9999999.90BD"),
        ("v decimal(38,0)", "-" + "9" * 38 + "BD", "-" + "9" * 37 + "0BD"),
    ],
)
def test_a_value_without_a_truncated_partition_is_named(
    spark: Any, tmp_path: Path, ddl: str, smallest: str, fits: str
) -> None:
    with frazil.connect(spark, warehouse=str(tmp_path)) as lake:
        lake.create_namespace("db")
        table = lake.create_table("db.t", ddl, partition_by=["truncate(10, v)"])
        kind = ddl.split(" ", 1)[1]
        [[shown]] = spark.sql(f"select cast(cast({smallest} as {kind}) as string)").collect()
        says = rf"the value {shown} has no partition under truncate\[10\]"
        with pytest.raises(SchemaMismatchError, match=says):
            table.append(spark.sql(f"select cast({smallest} as {kind}) as v"))
        table.append(spark.sql(f"select cast({fits} as {kind}) as v"))
        assert table.to_df().count() == 1


def test_an_hour_beyond_32_bits_names_its_column(lake, spark):
    table = lake.create_table("db.far", "id int, ts timestamp", partition_by=["hours(ts)"])
    far = spark.sql("SELECT 1 AS id, timestamp_micros(7826000000000000000) AS ts")
    with pytest.raises(FrazilError, match="of the column ts has no partition under hour"):
        table.append(far)
    assert not table.metadata.snapshots
