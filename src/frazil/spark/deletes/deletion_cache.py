"""What deletes were found to delete, kept with the files and bounded in bytes.

Data files and delete files never change, so what a set of delete files deletes in a data file holds
for ever: an entry never goes stale, it only makes room. It is small, since it holds bits and no
values: at most 16 bytes for 64 rows.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping
from dataclasses import dataclass
from typing import Final

import polars as pl

from frazil.planning.scan_plan import ScanPlan
from frazil.spark.deletes.bitmap import Words
from frazil.storage.caches import BoundedCache, Sized
from frazil.storage.files import FileIO

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


NOTHING: Final = Known(frozenset(), Words.empty())


class DeletedWords:
    """What deletes delete, by their owner, in a cache that is bounded in bytes.

    An owner is what the deletes apply to: a data file, or the keys as such.

    Args:
        kept: the cache.
    """

    def __init__(self, kept: BoundedCache[tuple[Known, ...]]) -> None:
        self._kept = kept

    @classmethod
    def of(cls, io: FileIO) -> DeletedWords:
        """Return what is kept with these files."""
        return cls(io.caches["deletes"])

    def known_words(self, owner: Hashable, deletes: Deletes) -> Known:
        """What is known of these delete files, and of no other."""
        found = [k for k in self._kept.get(owner) or () if k.deletes <= deletes]
        known, sets = NOTHING, 0
        for each in sorted(found, key=lambda known: len(known.deletes), reverse=True):
            if not each.deletes <= known.deletes:
                words = Words.union((known.words, each.words)) if sets else each.words
                known = Known(known.deletes | each.deletes, words)
                sets += 1
        if sets > 1:
            # The next look gets the same words, of which Spark may have been told.
            self._put(owner, known, in_place_of={each.deletes for each in found})
        return known

    def keep(self, owner: Hashable, known: Known) -> None:
        """Keep what these delete files delete, beside what other sets of them do."""
        self._put(owner, known, in_place_of={known.deletes})

    def _put(self, owner: Hashable, known: Known, *, in_place_of: Collection[Deletes]) -> None:
        def with_known(before: tuple[Known, ...] | None) -> Sized[tuple[Known, ...]]:
            # Files under the same deletes hold one set of names, which counts once.
            shared = Known(self._kept.shared_part(known.deletes), known.words)
            gone = (*in_place_of, known.deletes)
            others = [each for each in before or () if each.deletes not in gone]
            held = (shared, *others)[:_SETS_OF_ONE]
            size = sum(each.words.size_in_bytes + _ENTRY_BYTES for each in held)
            names = tuple((each.deletes, len(each.deletes) * _NAME_BYTES) for each in held)
            return Sized(held, size, names)

        self._kept.change(owner, with_known)


def data_files(
    plan: ScanPlan, ordinals: Collection[int], *read_by: Hashable
) -> dict[int, Hashable]:
    """The owners that some data files of a plan are, by their ordinals."""
    columns = ("ordinal", "file_path", "file_size_in_bytes", "record_count")
    some = plan.files.filter(pl.col("ordinal").is_in(list(ordinals)))
    rows = some.select(*columns).iter_rows()
    return {ordinal: (read_by, *file) for ordinal, *file in rows}


class WordsOfFiles:
    """What deletes delete in data files: what is kept of it, and what is found now and kept.

    Args:
        kept: where it is kept.
        plan: what the files are of.
        pairs: a row for each data file (`ordinal`) and delete of it (`name`).
        read_by: what it depends on beside the files.
    """

    def __init__(
        self, kept: DeletedWords, plan: ScanPlan, pairs: pl.DataFrame, *read_by: Hashable
    ) -> None:
        self._kept = kept
        self._wanted = _sets_by_file(pairs)
        self._owners = data_files(plan, self._wanted, *read_by)
        self._known = {o: kept.known_words(self._owners[o], d) for o, d in self._wanted.items()}
        lacking = {o: k for o, k in self._known.items() if k.deletes != self._wanted[o]}
        self.pending: pl.DataFrame = _pending_pairs(pairs, lacking)
        """The pairs that are not known yet."""

    @property
    def words(self) -> dict[int, Words]:
        """What is known of each data file."""
        return {ordinal: known.words for ordinal, known in self._known.items()}

    def add(self, found: Mapping[int, Words]) -> None:
        """Keep what all pending deletes of some data files delete."""
        for ordinal, words in found.items():
            both = Words.union((self._known[ordinal].words, words))
            self._known[ordinal] = Known(self._wanted[ordinal], both)
            self._kept.keep(self._owners[ordinal], self._known[ordinal])
        self.pending = self.pending.filter(~pl.col("ordinal").is_in(list(found)))


def _sets_by_file(pairs: pl.DataFrame) -> dict[int, Deletes]:
    """The delete files of each data file; files under the same ones share one set."""
    lists = pairs.group_by("ordinal").agg(pl.col("name").unique().sort())
    sets: dict[int, Deletes] = {}
    for (names,), members in lists.group_by("name"):
        deletes: Deletes = frozenset(names)
        sets.update(dict.fromkeys(members["ordinal"].to_list(), deletes))
    return sets


def _pending_pairs(pairs: pl.DataFrame, incomplete: Mapping[int, Known]) -> pl.DataFrame:
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
