"""What a stream is asked for: its start, what removes rows, how much a batch holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, TypedDict

from frazil.errors import ConfigurationError, ValidationError
from frazil.format.arguments import SnapshotId, optional_snapshot_id_of
from frazil.table.time_travel import Moment, timestamp_ms_of

if TYPE_CHECKING:
    from pyspark.sql import Column

    from frazil.format.predicates.expressions import Expression


DEFAULT_POLL_INTERVAL: Final = 1.0
"""Seconds between looks at the table while a query runs."""


class Removal(StrEnum):
    """What a stream does with a snapshot that overwrites or deletes."""

    FAIL = "fail"
    SKIP = "skip"
    CHANGES = "changes"


class StreamSettings(TypedDict, total=False):
    """The keywords of `Table.read_stream`, which says what they mean, beside the checkpoint."""

    from_snapshot_id: SnapshotId | None
    from_timestamp: Moment | None
    on_overwrite: str
    on_delete: str
    max_files_per_batch: int | None
    max_bytes_per_batch: int | None
    max_rows_per_batch: int | None
    poll_interval: float
    options: Mapping[str, str] | None
    where: str | Column | Expression | None
    columns: str | Sequence[str] | None
    branch: str | None
    changes: bool


JAVA_OPTIONS: Final[Mapping[str, str]] = {
    "stream-from-timestamp": "from_timestamp",
    "streaming-max-files-per-micro-batch": "max_files_per_batch",
    "streaming-max-rows-per-micro-batch": "max_rows_per_batch",
    "streaming-skip-overwrite-snapshots": "on_overwrite",
    "streaming-skip-delete-snapshots": "on_delete",
    "streaming-snapshot-polling-interval-ms": "poll_interval",
    "maxFilesPerTrigger": "max_files_per_batch",
    "maxBytesPerTrigger": "max_bytes_per_batch",
}
"""Options by the names of the Java runtime and of Spark, and the keywords that they stand for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamOptions:
    """What a stream reads, and how.

    Attributes:
        from_snapshot_id: start after this snapshot.
        from_timestamp_ms: start after the newest snapshot that is not younger than this.
        on_overwrite: what to do with `overwrite` snapshots.
        on_delete: what to do with `delete` snapshots.
        max_files: files a batch; None is no limit, here and below.
        max_bytes: bytes of files a batch.
        max_rows: rows a batch.
        poll_interval: seconds between looks at the table while a query runs.
        branch: whose snapshots are read; None is `main`.
        where: what rows are read for, as text for people.
        pruned_by: a predicate that is true for every such row; None where every file is read.
    """

    from_snapshot_id: int | None = None
    from_timestamp_ms: int | None = None
    on_overwrite: Removal = Removal.FAIL
    on_delete: Removal = Removal.FAIL
    max_files: int | None = None
    max_bytes: int | None = None
    max_rows: int | None = None
    poll_interval: float = DEFAULT_POLL_INTERVAL
    branch: str | None = None
    where: str | None = None
    pruned_by: Expression | None = None

    @property
    def reads_changes(self) -> bool:
        """Whether rows are changes, with the changelog's columns."""
        return Removal.CHANGES in (self.on_overwrite, self.on_delete)

    @property
    def is_limited(self) -> bool:
        """Whether a batch has any limit."""
        return not self.max_files == self.max_bytes == self.max_rows is None


def stream_options(
    *,
    from_snapshot_id: SnapshotId | None,
    from_timestamp: Moment | None,
    on_overwrite: str,
    on_delete: str,
    max_files_per_batch: int | None,
    max_bytes_per_batch: int | None,
    max_rows_per_batch: int | None,
    poll_interval: float,
    text_zone: str | tzinfo,
    options: Mapping[str, str] | None = None,
) -> StreamOptions:
    """The options of a stream from what the user gave; `options` have the Java runtime's names.

    Args:
        text_zone: the zone of a time to start from that is text or a date.

    Raises:
        ConfigurationError: an option is unknown or malformed, or stands for a keyword given too.
        ValidationError: both a snapshot and a time to start from.
    """
    given: dict[str, Any] = {
        "from_timestamp": from_timestamp,
        "on_overwrite": on_overwrite,
        "on_delete": on_delete,
        "max_files_per_batch": max_files_per_batch,
        "max_bytes_per_batch": max_bytes_per_batch,
        "max_rows_per_batch": max_rows_per_batch,
        "poll_interval": poll_interval,
    }
    given |= _translate(options or {}, given)
    if from_snapshot_id is not None and given["from_timestamp"] is not None:
        raise ValidationError("give one of from_snapshot_id and from_timestamp, not both")
    start = given["from_timestamp"]
    return StreamOptions(
        from_snapshot_id=optional_snapshot_id_of(from_snapshot_id, "from_snapshot_id"),
        from_timestamp_ms=None if start is None else timestamp_ms_of(start, text_zone),
        on_overwrite=_removal("on_overwrite", given["on_overwrite"]),
        on_delete=_removal("on_delete", given["on_delete"]),
        max_files=_limit("max_files_per_batch", given["max_files_per_batch"]),
        max_bytes=_limit("max_bytes_per_batch", given["max_bytes_per_batch"]),
        max_rows=_limit("max_rows_per_batch", given["max_rows_per_batch"]),
        poll_interval=_seconds(given["poll_interval"]),
    )


_UNSET: Final[Mapping[str, object]] = {
    "from_timestamp": None,
    "on_overwrite": Removal.FAIL,
    "on_delete": Removal.FAIL,
    "max_files_per_batch": None,
    "max_bytes_per_batch": None,
    "max_rows_per_batch": None,
    "poll_interval": DEFAULT_POLL_INTERVAL,
}


def _translate(options: Mapping[str, str], given: Mapping[str, object]) -> dict[str, Any]:
    by_name = {name.lower(): (name, keyword) for name, keyword in JAVA_OPTIONS.items()}
    found: dict[str, Any] = {}
    for option, text in options.items():
        if option.lower() not in by_name:
            raise ConfigurationError(
                f"{option!r} is no option of a stream; there are {', '.join(JAVA_OPTIONS)}"
            )
        name, keyword = by_name[option.lower()]
        if given[keyword] != _UNSET[keyword] or keyword in found:
            raise ConfigurationError(f"{name} and {keyword} say the same: give one of them")
        found[keyword] = _value(name, keyword, str(text).strip())
    return found


def _value(name: str, keyword: str, text: str) -> object:
    if keyword.startswith("on_"):
        if text.lower() not in ("true", "false"):
            raise ConfigurationError(f"{name} is {text!r}: it must be true or false")
        return Removal.SKIP if text.lower() == "true" else Removal.FAIL
    if not text.isdecimal():
        raise ConfigurationError(f"{name} is {text!r}: it must be a whole number")
    if name == "stream-from-timestamp":
        # The Java runtime's stream begins with a snapshot of that very time.
        return int(text) - 1
    if name == "streaming-snapshot-polling-interval-ms":
        return int(text) / 1000
    return int(text)


def _removal(name: str, value: str) -> Removal:
    try:
        return Removal(value)
    except ValueError:
        raise ConfigurationError(
            f"{name} is {value!r}: it must be {', '.join(map(repr, map(str, Removal)))}"
        ) from None


def _limit(name: str, value: object) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ConfigurationError(f"{name} is {value!r}: it must be a whole number from 1")
    return value


def _seconds(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
        raise ConfigurationError(f"poll_interval is {value!r}: it must be seconds above 0")
    return float(value)
