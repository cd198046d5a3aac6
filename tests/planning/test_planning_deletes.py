"""Deletes matched by sort and search are those of the reference rule, pair by pair."""

from __future__ import annotations

import math
import struct
import time
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import polars as pl
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from ci_share import examples
from delete_rules import deletes_for
from frazil.errors import InvalidManifestError
from frazil.format.manifests import Content, DataFile, EntryStatus, ManifestEntry
from frazil.format.partitions.keys import partition_key
from frazil.format.partitions.partitioning import PartitionField, PartitionSpec
from frazil.format.partitions.transforms import parse_transform
from frazil.format.schema import Schema
from frazil.format.types import DoubleType, LongType, NestedField, PrimitiveType, StringType
from frazil.format.values import from_bytes, to_bytes
from frazil.planning.deletes import match
from frazil.planning.deletes.index import DeleteIndex
from frazil.planning.deletes.own_files import FILE_PATH_ID
from frazil.planning.frames import partition_keys
from frazil.table.manifests.file_keys import partition_key as key_of_operation

SCHEMA = Schema((NestedField(1, "p", DoubleType()), NestedField(2, "id", LongType())))
SPECS = {
    0: PartitionSpec(0, ()),
    1: PartitionSpec(1, (PartitionField((1,), 1000, parse_transform("identity"), "p"),)),
    2: PartitionSpec(2, (PartitionField((1,), 1000, parse_transform("void"), "p"),)),
}
PARTITIONS = {0: [()], 1: [(0.0,), (-0.0,), (math.nan,), (None,), (1.5,)], 2: [(None,)]}
PATHS = [f"s3://b/t/data/f{i}.parquet" for i in range(8)]


def entry(file: DataFile, number: int) -> ManifestEntry:
    return ManifestEntry(
        status=EntryStatus.ADDED,
        snapshot_id=1,
        sequence_number=number,
        file_sequence_number=number,
        data_file=file,
    )


def frame_of(entries: Sequence[ManifestEntry]) -> pl.DataFrame:
    """The columns that planning decodes: of partitions, those of the specs of these files."""

    def value(of: Mapping[int, Any] | None, key: int) -> Any:
        return None if of is None else of.get(key)

    rows = [
        {
            "content": int(e.data_file.content),
            "file_path": e.data_file.file_path,
            "file_format": e.data_file.file_format,
            "spec_id": e.data_file.spec_id,
            "partition.1000": e.data_file.partition[0] if e.data_file.partition else None,
            "sequence_number": e.sequence_number,
            "record_count": e.data_file.record_count,
            "equality_ids": e.data_file.equality_ids,
            "referenced_data_file": e.data_file.referenced_data_file,
            **{
                f"{name}.{i}": value(getattr(e.data_file, name), i)
                for name in ("lower_bounds", "upper_bounds")
                for i in (2, FILE_PATH_ID)
            },
            **{
                f"{name}.2": value(getattr(e.data_file, name), 2)
                for name in ("null_value_counts", "value_counts", "nan_value_counts")
            },
        }
        for e in entries
    ]
    schema: dict[str, Any] = {
        "content": pl.Int32,
        "file_path": pl.String,
        "file_format": pl.String,
        "spec_id": pl.Int32,
        "partition.1000": pl.Float64,
        "sequence_number": pl.Int64,
        "record_count": pl.Int64,
        "equality_ids": pl.List(pl.Int32),
        "referenced_data_file": pl.String,
        **{
            f"{name}.{i}": pl.Binary
            for name in ("lower_bounds", "upper_bounds")
            for i in (2, FILE_PATH_ID)
        },
        **{f"{n}.2": pl.Int64 for n in ("null_value_counts", "value_counts", "nan_value_counts")},
    }
    frame = pl.DataFrame(rows, schema=schema)
    is_partitioned = any(SPECS[e.data_file.spec_id].fields for e in entries)
    return frame if is_partitioned else frame.drop("partition.1000")


def places() -> st.SearchStrategy[tuple[int, tuple[Any, ...]]]:
    return st.sampled_from([(s, p) for s, found in PARTITIONS.items() for p in found])


@st.composite
def data_files(draw: st.DrawFn, path: str) -> ManifestEntry:
    spec_id, partition = draw(places())
    file = DataFile(
        file_path=path,
        record_count=5,
        file_size_in_bytes=1,
        spec_id=spec_id,
        partition=partition,
    )
    return entry(file, draw(st.integers(0, 4)))


@st.composite
def delete_files(draw: st.DrawFn, data: Sequence[ManifestEntry], index: int) -> ManifestEntry:
    kind = draw(st.sampled_from(["equality", "partition", "bounded", "file", "vector"]))
    target = draw(st.sampled_from(data)).data_file
    spec_id, partition = draw(places())
    stated: dict[str, Any] = {}
    if kind == "equality":
        stated = {"content": Content.EQUALITY_DELETES, "equality_ids": (2,)}
    elif kind in ("file", "vector"):
        spec_id, partition = target.spec_id, target.partition
        stated["referenced_data_file"] = target.file_path
    if kind == "bounded":
        low, high = sorted((draw(st.sampled_from(PATHS)), draw(st.sampled_from(PATHS))))
        assume(low != high)
        stated["lower_bounds"] = {FILE_PATH_ID: low.encode()}
        stated["upper_bounds"] = {FILE_PATH_ID: high.encode()}
    file = DataFile(
        **{"content": Content.POSITION_DELETES, **stated},
        file_path=f"d{index}",
        file_format="puffin" if kind == "vector" else "parquet",
        record_count=1,
        file_size_in_bytes=1,
        spec_id=spec_id,
        partition=partition,
    )
    return entry(file, draw(st.integers(0, 4)))


def matched(
    data: Sequence[ManifestEntry], deletes: Sequence[ManifestEntry], schema: Schema = SCHEMA
) -> pl.DataFrame:
    """Every pair of a data file and a delete that applies to it."""
    found = match.match_deletes(frame_of(data), frame_of(deletes), specs=SPECS, schemas=[schema])
    return found.index.expanded_pairs()


def within_bounds(path: str, file: DataFile) -> bool:
    """Whether position deletes may name a path, by the bounds of their `file_path` column."""
    if file.lower_bounds is None or file.upper_bounds is None:
        return True
    return file.lower_bounds[FILE_PATH_ID] <= path.encode() <= file.upper_bounds[FILE_PATH_ID]


def _data(path: str = PATHS[0], number: int = 1, **stated: Any) -> ManifestEntry:
    stated = {"record_count": 5, "file_size_in_bytes": 1, **stated}
    return entry(DataFile(file_path=path, **stated), number)


def _delete(path: str, number: int = 2, **stated: Any) -> ManifestEntry:
    stated = {"content": Content.POSITION_DELETES, "record_count": 1, **stated}
    return entry(DataFile(file_path=path, file_size_in_bytes=1, **stated), number)


def _pairs(data: Sequence[ManifestEntry], deletes: Sequence[ManifestEntry]) -> list[Any]:
    return matched(data, deletes).rows()


def test_equal_path_bounds_name_the_one_data_file() -> None:
    """Rule 308: the partition need not be searched, and other files are not affected."""
    bound = {FILE_PATH_ID: PATHS[1].encode()}
    delete = _delete("d", lower_bounds=bound, upper_bounds=bound)
    assert _pairs([_data(path) for path in PATHS[:3]], [delete]) == [(1, 0)]


def test_two_vectors_of_one_file_are_refused_and_named() -> None:
    """Rule 217."""
    deletes = [
        _delete(name, file_format="puffin", referenced_data_file=PATHS[0]) for name in ("v1", "v2")
    ]
    with pytest.raises(InvalidManifestError, match=r"f0\.parquet .* v1 .* v2"):
        _pairs([_data()], deletes)


def test_of_several_files_with_two_vectors_the_first_is_named() -> None:
    """The same error at each read, in the order of the manifests."""
    deletes = [
        _delete(f"v{number}", file_format="puffin", referenced_data_file=path)
        for number, path in enumerate(reversed(PATHS * 2))
    ]
    with pytest.raises(InvalidManifestError, match=r"f7\.parquet .* v0 .* v8"):
        _pairs([_data(path) for path in PATHS], deletes)


def test_a_vector_without_a_data_file_is_refused() -> None:
    """Rule 123."""
    with pytest.raises(InvalidManifestError, match="referenced_data_file"):
        _pairs([_data()], [_delete("v1", file_format="puffin")])


@pytest.mark.parametrize("file_format", ["puffin", "parquet"])
def test_deletes_of_a_file_in_another_partition_are_refused(file_format: str) -> None:
    """Rule 182: the rows would come back unnoticed."""
    delete = _delete(
        "d",
        file_format=file_format,
        referenced_data_file=PATHS[0],
        spec_id=1,
        partition=(1.5,),
    )
    with pytest.raises(InvalidManifestError, match="partitions differ"):
        _pairs([_data(spec_id=1, partition=(0.0,))], [delete])


def test_deletes_of_a_spec_that_no_data_file_is_of_apply_to_nothing() -> None:
    """Rules 177 and 178: the partition spec is compared too."""
    deletes = [_delete("d", spec_id=1, partition=(1.5,), number=2)]
    assert _pairs([_data(spec_id=0)], deletes) == []


def _long(value: int) -> dict[int, bytes]:
    return {2: to_bytes(LongType(), value)}


NULLS = {"null_value_counts": {2: 1}}
NO_NULLS = {"null_value_counts": {2: 0}}
ONLY_NULLS = {"null_value_counts": {2: 5}}


@pytest.mark.parametrize(
    ("data", "delete", "applies"),
    [
        (("1", "5"), ("6", "9"), False),
        (("1", "5"), ("5", "9"), True),
        (("7", "9"), ("5", "6"), False),
        (("1", "5"), None, True),
        (None, ("6", "9"), True),
        (("1", "5", NULLS), ("6", "9", NULLS), True),
        (("1", "5", NO_NULLS), ("6", "9", NULLS), False),
        (("1", "5", NULLS), ("6", "9", NO_NULLS), False),
        ((None, None, ONLY_NULLS), ("6", "9", NO_NULLS), False),
        ((None, None, ONLY_NULLS), ("6", "9", NULLS), True),
    ],
    ids=str,
)
def test_equality_deletes_are_pruned_by_their_columns(
    data: Any, delete: Any, applies: bool
) -> None:
    """Rule 230: NULL in a delete matches NULL."""

    def metrics(stated: Any) -> dict[str, Any]:
        if stated is None:
            return {}
        low, high, *counts = stated
        bounds = {} if low is None else {"lower_bounds": _long(int(low))}
        if high is not None:
            bounds["upper_bounds"] = _long(int(high))
        # Without counts NULLs are possible; state that there are none.
        return {**bounds, **(counts[0] if counts else NO_NULLS)}

    deletes = [_delete("d", content=Content.EQUALITY_DELETES, equality_ids=(2,), **metrics(delete))]
    assert (_pairs([_data(**metrics(data))], deletes) == [(0, 0)]) is applies


def test_equality_deletes_apply_where_no_manifest_has_bounds() -> None:
    keys: dict[str, Any] = {"content": Content.EQUALITY_DELETES, "equality_ids": (2,)}
    bounds = ["lower_bounds.2", "upper_bounds.2"]
    data, deletes = frame_of([_data()]), frame_of([_delete("d", **keys)])
    found = match.match_deletes(
        data.drop(bounds), deletes.drop(bounds), specs=SPECS, schemas=[SCHEMA]
    )
    assert found.index.expanded_pairs().rows() == [(0, 0)]


BOUNDS = {
    LongType(): st.integers(-2, 3),
    DoubleType(): st.sampled_from([-math.inf, -1.5, -0.0, 0.0, 2.5, math.inf]),
    StringType(): st.sampled_from(["", "a", "ab", "b", "\U0001f600", "\uffff"]),
}


@st.composite
def columns(draw: st.DrawFn, kind: PrimitiveType) -> dict[str, Any]:
    """The metrics of a column: bounds that are there or not, NULLs and NaNs that are counted."""
    low, high = sorted([draw(BOUNDS[kind]), draw(BOUNDS[kind])])
    stated = {
        "lower_bounds": None if draw(st.integers(0, 5)) == 5 else to_bytes(kind, low),
        "upper_bounds": None if draw(st.integers(0, 5)) == 5 else to_bytes(kind, high),
        "null_value_counts": draw(st.sampled_from([0, 0, 0, 2, None])),
        "nan_value_counts": draw(st.sampled_from([0, 0, 0, 1, None])),
    }
    return {name: {2: value} for name, value in stated.items() if value is not None}


def _values(kind: PrimitiveType, file: DataFile) -> tuple[Any, Any, bool, bool]:
    """Lower and upper bound, whether there may be NULL, and NaN."""

    def of(name: str) -> Any:
        return (getattr(file, name) or {}).get(2)

    low, high = (
        None if of(name) is None else from_bytes(kind, of(name))
        for name in ("lower_bounds", "upper_bounds")
    )
    nan = isinstance(kind, DoubleType) and of("nan_value_counts") != 0
    return low, high, of("null_value_counts") != 0, nan


@settings(max_examples=examples(100), deadline=None)
@given(st.data())
def test_equality_deletes_meet_the_files_whose_values_they_may_hold(draw: st.DataObject) -> None:
    """Rules 178 and 230, file by file; bounds only ever leave out what cannot match."""
    kind = draw.draw(st.sampled_from(list(BOUNDS)))
    schema = Schema((NestedField(1, "p", DoubleType()), NestedField(2, "id", kind)))
    scopes = st.sampled_from([(0, ()), (1, (1.5,))])

    def file(path: str, **stated: Any) -> DataFile:
        spec_id, partition = draw.draw(scopes)
        return DataFile(
            file_path=path,
            record_count=5,
            file_size_in_bytes=1,
            spec_id=spec_id,
            partition=partition,
            **draw.draw(columns(kind)),
            **stated,
        )

    def numbered(file: DataFile) -> ManifestEntry:
        return entry(file, draw.draw(st.integers(0, 3)))

    data = [numbered(file(path)) for path in PATHS[: draw.draw(st.integers(1, 8))]]
    keyed = {"content": Content.EQUALITY_DELETES, "equality_ids": (2,)}
    deletes = [numbered(file(f"d{i}", **keyed)) for i in range(draw.draw(st.integers(1, 5)))]
    expected = []
    for (i, one), (j, delete) in product(enumerate(data), enumerate(deletes)):
        low, high, null, nan = _values(kind, one.data_file)
        lowest, highest, null_key, nan_key = _values(kind, delete.data_file)
        overlap = not (
            (low is not None and highest is not None and low > highest)
            or (high is not None and lowest is not None and high < lowest)
        )
        place = (delete.data_file.spec_id, delete.data_file.partition)
        if (
            delete.sequence_number > one.sequence_number
            and place in ((0, ()), (one.data_file.spec_id, one.data_file.partition))
            and (overlap or (null and null_key) or (nan and nan_key))
        ):
            expected.append((i, j))
    assert matched(data, deletes, schema).rows() == expected


# -- the index says as runs what it would say as pairs ---------------------------------------------


@settings(max_examples=examples(75), deadline=None)
@given(st.data(), st.sampled_from([0, 20, 1_000_000]))
def test_runs_hold_what_scope_and_number_say(draw: st.DataObject, most_pairs: int) -> None:
    """Rules 176-181, 222; metrics leave out pairs, and only pairs that no row can be in."""
    data = [draw.draw(data_files(path)) for path in PATHS[: draw.draw(st.integers(1, 8))]]
    deletes = [draw.draw(delete_files(data, i)) for i in range(draw.draw(st.integers(0, 8)))]
    vectors = [d.data_file.referenced_data_file for d in deletes if d.data_file.is_deletion_vector]
    assume(len(vectors) == len(set(vectors)))
    by_rule = {
        (i, deletes.index(found))
        for i, file in enumerate(data)
        for found in deletes_for(file, deletes, specs=SPECS)
    }
    with pytest.MonkeyPatch.context() as patched:
        exact = _index(data, deletes)
        patched.setattr(match, "_MOST_PAIRS", most_pairs)
        index = _index(data, deletes)
    pairs = set(index.expanded_pairs().rows())
    assert set(exact.expanded_pairs().rows()) <= pairs <= by_rule
    assert set(exact.expanded_pairs().rows()) == {
        (i, j)
        for i, j in by_rule
        if within_bounds(data[i].data_file.file_path, deletes[j].data_file)
    }
    if most_pairs == 0:
        assert not index.runs or index.pair_count == len(pairs)
    wanted = pl.Series(draw.draw(st.lists(st.integers(0, 8), unique=True)), dtype=pl.Int64)
    _is_alike(index, pairs)
    _is_alike(index.for_files(wanted), {(f, d) for f, d in pairs if f in wanted})
    _is_alike(index.for_deletes(wanted), {(f, d) for f, d in pairs if d in wanted})
    _is_alike(index.without_deletes(wanted), {(f, d) for f, d in pairs if d not in wanted})
    _is_alike(
        index.for_files(wanted).for_deletes(wanted),
        {(f, d) for f, d in pairs if f in wanted and d in wanted},
    )
    values = pl.Series([3**place for place in range(len(deletes))], dtype=pl.Int64)
    sums: dict[int, int] = {}
    for file, delete in pairs:
        sums[file] = sums.get(file, 0) + 3**delete
    assert dict(index.sums(pl.int_range(len(deletes), eager=True), values).rows()) == sums


def _index(data: Any, deletes: Any) -> DeleteIndex:
    found = match.match_deletes(frame_of(data), frame_of(deletes), specs=SPECS, schemas=[SCHEMA])
    return found.index


def _is_alike(index: DeleteIndex, pairs: set[tuple[int, int]]) -> None:
    assert index.expanded_pairs().rows() == sorted(pairs)
    assert index.pair_count == len(pairs)
    assert index.is_empty is (not pairs)
    assert index.ordinals().to_list() == sorted({file for file, _ in pairs})
    assert index.deletes().to_list() == sorted({delete for _, delete in pairs})


def test_sixty_million_pairs_take_no_more_room_than_their_files_and_deletes() -> None:
    files, deletes, partitions = 100_000, 10_000, 16
    data = pl.DataFrame(
        {
            "file_path": [f"s3://b/t/{i:06d}.parquet" for i in range(files)],
            "spec_id": [1] * files,
            "partition.1000": [float(i % partitions) for i in range(files)],
            "sequence_number": [1] * files,
            "record_count": [10] * files,
        },
        schema_overrides={"spec_id": pl.Int32},
    )
    found = pl.DataFrame(
        {
            "content": [1] * deletes,
            "file_path": [f"d{i}" for i in range(deletes)],
            "file_format": ["parquet"] * deletes,
            "spec_id": [1] * deletes,
            "partition.1000": [float(i % partitions) for i in range(deletes)],
            "sequence_number": [2 + i // partitions for i in range(deletes)],
            "record_count": [1] * deletes,
            "equality_ids": [None] * deletes,
            "referenced_data_file": [None] * deletes,
        },
        schema_overrides={
            "spec_id": pl.Int32,
            "equality_ids": pl.List(pl.Int32),
            "referenced_data_file": pl.String,
        },
    )
    start = time.perf_counter()
    index = match.match_deletes(data, found, specs=SPECS, schemas=[SCHEMA]).index
    seconds = time.perf_counter() - start
    assert index.pair_count == files * deletes // partitions
    assert index.size_in_bytes < 32 * (files + deletes)
    assert index.for_files(pl.Series([17])).deletes().to_list() == list(
        range(1, deletes, partitions)
    )
    assert seconds < 30  # about 0.1 s on an idle machine; pair by pair it would take minutes


# -- partitions are told apart alike as values, as columns and in an operation ---------------------

OTHER_NAN = struct.unpack(">d", struct.pack(">Q", 0xFFF8000000000001))[0]
FLOATS = [0.0, -0.0, 1.5, float("nan"), OTHER_NAN, None]
# By the specification: -0.0 is not 0.0, all NaN are one, NULL is one of its own.
DIFFERENT = [0, 1, 2, 3, 3, 4]


def numbered(keys: Any) -> Any:
    seen = {}
    return [seen.setdefault(key, len(seen)) for key in keys]


@pytest.mark.parametrize("dtype", [pl.Float64, pl.Float32])
def test_columns_of_floats(dtype: Any) -> None:
    assert numbered(partition_keys(pl.Series("p", FLOATS, dtype=dtype)).to_list()) == DIFFERENT


def test_tuples_of_floats() -> None:
    assert numbered(partition_key((value,)) for value in FLOATS) == DIFFERENT
    assert numbered(key_of_operation(1, (value,)) for value in FLOATS) == DIFFERENT


def test_the_spec_tells_partitions_apart_too() -> None:
    assert key_of_operation(1, ("a",)) != key_of_operation(2, ("a",))
    assert key_of_operation(1, ("a", None)) == key_of_operation(1, ("a", None))


def test_columns_of_other_values_are_their_own_keys() -> None:
    values = pl.Series("p", ["a", None, "a", "b"])
    assert partition_keys(values).equals(values)
