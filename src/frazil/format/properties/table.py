"""Every table property that this library obeys, and those that are never stored.

The names, meanings and bounds are the Java runtime's. Other properties are stored as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from frazil.errors import ConfigurationError, ValidationError
from frazil.format.properties.kinds import (
    FLAG,
    LEVEL,
    LONG_MAX,
    MAPPING,
    METRICS_MODE,
    SHARE,
    TEXT,
    ColumnProperty,
    Kind,
    Property,
    one_of,
    optional,
    value_of,
    whole_number,
)
from frazil.format.properties.metrics_mode import TRUNCATE_16

_MEBIBYTE: Final = 1 << 20
_COUNT: Final = whole_number()
_MILLISECONDS: Final = whole_number("milliseconds")
_AGE: Final = whole_number("milliseconds", largest=LONG_MAX)
_BYTES: Final = whole_number("bytes", smallest=1)
_LONG_BYTES: Final = whole_number("bytes", smallest=1, largest=LONG_MAX)
_ROWS: Final = whole_number("rows", smallest=1)

FORMAT_VERSION: Final = "format-version"

WRITE_FORMAT: Final = Property("write.format.default", one_of("parquet", "avro", "orc"), "parquet")
TARGET_FILE_SIZE: Final = Property("write.target-file-size-bytes", _LONG_BYTES, 512 * _MEBIBYTE)
DISTRIBUTION_MODE: Final = Property(
    "write.distribution-mode", optional(one_of("none", "hash", "range")), None
)
DATA_PATH: Final = Property("write.data.path", optional(TEXT), None)
FOLDER_STORAGE_PATH: Final = Property("write.folder-storage.path", optional(TEXT), None)
OBJECT_STORAGE_PATH: Final = Property("write.object-storage.path", optional(TEXT), None)
OBJECT_STORAGE: Final = Property("write.object-storage.enabled", FLAG, default=False)
PARTITIONED_PATHS: Final = Property("write.object-storage.partitioned-paths", FLAG, default=True)
WAP_ENABLED: Final = Property("write.wap.enabled", FLAG, default=False)

_MODE: Final = one_of("copy-on-write", "merge-on-read")
_LEVEL: Final = one_of("serializable", "snapshot")
DELETE_MODE: Final = Property("write.delete.mode", _MODE, "copy-on-write")
UPDATE_MODE: Final = Property("write.update.mode", _MODE, "copy-on-write")
MERGE_MODE: Final = Property("write.merge.mode", _MODE, "copy-on-write")
DELETE_ISOLATION: Final = Property("write.delete.isolation-level", _LEVEL, "serializable")
UPDATE_ISOLATION: Final = Property("write.update.isolation-level", _LEVEL, "serializable")
MERGE_ISOLATION: Final = Property("write.merge.isolation-level", _LEVEL, "serializable")

SCHEMA_EVOLUTION: Final = Property("write.spark.auto-schema-evolution.enabled", FLAG, default=True)

PARQUET_CODEC: Final = Property(
    "write.parquet.compression-codec",
    one_of("zstd", "snappy", "gzip", "lz4", "brotli", "uncompressed"),
    "zstd",
)
PARQUET_LEVEL: Final = Property("write.parquet.compression-level", LEVEL, None)
ROW_GROUP_SIZE: Final = Property("write.parquet.row-group-size-bytes", _BYTES, 128 * _MEBIBYTE)
PAGE_SIZE: Final = Property("write.parquet.page-size-bytes", _BYTES, _MEBIBYTE)
PAGE_ROWS: Final = Property("write.parquet.page-row-limit", _ROWS, 20_000)
DICTIONARY_SIZE: Final = Property("write.parquet.dict-size-bytes", _BYTES, 2 * _MEBIBYTE)
PAGE_VERSION: Final = Property("write.parquet.page-version", one_of("v1", "v2"), "v1")
ROW_GROUP_CHECK_MIN: Final = Property("write.parquet.row-group-check-min-record-count", _ROWS, 100)
ROW_GROUP_CHECK_MAX: Final = Property(
    "write.parquet.row-group-check-max-record-count", _ROWS, 10_000
)
BLOOM_FILTER_SIZE: Final = Property("write.parquet.bloom-filter-max-bytes", _BYTES, _MEBIBYTE)
BLOOM_FILTER_ADAPTIVE: Final = Property(
    "write.parquet.bloom-filter-adaptive-enabled", FLAG, default=False
)
SHRED_VARIANTS: Final = Property("write.parquet.shred-variants", FLAG, default=False)

BLOOM_FILTER: Final = ColumnProperty("write.parquet.bloom-filter-enabled.column.", FLAG)
BLOOM_FILTER_SHARE: Final = ColumnProperty("write.parquet.bloom-filter-fpp.column.", SHARE)
BLOOM_FILTER_VALUES: Final = ColumnProperty(
    "write.parquet.bloom-filter-ndv.column.", whole_number(smallest=1, largest=LONG_MAX)
)
DICTIONARY: Final = ColumnProperty("write.parquet.dict-encoding-enabled.column.", FLAG)
PARQUET_STATISTICS: Final = ColumnProperty("write.parquet.stats-enabled.column.", FLAG)

DELETE_FORMAT: Final[Property[str | None]] = Property(
    "write.delete.format.default", optional(one_of("parquet", "avro", "orc")), None
)
DELETE_GRANULARITY: Final = Property(
    "write.delete.granularity", one_of("file", "partition"), "file"
)
DELETE_TARGET_FILE_SIZE: Final = Property(
    "write.delete.target-file-size-bytes", _LONG_BYTES, 64 * _MEBIBYTE
)
DELETE_CODEC: Final[Property[str | None]] = Property(
    "write.delete.parquet.compression-codec", optional(PARQUET_CODEC.kind), None
)
DELETE_LEVEL: Final = Property("write.delete.parquet.compression-level", LEVEL, None)
DELETE_ROW_GROUP_SIZE: Final[Property[int | None]] = Property(
    "write.delete.parquet.row-group-size-bytes", optional(_BYTES), None
)
DELETE_PAGE_SIZE: Final[Property[int | None]] = Property(
    "write.delete.parquet.page-size-bytes", optional(_BYTES), None
)
DELETE_DICTIONARY_SIZE: Final[Property[int | None]] = Property(
    "write.delete.parquet.dict-size-bytes", optional(_BYTES), None
)

METADATA_PATH: Final = Property("write.metadata.path", optional(TEXT), None)
METADATA_CODEC: Final = Property("write.metadata.compression-codec", one_of("none", "gzip"), "none")
PREVIOUS_VERSIONS_MAX: Final = Property("write.metadata.previous-versions-max", _COUNT, 100)
DELETE_AFTER_COMMIT: Final = Property(
    "write.metadata.delete-after-commit.enabled", FLAG, default=False
)
METRICS_DEFAULT: Final = Property("write.metadata.metrics.default", METRICS_MODE, TRUNCATE_16)
METRICS_OF_COLUMN: Final = ColumnProperty("write.metadata.metrics.column.", METRICS_MODE)
METRICS_LIMIT: Final = Property("write.metadata.metrics.max-inferred-column-defaults", _COUNT, 100)
MANIFEST_CODEC: Final = Property(
    "write.manifest.compression-codec",
    one_of(
        "gzip", "deflate", "zlib", "snappy", "zstd", "zstandard", "none", "null", "uncompressed"
    ),
    "gzip",
)
SUMMARY_PARTITION_LIMIT: Final = Property("write.summary.partition-limit", _COUNT, 0)
NAME_MAPPING: Final = Property("schema.name-mapping.default", optional(MAPPING), None)

ROW_LEVEL_CONFLICTS: Final = Property("frazil.commit.row-level-conflicts", FLAG, default=True)
MOST_TESTED_BYTES: Final = Property(
    "frazil.commit.row-level-conflicts.max-tested-bytes", _LONG_BYTES, 256 * _MEBIBYTE
)

RETRIES: Final = Property("commit.retry.num-retries", _COUNT, 4)
RETRY_MIN_WAIT: Final = Property("commit.retry.min-wait-ms", _MILLISECONDS, 100)
RETRY_MAX_WAIT: Final = Property("commit.retry.max-wait-ms", _MILLISECONDS, 60_000)
RETRY_TIMEOUT: Final = Property("commit.retry.total-timeout-ms", _MILLISECONDS, 1_800_000)
STATUS_CHECKS: Final = Property("commit.status-check.num-retries", _COUNT, 3)
STATUS_MIN_WAIT: Final = Property("commit.status-check.min-wait-ms", _AGE, 1_000)
STATUS_MAX_WAIT: Final = Property("commit.status-check.max-wait-ms", _AGE, 60_000)
STATUS_TIMEOUT: Final = Property("commit.status-check.total-timeout-ms", _AGE, 1_800_000)
MANIFEST_MERGE: Final = Property("commit.manifest-merge.enabled", FLAG, default=True)
MANIFEST_MIN_COUNT: Final = Property("commit.manifest.min-count-to-merge", _COUNT, 100)
MANIFEST_TARGET_SIZE: Final = Property(
    "commit.manifest.target-size-bytes", _LONG_BYTES, 8 * _MEBIBYTE
)

MAX_SNAPSHOT_AGE: Final = Property(
    "history.expire.max-snapshot-age-ms", _AGE, 5 * 24 * 60 * 60 * 1000
)
MIN_SNAPSHOTS: Final = Property("history.expire.min-snapshots-to-keep", _COUNT, 1)
MAX_REF_AGE: Final = Property("history.expire.max-ref-age-ms", _AGE, LONG_MAX)
GC_ENABLED: Final = Property("gc.enabled", FLAG, default=True)

OPTIMIZING_ENABLED: Final = Property("self-optimizing.enabled", FLAG, default=True)
OPTIMIZING_TARGET_SIZE: Final[Property[int | None]] = Property(
    "self-optimizing.target-size", optional(_LONG_BYTES), None
)
OPTIMIZING_FRAGMENT_RATIO: Final = Property(
    "self-optimizing.fragment-ratio", whole_number(smallest=1), 8
)
OPTIMIZING_MIN_TARGET_RATIO: Final = Property("self-optimizing.min-target-size-ratio", SHARE, 0.75)
OPTIMIZING_FILE_COUNT: Final = Property(
    "self-optimizing.minor.trigger.file-count", whole_number(smallest=1), 12
)
OPTIMIZING_MINOR_INTERVAL: Final = Property(
    "self-optimizing.minor.trigger.interval", _AGE, 60 * 60 * 1000
)
OPTIMIZING_DELETED_RATIO: Final[Property[float | None]] = Property(
    "self-optimizing.major.trigger.duplicate-ratio", optional(SHARE), None
)
OPTIMIZING_FULL_INTERVAL: Final = Property(
    "self-optimizing.full.trigger.interval",
    whole_number("milliseconds", smallest=-1, largest=LONG_MAX),
    -1,
)
OPTIMIZING_FULL_ALL: Final = Property("self-optimizing.full.rewrite-all-files", FLAG, default=True)
OPTIMIZING_PLAN_INTERVAL: Final = Property("self-optimizing.min-plan-interval", _AGE, 60_000)
OPTIMIZING_MAX_FILES: Final = Property(
    "self-optimizing.max-file-count", whole_number(smallest=1), 10_000
)
OPTIMIZING_MAX_TASK_SIZE: Final[Property[int | None]] = Property(
    "self-optimizing.max-task-size-bytes", optional(_LONG_BYTES), None
)
OPTIMIZING_FILTER: Final[Property[str | None]] = Property(
    "self-optimizing.filter", optional(TEXT), None
)

PROPERTIES: Final[Mapping[str, Property[Any]]] = {
    each.name: each for each in list(globals().values()) if isinstance(each, Property)
}
"""Every property of a table, by its name."""

COLUMN_PROPERTIES: Final[tuple[ColumnProperty[Any], ...]] = tuple(
    each for each in list(globals().values()) if isinstance(each, ColumnProperty)
)
"""Every property of one column."""

RESERVED: Final = frozenset(
    {
        "uuid",
        "snapshot-count",
        "current-snapshot-summary",
        "current-snapshot-id",
        "current-snapshot-timestamp-ms",
        "current-schema",
        "default-partition-spec",
        "default-sort-order",
    }
)
"""Names that other engines show as properties but that the metadata holds elsewhere."""

_HIGHEST_LEVELS: Final = {"gzip": 9, "brotli": 11}


def check_properties(
    changes: Mapping[str, str], *, current: Mapping[str, str] | None = None
) -> None:
    """Check properties that are to be set, all at once; unknown ones are taken as they are.

    Each malformed one is listed in the error; `current` is what the table has already.
    """
    for name, text in changes.items():
        if not isinstance(name, str) or not name:
            raise ValidationError(f"{name!r} is no property name")
        if not isinstance(text, str):
            raise ValidationError(
                f"property {name} is {text!r}; property values are strings, write {str(text)!r}"
            )
    checks = [
        partial(value_of, kind, name, text)
        for name, text in changes.items()
        for kind in _kinds_of(name)
    ]
    problems = [problem for check in checks if (problem := _problem_of(check))]
    if not problems and {PARQUET_LEVEL.name, PARQUET_CODEC.name} & changes.keys():
        problem = _problem_of(partial(parquet_level, {**(current or {}), **changes}))
        problems = [problem] if problem else []
    if problems:
        raise ConfigurationError("; ".join(problems))


def parquet_level(properties: Mapping[str, str]) -> int | None:
    """Return the level of the Parquet codec; None for the codec's own."""
    return _checked_level(PARQUET_LEVEL, PARQUET_LEVEL.of(properties), PARQUET_CODEC.of(properties))


def delete_codec(properties: Mapping[str, str]) -> tuple[str, int | None]:
    """Return the Parquet codec and level of delete files; the data files' unless they are set."""
    own = DELETE_CODEC.of(properties)
    level = DELETE_LEVEL.of(properties)
    if own is None and level is None:
        return PARQUET_CODEC.of(properties), parquet_level(properties)
    codec = own or PARQUET_CODEC.of(properties)
    return codec, _checked_level(DELETE_LEVEL, level, codec)


def _checked_level(name: Property[int | None], level: int | None, codec: str) -> int | None:
    highest = _HIGHEST_LEVELS.get(codec)
    if level is not None and highest is not None and level > highest:
        raise ConfigurationError(f"{name.name} is {level}: {codec} has the levels 0 to {highest}")
    return level


def stored_properties(properties: Mapping[str, str]) -> tuple[dict[str, str], int | None]:
    """The properties to store, and the format version where they ask for one."""
    refused = sorted(RESERVED & properties.keys())
    if refused:
        raise ValidationError(
            f"the table properties {refused} are reserved: the table metadata holds what they name"
        )
    stored = {name: text for name, text in properties.items() if name != FORMAT_VERSION}
    if FORMAT_VERSION not in properties:
        return stored, None
    try:
        return stored, value_of(_COUNT, FORMAT_VERSION, properties[FORMAT_VERSION])
    except ConfigurationError as error:
        raise ValidationError(str(error)) from None


def _kinds_of(name: str) -> list[Kind[Any]]:
    """What a property is of, if it is known."""
    if name in PROPERTIES:
        return [PROPERTIES[name].kind]
    return [each.kind for each in COLUMN_PROPERTIES if name.startswith(each.prefix)]


def _problem_of(check: Callable[[], object]) -> str | None:
    try:
        check()
    except ConfigurationError as error:
        return str(error)
    return None
