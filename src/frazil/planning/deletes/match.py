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

from frazil.errors import InvalidManifestError
from frazil.format.manifests import Content
from frazil.format.partitions.partitioning import PartitionSpec
from frazil.format.predicates.expressions import BoundRef
from frazil.format.schema import Schema
from frazil.format.types import IcebergType, UnknownType, UUIDType
from frazil.planning.deletes.index import GLOBAL_SCOPE, DeleteIndex
from frazil.planning.deletes.runs import Integers, Runs, older_files, overlapping_files, shortest
from frazil.planning.frames import partition_keys
from frazil.planning.prune import Ranges, ranges_of
from frazil.storage.avro.columns import value_column
from frazil.storage.avro.manifest_layout import PARTITION_PREFIX

FILE_PATH_ID = 2147483546
"""The field id of `file_path` in position delete files (rule 224)."""
_NO_SCOPE = 0
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
        scopes = (
            pl.repeat(_NO_SCOPE, len(each), dtype=pl.Int64, eager=True) for each in (data, deletes)
        )
        return MatchedDeletes(DeleteIndex.none(), *scopes)
    data_scope, delete_scope = _scopes(data, deletes, specs)
    about = referenced_data_files(deletes)
    position = (deletes["content"] == int(Content.POSITION_DELETES)).to_numpy()
    vector = position & (deletes["file_format"] == "puffin").to_numpy()
    own = position & about.is_not_null().to_numpy()
    _check_vectors(deletes, vector, about)
    matcher = _Matcher(data, deletes, data_scope, delete_scope)
    rows, files = matcher.by_path(np.flatnonzero(own), about)
    # A data file that carries a vector ignores its position deletes (rules 177, 222).
    has_vector = np.zeros(len(data), dtype=bool)
    has_vector[rows[vector[files]]] = True
    keep = vector[files] | ~has_vector[rows]
    by_partition = matcher.by_partition(np.flatnonzero(position & ~own), ~has_vector)
    parts = [DeleteIndex.of_pairs(rows[keep], files[keep]), by_partition]
    everywhere = [id_ for id_, spec in specs.items() if spec.is_unpartitioned]
    global_ = ~position & np.isin(deletes["spec_id"].to_numpy(), everywhere)
    metrics = _EqualityMetrics(data, deletes, schemas)
    parts.append(matcher.everywhere(np.flatnonzero(global_), metrics))
    parts.append(matcher.by_equality(np.flatnonzero(~position & ~global_), metrics))
    return MatchedDeletes(
        DeleteIndex.none().beside(*parts),
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


def _check_vectors(deletes: pl.DataFrame, vector: npt.NDArray[np.bool_], about: pl.Series) -> None:
    named = deletes.select("file_path", about.alias("about")).filter(pl.Series(vector))
    if named["about"].null_count():
        file = named.filter(pl.col("about").is_null())["file_path"][0]
        raise InvalidManifestError("a deletion vector has no referenced_data_file", file=file)
    twice = named.filter(pl.col("about").is_duplicated()).sort("about", maintain_order=True)
    if not twice.is_empty():
        first, second = twice.head(2)["file_path"]
        raise InvalidManifestError(
            f"the data file {twice['about'][0]} has two deletion vectors, in {first} and in "
            f"{second}; at most one is allowed"
        )


def referenced_data_files(deletes: pl.DataFrame) -> pl.Series:
    """Return the one data file that each position delete is about: stated, or both bounds.

    It is null for deletes of several data files (rule 308).

    Args:
        deletes: with `referenced_data_file` and the bounds of `file_path`.
    """
    lower, upper = (_path_bound(deletes, name) for name in ("lower_bounds", "upper_bounds"))
    stated = deletes["referenced_data_file"]
    derived = lower.set((lower != upper).fill_null(True), None)
    return stated.zip_with(stated.is_not_null(), derived.cast(pl.String))


def _path_bound(deletes: pl.DataFrame, statistic: str) -> pl.Series:
    name = value_column(statistic, FILE_PATH_ID)
    if name not in deletes.columns:
        return pl.Series([None] * len(deletes), dtype=pl.Binary)
    return deletes[name]


def _scopes(
    data: pl.DataFrame, deletes: pl.DataFrame, specs: Mapping[int, PartitionSpec]
) -> tuple[Integers, Integers]:
    """A number for each (spec, partition): equal exactly where both are equal.

    Data files of partitions without deletes share one number.
    """
    data_scope = np.full(len(data), _NO_SCOPE, dtype=np.int64)
    delete_scope = np.full(len(deletes), _NO_SCOPE, dtype=np.int64)
    following = _NO_SCOPE + 1
    for (spec_id,), rows in deletes.with_row_index("row").group_by("spec_id"):
        spec = specs.get(int(str(spec_id)))
        columns = [f"{PARTITION_PREFIX}{field.field_id}" for field in spec.fields] if spec else []
        keys = _partition_keys(rows, columns)
        distinct = keys.unique().with_row_index("scope", offset=following)
        following += len(distinct)
        delete_scope[rows["row"].to_numpy()] = _numbered(keys, distinct)
        same = np.flatnonzero((data["spec_id"] == spec_id).to_numpy())
        # Frames have the partition columns of the specs that some file in them is of.
        if len(same):
            data_scope[same] = _numbered(_partition_keys(data[same], columns), distinct)
    return data_scope, delete_scope


def _partition_keys(files: pl.DataFrame, columns: Sequence[str]) -> pl.DataFrame:
    keys = [
        partition_keys(files[name]) if name in files.columns else pl.lit(None).alias(name)
        for name in columns
    ]
    return files.select(pl.lit(0).alias("all"), *keys)


def _numbered(keys: pl.DataFrame, distinct: pl.DataFrame) -> Integers:
    joined = keys.join(
        distinct, on=keys.columns, how="left", nulls_equal=True, maintain_order="left"
    )
    return joined["scope"].cast(pl.Int64).fill_null(_NO_SCOPE).to_numpy()


@dataclass(frozen=True, slots=True)
class _Matcher:
    """Finds pairs (rows of `data`, rows of `deletes`) for the kinds of delete files."""

    data: pl.DataFrame
    deletes: pl.DataFrame
    data_scope: Integers
    delete_scope: Integers

    def by_path(self, which: Integers, about: pl.Series) -> _Pairs:
        """Deletes of one data file, by its path; not newer than the deletes (rules 176, 177)."""
        names = pl.DataFrame({"file_path": about.gather(which), "delete": which})
        paths = self.data.select("file_path").with_row_index("row")
        joined = paths.join(names, on="file_path")
        rows = joined["row"].cast(pl.Int64).to_numpy()
        files = joined["delete"].cast(pl.Int64).to_numpy()
        keep = self._numbers(self.data)[rows] <= self._numbers(self.deletes)[files]
        rows, files = rows[keep], files[keep]
        elsewhere = self.data_scope[rows] != self.delete_scope[files]
        if elsewhere.any():
            row, file = int(rows[elsewhere][0]), int(files[elsewhere][0])
            raise InvalidManifestError(
                f"the delete file {self.deletes['file_path'][file]} is for the data file "
                f"{self.data['file_path'][row]}, but their partitions differ"
            )
        return rows, files

    def by_partition(self, which: Integers, free: npt.NDArray[np.bool_]) -> DeleteIndex:
        """Position deletes of a partition: data files not newer, within the bounds of paths.

        Args:
            free: the data files that position deletes apply to.
        """
        if not len(which):
            return DeleteIndex.none()
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

        return _matched(
            whole.on(np.flatnonzero(free)),
            [named],
            lambda rows, files: free[rows] & (numbers[rows] <= limits[files]),
            possible,
        )

    def everywhere(self, which: Integers, metrics: _EqualityMetrics) -> DeleteIndex:
        """Equality deletes of the whole table: strictly older data files (rule 178)."""
        return self._by_keys(which, np.zeros_like(self.data_scope), np.zeros_like(which), metrics)

    def by_equality(self, which: Integers, metrics: _EqualityMetrics) -> DeleteIndex:
        """Equality deletes of a partition: strictly older data files of it (rule 178)."""
        return self._by_keys(which, self.data_scope, self.delete_scope[which], metrics)

    def _by_keys(
        self, which: Integers, scope: Integers, scopes: Integers, metrics: _EqualityMetrics
    ) -> DeleteIndex:
        if not len(which):
            return DeleteIndex.none()
        numbers, limits = self._numbers(self.data), self._numbers(self.deletes)
        return _matched(
            older_files(scope, numbers, deletes=which, scopes=scopes, limits=limits[which]),
            list(metrics.overlapping(scope, which, scopes)),
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
        low = _path_bound(self.deletes, "lower_bounds").gather(which)
        high = _path_bound(self.deletes, "upper_bounds").gather(which)
        first = ordered.search_sorted(low.fill_null(b""), side="left").cast(pl.Int64)
        last = ordered.search_sorted(high.fill_null(b""), side="right").cast(pl.Int64) - 1
        return (
            ranks,
            first.set(low.is_null(), 0).to_numpy(),
            last.set(high.is_null(), len(paths)).to_numpy(),
        )


def _matched(
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
    candidates = list(shortest([whole, *(run.of(deletes) for run in narrower)], deletes))
    share = _MOST_PAIRS // max(len(deletes), 1)
    if sum(int(run.lengths.sum()) for run in candidates) <= _MOST_PAIRS:
        share = _MOST_PAIRS
    found: list[DeleteIndex] = []
    many: list[Integers] = []
    for run in candidates:
        is_short = run.lengths <= share
        rows, files = run.where(is_short).pairs()
        keep = applies(rows, files)
        found.append(DeleteIndex.of_pairs(*possible(rows[keep], files[keep])))
        many.append(run.deletes[~is_short])
    kept = whole.of(np.concatenate(many)) if many else whole
    return DeleteIndex.none().beside(*found, DeleteIndex.of_runs(kept))


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
                known = self._of(field_id)
                if known is None or not len(pairs):
                    continue
                may = _may_share(known[0], known[1], rows[pairs], files[pairs])
                keep[pairs[~may]] = False
                pairs = pairs[may]
        return rows[keep], files[keep]

    def overlapping(self, scope: Integers, deletes: Integers, scopes: Integers) -> Iterator[Runs]:
        """For each equality column, runs of the data files whose bounds leave room."""
        for ids, member in self._of_list.items():
            listed = member[deletes]
            for field_id in ids:
                known = self._of(field_id)
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

    def _of(self, field_id: int) -> tuple[Ranges, Ranges] | None:
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
