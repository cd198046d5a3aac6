"""From a data file that another writer left to its entry in a manifest."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, BinaryIO, Final

import fastavro
import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq

from frazil.errors import FrazilError, InvalidDataFileError, SchemaMismatchError
from frazil.format import types as I
from frazil.format.manifests import Content, DataFile
from frazil.format.manifests.model import FileFormat
from frazil.format.metadata import TableMetadata
from frazil.format.partitions.partitioning import PartitionSpec
from frazil.format.properties.column_metrics import metrics_modes
from frazil.format.properties.metrics_mode import COUNTS, FULL
from frazil.format.schema.name_mapping import FileNames, NameMapping
from frazil.format.values import from_bytes, to_bytes
from frazil.spark.files.arrow.avro_files import AvroFile
from frazil.spark.files.layout.footers import (
    INT96,
    FooterColumn,
    columns_of_arrow,
    columns_of_parquet,
)
from frazil.spark.files.wire import entry_from_text, entry_to_text
from frazil.spark.migration.columns import ColumnMatcher
from frazil.spark.session.tasks import Wire
from frazil.storage.files import FileIO
from frazil.storage.parquet.footer import read_description
from frazil.storage.parquet.metrics import FileMetrics, MetricsReader

_ORC_ID: Final = b"iceberg.id"
_MILLIS: Final = "timestamp[ms"
_DAYS: Final = "date32[day]"
_OF_TIMESTAMP: Final = 8
_MICROS_OF_DAY: Final = 86_400_000_000
_UNSIGNED: Final = ("uint32", "uint64")


@dataclass(frozen=True, slots=True)
class Found:
    """An entry, and the names of columns that the table's mapping must have for it."""

    entry: DataFile
    names: FileNames


@dataclass(frozen=True)
class EntryMaker:
    """Makes entries of files of one format; runs on the driver or, pickled, on executors.

    Attributes:
        io: opens the files.
        file_format: of all of them.
        spec: the partition spec that their folders follow.
        matcher: finds their columns in the table.
        reader: of Parquet footers.
    """

    io: FileIO
    file_format: FileFormat
    spec: PartitionSpec
    matcher: ColumnMatcher
    reader: MetricsReader

    @classmethod
    def of(
        cls,
        io: FileIO,
        metadata: TableMetadata,
        mapping: NameMapping,
        spec: PartitionSpec,
        file_format: FileFormat,
        *,
        is_case_sensitive: bool,
    ) -> EntryMaker:
        """Return the maker for files of a table's spec, whose columns the mapping names."""
        schema = metadata.schema
        modes = metrics_modes(schema, metadata.properties)
        # What is compared with folders must be whole, and NULLs of required columns counted.
        for each in schema.fields:
            if each.required and modes[each.field_id].kind == "none":
                modes[each.field_id] = COUNTS
        modes |= dict.fromkeys(spec.identity_source_ids, FULL)
        matcher = ColumnMatcher(
            schema=schema,
            mapping=mapping,
            partition_ids=spec.identity_source_ids,
            format_version=metadata.format_version,
            file_format=file_format,
            is_case_sensitive=is_case_sensitive,
        )
        return cls(io, file_format, spec, matcher, MetricsReader(schema, modes))

    @property
    def partition_type(self) -> I.StructType:
        """The type of the files' partitions."""
        return self.spec.partition_type(self.matcher.schema)

    def partition_of(self, values: Sequence[str | None]) -> tuple[Any, ...]:
        """Return the partition whose values are given as hex."""
        return tuple(
            None if value is None else from_bytes(each.field_type, bytes.fromhex(value))
            for each, value in zip(self.partition_type.fields, values, strict=True)
        )

    def find(self, path: str, partition: tuple[Any, ...]) -> Found:
        """Make the entry of one file.

        Raises:
            SchemaMismatchError: its columns do not fit the table.
            InvalidDataFileError: it is damaged, or no file of the format.
            MissingFileError, StorageError: it cannot be read.
        """
        try:
            with self.io.open_input(path) as stream:
                size = stream.seek(0, 2)
                stream.seek(0)
                names, metrics = self._read(stream, path, partition)
        except SchemaMismatchError as error:
            raise SchemaMismatchError(f"{path} does not fit the table: {error}") from None
        except FrazilError:
            raise
        except (pa.ArrowException, OSError, ValueError, EOFError) as error:
            raise InvalidDataFileError(
                f"this is no {self.file_format} file that can be read: {error}", file=path
            ) from None
        has_statistics = self.file_format == "parquet"
        entry = DataFile(
            content=Content.DATA,
            file_path=path,
            file_format=self.file_format,
            spec_id=self.spec.spec_id,
            partition=partition,
            record_count=metrics.record_count,
            file_size_in_bytes=size,
            column_sizes=metrics.column_sizes if has_statistics else None,
            value_counts=metrics.value_counts if has_statistics else None,
            null_value_counts=metrics.null_value_counts if has_statistics else None,
            nan_value_counts=metrics.nan_value_counts if has_statistics else None,
            lower_bounds=metrics.lower_bounds if has_statistics else None,
            upper_bounds=metrics.upper_bounds if has_statistics else None,
            # As in Java, only writers note them: a read then looks whether columns are left out.
            split_offsets=None,
            sort_order_id=None,
        )
        return Found(entry, names)

    def _read(
        self, stream: BinaryIO, path: str, partition: tuple[Any, ...]
    ) -> tuple[FileNames, FileMetrics]:
        match self.file_format:
            case "parquet":
                footer = read_description(stream)
                columns, names = self.matcher.match(columns_of_parquet(footer.schema))
                check_calendar(footer, list(_leaves(columns)))
                metrics = self._metrics(footer, columns)
                self._check_nulls(footer, columns, metrics)
                self._check_partition(columns, partition, metrics)
                return names, metrics
            case "orc":
                file = orc.ORCFile(stream)
                names = self._names_of_rows(columns_of_arrow(file.schema, _ORC_ID))
                return names, _only_rows(file.nrows)
            case _:
                names = self._names_of_rows(AvroFile(stream, path).columns)
                stream.seek(0)
                rows = sum(block.num_records for block in fastavro.block_reader(stream))
                return names, _only_rows(rows)

    def _names_of_rows(self, columns: tuple[FooterColumn, ...]) -> FileNames:
        """The names in a file whose footer says nothing of values, once its columns are matched."""
        matched, names = self.matcher.match(columns)
        stored = {column.field_id for column in matched}
        for each in self.matcher.schema.fields:
            if each.field_id in stored & self.matcher.partition_ids:
                raise SchemaMismatchError(
                    f"it holds the partition column {each.name} itself, and whether its values are "
                    f"those of its folder cannot be told of {self.file_format} files"
                )
            if each.required and each.field_id in stored:
                raise SchemaMismatchError(
                    f"the table requires {each.name}, and whether the file holds NULL there cannot "
                    f"be told of {self.file_format} files: make the column optional first"
                )
        return names

    def _metrics(self, footer: pq.FileMetaData, columns: Sequence[FooterColumn]) -> FileMetrics:
        leaves = list(_leaves(columns))
        if len(leaves) != footer.num_columns:
            # Shredded variants have more columns than Arrow shows.
            return self.reader.with_paths({}).metrics(footer)
        paths = [footer.schema.column(index).path for index in range(footer.num_columns)]
        ids = {
            path: leaf.field_id
            for path, leaf in zip(paths, leaves, strict=True)
            if leaf.field_id is not None and paths.count(path) == 1
        }
        found = self.reader.with_paths(ids).metrics(footer)
        kinds = {leaf.field_id: leaf.kind for leaf in leaves if leaf.field_id is not None}
        return replace(
            found,
            lower_bounds=_bounds(found.lower_bounds, kinds),
            upper_bounds=_bounds(found.upper_bounds, kinds),
        )

    def _check_nulls(
        self, footer: pq.FileMetaData, columns: Sequence[FooterColumn], metrics: FileMetrics
    ) -> None:
        """Refuse NULL in required top-level columns."""
        stored = {column.field_id for column in columns}
        levels = {
            footer.schema.column(index).path: footer.schema.column(index).max_definition_level
            for index in range(footer.num_columns)
        }
        names = {column.field_id: column.name for column in columns}
        for each in self.matcher.schema.fields:
            if not each.required or each.field_id not in stored or each.field_type.is_nested:
                continue
            if levels.get(names[each.field_id]) == 0 or not metrics.record_count:
                continue
            nulls = metrics.null_value_counts.get(each.field_id)
            if nulls != 0:
                told = "does not say whether it holds" if nulls is None else f"has {nulls} times"
                raise SchemaMismatchError(
                    f"the table requires {each.name}, and the file {told} NULL there"
                )

    def _check_partition(
        self, columns: Sequence[FooterColumn], partition: tuple[Any, ...], metrics: FileMetrics
    ) -> None:
        """Refuse a file that holds a partition column with other values than its folder says."""
        stored = {column.field_id for column in columns}
        for each, value in zip(self.spec.fields, partition, strict=True):
            number = each.source_id
            if each.is_void or number not in stored or not metrics.record_count:
                continue
            bounds = (metrics.lower_bounds.get(number), metrics.upper_bounds.get(number))
            nulls = metrics.null_value_counts.get(number)
            kind = self.matcher.schema.find_type(number)
            if value is None:
                agrees = nulls is not None and nulls == metrics.record_count
            else:
                agrees = nulls == 0 and set(bounds) == {to_bytes(kind, value)}
            if not agrees:
                raise SchemaMismatchError(
                    f"it holds the partition column {each.name} itself, and its footer does not "
                    f"show that all values are {value!r} as its folder says"
                )


def found_wire(partition_type: I.StructType) -> Wire[Found]:
    """Return how what is found of files with such partitions comes from executors."""
    return Wire(partial(_to_text, partition_type), partial(_from_text, partition_type))


def _to_text(partition_type: I.StructType, found: Found) -> str:
    names = [list(found.names.spellings), list(found.names.of_files_only)]
    return json.dumps([entry_to_text(found.entry, partition_type), *names])


def _from_text(partition_type: I.StructType, text: str) -> Found:
    entry, *names = json.loads(text)
    sets = (frozenset(map(tuple, each)) for each in names)
    return Found(entry_from_text(entry, partition_type), FileNames(*sets))


def _only_rows(count: int) -> FileMetrics:
    return FileMetrics(count, {}, {}, {}, {}, {}, {}, ())


def _leaves(columns: Sequence[FooterColumn]) -> Iterator[FooterColumn]:
    for column in columns:
        if column.children:
            yield from _leaves(column.children)
        else:
            yield column


def _bounds(bounds: Mapping[int, bytes], kinds: Mapping[int, str]) -> dict[int, bytes]:
    """Bounds in the table's units, without those whose stored form sorts in another way."""
    found = {}
    for number, value in bounds.items():
        kind = kinds[number]
        if kind == INT96 or kind in _UNSIGNED:
            continue
        if kind.startswith(_MILLIS):
            value = _times(value, 1000)
        elif kind == _DAYS and len(value) == _OF_TIMESTAMP:
            value = _times(value, _MICROS_OF_DAY)
        found[number] = value
    return found


def _times(value: bytes, factor: int) -> bytes:
    return struct.pack("<q", struct.unpack("<q", value)[0] * factor)


_VERSION: Final = b"org.apache.spark.version"
_LEGACY: Final = b"org.apache.spark.legacyDateTime"
_FIRST_CORRECT: Final = b"3.0.0"

# From here on both calendars give a number one meaning; clocks differ until zones are standard.
_SAME_DAYS: Final = (-141_427, "1582-10-15")
_SAME_MILLIS: Final = (-2_208_988_800_000, "1900-01-01")
_SAME_MICROS: Final = (-2_208_988_800_000_000, "1900-01-01")
_SAME: Final[Mapping[str, tuple[int, str]]] = {
    "date32": _SAME_DAYS,
    "timestamp[ms": _SAME_MILLIS,
    "timestamp[us": _SAME_MICROS,
}


def check_calendar(footer: pq.FileMetaData, leaves: Sequence[FooterColumn]) -> None:
    """Refuse dates and times that are others for Spark than for readers of Iceberg tables.

    Spark before version 3 wrote old dates in the Julian calendar. Its readers see it in the footer
    and turn them into those of today's calendar. Readers of Iceberg tables take the numbers as they
    are, and so do bounds.

    Args:
        footer: of the file.
        leaves: its columns that hold values, in the footer's order.

    Raises:
        SchemaMismatchError: the footer shows such values in a column of the table.
    """
    if not _is_julian(footer.metadata or {}) or len(leaves) != footer.num_columns:
        return
    for index, leaf in enumerate(leaves):
        same = next((since for kind, since in _SAME.items() if leaf.kind.startswith(kind)), None)
        if same is None or leaf.field_id is None:
            continue
        if any(least < same[0] for least in _smallest(footer, index)):
            raise SchemaMismatchError(
                f"its column {leaf.name} holds times before {same[1]} by the Julian calendar, as "
                "Spark wrote them before version 3, and readers of Iceberg tables would take them "
                "for others: write the files anew with "
                "spark.sql.parquet.datetimeRebaseModeInWrite=CORRECTED"
            )


def _is_julian(footer_metadata: Mapping[bytes, bytes]) -> bool:
    version = footer_metadata.get(_VERSION)
    return _LEGACY in footer_metadata or (version is not None and version < _FIRST_CORRECT)


def _smallest(footer: pq.FileMetaData, index: int) -> list[Any]:
    columns = (footer.row_group(n).column(index) for n in range(footer.num_row_groups))
    found = (column.statistics for column in columns)
    return [each.min_raw for each in found if each is not None and each.has_min_max]
