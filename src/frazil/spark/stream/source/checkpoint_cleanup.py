"""What is removed for a query: batches that none can go back to, and what one left half done."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from frazil.errors import ValidationError
from frazil.spark.stream.source.log import LogState, StreamLog
from frazil.spark.stream.source.query_checkpoint import (
    QueryCheckpoint,
    checkpoints_around,
    is_compacted,
)
from frazil.storage.files import FileIO
from frazil.storage.paths import join


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


_LOG = logging.getLogger(__name__)


def forget_unplanned(io: FileIO, checkpoint: str, state: LogState) -> None:
    """Remove the notes of a log's lines that no batch of the query was planned with.

    Spark's file source notes the line of the log that it took before the query plans a batch of it.
    After a death between the two Spark would take one more line and plan both as one batch, and
    several lines are no batch that it can read. A note without a plan means nothing yet: without
    it, Spark takes the same line again, by itself.

    No query may be running. What is not of Spark's form is left alone.
    """
    for query in checkpoints_around(io, checkpoint):
        plans = query.plans()
        for source in query.sources():
            planned = query.last_line(plans[-1], source) if plans else -1
            if planned is not None:
                _forget(query, source, planned, set(state.names.values()))


def _forget(query: QueryCheckpoint, source: int, planned: int, ours: set[str]) -> None:
    notes = query.notes(source)
    for number in sorted(notes, reverse=True):
        if number <= planned:
            return
        name = notes[number]
        # A compacted note stands for the ones before it, once Spark has cleared those away.
        needed = is_compacted(name) and number > 0 and number - 1 not in notes
        if needed or not query.noted(source, number, name) <= ours:
            return
        path = join(query.folder_of(source), name)
        _LOG.info("a query died before it planned a batch of %s: Spark takes it again", path)
        query.io.delete(path)
