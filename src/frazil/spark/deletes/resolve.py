"""Equality deletes resolved to positions, once for a data file and a set of delete files.

Small files are resolved beside the session (`small_files`). Of others a read of the key columns
alone joins the deletes and yields the places of the deleted rows. They are kept as `DeletedWords`;
every later read of the same files, by whatever columns or filter, applies them as it applies
deletion vectors. When deletes are added, only those are resolved.

To resolve few deletes costs more than to join them: the first read joins them, the second, which
would pay again, resolves them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

import polars as pl
from pyspark.sql import DataFrame, SparkSession

from frazil.errors import ConfigurationError
from frazil.format import types as I
from frazil.format.metadata import TableMetadata
from frazil.format.schema import Schema
from frazil.planning.cache import store_key
from frazil.planning.deletes.index import DeleteIndex
from frazil.planning.scan_plan import ScanPlan
from frazil.spark.deletes.bitmap import Words, by_file
from frazil.spark.deletes.collect import sparse_rows, words_of
from frazil.spark.deletes.deletion_cache import (
    DeletedWords,
    Deletes,
    Known,
    WordsOfFiles,
)
from frazil.spark.deletes.equality import EqualityDeletes
from frazil.spark.deletes.groups import DeleteGroup
from frazil.spark.deletes.integer_keys import key_bits
from frazil.spark.deletes.small_files import SmallFiles
from frazil.spark.files.arrow.files import TableColumns
from frazil.spark.files.projection import DELETED, FILE_ORDINAL_FIELD, METADATA_COLUMNS, POS
from frazil.storage.files import FileIO

EQUALITY_SETTING: Final = "frazil.read.equality-deletes"
"""Session setting: how a scan applies equality deletes, one of `EqualityReading`."""

RESOLVED_ROWS: Final = 1_000_000
"""Files of fewer rows in all are not worth a job of their own: their deletes are joined."""

JOINED_KEYS: Final = 500_000
"""So many new keys at most are joined by the first read that meets them."""

RESOLVED_PAIRS: Final = 4_000_000
"""More pairs of a file and a delete are joined, unless resolving is asked for."""

PLACES: Final[tuple[I.NestedField, ...]] = (
    FILE_ORDINAL_FIELD,
    *(field for field in METADATA_COLUMNS if field.name in (POS, DELETED)),
)
"""The columns of deleted rows that resolving needs."""

_WORD_BYTES: Final = 16


class EqualityReading(StrEnum):
    """How a scan applies equality deletes that bitmaps of keys cannot serve.

    Attributes:
        AUTO: a scan of whole files resolves those of small files when its DataFrame is made, and
            of a million rows or more those that are many or were joined before; others use what is
            resolved and join the rest.
        RESOLVE: every scan resolves them.
        KNOWN: what is resolved is used, the rest is joined.
        JOIN: they are joined each time.
    """

    AUTO = "auto"
    RESOLVE = "resolve"
    KNOWN = "known"
    JOIN = "join"


def equality_reading(spark: SparkSession) -> EqualityReading:
    """What the session's setting says.

    Raises:
        ConfigurationError: it says something else.
    """
    text = str(spark.conf.get(EQUALITY_SETTING, None) or EqualityReading.AUTO).lower()
    try:
        return EqualityReading(text)
    except ValueError:
        raise ConfigurationError(
            f"{EQUALITY_SETTING} is {text!r}: it must be one of {', '.join(EqualityReading)}"
        ) from None


@dataclass(frozen=True, slots=True)
class Resolved:
    """A plan whose equality deletes are positions as far as they are resolved.

    Attributes:
        plan: without the deletes that are resolved.
        positions: deleted rows by the file's ordinal; none is empty.
    """

    plan: ScanPlan
    positions: Mapping[int, Words]


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolver:
    """Resolves the equality deletes of one read.

    Attributes:
        metadata: the table.
        schema: holds every compared column.
        reading: how to apply them.
        deleted_rows: the rows of a plan that its deletes delete, in the columns of `PLACES`.
    """

    metadata: TableMetadata
    io: FileIO
    schema: Schema
    table: TableColumns
    reading: EqualityReading
    deleted_rows: Callable[[ScanPlan], DataFrame]

    def resolved(self, plan: ScanPlan, groups: Sequence[DeleteGroup]) -> Resolved:
        """The plan with what is resolved, now or before.

        Args:
            groups: of the plan's files.
        """
        if self.reading is EqualityReading.JOIN:
            return Resolved(plan, {})
        joined, index = self._divided(plan, groups)
        is_large = index.pair_count > RESOLVED_PAIRS
        if index.is_empty or (is_large and self.reading is not EqualityReading.RESOLVE):
            return Resolved(plan, {})
        pairs = index.expanded().join(self._names(groups), on="delete")
        # A name mapping says which column of a file without ids is compared.
        mapping = None if self.table.mapping is None else self.table.mapping.to_json()
        read_by = ("rows", store_key(self.io), self.metadata.table_uuid, repr(mapping))
        files = WordsOfFiles(self._kept, plan, pairs, *read_by)
        ways = (self._found_here, self._found_by_a_job)
        for way in ways if self.reading is not EqualityReading.KNOWN else ():
            if len(files.pending):
                files.add(way(plan, files.pending))
        left = joined.beside(DeleteIndex(files.pending.select(index.pairs.columns)))
        return Resolved(
            replace(plan, delete_index=left),
            {ordinal: words for ordinal, words in files.words.items() if len(words.places)},
        )

    @property
    def _kept(self) -> DeletedWords:
        return DeletedWords.of(self.io)

    def _divided(
        self, plan: ScanPlan, groups: Sequence[DeleteGroup]
    ) -> tuple[DeleteIndex, DeleteIndex]:
        """The index in two: deletes that bitmaps of keys or positions serve, and all others."""
        served, others = [], []
        for group in groups:
            here = plan.delete_index.on(group.files["ordinal"])
            names = [part.deletes["delete"] for part in self._without_bits(group)]
            which = pl.concat([pl.Series([], dtype=pl.Int64), *names])
            served.append(here.without(which))
            others.append(here.of(which))
        none = DeleteIndex.none()
        return none.beside(*served), none.beside(*others)

    def _names(self, groups: Sequence[DeleteGroup]) -> pl.DataFrame:
        """The ``name`` of each delete that bitmaps of keys cannot serve, with what it compares."""
        found = [pl.DataFrame(schema={"delete": pl.Int64, "name": pl.String})]
        for group in groups:
            for part in self._without_bits(group):
                name = pl.concat_str(pl.lit(self._compared(part.ids)), "file_path").alias("name")
                found.append(part.deletes.select("delete", name))
        return pl.concat(found).unique("delete", maintain_order=True)

    def _without_bits(self, group: DeleteGroup) -> list[EqualityDeletes]:
        return [part for part in group.equality if not self._has_key_bits(part)]

    def _has_key_bits(self, part: EqualityDeletes) -> bool:
        field = part.integer_field(self.schema)
        return field is not None and key_bits(self.io, part.deletes, field, self.table) is not None

    def _compared(self, ids: Sequence[int]) -> str:
        kinds = ((field_id, self.schema.find_field(field_id).field_type) for field_id in ids)
        return "".join(f"{field_id} {kind}, " for field_id, kind in kinds)

    def _found_here(self, plan: ScanPlan, pending: pl.DataFrame) -> dict[int, Words]:
        """What the pending deletes delete in small files."""
        return SmallFiles(self.io, self.schema, self.table).found(plan, pending)

    def _found_by_a_job(self, plan: ScanPlan, pending: pl.DataFrame) -> dict[int, Words]:
        """What the pending deletes delete in each of their files, if that is worth a job."""
        if not self._is_worth_it(plan, pending):
            return {}
        narrowed = replace(
            plan.restricted_to(pending["ordinal"]),
            delete_index=DeleteIndex(pending.select("ordinal", "delete")),
        )
        words = sparse_rows(
            self.deleted_rows(narrowed), ordinal=FILE_ORDINAL_FIELD.name, position=POS
        )
        return by_file(words_of(words), narrowed.files["ordinal"])

    def _is_worth_it(self, plan: ScanPlan, pending: pl.DataFrame) -> bool:
        files = plan.files.join(pending, on="ordinal", how="semi")
        rows = int(files["record_count"].sum())
        if (rows // 64 + len(files)) * _WORD_BYTES > self._kept.max_bytes // 2:
            return False
        if self.reading is EqualityReading.RESOLVE:
            return True
        return rows >= RESOLVED_ROWS and (
            self._were_joined(pending) or self._keys(plan, pending) > JOINED_KEYS
        )

    def _keys(self, plan: ScanPlan, pending: pl.DataFrame) -> int:
        deletes = plan.deletes.join(pending, on="delete", how="semi")
        return int(deletes.unique("file_path")["record_count"].sum())

    def _were_joined(self, pending: pl.DataFrame) -> bool:
        """Whether a read joined some of them before; if not, this one is the first."""
        owner = ("joined", store_key(self.io), self.metadata.table_uuid)
        names: Deletes = frozenset(pending["name"])
        before = self._kept.covered(owner, names)
        if before.deletes:
            return True
        self._kept.keep(owner, Known(names, Words.none()))
        return False
