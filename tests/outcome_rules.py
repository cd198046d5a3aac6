"""What becomes of a command beside another one, as the documentation says it, on plain values.

The table has three files: `a1` (ids 1 to 6) and `a2` (11 to 16) of partition a, `b` (21 to 26) of
partition b. The last digit of an id tells its part: 1 and 2 are what commands are about, 3 may be
deleted by an equality delete before, 4 by a position delete, and 6 is deleted after it all.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cache
from typing import Any
from zlib import crc32

MARKED, COPIED = "merge-on-read", "copy-on-write"
SERIALIZABLE, SNAPSHOT = "serializable", "snapshot"
STANDS, AGAIN, CONFLICTS = "stands", "made again", "conflicts"

FILES = ([1, 2, 3, 4, 5, 6], [11, 12, 13, 14, 15, 16], [21, 22, 23, 24, 25, 26])
LAST_DELETED = [6, 16, 26]

BY_ROWS = ("delete", "update", "merge", "upsert")
BY_KEY = ("changes", "arrival")
COMPACTIONS = ("binpack", "sort", "zorder")
MAINTENANCE = (*COMPACTIONS, "conversion", "positions")
KINDS = (*BY_ROWS, *BY_KEY, "overwrite", *MAINTENANCE)

SAME_ROW, SAME_FILE, SAME_PARTITION = "same row", "same file", "same partition"
OTHER_PARTITION, ADDED, ADDED_MATCH = "other partition", "added row", "added row that matches"
ROWS_OF_RIVALS = {
    SAME_ROW: 1,
    SAME_FILE: 2,
    SAME_PARTITION: 12,
    OTHER_PARTITION: 22,
    ADDED: 9,
    ADDED_MATCH: 9,
}
ADDED_ROW, ADDED_BESIDE = 9, 8
"""What a rival adds before its command, and what it deletes of that for maintenance of deletes."""


@dataclass(frozen=True)
class Pair:
    """A command, and the rival that commits between the command's read and its commit.

    Attributes:
        place: where the rival's row is, beside the row 1 that the command is about.
        mode: how the command writes, where that is its choice; `rival_mode` likewise.
        level: the isolation level of the command, where it has one.
    """

    first: str
    rival: str
    place: str
    version: int
    mode: str | None
    rival_mode: str | None
    level: str | None

    def __str__(self) -> str:
        short = {MARKED: "marks", COPIED: "copies", None: ""}
        first, rival = self.first + short[self.mode], self.rival + short[self.rival_mode]
        words = [first, rival, self.place, f"v{self.version}", self.level]
        return "-".join(word.replace(" ", "_") for word in words if word)

    @property
    def own_rows(self) -> tuple[int, ...]:
        """What the command is about."""
        return (1, ADDED_ROW) if self.place == ADDED_MATCH else (1,)

    @property
    def rival_row(self) -> int:
        """What the rival is about."""
        return ROWS_OF_RIVALS[self.place]

    @property
    def rival_adds(self) -> bool:
        """Whether the rival adds its row before it changes it."""
        return self.place in (ADDED, ADDED_MATCH)

    @property
    def deleted_by_key(self) -> frozenset[int]:
        """What equality deletes delete before: a conversion needs some."""
        return self._deleted_for("conversion", 3)

    @property
    def deleted_by_position(self) -> frozenset[int]:
        """What position deletes delete before: a rewrite of them needs some."""
        return self._deleted_for("positions", 4)

    def _deleted_for(self, kind: str, digit: int) -> frozenset[int]:
        found = {digit} if self.first == kind else set()
        if self.rival == kind and not self.rival_adds:
            found.add(self.rival_row // 10 * 10 + digit)
        return frozenset(found)


def pairs() -> list[Pair]:
    """Every pair that makes sense.

    - Maintenance is about files: it has no row of its own, so "the same row" says no more of it
      than "the same file", and it has no condition that an added row might match.
    - The mode counts for commands that have one, the isolation level for a first command that does.
    """
    modes = {kind: (COPIED, MARKED) if kind in BY_ROWS else (None,) for kind in KINDS}
    levels: dict[str, tuple[str | None, ...]] = {
        **dict.fromkeys(KINDS, (None,)),
        **dict.fromkeys(BY_ROWS, (SERIALIZABLE, SNAPSHOT)),
        "overwrite": (None, SERIALIZABLE, SNAPSHOT),
    }
    return [
        Pair(first, rival, place, version, mode, rival_mode, level)
        for first, rival, place, version in itertools.product(KINDS, KINDS, ROWS_OF_RIVALS, (2, 3))
        if not (place == SAME_ROW and (first in MAINTENANCE or rival in MAINTENANCE))
        and not (place == ADDED_MATCH and first in MAINTENANCE)
        for mode in modes[first]
        for rival_mode in modes[rival]
        for level in levels[first]
    ]


# -- which stand -----------------------------------------------------------------------------------


def outcome(pair: Pair) -> str:
    """Whether the command stands, is made again by itself, or is refused.

    A compaction is not refused: the group is given up.
    """
    if pair.first in BY_KEY or pair.first in ("conversion", "positions"):
        # Equality deletes reach whatever is older; rewrites of deletes are made again then.
        return STANDS
    if pair.first in COMPACTIONS:
        return _of_compaction(pair)
    if pair.first == "overwrite":
        return _of_overwrite(pair)
    # What a rival adds and deletes is not there.
    adds_a_match = pair.place == ADDED_MATCH and pair.rival != "delete"
    return CONFLICTS if adds_a_match and pair.level == SERIALIZABLE else _of_rows(pair)


def _of_rows(pair: Pair) -> str:
    """Of a delete, update, merge or upsert: rows are compared, not files."""
    if pair.place not in (SAME_ROW, SAME_FILE):
        return STANDS
    if pair.place == SAME_ROW and not pair.first == pair.rival == "delete":
        stands = False
    elif pair.rival in ("conversion", "positions"):
        # Maintenance changes files, never rows.
        stands = True
    elif _marks(pair):
        # In version 2 the row that both delete is not looked for in a copy.
        stands = pair.mode == MARKED or pair.version == 3 or pair.place == SAME_FILE
    else:
        # Marks go to the file that the rival wrote; two that write one file anew contradict.
        found = pair.version == 3 or pair.rival in COMPACTIONS
        stands = pair.mode == MARKED and found
    if stands:
        return STANDS
    return AGAIN if pair.first == "delete" and pair.level == SNAPSHOT else CONFLICTS


def _of_overwrite(pair: Pair) -> str:
    """Files are compared, and deletes by their partition: those of some keys reach them all."""
    if pair.place in (SAME_ROW, SAME_FILE, ADDED_MATCH) or pair.rival in BY_KEY:
        return CONFLICTS
    # The row that the rival adds is a file of its own, which goes whole.
    marks = pair.rival_mode == MARKED and not (pair.rival == "delete" and pair.rival_adds)
    deletes = marks or pair.rival in ("conversion", "positions")
    return CONFLICTS if deletes and pair.place != OTHER_PARTITION else STANDS


def _of_compaction(pair: Pair) -> str:
    if pair.place != SAME_FILE or pair.rival in (*BY_KEY, "positions", "conversion"):
        return STANDS
    return STANDS if _marks(pair) else CONFLICTS


def _marks(pair: Pair) -> bool:
    """Whether the rival leaves data files where they are."""
    return pair.rival_mode == MARKED or pair.rival in BY_KEY


# -- which rows there are --------------------------------------------------------------------------

Row = tuple[int, str, str]


def partition_of(row_id: int) -> str:
    """The partition of a row."""
    return "a" if row_id < 20 else "b"


def rows_at_first(pair: Pair) -> list[Row]:
    """The rows that both see."""
    gone = pair.deleted_by_key | pair.deleted_by_position
    return [(n, partition_of(n), "old") for ids in FILES for n in ids if n not in gone]


def after(kind: str, rows: list[Row], about: tuple[int, ...], writer: str) -> list[Row]:
    """The rows after a command."""
    others = [row for row in rows if row[0] not in about]
    if kind in MAINTENANCE:
        return rows
    if kind == "delete":
        return others
    if kind == "update":
        return [(n, p, f"{v}+{writer}" if n in about else v) for n, p, v in rows]
    # A key that is not there is added.
    return [*others, *((n, partition_of(n), writer) for n in about)]


def rows_after_rival(pair: Pair) -> list[Row]:
    """The rows when the rival has committed."""
    rows = rows_at_first(pair)
    if pair.rival_adds:
        rows = [*rows, (ADDED_ROW, partition_of(ADDED_ROW), "old")]
    return sorted(after(pair.rival, rows, (pair.rival_row,), "rival"))


def rows_after(pair: Pair, what: str) -> list[Row]:
    """The rows after both, where the command came to that outcome."""
    of_rival = rows_after_rival(pair)
    if what == CONFLICTS:
        return of_rival
    saw_none = pair.place == ADDED_MATCH and pair.first not in (*BY_KEY, "overwrite")
    if not saw_none:
        return sorted(after(pair.first, of_rival, pair.own_rows, "first"))
    own = after(pair.first, rows_at_first(pair), pair.own_rows, "first")
    return sorted([*own, *(row for row in of_rival if row[0] == ADDED_ROW)])


def replaced(pair: Pair, what: str) -> frozenset[int]:
    """Rows that are other ones by now: they were replaced by key, or by a condition."""
    by_others = (*BY_KEY, "overwrite")
    found: set[int] = set()
    if pair.rival in by_others:
        found.add(pair.rival_row)
    if pair.first in by_others and what != CONFLICTS:
        found.update(pair.own_rows)
    return frozenset(found)


def in_ci(every: list[Pair]) -> frozenset[Pair]:
    """A few pairs: each way of changing with each outcome, near and far, each command and rival."""
    left = {item for pair in every for item in _items(pair)}
    # Of pairs that are as good as others, any: the first ones have all the same version and level.
    mixed = sorted(every, key=lambda pair: crc32(str(pair).encode()))
    found = []
    while left:
        best = max(mixed, key=lambda pair: len(left & _items(pair)))
        left -= _items(best)
        found.append(best)
    return frozenset(found)


@cache
def _items(pair: Pair) -> frozenset[Any]:
    named = ("first", "rival", "place", "version", "rival_mode", "level")
    what = outcome(pair)
    near = pair.place in (SAME_ROW, SAME_FILE)
    how = ("how", near, pair.mode, what)
    return frozenset({how, *((name, getattr(pair, name)) for name in named)})
