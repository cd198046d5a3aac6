"""Statistics of columns: a Puffin file of theta sketches, made and merged by Spark's executors."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import mmh3
import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as S

from frazil.errors import CommitStateUnknownError, UnsupportedError, ValidationError
from frazil.format import types as I
from frazil.format.arguments import SnapshotId, one_or_several, optional_snapshot_id_of
from frazil.format.metadata import TableMetadata
from frazil.format.metadata.statistics import StatisticsBlob, StatisticsFile
from frazil.format.predicates.sql.quoting import quote_name_always
from frazil.format.puffin.files import THETA_SKETCH, PuffinBuilder, puffin_footer_size
from frazil.format.puffin.theta_sketches import ThetaSketch, parse_theta_sketch
from frazil.format.schema import Schema
from frazil.format.snapshots import Snapshot
from frazil.format.types import ORDERED_TYPES, NestedField
from frazil.format.values import to_bytes
from frazil.spark.abilities import HAS_THETA_SKETCHES
from frazil.spark.maintenance.stats_results import TableStatsResult
from frazil.spark.port import SparkHandlePort
from frazil.spark.scan import Scan
from frazil.spark.session.tasks import map_batches, value_function
from frazil.storage.files import FileIO
from frazil.storage.locations import statistics_path
from frazil.table.maintenance.table_maintenance import StatisticsChanges
from frazil.table.snapshots.producer import RUNTIME

NDV: Final = "ndv"


@dataclass(frozen=True, slots=True, kw_only=True)
class ComputeTableStats:
    """Count the distinct values of columns, as theta sketches in a Puffin file.

    Attributes:
        snapshot_id: of which snapshot; the current one unless given.
        columns: which columns; all of primitive types unless given.
    """

    snapshot_id: SnapshotId | None = None
    columns: str | Sequence[str] | None = None

    def run(self, port: SparkHandlePort) -> TableStatsResult:
        """Run it; see `TableMaintenance.compute_table_stats`."""
        metadata = port.refresh().metadata
        snapshot = chosen_snapshot(metadata, self.snapshot_id)
        if snapshot is None:
            return TableStatsResult()
        schema = metadata.schema_of(snapshot)
        fields = _chosen_fields(schema, self.columns)
        sketches = _sketches(port, snapshot, schema, fields)
        path = statistics_path(metadata, snapshot.snapshot_id)
        data, file = _puffin(path, snapshot, fields, sketches)
        port.io.create_unique(path, data)
        register_file(port.io, path, lambda: StatisticsChanges(port).set_statistics(file))
        counts = {name: int(sketch.estimate) for name, sketch in zip(fields, sketches, strict=True)}
        return TableStatsResult(statistics_file=path, file=file, distinct_counts=counts)


def chosen_snapshot(metadata: TableMetadata, snapshot_id: SnapshotId | None) -> Snapshot | None:
    """Return the snapshot of this id, or the current one.

    Raises:
        NoSuchSnapshotError: the table has none of that id.
    """
    given = optional_snapshot_id_of(snapshot_id)
    return metadata.current_snapshot if given is None else metadata.snapshot_by_id(given)


def register_file(io: FileIO, path: str, register: Callable[[], None]) -> None:
    """Commit a statistics file that was written; remove it where that is refused."""
    try:
        register()
    except CommitStateUnknownError:
        raise
    except BaseException:
        io.delete_many([path])
        raise


def _chosen_fields(schema: Schema, columns: str | Sequence[str] | None) -> dict[str, NestedField]:
    if columns is None:
        return {
            field.name: field
            for field in schema.fields
            if isinstance(field.field_type, ORDERED_TYPES)
        }
    names = [str(name) for name in one_or_several(columns, argument="columns")]
    if not names:
        raise ValidationError("columns is empty: name some, or leave it out for all")
    found = {name: schema.find_field(name) for name in names}
    for name, field in found.items():
        if not isinstance(field.field_type, ORDERED_TYPES) or schema.is_inside_collection(
            field.field_id
        ):
            raise UnsupportedError(
                f"cannot count the distinct values of {name}, which is of type "
                f"{field.field_type}: statistics are of primitive columns that have an order and "
                "are in no list or map"
            )
    return found


def _sketches(
    table: SparkHandlePort, snapshot: Snapshot, schema: Schema, fields: dict[str, NestedField]
) -> list[ThetaSketch]:
    if not fields:
        return []
    rows = Scan(table.spark, table.metadata, table.io, snapshot_id=snapshot.snapshot_id).to_df()
    columns = [
        single_values(schema.name_path(field.field_id), field.field_type)
        for field in fields.values()
    ]
    if not HAS_THETA_SKETCHES:
        return sketches_of(rows, columns)
    [row] = rows.agg(*map(F.theta_sketch_agg, columns)).collect()
    return [parse_theta_sketch(bytes(sketch)) for sketch in row]


def _puffin(
    path: str,
    snapshot: Snapshot,
    fields: dict[str, NestedField],
    sketches: Sequence[ThetaSketch],
) -> tuple[bytes, StatisticsFile]:
    builder = PuffinBuilder(properties={"created-by": RUNTIME["iceberg-version"]})
    blobs = [
        builder.add(
            THETA_SKETCH,
            sketch.to_bytes(),
            fields=(field.field_id,),
            snapshot_id=snapshot.snapshot_id,
            sequence_number=snapshot.sequence_number,
            properties={NDV: str(int(sketch.estimate))},
        )
        for field, sketch in zip(fields.values(), sketches, strict=True)
    ]
    data = builder.to_bytes()
    file = StatisticsFile(
        snapshot_id=snapshot.snapshot_id,
        statistics_path=path,
        file_size_in_bytes=len(data),
        file_footer_size_in_bytes=puffin_footer_size(data),
        blob_metadata=tuple(
            StatisticsBlob(
                type=blob.type,
                snapshot_id=blob.snapshot_id,
                sequence_number=blob.sequence_number,
                fields=blob.fields,
                properties=blob.properties,
            )
            for blob in blobs
        ),
    )
    return data, file


def single_values(parts: Sequence[str], kind: I.IcebergType) -> Column:
    """Return a column whose values Spark's sketch hashes as the single-value bytes are hashed.

    Spark hashes long and double as their 8 bytes, little-endian, and text as UTF-8.

    Args:
        parts: the name of the column, after those of the structs that it is in.
        kind: of the column.
    """
    quoted = quote_name_always(parts)
    column = F.col(quoted)
    match kind:
        case I.LongType() | I.DoubleType() | I.StringType() | I.BinaryType() | I.FixedType():
            return column
        case I.BooleanType():
            return F.expr(f"if({quoted}, x'01', if({quoted} is null, null, x'00'))")
        case I.IntegerType():
            return _four_bytes(quoted)
        case I.DateType():
            return _four_bytes(f"unix_date({quoted})")
        case I.TimestamptzType():
            return F.unix_micros(column)
        case I.TimestampType():
            # A cast would go through the session's zone.
            return F.expr(f"timestampdiff(MICROSECOND, timestamp_ntz'1970-01-01', {quoted})")
        case I.UUIDType():
            return F.expr(f"unhex(replace(cast({quoted} as string), '-', ''))")
    return value_function(to_bytes, kind, S.BinaryType())(column)


def _four_bytes(expression: str) -> Column:
    """An int as 4 bytes, little-endian."""
    digits = f"lpad(hex(cast({expression} as bigint) & 4294967295), 8, '0')"
    swapped = " || ".join(f"substr({digits}, {start}, 2)" for start in (7, 5, 3, 1))
    return F.expr(f"unhex({swapped})")


_SIZE: Final = 4_096
"""So many hashes are kept, as by Spark's own function."""
_SEED: Final = 9_001
_MAX_THETA: Final = 2**63 - 1
_KEPT: Final = pa.schema([("place", pa.int32()), ("theta", pa.int64()), ("hashes", pa.binary())])


def sketches_of(rows: DataFrame, columns: Sequence[Column]) -> list[ThetaSketch]:
    """Return a sketch of each column, of bigints, doubles, strings or binary values.

    For a Spark that makes none. Each task keeps the smallest hashes of its rows; the driver makes
    one sketch of those of all tasks.
    """
    named = rows.select(*(each.alias(f"c{place}") for place, each in enumerate(columns)))
    found = map_batches(named, _sketch, _KEPT).toArrow().to_pylist()
    kept = [_Kept() for _ in columns]
    for each in found:
        hashes = np.frombuffer(each["hashes"], np.int64)
        kept[each["place"]].add(hashes, theta=each["theta"])
    return [each.sketch() for each in kept]


class _Kept:
    """The smallest of the hashes seen so far, and the limit that they lie below."""

    def __init__(self) -> None:
        self.hashes: Any = np.empty(0, np.int64)
        self.theta = _MAX_THETA
        self.is_empty = True

    def add(self, hashes: Any, *, theta: int = _MAX_THETA) -> None:
        """Take in hashes of values, those of another part below its limit."""
        self.is_empty = self.is_empty and not len(hashes)
        self.theta = min(self.theta, theta)
        found = np.union1d(self.hashes, hashes)
        found = found[found < self.theta]
        if len(found) > _SIZE:
            self.theta = int(found[_SIZE])
            found = found[:_SIZE]
        self.hashes = found

    def sketch(self) -> ThetaSketch:
        """Return the sketch of what was taken in."""
        if self.is_empty:
            return ThetaSketch((), is_empty=True)
        return ThetaSketch(tuple(self.hashes.tolist()), self.theta)


def _sketch(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """What an executor keeps of the rows of one partition."""
    kept: list[_Kept] = []
    for batch in batches:
        kept = kept or [_Kept() for _ in batch.columns]
        for each, column in zip(kept, batch.columns, strict=True):
            each.add(_hashes(column))
    rows = [
        {"place": place, "theta": each.theta, "hashes": each.hashes.tobytes()}
        for place, each in enumerate(kept)
        if not each.is_empty
    ]
    yield pa.RecordBatch.from_pylist(rows, _KEPT)


def _hashes(column: pa.Array) -> Any:
    """The hashes of the distinct values; NULL and what has no byte are no values."""
    encode = _encoder(column.type)
    values: Any = column.dictionary_encode()
    encoded = {encode(value) for value in values.dictionary.to_pylist() if value is not None}
    found = [mmh3.hash64(data, _SEED, signed=False)[0] >> 1 for data in encoded if data]
    return np.array(found, np.int64)


def _encoder(kind: pa.DataType) -> Callable[[Any], bytes]:
    if pa.types.is_integer(kind):
        return struct.Struct("<q").pack
    if pa.types.is_floating(kind):
        return _of_double
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return str.encode
    return bytes


def _of_double(value: float) -> bytes:
    # One zero, and one of the values that are no number.
    return struct.pack("<d", float("nan") if value != value else value + 0.0)
