"""What points in time mean that users write: text, dates, datetimes with and without a zone."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any
from zoneinfo import ZoneInfo

import pandas as pd
import pytest
from table_cases import make_table

from frazil.catalog.protocol import Catalog
from frazil.errors import ConfigurationError, ValidationError
from frazil.table.time_travel import timestamp_ms_of

ZONES = ["Asia/Tokyo", "America/Los_Angeles", "Europe/Berlin"]
SUMMER_TIME = [
    datetime(2024, 3, 31, 1, 59, 59), datetime(2024, 3, 31, 2, 30), datetime(2024, 3, 31, 3),
    datetime(2024, 10, 27, 1, 59), datetime(2024, 10, 27, 2, 30),
    datetime(2024, 10, 27, 2, 30, fold=1), datetime(2024, 10, 27, 3),
]  # fmt: skip


def milliseconds(moment: datetime) -> int:
    return round(moment.timestamp() * 1000)


@pytest.mark.parametrize("zone", ZONES)
def test_datetimes_without_a_zone_are_local_time(local_zone: Any, zone: str) -> None:
    local_zone(zone)
    for wall in (datetime(2024, 1, 15, 12, 30, 1, 500_000), *SUMMER_TIME):
        assert timestamp_ms_of(wall, "UTC") == milliseconds(wall)
    assert timestamp_ms_of(pd.Timestamp("2024-01-15 12:30:00"), "UTC") == milliseconds(
        datetime(2024, 1, 15, 12, 30)
    )


@pytest.mark.parametrize("zone", ZONES)
def test_text_and_dates_are_in_the_zone_of_text(local_zone: Any, zone: str) -> None:
    local_zone("Pacific/Auckland")
    noon = milliseconds(datetime(2024, 7, 1, 12, tzinfo=ZoneInfo(zone)))
    assert timestamp_ms_of("2024-07-01 12:00:00", zone) == noon
    assert timestamp_ms_of(" 2024-07-01T12:00 ", zone) == noon
    assert timestamp_ms_of("2024-07-01", zone) == noon - 12 * 3_600_000
    assert timestamp_ms_of(date(2024, 7, 1), zone) == noon - 12 * 3_600_000
    for wall in SUMMER_TIME:
        expected = milliseconds(wall.replace(tzinfo=ZoneInfo(zone), fold=0))
        assert timestamp_ms_of(wall.isoformat(), zone) == expected


@pytest.mark.parametrize("zone", ZONES)
def test_without_a_session_text_is_local_time_too(local_zone: Any, zone: str) -> None:
    local_zone(zone)
    for wall in SUMMER_TIME:
        assert timestamp_ms_of(wall.isoformat()) == milliseconds(wall.replace(fold=0))
    midnight = milliseconds(datetime(2024, 7, 1))
    assert timestamp_ms_of("2024-07-01") == timestamp_ms_of(date(2024, 7, 1)) == midnight


@pytest.mark.parametrize("zone", ZONES)
def test_what_names_its_zone_is_what_it_says(local_zone: Any, zone: str) -> None:
    local_zone(zone)
    moment = datetime(2024, 10, 27, 1, 30, tzinfo=UTC)
    for written in (
        moment,
        moment.astimezone(ZoneInfo("Europe/Berlin")),
        pd.Timestamp(moment),
        "2024-10-27T01:30:00Z",
        "2024-10-27 03:30:00+02:00",
        "2024-10-27 10:30:00 Asia/Tokyo",
        milliseconds(moment),
    ):
        assert timestamp_ms_of(written, "-08:00") == milliseconds(moment)


def test_the_ends_of_the_calendar(local_zone: Any) -> None:
    local_zone("Asia/Tokyo")
    day = 86_400_000
    low, high = (
        round((at - datetime(1970, 1, 1)).total_seconds() * 1000)
        for at in (datetime(1, 1, 1), datetime(9999, 12, 31))
    )
    for zone in ("UTC", "Asia/Tokyo", "America/Los_Angeles"):
        assert abs(timestamp_ms_of("0001-01-01", zone) - low) < day
        assert abs(timestamp_ms_of("9999-12-31", zone) - high) < day
    assert abs(timestamp_ms_of(datetime(1, 1, 1)) - low) < day
    assert timestamp_ms_of(datetime(9999, 12, 31)) == high - 9 * 3_600_000
    assert timestamp_ms_of("+10000-01-01", "Asia/Tokyo") == high + day - 9 * 3_600_000
    assert timestamp_ms_of(datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)) == -1


@pytest.mark.parametrize("wrong", ["yesterday", "2024-02-30", "", True, 1.5, pd.NaT, None, b"x"])
def test_what_is_no_point_in_time(wrong: Any) -> None:
    with pytest.raises(ValidationError, match="no point in time"):
        timestamp_ms_of(wrong)


def test_an_unknown_zone_is_named() -> None:
    with pytest.raises(ConfigurationError, match="Mars"):
        timestamp_ms_of("2024-01-01", "Mars/Olympus")
    with pytest.raises(ValidationError, match="Mars"):
        timestamp_ms_of("2024-01-01 00:00:00 Mars/Olympus", "UTC")


def test_defaults_of_columns_follow_the_same_rule(files_catalog: Catalog, local_zone: Any) -> None:
    local_zone("Asia/Tokyo")
    table = make_table(files_catalog)
    table.upgrade(3)
    wall = datetime(2024, 1, 1)
    with table.update_schema() as change:
        change.add_column("a", "timestamptz", default=wall)
        change.add_column("b", "timestamptz", default="2024-01-01 00:00:00")
        change.add_column("c", "timestamptz", default=wall.replace(tzinfo=UTC))
        change.add_column("d", "timestamp", default=wall)
    local = milliseconds(wall) * 1000
    utc = milliseconds(wall.replace(tzinfo=UTC)) * 1000
    defaults = [table.schema.find_field(name).initial_default for name in "abcd"]
    assert defaults == [local, local, utc, utc]
