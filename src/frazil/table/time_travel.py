"""Points in time as users write them."""

from __future__ import annotations

from datetime import UTC, date, datetime

from frazil.errors import ValidationException
from frazil.format.metadata import TableMetadata
from frazil.format.snapshots import Snapshot


def timestamp_ms_of(moment: int | str | datetime | date) -> int:
    """Milliseconds since the epoch of a moment.

    Args:
        moment: milliseconds since the epoch, an ISO 8601 text, a date or a datetime; UTC where it
            names no time zone.

    Raises:
        ValidationException: it is none of these.
    """
    if isinstance(moment, bool):
        raise ValidationException(f"{moment!r} is no point in time")
    if isinstance(moment, int):
        return moment
    if isinstance(moment, str):
        try:
            moment = datetime.fromisoformat(moment.strip())
        except ValueError as error:
            raise ValidationException(
                f"{moment!r} is no point in time; write it as 2024-01-31T12:00:00"
            ) from error
    if isinstance(moment, datetime):
        aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
        delta = aware - datetime(1970, 1, 1, tzinfo=UTC)
        return (delta.days * 86_400 + delta.seconds) * 1000 + delta.microseconds // 1000
    if isinstance(moment, date):
        return timestamp_ms_of(datetime(moment.year, moment.month, moment.day, tzinfo=UTC))
    raise ValidationException(
        f"{moment!r} is no point in time; give milliseconds, an ISO text or a datetime"
    )


def find_snapshot(
    metadata: TableMetadata,
    *,
    snapshot_id: int | None = None,
    as_of: int | str | datetime | None = None,
    ref: str | None = None,
) -> Snapshot | None:
    """The snapshot that is asked for, by default the current one; None in an empty table.

    Args:
        metadata: the table.
        snapshot_id: a snapshot by its id.
        as_of: the snapshot that was current at this time, by the snapshot log (rule 188).
        ref: the snapshot of a branch or tag.

    Raises:
        NoSuchSnapshotError: there is no such snapshot, or none at that time.
        NoSuchRefError: there is no such branch or tag.
        ValidationException: more than one of the three is given.
    """
    given = [
        name
        for name, value in (("snapshot_id", snapshot_id), ("as_of", as_of), ("ref", ref))
        if value is not None
    ]
    if len(given) > 1:
        raise ValidationException(f"give one of {' and '.join(given)}, not both")
    if snapshot_id is not None:
        return metadata.snapshot_by_id(snapshot_id)
    if as_of is not None:
        return metadata.snapshot_as_of(timestamp_ms_of(as_of))
    if ref is not None:
        return metadata.ref_snapshot(ref)
    return metadata.current_snapshot
