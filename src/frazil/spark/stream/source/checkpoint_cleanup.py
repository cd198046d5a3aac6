"""Rows that were written for batches which no query can go back to, removed."""

from __future__ import annotations

from frazil.spark.stream.source.log import LogState, StreamLog
from frazil.spark.stream.source.query_checkpoint import QueryCheckpoint, checkpoints_around
from frazil.storage.files import FileIO


def forget_finished(io: FileIO, log: StreamLog, state: LogState) -> None:
    """Remove the rows of batches that lie before every plan which Spark keeps.

    Args:
        io: the store of the checkpoint.
        log: of the stream.
        state: its newest state, or one before it.
    """
    log.forget_rows(state, batches=_finished(io, log.checkpoint, state.names))


def _finished(io: FileIO, checkpoint: str, names: list[str]) -> int:
    """How many of the first batches no query can go back to."""
    counts = [
        _behind_the_oldest_plan(query, source)
        for query in checkpoints_around(io, checkpoint)
        for source in query.sources()
        if _reads(query, source, names)
    ]
    return min(counts, default=0)


def _reads(query: QueryCheckpoint, source: int, names: list[str]) -> bool:
    """Whether the source's newest note is of the log with these batches."""
    notes = query.notes(source)
    number = max(notes, default=-1)
    if not 0 <= number < len(names):
        return False
    return query.noted(source, number, notes[number]) == {names[number]}


def _behind_the_oldest_plan(query: QueryCheckpoint, source: int) -> int:
    plans = query.plans()
    if not plans or plans[0] == 0:
        # Spark has removed no plan yet: it can begin again.
        return 0
    line = query.last_line(plans[0], source)
    return 0 if line is None else line + 1
