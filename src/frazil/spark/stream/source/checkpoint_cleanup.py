"""What was written for batches which no query can go back to, removed."""

from __future__ import annotations

from collections.abc import Mapping

from frazil.errors import ValidationError
from frazil.spark.stream.source.log import LogState, StreamLog
from frazil.spark.stream.source.query_checkpoint import QueryCheckpoint, checkpoints_around
from frazil.storage.files import FileIO


def forget_finished(io: FileIO, log: StreamLog, state: LogState) -> None:
    """Remove what was written for batches that lie before every plan which Spark keeps.

    Args:
        io: the store of the checkpoint.
        log: of the stream.
        state: its newest state, or one before it.
    """
    log.finish(state, batches=_finished_batches(io, log.checkpoint, state.names))


def check_goes_on(io: FileIO, checkpoint: str, state: LogState) -> None:
    """Check that a query which begins with this log does not miss batches that are left out.

    Raises:
        ValidationError: batches are left out, and the query that took them is not found.
    """
    if state.first and not _readers(io, checkpoint, state.names):
        raise ValidationError(
            f"the checkpoint {checkpoint} has no notes of the query that took its first "
            f"{state.first} batches, and these are removed: start over with another checkpoint"
        )


def _finished_batches(io: FileIO, checkpoint: str, names: Mapping[int, str]) -> int:
    """How many of the first batches no query can go back to."""
    readers = _readers(io, checkpoint, names)
    return min((_behind_the_oldest_plan(query, source) for query, source in readers), default=0)


def _readers(
    io: FileIO, checkpoint: str, names: Mapping[int, str]
) -> list[tuple[QueryCheckpoint, int]]:
    """The queries, each with the number of its source, that read the log with these batches."""
    return [
        (query, source)
        for query in checkpoints_around(io, checkpoint)
        for source in query.sources()
        if _reads(query, source, names)
    ]


def _reads(query: QueryCheckpoint, source: int, names: Mapping[int, str]) -> bool:
    """Whether the source's newest note is of the log with these batches."""
    notes = query.notes(source)
    number = max(notes, default=-1)
    if number not in names:
        return False
    return query.noted(source, number, notes[number]) == {names[number]}


def _behind_the_oldest_plan(query: QueryCheckpoint, source: int) -> int:
    plans = query.plans()
    if not plans or plans[0] == 0:
        # Spark has removed no plan yet: it can begin again.
        return 0
    line = query.last_line(plans[0], source)
    return 0 if line is None else line + 1
