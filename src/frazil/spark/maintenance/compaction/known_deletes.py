"""Which rows of small groups are deleted, so that no job of Spark's has to find it.

They are found before the groups are rewritten, for all of them at once: a delete file may apply to
many groups, and is read once.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import polars as pl

from frazil.errors import FrazilError
from frazil.format.metadata.table_mapping import name_mapping_of
from frazil.planning.deletes.index import EQUALITY_DELETES
from frazil.planning.deletes.own_files import lacks_equality_ids
from frazil.spark.deletes.bitmap import Words
from frazil.spark.deletes.key_columns import key_schema
from frazil.spark.deletes.positions import PositionDeletes
from frazil.spark.deletes.small_files import SmallFiles
from frazil.spark.files.arrow.files import TableColumns
from frazil.spark.files.parquet.native import ScanContext
from frazil.spark.row_level.target import Target
from frazil.spark.session import costs
from frazil.spark.session.facts import type_support

_LOG: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class KnownDeletes:
    """Deleted rows of some files.

    Attributes:
        words: the deleted positions by the file's ordinal; none of a file without deleted rows.
        ordinals: the files of which every deleted row is in it.
    """

    words: Mapping[int, Words] = field(default_factory=dict)
    ordinals: frozenset[int] = frozenset()

    @classmethod
    def of(cls, files: Target) -> KnownDeletes:
        """Return what this process can find of files at the cost of reading their deletes.

        A delete that cannot be read is left to whoever rewrites the group that it applies to.
        """
        if files.plan.delete_index.is_empty:
            return cls()
        try:
            by_key = _by_equality(files)
            context = ScanContext(
                spark=files.spark,
                metadata=files.metadata,
                io=files.io,
                support=type_support(files.spark),
            )
            by_place = PositionDeletes.of(context, files.plan, files.plan.files["ordinal"])
            if by_key is None or not by_place.are_few:
                return cls()
            known = by_place.words()
        except FrazilError as error:
            _LOG.info("deleted rows are left to Spark: %s", error)
            return cls()
        found, lacking = by_key
        words = {
            ordinal: Words.union(some[ordinal] for some in (known, found) if ordinal in some)
            for ordinal in known.keys() | found.keys()
        }
        return cls(words, frozenset(files.ordinals) - lacking)

    def cover(self, files: Target) -> bool:
        """Whether every deleted row of these files is known."""
        return self.ordinals.issuperset(files.ordinals)


def _by_equality(files: Target) -> tuple[Mapping[int, Words], frozenset[int]] | None:
    """The rows that equality deletes delete, by the file's ordinal, and the files left to Spark.

    None where they are too many.
    """
    plan = files.plan
    deletes = plan.deletes.filter(pl.col("content") == EQUALITY_DELETES)
    index = plan.delete_index.for_deletes(deletes["delete"]).for_files(plan.files["ordinal"])
    if index.is_empty:
        return {}, frozenset()
    applied = deletes.filter(pl.col("delete").is_in(index.deletes().implode()))
    if index.pair_count > costs.PAIRS_HERE or lacks_equality_ids(applied).any():
        return None
    keys = frozenset(applied["equality_ids"].explode().drop_nulls())
    small = SmallFiles(
        files.io,
        key_schema(files.metadata, plan, keys, files.io),
        TableColumns(fields=plan.schema.fields, mapping=name_mapping_of(files.metadata)),
    )
    pairs = index.expanded_pairs()
    share, choice = small.step(plan, pairs)
    found = choice.way.apply(plan, share)
    return found, frozenset(pairs["ordinal"]) - found.keys()
