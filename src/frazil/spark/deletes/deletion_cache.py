"""What deletes were found to delete, kept in this process and bounded in bytes.

Data files and delete files never change, so what a set of delete files deletes in a data file holds
for ever: an entry never goes stale, it only makes room. It is small, since it holds bits and no
values: at most 16 bytes for 64 rows.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from threading import Lock
from typing import Final

import polars as pl

from frazil.spark.deletes.bitmap import Words

DEFAULT_MAX_BYTES: Final = 256 * 1024 * 1024
_SETS_OF_ONE: Final = 4
_ENTRY_BYTES: Final = 512
_NAME_BYTES: Final = 256

Deletes = frozenset[Hashable]


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of some deletes.

    Attributes:
        deletes: the delete files that are in it.
        words: what they delete.
    """

    deletes: Deletes
    words: Words


NOTHING: Final = Known(frozenset(), Words.none())


class DeletedWords:
    """The least recently used entries make room for new ones; safe to share between threads.

    An owner is what the deletes apply to: a data file, or the keys as such.

    Args:
        max_bytes: the size of everything kept; 0 keeps nothing.
    """

    def __init__(self, max_bytes: int = DEFAULT_MAX_BYTES) -> None:
        self._max_bytes = max_bytes
        self._lock = Lock()
        self._items: OrderedDict[Hashable, tuple[Known, ...]] = OrderedDict()
        self._sets: dict[Deletes, tuple[Deletes, int]] = {}
        self._size = 0

    @property
    def max_bytes(self) -> int:
        """The bound."""
        return self._max_bytes

    @property
    def size_in_bytes(self) -> int:
        """The size of what is kept, about."""
        return self._size

    def covered(self, owner: Hashable, deletes: Deletes) -> Known:
        """What is known of the most of these delete files, and of no other."""
        with self._lock:
            found = [k for k in self._items.get(owner, ()) if k.deletes <= deletes]
            if not found:
                return NOTHING
            self._items.move_to_end(owner)
        return max(found, key=lambda known: len(known.deletes))

    def keep(self, owner: Hashable, known: Known) -> None:
        """Keep what these delete files delete, beside what other sets of them do."""
        with self._lock:
            others = self._items.pop(owner, ())
            self._release(others)
            others = tuple(each for each in others if each.deletes != known.deletes)
            self._items[owner] = tuple(map(self._held, (known, *others)[:_SETS_OF_ONE]))
            while self._size > self._max_bytes and self._items:
                self._release(self._items.popitem(last=False)[1])

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._items.clear()
            self._sets.clear()
            self._size = 0

    def _held(self, known: Known) -> Known:
        """The same with the one set of delete files that all its holders share."""
        deletes, holders = self._sets.get(known.deletes, (known.deletes, 0))
        self._sets[deletes] = (deletes, holders + 1)
        self._size += known.words.size_in_bytes + _ENTRY_BYTES
        self._size += 0 if holders else len(deletes) * _NAME_BYTES
        return Known(deletes, known.words)

    def _release(self, entries: Iterable[Known]) -> None:
        for known in entries:
            deletes, holders = self._sets.pop(known.deletes)
            if holders > 1:
                self._sets[deletes] = (deletes, holders - 1)
            self._size -= known.words.size_in_bytes + _ENTRY_BYTES
            self._size -= 0 if holders > 1 else len(deletes) * _NAME_BYTES


DELETED_WORDS: Final = DeletedWords()
"""What is kept in this process."""


def sets_by_file(pairs: pl.DataFrame) -> dict[int, Deletes]:
    """The delete files of each data file; files under the same ones share one set.

    Args:
        pairs: a row for each data file (`ordinal`) and delete of it (`name`).
    """
    lists = pairs.group_by("ordinal").agg(pl.col("name").unique().sort())
    sets: dict[int, Deletes] = {}
    for (names,), members in lists.group_by("name"):
        deletes: Deletes = frozenset(names)
        sets.update(dict.fromkeys(members["ordinal"].to_list(), deletes))
    return sets


def pending_pairs(pairs: pl.DataFrame, incomplete: Mapping[int, Known]) -> pl.DataFrame:
    """The pairs of these files that are not in what is known of them."""
    covered = pl.DataFrame(
        {
            "ordinal": list(incomplete),
            "name": [[str(name) for name in known.deletes] for known in incomplete.values()],
        },
        schema={"ordinal": pairs.schema["ordinal"], "name": pl.List(pl.String)},
    )
    needed = pairs.join(covered.select("ordinal"), on="ordinal", how="semi")
    return needed.join(covered.explode("name"), on=["ordinal", "name"], how="anti")
