"""Equality deletes resolved to positions, once for a data file and a set of delete files.

Small files are resolved beside the session (`small_files`). Of others a read of the key columns
alone joins the deletes and yields the places of the deleted rows. They are kept as `DeletedWords`;
every later read of the same files, by whatever columns or filter, applies them as it applies
deletion vectors. When deletes are added, only those are resolved.

To resolve few deletes costs more than to join them: the first read joins them, the second, which
would pay again, resolves them.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

import polars as pl
from pyspark.sql import DataFrame, SparkSession

from frazil.errors import ConfigurationError
from frazil.format import types as I
from frazil.format.metadata import TableMetadata
from frazil.format.schema import Schema
from frazil.planning.deletes.index import DeleteIndex
from frazil.planning.scan_plan import DeleteWay, ScanPlan
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
from frazil.spark.deletes.small_files import Find, SmallFiles, find_none
from frazil.spark.deletes.ways import ChosenWay, Way, cheapest
from frazil.spark.files.arrow.files import TableColumns
from frazil.spark.files.projection import DELETED, FILE_ORDINAL_FIELD, METADATA_COLUMNS, POS
from frazil.spark.session import costs
from frazil.storage.files import FileIO
from frazil.storage.moved import store_key

EQUALITY_SETTING: Final = "frazil.read.equality-deletes"
"""Session setting: how a scan applies equality deletes, one of `EqualityReading`."""

PLACES: Final[tuple[I.NestedField, ...]] = (
    FILE_ORDINAL_FIELD,
    *(field for field in METADATA_COLUMNS if field.name in (POS, DELETED)),
)
"""The columns of deleted rows that resolving needs."""

_WORD_BYTES: Final = 16


_Step = Callable[[ScanPlan, pl.DataFrame], tuple[pl.DataFrame, ChosenWay[Find]]]


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

    def resolve(
        self, plan: ScanPlan, groups: Sequence[DeleteGroup]
    ) -> tuple[ScanPlan, Mapping[int, Words]]:
        """The plan without the deletes that are resolved, now or before, and what these delete.

        Args:
            groups: of the plan's files.

        Returns:
            Deleted rows by the file's ordinal; none is empty.
        """
        for part in (part for group in groups for part in group.equality):
            keys = part.integer_keys(self.io, self.schema)
            if keys is not None:
                keys.words(self.table)
        looked_up = self._looked_up(plan, groups)
        if looked_up is None:
            return plan, {}
        served, files = looked_up
        for step in self._steps():
            share, choice = step(plan, files.pending)
            files.add(choice.way.apply(plan, share))
        left = served.union(DeleteIndex(files.pending.select("ordinal", "delete")))
        found = {ordinal: words for ordinal, words in files.words.items() if len(words.places)}
        return replace(plan, delete_index=left), found

    def foresee(
        self, plan: ScanPlan, groups: Sequence[DeleteGroup]
    ) -> tuple[list[DeleteWay], ScanPlan]:
        """Return the ways of what is or would be resolved, and the plan with what is left."""
        looked_up = self._looked_up(plan, groups)
        if looked_up is None:
            return [], plan
        served, files = looked_up
        left, ways = files.pending, list[DeleteWay]()
        known = len(files.words) - left["ordinal"].n_unique()
        if known:
            ways.append(DeleteWay(known, "resolved to positions", "kept from an earlier read"))
        for step in self._steps():
            share, choice = step(plan, left)
            if len(share):
                ways.append(DeleteWay(share["ordinal"].n_unique(), choice.way.name, choice.reason))
            if choice.way.apply not in (find_none, self._note):
                left = left.join(share, on="ordinal", how="anti")
        index = served.union(DeleteIndex(left.select("ordinal", "delete")))
        return ways, replace(plan, delete_index=index)

    def _looked_up(
        self, plan: ScanPlan, groups: Sequence[DeleteGroup]
    ) -> tuple[DeleteIndex, WordsOfFiles] | None:
        """The deletes that bitmaps serve, and what is known of others; None to join them all."""
        if self.reading is EqualityReading.JOIN:
            return None
        served, index = self._in_two(plan, groups)
        is_large = index.pair_count > costs.RESOLVED_PAIRS
        if index.is_empty or (is_large and self.reading is not EqualityReading.RESOLVE):
            return None
        pairs = index.expanded_pairs().join(self._names(groups), on="delete")
        # A name mapping says which column of a file without ids is compared.
        mapping = None if self.table.mapping is None else self.table.mapping.to_json()
        read_by = ("rows", store_key(self.io), self.metadata.table_uuid, repr(mapping))
        return served, WordsOfFiles(self._kept_words, plan, pairs, *read_by)

    def _steps(self) -> tuple[_Step, ...]:
        if self.reading is EqualityReading.KNOWN:
            return ()
        return (SmallFiles(self.io, self.schema, self.table).step, self._find_others)

    def _find_others(
        self, plan: ScanPlan, pending: pl.DataFrame
    ) -> tuple[pl.DataFrame, ChosenWay[Find]]:
        files = plan.files.join(pending, on="ordinal", how="semi")
        deletes = plan.deletes.join(pending, on="delete", how="semi")
        rows = int(files["record_count"].sum())
        load = {
            "rows": rows,
            "bytes": (rows // 64 + len(files)) * _WORD_BYTES,
            "keys": int(deletes.unique("file_path")["record_count"].sum()),
            "reads before": len(
                self._kept_words.known_words(self._join_key, frozenset(pending["name"])).deletes
            ),
        }
        # What joins cost less than a job.
        joins = (
            Way("left to a join", find_none, {"rows": costs.RESOLVED_ROWS - 1}),
            Way(
                "left to a join once",
                self._note,
                {"keys": costs.NEW_KEYS_JOINED, "reads before": 0},
            ),
        )
        ways = (
            *(joins if self.reading is EqualityReading.AUTO else ()),
            Way(
                "resolved by a job",
                self._found_by_a_job,
                {"bytes": self.io.caches["deletes"].max_bytes // 2},
            ),
            Way("left to a join", find_none),
        )
        return pending, cheapest(ways, load)

    @property
    def _kept_words(self) -> DeletedWords:
        return DeletedWords.of(self.io)

    def _in_two(
        self, plan: ScanPlan, groups: Sequence[DeleteGroup]
    ) -> tuple[DeleteIndex, DeleteIndex]:
        """The index in two: deletes that bitmaps of keys or positions serve, and all others."""
        served, others = [], []
        for group in groups:
            here = plan.delete_index.for_files(group.files["ordinal"])
            names = [part.deletes["delete"] for part in self._without_bits(group)]
            which = pl.concat([pl.Series([], dtype=pl.Int64), *names])
            served.append(here.without_deletes(which))
            others.append(here.for_deletes(which))
        none = DeleteIndex.empty()
        return none.union(*served), none.union(*others)

    def _names(self, groups: Sequence[DeleteGroup]) -> pl.DataFrame:
        """The ``name`` of each delete that bitmaps of keys cannot serve, with what it compares."""
        found = [pl.DataFrame(schema={"delete": pl.Int64, "name": pl.String})]
        for group in groups:
            for part in self._without_bits(group):
                name = pl.concat_str(pl.lit(self._comparison(part.ids)), "file_path").alias("name")
                found.append(part.deletes.select("delete", name))
        return pl.concat(found).unique("delete", maintain_order=True)

    def _without_bits(self, group: DeleteGroup) -> list[EqualityDeletes]:
        keys = ((part, part.integer_keys(self.io, self.schema)) for part in group.equality)
        return [part for part, some in keys if some is None or not some.way.can_bear(some.load())]

    def _comparison(self, ids: Sequence[int]) -> str:
        kinds = ((field_id, self.schema.find_field(field_id).field_type) for field_id in ids)
        return "".join(f"{field_id} {kind}, " for field_id, kind in kinds)

    def _note(self, plan: ScanPlan, pending: pl.DataFrame) -> dict[int, Words]:
        """Nothing is resolved by the first read, which is noted."""
        names: Deletes = frozenset(pending["name"])
        self._kept_words.keep(self._join_key, Known(names, Words.empty()))
        return {}

    @property
    def _join_key(self) -> Hashable:
        return ("joined", store_key(self.io), self.metadata.table_uuid)

    def _found_by_a_job(self, plan: ScanPlan, pending: pl.DataFrame) -> dict[int, Words]:
        """What the pending deletes delete in each of their files."""
        if pending.is_empty():
            return {}
        narrowed = replace(
            plan.restricted_to(pending["ordinal"]),
            delete_index=DeleteIndex(pending.select("ordinal", "delete")),
        )
        words = sparse_rows(
            self.deleted_rows(narrowed), ordinal=FILE_ORDINAL_FIELD.name, position=POS
        )
        return by_file(words_of(words), narrowed.files["ordinal"])
