"""Equality deletes of small files resolved beside the session, by keys that are kept.

Streams of changes leave many small files, each newer than some deletes and older than others. Their
keys are read once: a new commit costs its own keys and a look at those of the files before it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import polars as pl
import pyarrow as pa

from frazil.errors import FrazilError
from frazil.format import types as I
from frazil.format.schema import Schema
from frazil.planning.deletes.index import GLOBAL_SCOPE
from frazil.planning.scan_plan import ScanPlan
from frazil.spark.deletes.bitmap import Words, words_by_file
from frazil.spark.deletes.ways import ChosenWay, Way, cheapest
from frazil.spark.files.arrow.files import FilePart, TableColumns, arrow_type, read_batches
from frazil.spark.session import costs
from frazil.storage.files import FileIO
from frazil.storage.moved import store_key
from frazil.storage.side_by_side import in_threads

_FRAME_BYTES: Final = 2_048
_SEQUENCE: Final = "sequence_number"

Find = Callable[[ScanPlan, pl.DataFrame], dict[int, Words]]
"""Finds what pairs of ``ordinal`` and ``delete`` of a plan delete, by the file's ordinal."""


def find_none(plan: ScanPlan, pairs: pl.DataFrame) -> dict[int, Words]:
    """Resolve none of them."""
    return {}


@dataclass(frozen=True, slots=True)
class SmallFiles:
    """Resolves the deletes of small files.

    Attributes:
        io: the table's files.
        schema: holds every compared column.
        table: gives columns of files without ids theirs.
    """

    io: FileIO
    schema: Schema
    table: TableColumns

    def step(self, plan: ScanPlan, pending: pl.DataFrame) -> tuple[pl.DataFrame, ChosenWay[Find]]:
        """Return the pairs of small files, and whether they are resolved here.

        Args:
            pending: pairs of ``ordinal`` and ``delete`` of the plan.
        """
        share = self._share(plan, pending)
        deletes = plan.deletes.join(share, on="delete", how="semi")
        load = {"delete files": len(deletes), "keys": int(deletes["record_count"].sum())}
        most = {"delete files": costs.SMALL_FILES_HERE, "keys": costs.SMALL_ROWS_HERE}
        here = Way("resolved beside the session", self._find, most)
        return share, cheapest((here, Way("left to Spark", find_none)), load)

    def _share(self, plan: ScanPlan, pending: pl.DataFrame) -> pl.DataFrame:
        """The pairs of the newest small files whose keys can be compared here."""
        others = [
            delete
            for delete, ids in plan.deletes.join(pending, on="delete", how="semi")
            .select("delete", "equality_ids")
            .iter_rows()
            if not self._can_compare([self.schema.find_field(field_id) for field_id in ids])
        ]
        beyond = pending.filter(pl.col("delete").is_in(others))
        files = plan.files.join(pending, on="ordinal", how="semi")
        is_small = pl.col("record_count") <= costs.SMALL_FILE_ROWS
        newest = (
            files.join(beyond, on="ordinal", how="anti", maintain_order="left")
            .filter(is_small)
            .sort(_SEQUENCE, descending=True, maintain_order=True)
            .head(costs.SMALL_FILES_HERE)
            .filter(pl.col("record_count").cum_sum() <= costs.SMALL_ROWS_HERE)
        )
        return pending.join(newest, on="ordinal", how="semi")

    def _find(self, plan: ScanPlan, share: pl.DataFrame) -> dict[int, Words]:
        """Find what the deletes of the pairs delete, by the file's ordinal.

        A file whose keys cannot be read here is not in it.

        Raises:
            MissingFileError, InvalidDataFileError: a delete file cannot be read.
        """
        files = plan.files.join(share, on="ordinal", how="semi")
        deletes = plan.deletes.join(share, on="delete", how="semi")
        lists = deletes.with_columns(pl.col("equality_ids").list.sort().alias("ids"))
        found: dict[int, list[Words]] = {ordinal: [] for ordinal in files["ordinal"]}
        for (ids,), members in lists.group_by("ids"):
            fields = [self.schema.find_field(field_id) for field_id in ids]
            here = files.join(
                share.join(members, on="delete", how="semi"), on="ordinal", how="semi"
            )
            known = self._match(here, members, fields)
            for ordinal in here["ordinal"]:
                if ordinal not in known:
                    found.pop(ordinal, None)
                elif ordinal in found:
                    found[ordinal].append(known[ordinal])
        return {ordinal: Words.union(parts) for ordinal, parts in found.items()}

    def _can_compare(self, fields: Sequence[I.NestedField]) -> bool:
        return all(
            isinstance(field.field_type, I.EXACT_TYPES)
            and field.field_id not in self.schema.parent_ids
            for field in fields
        )

    def _match(
        self, files: pl.DataFrame, deletes: pl.DataFrame, fields: Sequence[I.NestedField]
    ) -> dict[int, Words]:
        """The deleted rows of those of the files whose keys can be read here."""
        read = self._keys(files, fields, is_data=True)
        files = files.filter(pl.Series([keys is not None for keys in read], dtype=pl.Boolean))
        frames = [keys for keys in read if keys is not None]
        if not frames:
            return {}
        lengths = np.fromiter(map(len, frames), dtype=np.int64, count=len(frames))
        starts = np.cumsum(lengths) - lengths
        rows = pl.concat(frames).with_columns(
            *(
                pl.Series(name, np.repeat(files[name].to_numpy(), lengths))
                for name in ("ordinal", _SEQUENCE, "scope")
            ),
            pl.Series("position", np.arange(lengths.sum()) - np.repeat(starts, lengths)),
        )
        newest = self._newest(deletes, fields)
        names = frames[0].columns
        everywhere = newest.filter(pl.col("scope") == GLOBAL_SCOPE)
        of_scopes = newest.filter(pl.col("scope") != GLOBAL_SCOPE)
        # NULL equals NULL in keys.
        hits = pl.concat(
            part.filter(pl.col(_SEQUENCE) < pl.col("deleted_at")).select("ordinal", "position")
            for part in (
                rows.join(everywhere.drop("scope"), on=names, nulls_equal=True),
                rows.join(of_scopes, on=[*names, "scope"], nulls_equal=True),
            )
        )
        words = words_by_file(hits["ordinal"].to_numpy(), hits["position"].to_numpy())
        return {ordinal: words.get(ordinal, Words.empty()) for ordinal in files["ordinal"]}

    def _newest(self, deletes: pl.DataFrame, fields: Sequence[I.NestedField]) -> pl.DataFrame:
        """Each deleted key of a scope once, with the newest of its deletes."""
        frames = [keys for keys in self._keys(deletes, fields, is_data=False) if keys is not None]
        lengths = [len(keys) for keys in frames]
        keys = pl.concat(frames).with_columns(
            pl.Series("scope", np.repeat(deletes["scope"].to_numpy(), lengths)),
            pl.Series("deleted_at", np.repeat(deletes[_SEQUENCE].to_numpy(), lengths)),
        )
        return keys.group_by("scope", *frames[0].columns).agg(pl.col("deleted_at").max())

    def _keys(
        self, files: pl.DataFrame, fields: Sequence[I.NestedField], *, is_data: bool
    ) -> list[pl.DataFrame | None]:
        """The key columns of each file, read here where they are not kept."""
        mapping = None if self.table.mapping is None else self.table.mapping.to_json()
        kinds = tuple((field.field_id, str(field.field_type)) for field in fields)
        read_by = ("keys of rows", store_key(self.io), repr(mapping), kinds)
        # A file that lacks a column has its default or its partition's value: that is not for here.
        needed = [replace(field, required=True, initial_default=None) for field in fields]

        def read(part: FilePart) -> pl.DataFrame | None:
            try:
                return self._read(part, needed)
            except FrazilError:
                if is_data:
                    return None
                raise

        listed = files.select("file_path", "file_format", "file_size_in_bytes").rows()
        kept = self.io.caches["deletes"]
        known = {row: kept.get((*read_by, *row)) for row in dict.fromkeys(listed)}
        lacking = [row for row, keys in known.items() if keys is None]
        parts = [FilePart(path=path, file_format=kind) for path, kind, _ in lacking]
        found = in_threads(read, parts, name="frazil-keys")
        for row, keys in zip(lacking, found, strict=True):
            known[row] = keys
            if keys is not None:
                kept.put((*read_by, *row), keys, int(keys.estimated_size()) + _FRAME_BYTES)
        return [known[row] for row in listed]

    def _read(self, part: FilePart, fields: Sequence[I.NestedField]) -> pl.DataFrame:
        batches = [arrays for _, _, arrays in read_batches(self.io, part, fields, self.table)]
        whole = [
            pa.chunked_array([arrays[place] for arrays in batches], arrow_type(field.field_type))
            for place, field in enumerate(fields)
        ]
        table = pa.table(whole, names=[f"k{field.field_id}" for field in fields])
        made = pl.from_arrow(table, rechunk=True)
        assert isinstance(made, pl.DataFrame)
        return made
