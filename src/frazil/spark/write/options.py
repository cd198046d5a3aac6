"""What a write asks for: options over properties over defaults, by the Java runtime's names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from frazil.errors import ConfigurationError, UnsupportedError
from frazil.format import types as I
from frazil.format.metadata import TableMetadata
from frazil.format.schema import Schema

DISTRIBUTION_MODES: Final = ("none", "hash", "range")
CODECS_OF_EVERY_SPARK: Final = ("zstd", "snappy", "gzip", "lz4", "uncompressed")
CODECS: Final = (*CODECS_OF_EVERY_SPARK, "brotli")

_GZIP_LEVELS: Final = (
    "NO_COMPRESSION",
    "BEST_SPEED",
    *("TWO", "THREE", "FOUR", "FIVE", "SIX", "SEVEN", "EIGHT"),
    "BEST_COMPRESSION",
)
_MEBIBYTE: Final = 1 << 20
_P: Final = "write.parquet."

_OPTIONS: Final[Mapping[str, str]] = {
    "distribution-mode": "write.distribution-mode",
    "target-file-size-bytes": "write.target-file-size-bytes",
    "compression-codec": _P + "compression-codec",
    "compression-level": _P + "compression-level",
    "write-format": "write.format.default",
    "shred-variants": _P + "shred-variants",
    "variant-inference-buffer-size": _P + "variant-inference-buffer-size",
    "fanout-enabled": "write.spark.fanout.enabled",
}
"""Options of one write and the table properties that they stand in for."""

_OTHER_OPTIONS: Final = (
    "output-spec-id",
    "output-sort-order-id",
    "use-table-distribution-and-ordering",
)

_OF_COLUMNS: Final[Mapping[str, str]] = {
    "bloom-filter-enabled.column.": "parquet.bloom.filter.enabled",
    "bloom-filter-fpp.column.": "parquet.bloom.filter.fpp",
    "bloom-filter-ndv.column.": "parquet.bloom.filter.expected.ndv",
    "dict-encoding-enabled.column.": "parquet.enable.dictionary",
    "stats-enabled.column.": "parquet.column.statistics.enabled",
}
"""``write.parquet.<name><column>`` as parquet-mr's ``<name>#<column>``."""

_OF_FILES: Final[Mapping[str, str]] = {
    "row-group-size-bytes": "parquet.block.size",
    "page-size-bytes": "parquet.page.size",
    "page-row-limit": "parquet.page.row.count.limit",
    "dict-size-bytes": "parquet.dictionary.page.size",
    "row-group-check-min-record-count": "parquet.page.size.row.check.min",
    "row-group-check-max-record-count": "parquet.page.size.row.check.max",
    "bloom-filter-max-bytes": "parquet.bloom.filter.max.bytes",
    "bloom-filter-adaptive-enabled": "parquet.bloom.filter.adaptive.enabled",
}


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
    metadata: TableMetadata, schema: Schema, options: Mapping[str, str] | None = None
) -> WriteOptions:
    """The settings of a write to a table.

    Args:
        metadata: of the table.
        schema: of the rows to write.
        options: the write's own, by the names of the Java runtime's write options.

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
    settings.update({_OPTIONS[key]: str(given[key]) for key in given if key in _OPTIONS})
    if (file_format := settings.get("write.format.default", "parquet").lower()) != "parquet":
        raise UnsupportedError(
            f"writing {file_format} files is not supported; set write.format.default or the "
            "option write-format to parquet"
        )
    ordered = _flag(given, "use-table-distribution-and-ordering", default=True)
    spec = metadata.spec_by_id(_whole(given, "output-spec-id", metadata.default_spec_id))
    order_id = _whole(given, "output-sort-order-id", metadata.default_sort_order_id)
    order = metadata.sort_order_by_id(order_id if ordered else 0)
    # As the Java runtime: a sorted table is ranged, a partitioned one hashed.
    default_mode = "range" if not order.is_unsorted else "none" if spec.is_unpartitioned else "hash"
    target = _whole(settings, "write.target-file-size-bytes", 512 * _MEBIBYTE, smallest=1)
    return WriteOptions(
        spec_id=spec.spec_id,
        sort_order_id=order.order_id,
        distribution_mode=_one_of(
            settings, "write.distribution-mode", default_mode, DISTRIBUTION_MODES
        )
        if ordered
        else "none",
        target_file_size=target,
        rows_per_file=max(1, target // _bytes_per_row(metadata, schema)),
        codec=_one_of(settings, _P + "compression-codec", "zstd", CODECS),
        codec_level=_level(settings),
        parquet=_parquet_settings(settings),
        shreds_variants=_flag(settings, _P + "shred-variants", default=False),
    )


def _parquet_settings(settings: Mapping[str, str]) -> dict[str, str]:
    found = {"parquet.dictionary.page.size": str(2 * _MEBIBYTE)}
    for name, key in _OF_FILES.items():
        if (value := settings.get(_P + name)) is not None:
            found[key] = value
    if settings.get(_P + "page-version", "v1").lower() == "v2":
        found["parquet.writer.version"] = "v2"
    for key, value in settings.items():
        for prefix, name in _OF_COLUMNS.items():
            if key.startswith(_P + prefix):
                found[f"{name}#{key.removeprefix(_P + prefix)}"] = value
    return found


def _level(settings: Mapping[str, str]) -> int | None:
    key = _P + "compression-level"
    text = settings.get(key)
    if text is None or text.lower() == "null":
        return None
    level = _whole(settings, key, 0)
    if settings.get(_P + "compression-codec", "zstd").lower() == "gzip" and not 0 <= level <= 9:
        raise ConfigurationError(f"{key} is {level}: gzip has the levels 0 to 9")
    return level


def _bytes_per_row(metadata: TableMetadata, schema: Schema) -> int:
    """About what a row takes in a file: as the table's files tell, else as the types do."""
    snapshot = metadata.current_snapshot
    summary: Mapping[str, str] = {} if snapshot is None else dict(snapshot.summary or {})
    size, rows = summary.get("total-files-size", ""), summary.get("total-records", "")
    if size.isdigit() and rows.isdigit() and int(rows) >= 10_000:
        return max(1, int(size) // int(rows))
    return max(1, sum(_width(f.field_type) for f in schema.fields))


def _width(iceberg_type: I.IcebergType) -> int:
    match iceberg_type:
        case I.BooleanType() | I.UnknownType():
            return 1
        case I.IntegerType() | I.FloatType() | I.DateType():
            return 4
        case I.StringType() | I.BinaryType() | I.VariantType():
            return 24
        case I.DecimalType() | I.UUIDType():
            return 16
        case I.FixedType(length=length):
            return length
        case I.StructType() | I.ListType() | I.MapType():
            several = 1 if isinstance(iceberg_type, I.StructType) else 4
            return several * sum(_width(f.field_type) for f in iceberg_type.fields)
        case _:
            return 8


def _one_of(settings: Mapping[str, str], key: str, default: str, allowed: tuple[str, ...]) -> str:
    value = settings.get(key, default).lower()
    if value not in allowed:
        raise ConfigurationError(f"{key} is {value!r}: it must be one of {', '.join(allowed)}")
    return value


def _whole(settings: Mapping[str, str], key: str, default: int, *, smallest: int = 0) -> int:
    text = str(settings.get(key, default))
    if not text.isdigit() or int(text) < smallest:
        raise ConfigurationError(f"{key} is {text!r}: it must be a whole number >= {smallest}")
    return int(text)


def _flag(settings: Mapping[str, str], key: str, *, default: bool) -> bool:
    text = str(settings.get(key, default)).lower()
    if text not in ("true", "false"):
        raise ConfigurationError(f"{key} is {text!r}: it must be true or false")
    return text == "true"
