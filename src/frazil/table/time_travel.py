"""Points in time as users write them."""

from __future__ import annotations

from datetime import UTC, date, datetime, tzinfo

from frazil.errors import ValidationError
from frazil.format.metadata import TableMetadata
from frazil.format.snapshots import Snapshot
from frazil.format.values.civil import (
    NANOS_PER_DAY,
    NANOS_PER_MILLI,
    NANOS_PER_SECOND,
    parse_timestamp,
)
from frazil.format.values.zones import PROCESS_ZONE, offset_at, zone_of

Moment = int | str | datetime | date
"""A point in time as users write it; `timestamp_ms_of` says what each kind means."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_DAY = date(1970, 1, 1).toordinal()


def timestamp_ms_of(moment: Moment, text_zone: str | tzinfo = PROCESS_ZONE) -> int:
    """Return the milliseconds since the epoch of a point in time, rounded down.

    Text without an offset or zone is a time in the zone of text, as Spark reads it, and a date is
    midnight there. A datetime without a zone is local time of this process, as Python and PySpark
    read it. Where clocks are set back, the first of the two moments is meant (of a datetime,
    ``fold`` decides); where they are set forward, a time that they skip counts from before.
    `moment`: milliseconds since the epoch, ISO 8601 text, a datetime or a date. `text_zone`: the
    zone of text and dates; a session's, or without one the process's.
    """
    if isinstance(moment, bool):
        raise ValidationError(f"{moment!r} is no point in time")
    if isinstance(moment, int):
        return moment
    if isinstance(moment, str):
        try:
            nanos, offset = parse_timestamp(moment)
        except ValueError as error:
            raise ValidationError(
                f"{moment!r} is no point in time: {error}; write it as 2024-01-31T12:00:00"
            ) from error
        return _ms_of_wall_clock(nanos, text_zone, offset)
    if isinstance(moment, datetime):
        return _ms_of_datetime(moment)
    if isinstance(moment, date):
        return _ms_of_wall_clock((moment.toordinal() - _EPOCH_DAY) * NANOS_PER_DAY, text_zone)
    raise ValidationError(
        f"{moment!r} is no point in time; give milliseconds, an ISO text or a datetime"
    )


def _ms_of_wall_clock(nanos: int, zone: str | tzinfo, offset: int | None = None) -> int:
    if offset is None:
        offset = offset_at(zone_of(zone), nanos // NANOS_PER_SECOND)
    return (nanos - offset * NANOS_PER_SECOND) // NANOS_PER_MILLI


def _ms_of_datetime(moment: datetime) -> int:
    try:
        if moment.tzinfo is None:
            # Built anew, since subclasses such as that of pandas know no zones but their own.
            wall = datetime.combine(date(moment.year, moment.month, moment.day), moment.time())
            moment = wall.replace(tzinfo=PROCESS_ZONE, fold=moment.fold)
        since = moment - _EPOCH
        return (since.days * 86_400 + since.seconds) * 1000 + since.microseconds // 1000
    except (AttributeError, TypeError, ValueError, OverflowError) as error:
        # Such as NaT of pandas, which is a datetime by its class.
        raise ValidationError(f"{moment!r} is no point in time: {error}") from error


def find_snapshot(
    metadata: TableMetadata,
    *,
    snapshot_id: int | None = None,
    as_of: Moment | None = None,
    ref: str | None = None,
    text_zone: str | tzinfo = PROCESS_ZONE,
) -> Snapshot | None:
    """The snapshot that is asked for, by default the current one; None in an empty table.

    `as_of` goes by the snapshot log (rule 188); at most one of the three is given.
    """
    given = [
        name
        for name, value in (("snapshot_id", snapshot_id), ("as_of", as_of), ("ref", ref))
        if value is not None
    ]
    if len(given) > 1:
        raise ValidationError(f"give one of {' and '.join(given)}, not both")
    if snapshot_id is not None:
        return metadata.snapshot_by_id(snapshot_id)
    if as_of is not None:
        return metadata.snapshot_as_of(timestamp_ms_of(as_of, text_zone))
    if ref is not None:
        return metadata.ref_snapshot(ref)
    return metadata.current_snapshot
