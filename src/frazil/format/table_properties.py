"""Table properties that the metadata itself obeys, and those that are never stored."""

from __future__ import annotations

from collections.abc import Mapping

from frazil.errors import ValidationException

FORMAT_VERSION = "format-version"
PREVIOUS_VERSIONS_MAX = "write.metadata.previous-versions-max"
PREVIOUS_VERSIONS_MAX_DEFAULT = 100
MAX_SNAPSHOT_AGE_MS = "history.expire.max-snapshot-age-ms"
MAX_SNAPSHOT_AGE_MS_DEFAULT = 5 * 24 * 60 * 60 * 1000
MIN_SNAPSHOTS_TO_KEEP = "history.expire.min-snapshots-to-keep"
MIN_SNAPSHOTS_TO_KEEP_DEFAULT = 1
MAX_REF_AGE_MS = "history.expire.max-ref-age-ms"
MAX_REF_AGE_MS_DEFAULT = 2**63 - 1
SUMMARY_PARTITION_LIMIT = "write.summary.partition-limit"
SUMMARY_PARTITION_LIMIT_DEFAULT = 0
PARQUET_COMPRESSION = "write.parquet.compression-codec"
PARQUET_COMPRESSION_OF_NEW_TABLES = "zstd"

RESERVED = frozenset(
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


def integer_property(properties: Mapping[str, str], name: str, default: int) -> int:
    """A whole-number property; ValidationException where it is something else."""
    text = properties.get(name)
    if text is None:
        return default
    try:
        return int(text)
    except ValueError:
        raise ValidationException(
            f"the table property {name} is {text!r}; expected a whole number"
        ) from None


def stored_properties(properties: Mapping[str, str]) -> tuple[dict[str, str], int | None]:
    """The properties to store, and the format version where they ask for one.

    Raises:
        ValidationException: a reserved name, or a version that is no number.
    """
    refused = sorted(RESERVED & properties.keys())
    if refused:
        raise ValidationException(
            f"the table properties {refused} are reserved: the table metadata holds what they name"
        )
    stored = {name: text for name, text in properties.items() if name != FORMAT_VERSION}
    if FORMAT_VERSION not in properties:
        return stored, None
    return stored, integer_property(properties, FORMAT_VERSION, 0)
