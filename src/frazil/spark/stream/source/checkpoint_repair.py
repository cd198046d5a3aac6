"""What a query that died left half done in Spark's checkpoint, undone.

Spark's file source notes the line of the log that it took before the query plans a batch of it.
After a death between the two Spark would take one more line and plan both as one batch, and
several lines are no batch that it can read. A note without a plan means nothing yet: without it,
Spark takes the same line again, by itself.
"""

from __future__ import annotations

import logging

from frazil.spark.stream.source.log import LogState
from frazil.spark.stream.source.query_checkpoint import (
    QueryCheckpoint,
    checkpoints_around,
    is_compacted,
)
from frazil.storage.files import FileIO
from frazil.storage.paths import join

_LOG = logging.getLogger(__name__)


def forget_unplanned(io: FileIO, checkpoint: str, state: LogState) -> None:
    """Remove the notes of a log's lines that no batch of the query was planned with.

    No query may be running. What is not of Spark's form is left alone.

    Args:
        io: the store of the checkpoint.
        checkpoint: the stream's folder.
        state: the log whose lines they are.
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
