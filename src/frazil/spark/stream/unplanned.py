"""What a query that died left half done in Spark's checkpoint, undone.

Spark's file source notes the line of the log that it took (``sources/<i>/<n>``) before the query
plans a batch of it (``offsets/<m>``). After a death between the two Spark would take one more line
and plan both as one batch, and several lines are no batch that it can read. A note without a plan
means nothing yet: without it, Spark takes the same line again, by itself.
"""

from __future__ import annotations

import json
import logging
from typing import Final

from frazil.errors import MissingFileError, StorageError
from frazil.spark.stream.log import LogState
from frazil.storage.files import FileIO
from frazil.storage.paths import join, parent_of

_LOG = logging.getLogger(__name__)
_COMPACT: Final = ".compact"


def forget_unplanned(io: FileIO, checkpoint: str, state: LogState) -> None:
    """Remove the notes of a log's lines that no batch of the query was planned with.

    No query may be running. The query's checkpoint is this folder, or the one that it lies in: a
    query of several streams has one folder for each. What is not of Spark's form is left alone.

    Args:
        io: the store of the checkpoint.
        checkpoint: the stream's folder.
        state: the log whose lines they are.
    """
    ours = set(state.batches["path"].str.split("/").list.last())
    _forget_below(io, checkpoint, ours)
    around = parent_of(checkpoint)
    try:
        _list(io, join(around, "sources"))
    except StorageError as error:
        # The folder around a checkpoint need not be this user's to list.
        _LOG.debug("no query's checkpoint was looked for around %s: %s", checkpoint, error)
        return
    _forget_below(io, around, ours)


def _forget_below(io: FileIO, folder: str, ours: set[str]) -> None:
    for source, numbers in _notes(io, folder).items():
        planned = _planned(io, folder, source)
        if planned is not None:
            _forget(io, join(folder, "sources", str(source)), numbers, planned, ours)


def _forget(io: FileIO, folder: str, numbers: dict[int, str], planned: int, ours: set[str]) -> None:
    for number in sorted(numbers, reverse=True):
        if number <= planned:
            return
        name = numbers[number]
        # A compacted note stands for the ones before it, once Spark has cleared those away.
        needed = name.endswith(_COMPACT) and number > 0 and number - 1 not in numbers
        path = join(folder, name)
        if needed or not _names(io, path, number) <= ours:
            return
        _LOG.info("a query died before it planned a batch of %s: Spark takes it again", path)
        io.delete(path)


def _notes(io: FileIO, folder: str) -> dict[int, dict[int, str]]:
    """The names of each source's notes, by their numbers."""
    return {
        int(source): _numbered(io, join(folder, "sources", source))
        for source, is_folder in _list(io, join(folder, "sources"))
        if is_folder and source.isdigit()
    }


def _numbered(io: FileIO, folder: str) -> dict[int, str]:
    return {
        int(name.removesuffix(_COMPACT)): name
        for name, is_folder in _list(io, folder)
        if not is_folder and name.removesuffix(_COMPACT).isdigit()
    }


def _list(io: FileIO, folder: str) -> tuple[tuple[str, bool], ...]:
    try:
        return io.list_folder(folder)
    except MissingFileError:
        return ()


def _planned(io: FileIO, folder: str, source: int) -> int | None:
    """The newest line that a batch was planned with, -1 without one; None if it cannot be told."""
    plans = _numbered(io, join(folder, "offsets"))
    if not plans:
        return -1
    version, *lines = io.read(join(folder, "offsets", plans[max(plans)])).decode().split("\n")
    # The first line says what the query is, then comes one a source.
    offsets = lines[1:]
    if version != "v1" or source >= len(offsets):
        return None
    if offsets[source] == "-":
        return -1
    try:
        return int(json.loads(offsets[source])["logOffset"])
    except (ValueError, KeyError, TypeError):
        return None


def _names(io: FileIO, path: str, number: int) -> set[str]:
    """The folders that a note adds, by their names; compacted ones repeat earlier notes."""
    names = set()
    for line in io.read(path).decode().split("\n")[1:]:
        try:
            entry = json.loads(line)
            if entry["batchId"] == number:
                names.add(str(entry["path"]).rsplit("/", 1)[-1])
        except (ValueError, KeyError, TypeError):
            return {line}
    return names
