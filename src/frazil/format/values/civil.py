"""Dates and times of the proleptic Gregorian calendar as integers, for any year.

Python's ``datetime`` holds the years 1 to 9999 in microseconds; stored values go further, in both.
Days count from 1970-01-01, times and timestamps are nanoseconds from midnight or from the epoch.
"""

from __future__ import annotations

import re

from frazil.format.values.zones import offset_at, zone_of

NANOS_PER_MICRO = 1_000
NANOS_PER_MILLI = 1_000_000
NANOS_PER_SECOND = 1_000_000_000
SECONDS_PER_DAY = 86_400
NANOS_PER_DAY = SECONDS_PER_DAY * NANOS_PER_SECOND
MICROS_PER_DAY = NANOS_PER_DAY // NANOS_PER_MICRO

_DATE = r"(?P<year>[+-]?\d{4,9})-(?P<month>\d{1,2})-(?P<day>\d{1,2})"
_TIME = r"(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<second>\d{2})(?:[.,](?P<fraction>\d{1,9}))?)?"
_ZONE = r"(?P<zone>[A-Za-z+-][A-Za-z0-9~/._+:-]*)"
_DATE_PATTERN = re.compile(_DATE, re.ASCII)
_TIME_PATTERN = re.compile(_TIME, re.ASCII)
_TIMESTAMP_PATTERN = re.compile(rf"{_DATE}(?:[tT ]{_TIME}\s*{_ZONE}?)?", re.ASCII)
_MONTH_LENGTHS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def days_from_civil(year: int, month: int, day: int) -> int:
    """Days since 1970-01-01 of a date; the month is 1 to 12."""
    # March-based years put the leap day last, so that every 400 years have one shape.
    shifted = year - (month <= 2)
    era, year_of_era = divmod(shifted, 400)
    day_of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    day_of_era = year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year
    return era * 146_097 + day_of_era - 719_468


def civil_from_days(days: int) -> tuple[int, int, int]:
    """Year, month and day of a count of days since 1970-01-01."""
    era, day_of_era = divmod(days + 719_468, 146_097)
    year_of_era = (
        day_of_era - day_of_era // 1_460 + day_of_era // 36_524 - day_of_era // 146_096
    ) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted_month = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * shifted_month + 2) // 5 + 1
    month = shifted_month + 3 if shifted_month < 10 else shifted_month - 9
    return era * 400 + year_of_era + (month <= 2), month, day


def parse_date(text: str) -> int:
    """Days since the epoch of ``2017-11-16``; ValueError where it is no date."""
    match = _DATE_PATTERN.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text!r} is not a date like 2017-11-16")
    return _days_of(match, text)


def parse_time(text: str) -> int:
    """Nanoseconds since midnight of ``22:31:08.123``; ValueError where it is no time of day."""
    match = _TIME_PATTERN.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text!r} is not a time like 22:31:08.123456")
    return _nanos_of(match, text)


def parse_timestamp(text: str) -> tuple[int, int | None]:
    """Nanoseconds since the epoch as written, and the offset from UTC in seconds, if one is there.

    Takes ``T`` or a space between date and time, a date alone, 0 to 9 digits of a second, and
    after a time an offset or the name of a zone. The nanoseconds are those of the written wall
    clock: subtract the offset to have UTC. ValueError where it is no timestamp.
    """
    match = _TIMESTAMP_PATTERN.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text!r} is not a timestamp like 2017-11-16T22:31:08.123456")
    nanos = _days_of(match, text) * NANOS_PER_DAY
    if match["hour"] is not None:
        nanos += _nanos_of(match, text)
    return nanos, None if match["zone"] is None else _offset_of(match["zone"], nanos)


def format_date(days: int) -> str:
    """ISO date; years past 9999 carry a plus sign, years before 0 a minus sign."""
    year, month, day = civil_from_days(days)
    return f"{format_year(year)}-{month:02d}-{day:02d}"


def format_year(year: int) -> str:
    """At least four digits, signed where ISO 8601 demands it."""
    if year > 9999:
        return f"+{year}"
    return f"-{-year:04d}" if year < 0 else f"{year:04d}"


def format_time(nanos: int, digits: int) -> str:
    """``HH:mm:ss`` and ``digits`` digits of the second, of nanoseconds since midnight."""
    seconds, fraction = divmod(nanos, NANOS_PER_SECOND)
    minutes, second = divmod(seconds, 60)
    text = f"{minutes // 60:02d}:{minutes % 60:02d}:{second:02d}"
    return f"{text}.{fraction:09d}"[: len(text) + 1 + digits] if digits else text


def format_timestamp(nanos: int, digits: int) -> str:
    """``YYYY-MM-DDTHH:mm:ss`` and ``digits`` digits of the second, of nanoseconds."""
    days, of_day = divmod(nanos, NANOS_PER_DAY)
    return f"{format_date(days)}T{format_time(of_day, digits)}"


def _days_of(match: re.Match[str], text: str) -> int:
    year, month, day = int(match["year"]), int(match["month"]), int(match["day"])
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    if not 1 <= month <= 12 or not 1 <= day <= _MONTH_LENGTHS[month - 1] + (leap and month == 2):
        raise ValueError(f"{text!r} names a day that is not in the calendar")
    return days_from_civil(year, month, day)


def _nanos_of(match: re.Match[str], text: str) -> int:
    hour, minute, second = int(match["hour"]), int(match["minute"]), int(match["second"] or 0)
    if hour > 23 or minute > 59 or second > 59:
        raise ValueError(f"{text!r} names a time that is not on the clock")
    fraction = int((match["fraction"] or "0").ljust(9, "0"))
    return ((hour * 60 + minute) * 60 + second) * NANOS_PER_SECOND + fraction


def _offset_of(zone: str, wall_nanos: int) -> int:
    return 0 if zone == "z" else offset_at(zone_of(zone), wall_nanos // NANOS_PER_SECOND)
