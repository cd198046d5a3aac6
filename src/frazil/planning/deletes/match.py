"""Which delete file applies to which data file (SPEC rules 176-182), by sort and search.

Every kind of delete has a scope (a path, a partition, the table) and a sequence number. Data files
are sorted by scope and then by number or path, so that the files that a delete may apply to are one
run of rows, found by binary search. Short runs are expanded to pairs, which are tested as columns;
long ones, which would be more pairs than there is room for, stay runs by sequence number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_

import numpy as np
import numpy.typing as npt
import polars as pl

from frazil.format.partitions.partitioning import PartitionSpec
from frazil.format.predicates.expressions import BoundRef
from frazil.format.schema import Schema
from frazil.format.types import IcebergType, UnknownType, UUIDType
from frazil.planning.deletes.index import GLOBAL_SCOPE, DeleteIndex
from frazil.planning.deletes.own_files import (
    NO_SCOPE,
    OwnDeletes,
    of_partitions,
    pairs_by_path,
    path_bound,
    refuse,
    scopes,
)
from frazil.planning.deletes.runs import Integers, Runs, older_files, overlapping_files, shortest
from frazil.planning.prune import Ranges, ranges_of

_MOST_PAIRS = 1_000_000
"""How many pairs the runs of one kind of deletes may become, in equal shares a delete."""

_Pairs = tuple[Integers, Integers]
_Test = Callable[[Integers, Integers], npt.NDArray[np.bool_]]


@dataclass(frozen=True, slots=True)
class MatchedDeletes:
    """Which deletes apply to which data files, and by what.

    Attributes:
        index: by the rows of both frames.
        data_scope: of each data file a number, equal for files of one spec and partition; 0 for
            those of partitions without deletes.
        delete_scope: of each delete file, `GLOBAL_SCOPE` if it applies to every partition.
    """

    index: DeleteIndex
    data_scope: pl.Series
    delete_scope: pl.Series


def match_deletes(
    data: pl.DataFrame,
    deletes: pl.DataFrame,
    *,
    specs: Mapping[int, PartitionSpec],
    schemas: Sequence[Schema],
) -> MatchedDeletes:
    """Return which delete files apply to which data files.

    Metrics leave out what cannot apply as far as there are few pairs; where there are very many, a
    delete applies to all data files of its partition that are not newer.

    Args:
        data: live data files, with `file_path`, `sequence_number`, `spec_id`, `record_count` and
            `partition.<id>` columns; with the statistics of equality columns (`<map>.<id>`) to
            match closer.
        deletes: live delete files, with the same columns and `content`, `file_format`,
            `equality_ids`, `referenced_data_file` and the bounds of `file_path`.
        specs: every partition spec of the table, by id.
        schemas: every schema of the table, the current one first: equality columns may be dropped.

    Raises:
        InvalidManifestError: two deletion vectors are for one data file (rule 217), a vector names
            no data file, or the partition of a file's own deletes is not the file's (rule 182).
    """
    if data.is_empty() or deletes.is_empty():
        none = (
            pl.repeat(NO_SCOPE, len(each), dtype=pl.Int64, eager=True) for each in (data, deletes)
        )
        return MatchedDeletes(DeleteIndex.empty(), *none)
    data_scope, delete_scope = scopes(data, deletes, specs)
    found = OwnDeletes.of(deletes)
    position, vector, own = found.position, found.vector, found.own_rows
    refuse(found.of_vectors(deletes), deletes)
    matcher = _Matcher(data, deletes, data_scope, delete_scope)
    rows, files = matcher.by_path(np.flatnonzero(own), found.about)
    # A data file that carries a vector ignores its position deletes (rules 177, 222).
    has_vector = np.zeros(len(data), dtype=bool)
    has_vector[rows[vector[files]]] = True
    keep = vector[files] | ~has_vector[rows]
    by_partition = matcher.by_partition(np.flatnonzero(position & ~own), ~has_vector)
    parts = [DeleteIndex.of_pairs(rows[keep], files[keep]), by_partition]
    everywhere = [id_ for id_, spec in specs.items() if spec.is_unpartitioned]
    global_ = ~position & np.isin(deletes["spec_id"].to_numpy(), everywhere)
    metrics = _EqualityMetrics(data, deletes, schemas)
    # Equality deletes of an unpartitioned spec are of one scope, which is all files (rule 178).
    one_scope = (np.zeros_like(data_scope), np.zeros_like(delete_scope))
    parts.append(matcher.by_keys(np.flatnonzero(global_), *one_scope, metrics))
    by_scope = (data_scope, delete_scope)
    parts.append(matcher.by_keys(np.flatnonzero(~position & ~global_), *by_scope, metrics))
    return MatchedDeletes(
        DeleteIndex.empty().union(*parts),
        pl.Series(data_scope),
        pl.Series(np.where(global_, GLOBAL_SCOPE, delete_scope)),
    )


def may_hold_null_keys(deletes: pl.DataFrame, schemas: Sequence[Schema]) -> pl.Series:
    """False for equality deletes of which the metrics show that no compared value is NULL.

    Args:
        deletes: with `equality_ids`, `record_count` and the statistics of equality columns.
        schemas: every schema of the table, the current one first.
    """
    may = pl.Series("may_hold_null_keys", [True]).new_from_index(0, len(deletes))
    lists = deletes["equality_ids"].list.sort()
    for ids in lists.drop_nulls().unique():
        refs = [_reference(field_id, schemas) for field_id in ids]
        known = [ranges_of(ref, deletes).may_be_null for ref in refs if ref is not None]
        if len(ids) and len(known) == len(ids):
            any_null = reduce(or_, known)
            may &= any_null | ~pl.Series(_same_list(lists, ids.to_list()))
    return may


@dataclass(frozen=True, slots=True)
class _Matcher:
    """Finds pairs (rows of `data`, rows of `deletes`) for the kinds of delete files."""

    data: pl.DataFrame
    deletes: pl.DataFrame
    data_scope: Integers
    delete_scope: Integers

    def by_path(self, which: Integers, about: pl.Series) -> _Pairs:
        """Deletes of one data file, by its path."""
        rows, files = pairs_by_path(self.data, self.deletes, about, which)
        apart = self.data_scope[rows] != self.delete_scope[files]
        refuse(of_partitions(self.data, self.deletes, (rows[apart], files[apart])), self.deletes)
        return rows, files

    def by_partition(self, which: Integers, free: npt.NDArray[np.bool_]) -> DeleteIndex:
        """Position deletes of a partition: data files not newer, within the bounds of paths.

        Args:
            free: the data files that position deletes apply to.
        """
        if not len(which):
            return DeleteIndex.empty()
        ranks, lower, upper = self._path_ranks(which)
        order = np.lexsort((ranks, self.data_scope))
        stride = len(self.data) + 2
        keys = self.data_scope[order] * stride + ranks[order]
        scopes = self.delete_scope[which]
        named = Runs(
            which,
            order,
            np.searchsorted(keys, scopes * stride + lower, side="left"),
            np.searchsorted(keys, scopes * stride + upper, side="right"),
        )
        numbers, limits = self._numbers(self.data), self._numbers(self.deletes)
        whole = older_files(
            self.data_scope, numbers, deletes=which, scopes=scopes, limits=limits[which] + 1
        )
        lowest, highest = np.zeros((2, len(self.deletes)), dtype=np.int64)
        lowest[which], highest[which] = lower, upper

        def possible(rows: Integers, files: Integers) -> _Pairs:
            keep = (lowest[files] <= ranks[rows]) & (ranks[rows] <= highest[files])
            return rows[keep], files[keep]

        return _pairs(
            whole.for_files(np.flatnonzero(free)),
            [named],
            lambda rows, files: free[rows] & (numbers[rows] <= limits[files]),
            possible,
        )

    def by_keys(
        self, which: Integers, scope: Integers, delete_scope: Integers, metrics: _EqualityMetrics
    ) -> DeleteIndex:
        """Equality deletes: strictly older data files of their scope (rule 178)."""
        if not len(which):
            return DeleteIndex.empty()
        scopes = delete_scope[which]
        numbers, limits = self._numbers(self.data), self._numbers(self.deletes)
        return _pairs(
            older_files(scope, numbers, deletes=which, scopes=scopes, limits=limits[which]),
            list(metrics.overlapping_runs(scope, which, scopes)),
            lambda rows, files: numbers[rows] < limits[files],
            metrics.possible,
        )

    def _numbers(self, files: pl.DataFrame) -> Integers:
        return files["sequence_number"].to_numpy()

    def _path_ranks(self, which: Integers) -> tuple[Integers, Integers, Integers]:
        """Data files numbered by path, and the first and last within each delete's bounds."""
        paths = self.data["file_path"].cast(pl.Binary)
        order = paths.arg_sort()
        ranks = np.empty(len(paths), dtype=np.int64)
        ranks[order.to_numpy()] = np.arange(len(paths))
        ordered = paths.gather(order)
        low = path_bound(self.deletes, "lower_bounds").gather(which)
        high = path_bound(self.deletes, "upper_bounds").gather(which)
        first = ordered.search_sorted(low.fill_null(b""), side="left").cast(pl.Int64)
        last = ordered.search_sorted(high.fill_null(b""), side="right").cast(pl.Int64) - 1
        return (
            ranks,
            first.set(low.is_null(), 0).to_numpy(),
            last.set(high.is_null(), len(paths)).to_numpy(),
        )


def _pairs(
    whole: Runs,
    narrower: Sequence[Runs],
    applies: _Test,
    possible: Callable[[Integers, Integers], _Pairs],
) -> DeleteIndex:
    """The pairs of deletes with few candidates; those of many as the runs of all that is older.

    Args:
        whole: for each delete the data files that it applies to by scope and number.
        narrower: for some deletes, runs that hold all that apply by their metrics.
        applies: whether a candidate is of the scope, and old enough.
        possible: leaves out pairs by their metrics.
    """
    deletes = whole.deletes
    candidates = list(shortest([whole, *(run.for_deletes(deletes) for run in narrower)], deletes))
    share = _MOST_PAIRS // max(len(deletes), 1)
    if sum(int(run.lengths.sum()) for run in candidates) <= _MOST_PAIRS:
        share = _MOST_PAIRS
    found: list[DeleteIndex] = []
    many: list[Integers] = []
    for run in candidates:
        is_short = run.lengths <= share
        rows, files = run.filter(is_short).pairs()
        keep = applies(rows, files)
        found.append(DeleteIndex.of_pairs(*possible(rows[keep], files[keep])))
        many.append(run.deletes[~is_short])
    kept = whole.for_deletes(np.concatenate(many)) if many else whole
    return DeleteIndex.empty().union(*found, DeleteIndex.of_runs(kept))


class _EqualityMetrics:
    """Drops pairs whose metrics show that no row of the data file equals a deleted one."""

    def __init__(
        self, data: pl.DataFrame, deletes: pl.DataFrame, schemas: Sequence[Schema]
    ) -> None:
        self._data = data
        self._deletes = deletes
        self._schemas = schemas
        self._ranges: dict[int, tuple[Ranges, Ranges] | None] = {}
        ids = deletes["equality_ids"].list.sort()
        self._id_lists = [tuple(found) if found is not None else () for found in ids.unique()]
        self._of_list = {found: _same_list(ids, found) for found in self._id_lists}

    def possible(self, rows: Integers, files: Integers) -> _Pairs:
        """The pairs that may have a row in common in every equality column."""
        keep = np.ones(len(rows), dtype=bool)
        for ids, member in self._of_list.items():
            pairs = np.flatnonzero(member[files])
            for field_id in ids:
                known = self._ranges_of(field_id)
                if known is None or not len(pairs):
                    continue
                may = _may_share(known[0], known[1], rows[pairs], files[pairs])
                keep[pairs[~may]] = False
                pairs = pairs[may]
        return rows[keep], files[keep]

    def overlapping_runs(
        self, scope: Integers, deletes: Integers, scopes: Integers
    ) -> Iterator[Runs]:
        """For each equality column, runs of the data files whose bounds leave room."""
        for ids, member in self._of_list.items():
            listed = member[deletes]
            for field_id in ids:
                known = self._ranges_of(field_id)
                if known is None or not listed.any():
                    continue
                runs = overlapping_files(
                    scope,
                    known[0],
                    deletes=deletes[listed],
                    scopes=scopes[listed],
                    ranges=known[1],
                )
                if runs is not None:
                    yield runs

    def _ranges_of(self, field_id: int) -> tuple[Ranges, Ranges] | None:
        if field_id not in self._ranges:
            ref = _reference(field_id, self._schemas)
            self._ranges[field_id] = (
                None if ref is None else (ranges_of(ref, self._data), ranges_of(ref, self._deletes))
            )
        return self._ranges[field_id]


def _same_list(lists: pl.Series, ids: Sequence[int]) -> npt.NDArray[np.bool_]:
    wanted = pl.Series([list(ids)], dtype=lists.dtype)
    return (lists == wanted).fill_null(not ids).to_numpy()


def _reference(field_id: int, schemas: Sequence[Schema]) -> BoundRef | None:
    """An equality column in the newest schema that has it; None where its type has no order."""
    for schema in schemas:
        field = schema.field_or_none(field_id)
        if field is not None:
            kind: IcebergType = field.field_type
            if isinstance(kind, UUIDType | UnknownType):
                return None
            name = schema.find_column_name(field_id) or str(field_id)
            nested = field_id in schema.parent_ids
            return BoundRef(field_id, kind, ("struct", name) if nested else (name,))
    return None


def _may_share(
    data: Ranges, deletes: Ranges, rows: Integers, files: Integers
) -> npt.NDArray[np.bool_]:
    """Whether both files of each pair may hold one value; NULL equals NULL (rule 230)."""

    def pick(of_data: pl.Series, of_deletes: pl.Series) -> tuple[pl.Series, pl.Series]:
        return of_data.gather(rows), of_deletes.gather(files)

    nulls, deleted_nulls = pick(data.may_be_null, deletes.may_be_null)
    nans, deleted_nans = pick(data.may_be_nan, deletes.may_be_nan)
    values, deleted_values = pick(data.may_be_value, deletes.may_be_value)
    overlap = values & deleted_values
    if data.lower is not None and deletes.upper is not None:
        low, high = pick(data.lower, deletes.upper)
        overlap &= (low <= high).fill_null(True)
    if data.upper is not None and deletes.lower is not None:
        high, low = pick(data.upper, deletes.lower)
        overlap &= (high >= low).fill_null(True)
    return (overlap | (nulls & deleted_nulls) | (nans & deleted_nans)).to_numpy()
