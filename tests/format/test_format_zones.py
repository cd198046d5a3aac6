"""Zones by name: what Spark and Java take, and what they refuse."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from frazil.errors import ConfigurationError
from frazil.format.values.civil import parse_timestamp
from frazil.format.values.zones import offset_at, zone_of

NOON = int(datetime(2024, 7, 15, 12, tzinfo=UTC).timestamp())


@pytest.mark.parametrize(
    ("name", "hours"),
    [
        ("Europe/Berlin", 2), ("UTC", 0), ("Z", 0), ("GMT0", 0), ("+02:00", 2), ("-8", -8),
        ("+0530", 5.5), ("+02:3", 2.05), ("-02:30:36", -2.51), ("UTC+2", 2), ("GMT+01:30", 1.5),
        ("UT+1", 1), ("PST", -7), ("EST", -5), ("Etc/GMT+5", -5), ("+18:00", 18),
    ],
)  # fmt: skip
def test_names_of_zones(name: str, hours: float) -> None:
    assert offset_at(zone_of(name), NOON) == round(hours * 3600)


@pytest.mark.parametrize(
    "name",
    ["", "Mars/Olympus", "+18:01", "+02:60", "z", "utc", "UTC0", "UTC+19", "02:00", "posix/UTC",
     "right/UTC", "localtime", "../UTC", "Europe", "+2:3:4", " UTC", "+٠٢:٠٠"],
)  # fmt: skip
def test_unknown_zones_are_named(name: str) -> None:
    with pytest.raises(ConfigurationError, match=r"time zone .* is not known"):
        zone_of(name)


def test_a_zone_is_its_own_name() -> None:
    zone = timezone(timedelta(hours=3))
    assert zone_of(zone) is zone


@pytest.mark.parametrize(
    ("text", "hours"),
    [("12:00:00 Asia/Tokyo", 9), ("12:00+1", 1), ("12:00:00.5PST", -8), ("12:00 UTC-3", -3)],
)
def test_a_timestamp_may_name_its_zone(text: str, hours: int) -> None:
    assert parse_timestamp(f"2024-03-01 {text}")[1] == hours * 3600
    with pytest.raises(ValueError, match="Mars"):
        parse_timestamp("2024-03-01 12:00:00 Mars/Olympus")


def test_offsets_outside_of_pythons_calendar() -> None:
    """The rules of the last years hold on; before the first change it is local mean time."""
    berlin = zone_of("Europe/Berlin")
    summer = (datetime(9999, 7, 1) - datetime(1970, 1, 1)) // timedelta(seconds=1)
    cycle = 146_097 * 86_400
    assert offset_at(berlin, summer) == offset_at(berlin, summer + 25 * cycle) == 7200
    assert offset_at(berlin, summer + 184 * 86_400 + 25 * cycle) == 3600
    assert offset_at(berlin, -100 * cycle) == 53 * 60 + 28
