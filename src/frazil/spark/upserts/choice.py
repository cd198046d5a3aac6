"""How a batch of changes is written: as equality deletes, or resolved to positions by a merge."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, get_args

from frazil.errors import UnsupportedError, ValidationError
from frazil.format.metadata import TableMetadata
from frazil.format.properties.table import DELETE_FORMAT, WRITE_FORMAT
from frazil.format.snapshots import Snapshot
from frazil.format.snapshots.summaries import count_in
from frazil.spark.session import costs

Mode = Literal["equality-deletes", "merge", "auto"]

EQUALITY: Final = "equality-deletes"
MERGE: Final = "merge"


@dataclass(frozen=True, slots=True)
class Choice:
    """A mode and why it was taken.

    Attributes:
        mode: ``equality-deletes`` or ``merge``.
        reason: in words, for the snapshot's summary.
    """

    mode: str
    reason: str


def check_mode(name: str) -> None:
    """Check that there is such a mode.

    Raises:
        ValidationError: there is no such mode.
    """
    if name not in get_args(Mode):
        raise ValidationError(
            f"there is no mode {name!r} of applying changes; there are {', '.join(get_args(Mode))}"
        )


def choice_of(mode: Mode, metadata: TableMetadata, head: Snapshot | None, changes: int) -> Choice:
    """Return how a batch is written.

    Args:
        head: the snapshot that the batch follows.
        changes: the keys that it changes.

    Raises:
        UnsupportedError: the table cannot have equality deletes, which were asked for.
    """
    problem = _no_deletes(metadata)
    if mode == "merge":
        return Choice(MERGE, "asked for")
    if mode == "equality-deletes":
        if problem is not None:
            raise UnsupportedError(
                f"{problem}, so it can have no equality deletes; use mode='merge'"
            )
        return Choice(EQUALITY, "asked for")
    if problem is not None:
        return Choice(MERGE, problem)
    rows, deletes = _total(head, "total-records"), _total(head, "total-equality-deletes")
    if rows is None:
        return Choice(EQUALITY, "the snapshot before does not state its rows")
    if rows <= costs.SMALL_TABLE:
        return Choice(MERGE, f"the table's {rows} rows are few: their keys are read at once")
    if rows <= costs.BIG_SHARE * changes:
        return Choice(MERGE, f"{changes} changes are much beside the table's {rows} rows")
    load = (deletes or 0) + changes
    if load * costs.HEAVY_LOAD > rows:
        return Choice(
            MERGE, f"{load} equality deletes would be much for reads of the table's {rows} rows"
        )
    return Choice(
        EQUALITY,
        f"{changes} changes and {deletes or 0} equality deletes are few beside {rows} rows",
    )


def _no_deletes(metadata: TableMetadata) -> str | None:
    if metadata.format_version < 2:
        return "the table is of format version 1"
    named = DELETE_FORMAT.of(metadata.properties) or WRITE_FORMAT.of(metadata.properties)
    return None if named == "parquet" else f"the table's delete files are to be {named}"


def _total(head: Snapshot | None, name: str) -> int | None:
    return 0 if head is None else count_in(head.summary, name)
