"""Time zones by the names that Spark and Java's ``ZoneId`` take, as Python's ``tzinfo``."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from frazil.errors import ConfigurationError

SHORT_IDS: Final = {
    "ACT": "Australia/Darwin",
    "AET": "Australia/Sydney",
    "AGT": "America/Argentina/Buenos_Aires",
    "ART": "Africa/Cairo",
    "AST": "America/Anchorage",
    "BET": "America/Sao_Paulo",
    "BST": "Asia/Dhaka",
    "CAT": "Africa/Harare",
    "CNT": "America/St_Johns",
    "CST": "America/Chicago",
    "CTT": "Asia/Shanghai",
    "EAT": "Africa/Addis_Ababa",
    "ECT": "Europe/Paris",
    "EST": "-05:00",
    "HST": "-10:00",
    "IET": "America/Indiana/Indianapolis",
    "IST": "Asia/Kolkata",
    "JST": "Asia/Tokyo",
    "MIT": "Pacific/Apia",
    "MST": "-07:00",
    "NET": "Asia/Yerevan",
    "NST": "Pacific/Auckland",
    "PLT": "Asia/Karachi",
    "PNT": "America/Phoenix",
    "PRT": "America/Puerto_Rico",
    "PST": "America/Los_Angeles",
    "SST": "Pacific/Guadalcanal",
    "VST": "Asia/Ho_Chi_Minh",
}
"""Names of three letters that Java's ``ZoneId.SHORT_IDS`` has, and what they stand for."""

_OFFSET = re.compile(
    r"([+-])(?:(\d{1,2})(?::(\d{1,2}))?|(\d{1,2}):(\d{2}):(\d{2})|(\d{2})(\d{2})(\d{2})?)", re.ASCII
)
_PREFIXED = re.compile(r"(?:UTC|GMT|UT)([+-].*)", re.ASCII)
_REGION = re.compile(r"[A-Za-z][A-Za-z0-9~/._+-]+", re.ASCII)
# Folders and files of the zone database that are no zones of Java's; "right" counts leap seconds.
_NO_REGION = re.compile(r"(?:posix|right)/.*|posixrules|localtime|Factory", re.ASCII)
_MOST_SECONDS = 18 * 3600
_EPOCH = datetime(1970, 1, 1)
_CYCLE_YEARS = 400
_CYCLE_SECONDS = 146_097 * 86_400
_FIRST_SECOND = int((datetime(1, 1, 2) - _EPOCH).total_seconds())
_LAST_SECOND = int((datetime(9999, 12, 31) - _EPOCH).total_seconds())


class _ProcessZone(tzinfo):
    """The local time of this process, as ``datetime.timestamp`` reads naive datetimes."""

    def utcoffset(self, moment: datetime | None) -> timedelta | None:
        """The offset of a wall clock; ``fold`` says which of two is meant."""
        if moment is None:
            return None
        wall = moment.replace(tzinfo=None, microsecond=0)
        # At the ends of the calendar the moment itself may lie outside of it.
        if wall.year < 3:
            wall = wall.replace(year=wall.year + _CYCLE_YEARS)
        elif wall.year > 9997:
            wall = wall.replace(year=wall.year - _CYCLE_YEARS)
        return (wall - _EPOCH) - timedelta(seconds=int(wall.timestamp()))

    def tzname(self, moment: datetime | None) -> str | None:
        """Its name in messages."""
        return "the process's local time"

    def dst(self, moment: datetime | None) -> timedelta | None:
        """Not told apart from the offset."""
        return None

    def __repr__(self) -> str:
        return "PROCESS_ZONE"


PROCESS_ZONE: Final[tzinfo] = _ProcessZone()
"""The local time of this process (``TZ``); it follows ``time.tzset``."""


def zone_of(zone: str | tzinfo) -> tzinfo:
    """Return the zone of a name as ``spark.sql.session.timeZone`` takes it.

    Names are regions (``Europe/Berlin``), offsets (``Z``, ``+02:00``, ``-8``, ``+0530``), offsets
    after ``UTC``, ``GMT`` or ``UT``, and Java's short names such as ``PST``. A tzinfo is returned
    as it is.
    """
    if isinstance(zone, tzinfo):
        return zone
    name = SHORT_IDS.get(zone, zone)
    if name in ("Z", "UTC", "GMT", "UT"):
        return UTC
    prefixed = _PREFIXED.fullmatch(name)
    offset = _fixed_offset(prefixed[1] if prefixed else name)
    if offset is not None:
        return timezone(timedelta(seconds=offset))
    try:
        if not prefixed and _REGION.fullmatch(name) and not _NO_REGION.fullmatch(name):
            return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        pass
    raise ConfigurationError(
        f"the time zone {zone!r} is not known: give a region such as Europe/Berlin or an offset "
        "such as +02:00 (regions need the system's time zone database or the package tzdata)"
    )


def offset_at(zone: tzinfo, wall_seconds: int, *, fold: int = 0) -> int:
    """Return a zone's offset from UTC, in seconds, when its clocks show a time.

    Where clocks show a time twice, it is the first; where they skip it, the offset of before
    holds, as in Java and Spark, unless ``fold`` is 1 (as in Python). Years outside of 1 to 9999
    have the rules of the nearest ones.
    `wall_seconds`: seconds from 1970-01-01 00:00:00 on those clocks.
    """
    offset: timedelta | None
    if isinstance(zone, timezone):
        offset = zone.utcoffset(None)
    else:
        if wall_seconds > _LAST_SECOND:
            # Every 400 years have one calendar, weekdays included.
            cycles = (wall_seconds - _LAST_SECOND + _CYCLE_SECONDS - 1) // _CYCLE_SECONDS
            wall_seconds -= cycles * _CYCLE_SECONDS
        wall = _EPOCH + timedelta(seconds=max(wall_seconds, _FIRST_SECOND))
        offset = zone.utcoffset(wall.replace(tzinfo=zone, fold=fold))
    return 0 if offset is None else int(offset.total_seconds())


def _fixed_offset(text: str) -> int | None:
    """Seconds of an offset in one of the forms of Java's ``ZoneOffset`` and Spark; else None."""
    match = _OFFSET.fullmatch(text)
    if match is None:
        return None
    sign, h1, m1, h2, m2, s2, h3, m3, s3 = match.groups()
    hours, minutes, seconds = int(h1 or h2 or h3), int(m1 or m2 or m3 or 0), int(s2 or s3 or 0)
    offset = (hours * 60 + minutes) * 60 + seconds
    if minutes > 59 or seconds > 59 or offset > _MOST_SECONDS:
        return None
    return -offset if sign == "-" else offset
