"""Times without a zone: text is in the session's zone, datetimes are local time, as in Spark."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from pyspark.sql import functions as F

import frazil
from ci_share import in_circles, only_in_soak
from frazil import col
from frazil.errors import ConfigurationError
from frazil.format.values.zones import zone_of
from frazil.spark.session.facts import time_zone_of
from frazil.table.time_travel import timestamp_ms_of

SESSION_ZONE = "spark.sql.session.timeZone"
ROWS = "values (1, timestamp'2024-01-01T03:00:00Z'), (2, timestamp'2024-01-01T09:00:00Z')"
# Midnight and six in Los Angeles are 08:00 and 14:00 UTC.
WHERE = "ts < '2024-01-01 00:00:00'"

ACCEPTED = [
    "UTC", "Z", "GMT", "UT", "GMT0", "Zulu", "Europe/Berlin", "US/Pacific", "Etc/GMT+5", "PST8PDT",
    "+02:00", "+2", "-8", "+02", "+0230", "+023015", "-02:30:15", "+2:30", "+02:3", "+2:30:15",
    "UTC+2", "UTC-0", "UTC+01:3", "GMT+01:30", "GMT-0", "UT+1", "+18:00", "-18:00",
    "ACT", "AET", "AGT", "ART", "AST", "BET", "BST", "CAT", "CNT", "CST", "CTT", "EAT", "ECT",
    "EST", "HST", "IET", "IST", "JST", "MIT", "MST", "NET", "NST", "PLT", "PNT", "PRT", "PST",
    "SST", "VST",
]  # fmt: skip
REFUSED = ["z", "utc", "UTC0", "+18:01", "+02:60", "Mars/X", "", " UTC", "posix/UTC", "localtime"]
WALLS = [
    "2024-01-15 12:00:00", "2024-07-15 12:00:00", "2024-03-31 02:30:00", "2024-10-27 02:30:00",
    "2024-03-10 02:30:00", "2024-11-03 01:30:00", "2024-03-01 12:00:00 Asia/Tokyo",
    "2024-03-01 12:00:00-8", "2024-03-01", "+12000-07-01 00:00:00",
]  # fmt: skip


@pytest.fixture
def session_zone(spark: Any) -> Iterator[Callable[[str], None]]:
    """Sets the session's zone until the end of the test."""
    before = spark.conf.get(SESSION_ZONE)
    yield lambda name: spark.conf.set(SESSION_ZONE, name)
    spark.conf.set(SESSION_ZONE, before)


@pytest.fixture
def table_settings(session_zone: Any) -> dict[str, Any]:
    session_zone("America/Los_Angeles")
    rows = f"select * from {ROWS} as t(id, ts)"
    return {"schema": "id int, ts timestamp", "partition_by": ["hour(ts)"], "appends": [rows]}


def found(table: frazil.Table, where: Any) -> list[int]:
    return sorted(row.id for row in table.scan(where=where).to_df().collect())


@pytest.mark.check
def test_an_overwrite_of_part_of_a_file_too(spark: Any, table: frazil.Table) -> None:
    with table.update_spec() as change:
        change.remove_field("ts_hour")
    table.overwrite(spark.sql(f"select * from {ROWS} as t(id, ts)").coalesce(1))
    new = spark.sql("select 3 as id, timestamp'2024-02-01T00:00:00Z' as ts")
    table.overwrite(new, where=WHERE)
    assert sorted(row.id for row in table.to_df().collect()) == [2, 3]


@pytest.mark.parametrize(
    "zone",
    in_circles(
        [
            "+02:00",
            only_in_soak("-8"),
            only_in_soak("UTC+2"),
            "GMT+01:30",
            only_in_soak("UT+1"),
            "PST",
            only_in_soak("+0530"),
        ],
        test=1,
    ),
)
def test_predicates_in_every_kind_of_zone(
    spark: Any, table: frazil.Table, session_zone: Any, zone: str
) -> None:
    session_zone(zone)
    df = spark.sql(f"select * from {ROWS} as t(id, ts)")
    exact = spark.sql("select cast(timestamp'2024-01-01T09:00:00Z' as string)").first()[0]
    for where in (
        WHERE,
        "ts >= '2024-01-01'",
        f"ts = '{exact}'",
        f"ts in (timestamp'{exact}')",
        "ts > date'2024-01-01'",
        "ts < '2024-01-01 12:00:00 Asia/Tokyo'",
    ):
        assert found(table, where) == [row.id for row in df.where(where).orderBy("id").collect()]


def test_a_datetime_without_a_zone_is_local_time_as_in_pyspark(
    spark: Any, table: frazil.Table, local_zone: Any
) -> None:
    df = spark.sql(f"select * from {ROWS} as t(id, ts)")
    for zone, expected in (("Asia/Tokyo", [2]), ("America/New_York", [])):
        local_zone(zone)
        moment = dt.datetime(2024, 1, 1, 12, 1)
        assert [row.id for row in df.where(F.col("ts") > moment).collect()] == expected
        assert found(table, col("ts") > moment) == expected
        first = table.to_df().where("id = 1").first()
        assert found(table, col("ts") == first.ts) == [1]


@pytest.mark.check
def test_zones_are_those_that_spark_takes(spark: Any, session_zone: Any) -> None:
    columns = ", ".join(f"unix_millis(timestamp'{wall}')" for wall in WALLS)
    for zone in ACCEPTED:
        session_zone(zone)
        expected = tuple(spark.sql(f"select {columns}").first())
        assert tuple(timestamp_ms_of(wall, zone) for wall in WALLS) == expected, zone
    for zone in REFUSED:
        with pytest.raises(Exception, match="TIME_ZONE"):
            session_zone(zone)
        with pytest.raises(ConfigurationError, match="time zone"):
            zone_of(zone)


def test_without_a_setting_it_is_the_zone_of_sparks_jvm(spark: Any, session_zone: Any) -> None:
    zones = spark._jvm.java.util.TimeZone
    before = zones.getDefault()
    spark.conf.unset(SESSION_ZONE)
    try:
        zones.setDefault(zones.getTimeZone("Asia/Tokyo"))
        assert spark.sql("select current_timezone()").first()[0] == "Asia/Tokyo"
        assert time_zone_of(spark) == "Asia/Tokyo"
    finally:
        zones.setDefault(before)


def ways(spark: Any, milliseconds: int) -> list[Any]:
    """A moment in each way of writing it; Spark writes the text."""
    text = spark.sql(f"select cast(timestamp_millis({milliseconds}) as string)").first()[0]
    local = dt.datetime.fromtimestamp(milliseconds / 1000)
    aware = dt.datetime.fromtimestamp(milliseconds / 1000, ZoneInfo("Africa/Cairo"))
    return [milliseconds, text, local, aware, aware.isoformat()]


@pytest.mark.check
@pytest.mark.parametrize(
    ("session", "local"),
    [
        ("Asia/Tokyo", "America/Los_Angeles"),
        only_in_soak("America/Los_Angeles", "Europe/Berlin"),
        ("+05:30", "Asia/Tokyo"),
    ],
)
def test_times_of_snapshots(
    spark: Any,
    table: frazil.Table,
    tmp_path: Path,
    session_zone: Any,
    local_zone: Any,
    session: str,
    local: str,
) -> None:
    """Every keyword that takes a time takes the same moment in each way of writing it."""
    session_zone(session)
    local_zone(local)
    time.sleep(0.002)
    table.append(spark.sql("select 3 as id, timestamp'2024-02-01T00:00:00Z' as ts"))
    first, second = table.metadata.snapshots
    earlier, later = ways(spark, first.timestamp_ms), ways(spark, second.timestamp_ms)
    assert [table.scan(as_of=way).snapshot for way in earlier] == [first] * len(earlier)
    assert [table.snapshot(as_of=way) for way in later] == [second] * len(later)
    assert table.files(as_of=later[1]).count() == 3
    for number, way in enumerate(earlier):
        assert table.incremental(from_timestamp=way).to_df().count() == 1
        assert table.changes(to_timestamp=way).count() == 2
        checkpoint = str(tmp_path / f"stream-{number}")
        assert table.read_stream(checkpoint=checkpoint, from_timestamp=way).isStreaming
        assert not table.maintenance.expire_snapshots_keeping_files(older_than=way).snapshot_ids
    table.rollback_to_timestamp(later[1])
    assert table.current_snapshot == first
    table.set_current_snapshot(second.snapshot_id)
    expired = table.maintenance.expire_snapshots_keeping_files(older_than=later[1]).snapshot_ids
    assert expired == (first.snapshot_id,)
