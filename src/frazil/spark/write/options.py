"""What a write asks for: options over properties over defaults, by the Java runtime's names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from frazil.errors import ConfigurationError, UnsupportedError
from frazil.format import types as I
from frazil.format.manifests import Content
from frazil.format.metadata import TableMetadata
from frazil.format.properties.kinds import (
    FLAG,
    ColumnProperty,
    Property,
    optional,
    whole_number,
)
from frazil.format.properties.table import (
    BLOOM_FILTER,
    BLOOM_FILTER_ADAPTIVE,
    BLOOM_FILTER_SHARE,
    BLOOM_FILTER_SIZE,
    BLOOM_FILTER_VALUES,
    DELETE_CODEC,
    DELETE_DICTIONARY_SIZE,
    DELETE_LEVEL,
    DELETE_PAGE_SIZE,
    DELETE_ROW_GROUP_SIZE,
    DICTIONARY,
    DICTIONARY_SIZE,
    DISTRIBUTION_MODE,
    PAGE_ROWS,
    PAGE_SIZE,
    PAGE_VERSION,
    PARQUET_CODEC,
    PARQUET_LEVEL,
    PARQUET_STATISTICS,
    ROW_GROUP_CHECK_MAX,
    ROW_GROUP_CHECK_MIN,
    ROW_GROUP_SIZE,
    SHRED_VARIANTS,
    TARGET_FILE_SIZE,
    WRITE_FORMAT,
    parquet_level,
)
from frazil.format.schema import Schema
from frazil.format.types.forms import form_of
from frazil.storage.file_kinds import DATA_FILES, FileKind

CODECS_OF_EVERY_SPARK: Final = ("zstd", "snappy", "gzip", "lz4", "uncompressed")

_GZIP_LEVELS: Final = (
    "NO_COMPRESSION",
    "BEST_SPEED",
    *("TWO", "THREE", "FOUR", "FIVE", "SIX", "SEVEN", "EIGHT"),
    "BEST_COMPRESSION",
)
_OPTIONS: Final[Mapping[str, Property[Any]]] = {
    "distribution-mode": DISTRIBUTION_MODE,
    "target-file-size-bytes": TARGET_FILE_SIZE,
    "compression-codec": PARQUET_CODEC,
    "compression-level": PARQUET_LEVEL,
    "write-format": WRITE_FORMAT,
    "shred-variants": SHRED_VARIANTS,
}
"""Options of one write and the table properties that they stand in for."""

_SPEC_ID: Final[Property[int | None]] = Property("output-spec-id", optional(whole_number()), None)
_SORT_ORDER_ID: Final[Property[int | None]] = Property(
    "output-sort-order-id", optional(whole_number()), None
)
_AS_TABLE: Final = Property("use-table-distribution-and-ordering", FLAG, default=True)
_OTHER_OPTIONS: Final = (
    _SPEC_ID.name,
    _SORT_ORDER_ID.name,
    _AS_TABLE.name,
    # Taken for compatibility, without effect.
    "fanout-enabled",
    "variant-inference-buffer-size",
)

_OF_COLUMNS: Final[tuple[tuple[ColumnProperty[Any], str], ...]] = (
    (BLOOM_FILTER, "parquet.bloom.filter.enabled"),
    (BLOOM_FILTER_SHARE, "parquet.bloom.filter.fpp"),
    (BLOOM_FILTER_VALUES, "parquet.bloom.filter.expected.ndv"),
    (DICTIONARY, "parquet.enable.dictionary"),
    (PARQUET_STATISTICS, "parquet.column.statistics.enabled"),
)
"""Properties of a column as parquet-mr's ``<name>#<column>``."""

_OF_DELETES: Final[tuple[tuple[Property[Any], Property[Any]], ...]] = (
    (DELETE_CODEC, PARQUET_CODEC),
    (DELETE_LEVEL, PARQUET_LEVEL),
    (DELETE_ROW_GROUP_SIZE, ROW_GROUP_SIZE),
    (DELETE_PAGE_SIZE, PAGE_SIZE),
    (DELETE_DICTIONARY_SIZE, DICTIONARY_SIZE),
)
"""Properties of delete files and those of data files that they stand in for."""

_OF_FILES: Final[tuple[tuple[Property[Any], str], ...]] = (
    (ROW_GROUP_SIZE, "parquet.block.size"),
    (PAGE_SIZE, "parquet.page.size"),
    (PAGE_ROWS, "parquet.page.row.count.limit"),
    (DICTIONARY_SIZE, "parquet.dictionary.page.size"),
    (ROW_GROUP_CHECK_MIN, "parquet.page.size.row.check.min"),
    (ROW_GROUP_CHECK_MAX, "parquet.page.size.row.check.max"),
    (BLOOM_FILTER_SIZE, "parquet.bloom.filter.max.bytes"),
    (BLOOM_FILTER_ADAPTIVE, "parquet.bloom.filter.adaptive.enabled"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOptions:
    """The settings of one write.

    Attributes:
        spec_id: the partition spec that files are written with.
        sort_order_id: the sort order within files; 0 for none.
        distribution_mode: ``none``, ``hash`` or ``range``.
        target_file_size: in bytes; files are closed near it.
        rows_per_file: about how many rows make up the target size.
        codec: of Parquet pages.
        codec_level: of the codec; None for its default.
        parquet: parquet-mr's settings for the rest.
        shreds_variants: whether variants are written with typed columns.
    """

    spec_id: int
    sort_order_id: int
    distribution_mode: str
    target_file_size: int
    rows_per_file: int
    codec: str
    codec_level: int | None = None
    parquet: Mapping[str, str] = field(default_factory=dict)
    shreds_variants: bool = False

    def spark_options(self) -> dict[str, str]:
        """The options of Spark's Parquet writer."""
        options = {
            "compression": self.codec,
            "maxRecordsPerFile": str(self.rows_per_file),
            "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
            **self.parquet,
        }
        if self.codec_level is not None:
            match self.codec:
                case "zstd":
                    options["parquet.compression.codec.zstd.level"] = str(self.codec_level)
                case "gzip":
                    options["zlib.compress.level"] = _GZIP_LEVELS[self.codec_level]
                case "brotli":
                    options["compression.brotli.quality"] = str(self.codec_level)
                case _:
                    pass
        return options


def write_options(
    metadata: TableMetadata,
    schema: Schema,
    options: Mapping[str, str] | None = None,
    *,
    kind: FileKind = DATA_FILES,
) -> WriteOptions:
    """The settings of a write to a table.

    Args:
        schema: of the rows to write.
        options: the write's own, by the names of the Java runtime's write options.
        kind: of the files.

    Raises:
        ConfigurationError: an option is unknown, or a value is malformed.
        UnsupportedError: another file format than Parquet.
        InvalidMetadataError: the table has no such spec or sort order.
    """
    given = dict(options or {})
    unknown = sorted(given.keys() - _OPTIONS.keys() - set(_OTHER_OPTIONS))
    if unknown:
        known = ", ".join(sorted([*_OPTIONS, *_OTHER_OPTIONS]))
        raise ConfigurationError(f"{unknown} are no write options; there are {known}")
    settings = dict(metadata.properties)
    settings.update({_OPTIONS[key].name: str(given[key]) for key in given if key in _OPTIONS})
    if (file_format := WRITE_FORMAT.of(settings)) != "parquet":
        raise UnsupportedError(
            f"writing {file_format} files is not supported; set write.format.default or the "
            "option write-format to parquet"
        )
    asked = {key: str(value) for key, value in given.items()}
    ordered = _AS_TABLE.of(asked)
    spec_id, order_id = _SPEC_ID.of(asked), _SORT_ORDER_ID.of(asked)
    spec = metadata.spec if spec_id is None else metadata.spec_by_id(spec_id)
    if not ordered:
        order = metadata.sort_order_by_id(0)
    else:
        order = metadata.sort_order if order_id is None else metadata.sort_order_by_id(order_id)
    # As the Java runtime: a sorted table is ranged, a partitioned one hashed.
    default_mode = "range" if not order.is_unsorted else "none" if spec.is_unpartitioned else "hash"
    is_data = kind.content is Content.DATA
    if not is_data:
        said = [(own, data) for own, data in _OF_DELETES if own.name in settings]
        settings.update({data.name: settings[own.name] for own, data in said})
    target = kind.target_size.of(settings)
    row_bytes = _bytes_per_row(metadata, schema) if is_data else _bytes_by_types(schema)
    return WriteOptions(
        spec_id=spec.spec_id,
        sort_order_id=order.order_id,
        distribution_mode=(DISTRIBUTION_MODE.of(settings) or default_mode) if ordered else "none",
        target_file_size=target,
        rows_per_file=max(1, target // row_bytes),
        codec=PARQUET_CODEC.of(settings),
        codec_level=parquet_level(settings),
        parquet=_parquet_settings(settings),
        shreds_variants=SHRED_VARIANTS.of(settings),
    )


def _parquet_settings(settings: Mapping[str, str]) -> dict[str, str]:
    found = {"parquet.dictionary.page.size": str(DICTIONARY_SIZE.default)}
    for each, key in _OF_FILES:
        if each.name in settings:
            found[key] = _as_parquet(each.of(settings))
    if PAGE_VERSION.of(settings) == "v2":
        found["parquet.writer.version"] = "v2"
    for of_column, key in _OF_COLUMNS:
        for column, value in of_column.by_column(settings).items():
            found[f"{key}#{column}"] = _as_parquet(value)
    return found


def _as_parquet(value: bool | float) -> str:
    return str(value).lower()


def _bytes_per_row(metadata: TableMetadata, schema: Schema) -> int:
    """About what a row takes in a file: as the table's files tell, else as the types do."""
    snapshot = metadata.current_snapshot
    summary: Mapping[str, str] = {} if snapshot is None else dict(snapshot.summary or {})
    size, rows = summary.get("total-files-size", ""), summary.get("total-records", "")
    if size.isdigit() and rows.isdigit() and int(rows) >= 10_000:
        return max(1, int(size) // int(rows))
    return _bytes_by_types(schema)


def _bytes_by_types(schema: Schema) -> int:
    return max(1, sum(_width(f.field_type) for f in schema.fields))


_WIDTHS: Final = {
    "boolean": 1,
    "unknown": 1,
    "int": 4,
    "float": 4,
    "decimal": 16,
    "uuid": 16,
    "string": 24,
    "binary": 24,
    "variant": 24,
}


def _width(iceberg_type: I.IcebergType) -> int:
    match iceberg_type:
        case I.FixedType(length=length):
            return length
        case I.StructType() | I.ListType() | I.MapType():
            inside = sum(_width(f.field_type) for f in iceberg_type.fields)
            return inside if isinstance(iceberg_type, I.StructType) else 4 * inside
    form = form_of(iceberg_type)
    return _WIDTHS.get(form.carrier) or _WIDTHS.get(form.meaning, 8)
