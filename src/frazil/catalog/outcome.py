"""Whose commit became the table, when the catalog's answer was lost (SPEC rules 214, 216)."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from frazil.catalog.base import LoadedTable
from frazil.catalog.identifiers import shown
from frazil.catalog.metadata_files import read_metadata
from frazil.errors import CommitStateUnknownException, FrazilError
from frazil.storage.files import FileIO

_MAX_DOUBLINGS = 20


@dataclass(frozen=True, slots=True)
class PointerRace:
    """A swap without an answer.

    Attributes:
        base: what the pointer was to move from; None when the table was to be made.
        ours: what it was to move to.
        locked_pointer: reads the pointer after every transaction on it has ended.
    """

    base: LoadedTable | None
    ours: LoadedTable
    locked_pointer: Callable[[], str | None]


def find_outcome(
    io: FileIO, race: PointerRace, properties: Mapping[str, str], *, reason: str
) -> bool:
    """Whether the swap took place, asking again by the ``commit.status-check.*`` properties.

    Raises:
        CommitStateUnknownException: the catalog could not be asked, or the table's log does not
            reach back to the swap.
    """
    retries = _milliseconds(properties, "commit.status-check.num-retries", 3)
    wait = _milliseconds(properties, "commit.status-check.min-wait-ms", 1_000) / 1000
    longest = _milliseconds(properties, "commit.status-check.max-wait-ms", 60_000) / 1000
    total = _milliseconds(properties, "commit.status-check.total-timeout-ms", 1_800_000) / 1000
    started = time.monotonic()
    for attempt in range(retries + 1):
        try:
            verdict = _verdict(io, race)
        except FrazilError:
            verdict = None
        if verdict is not None:
            return verdict
        pause = min(longest, wait * 2 ** min(attempt, _MAX_DOUBLINGS))
        if attempt == retries or time.monotonic() - started + pause > total:
            break
        time.sleep(pause)
    raise CommitStateUnknownException(
        f"the swap of {shown(race.ours.identifier)} to {race.ours.metadata_location} was sent and "
        f"its outcome is unknown ({reason}); no file was deleted"
    )


def _verdict(io: FileIO, race: PointerRace) -> bool | None:
    pointer = race.locked_pointer()
    if pointer == race.ours.metadata_location:
        return True
    if pointer is None:
        return False if race.base is None else None
    if race.base is not None and pointer == race.base.metadata_location:
        return False
    current = read_metadata(io, pointer)
    chain = [entry.metadata_file for entry in current.metadata_log]
    if race.ours.metadata_location in chain:
        return True
    if race.base is None:
        return False if current.table_uuid != race.ours.metadata.table_uuid else None
    # The base is followed in the log by whoever was first; without it the log was cut.
    return False if race.base.metadata_location in chain else None


def _milliseconds(properties: Mapping[str, str], name: str, default: int) -> int:
    text = properties.get(name, "")
    return int(text) if text.isdecimal() else default
