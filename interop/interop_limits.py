"""What the other engines do not do, and how that shows.

Each entry is asserted, so that a release which lifts it is noticed. A wrong answer is asserted for
tables of the Java runtime too: there it cannot come from Frazil's files.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

NOT_IN_SPARK: Final = ("time", "timestamp_ns", "timestamptz_ns", "geometry_3857")
"""Types that the Java runtime's Spark catalog has no Spark type for; its library reads them."""


@dataclass(frozen=True, slots=True)
class Limit:
    """What an engine does in place of a right answer.

    Attributes:
        reason: why, in one sentence.
        message: what its error matches; None where it answers, with too few rows.
        versions: the format versions of the tables.
    """

    reason: str
    message: str | None = None
    versions: tuple[int, ...] = (1, 2, 3)


_NO_SPARK_TYPE: Final = "the Java runtime's Spark catalog has no Spark type for it"
_NO_NANOS: Final = Limit(_NO_SPARK_TYPE, "Cannot convert unsupported type to Spark")
_PYICEBERG_NANOS: Final = Limit(
    "PyIceberg does not know Avro's timestamp-nanos, which manifests hold as partition values",
    "Unknown logical/physical type combination",
)
_JAVA_NANOS: Final = Limit(
    "the Java library binds the residual's nanoseconds again as if they were microseconds",
    "long overflow",
)
_PYICEBERG_DECIMAL: Final = Limit(
    "a v1 spec keeps its fields, so several have the same named Avro type; PyIceberg does not "
    "resolve a name that an earlier field defines",
    "Type not recognized: decimal_",
    (1,),
)

READS: Final[dict[tuple[str, str], Limit]] = {
    ("java", "time"): Limit(_NO_SPARK_TYPE, "Spark does not support time fields"),
    ("java", "timestamp_ns"): _NO_NANOS,
    ("java", "timestamptz_ns"): _NO_NANOS,
    ("java", "fixed_identity"): Limit(
        "the Java library writes and reads a length before a fixed partition value, which Avro "
        "forbids (apache/iceberg issue 17501); no other engine reads its manifests",
        "Failed to read next record|Invalid int encoding|awaitResult",
    ),
    ("pyiceberg", "decimal_9_2"): _PYICEBERG_DECIMAL,
    ("pyiceberg", "decimal_18_4"): _PYICEBERG_DECIMAL,
    ("pyiceberg", "decimal_38_10"): _PYICEBERG_DECIMAL,
    ("pyiceberg", "timestamp_ns"): _PYICEBERG_NANOS,
    ("pyiceberg", "timestamptz_ns"): _PYICEBERG_NANOS,
    ("pyiceberg", "variant"): Limit(
        "PyIceberg has no variant type", "Unsupported field type: 'variant'"
    ),
    ("java", "geometry_3857"): Limit(
        "Spark knows a coordinate system by the names of its own list", "ST_INVALID_CRS_VALUE"
    ),
    **{
        ("pyiceberg", name): Limit(
            "PyIceberg takes a file's well-known binary for another type", f"binary to {name}"
        )
        for name in ("geometry", "geography")
    },
    ("pyiceberg", "geometry_3857"): Limit(
        "PyIceberg knows no parameter that is not quoted", r"Could not parse geometry\(srid:3857\)"
    ),
    ("duckdb", "geography"): Limit("DuckDB has no such type", "Geography support"),
    ("duckdb", "timestamptz_ns"): Limit(
        "DuckDB has no such type", "Unrecognized primitive type: timestamptz_ns"
    ),
    ("duckdb", "unknown"): Limit("DuckDB has no such type", "Unrecognized primitive type: unknown"),
}
"""Tables that an engine does not read at all, by engine and type."""

FILTERS: Final[dict[tuple[str, str, str], Limit]] = {
    ("pyiceberg", "double", "="): Limit(
        "PyIceberg loses the file of an equal value in an identity partition of doubles"
    ),
    ("pyiceberg", "uuid", "="): Limit("PyIceberg finds no row by a UUID in a file's rows"),
    ("pyiceberg", "uuid", ">="): Limit(
        "PyIceberg compares a UUID with the bytes of a bound", "not supported between instances"
    ),
    ("java", "uuid", "="): Limit("Spark's text does not match a UUID in Java's Parquet filter"),
    ("java_records", "timestamp_ns", "="): _JAVA_NANOS,
    ("java_records", "timestamp_ns", ">="): _JAVA_NANOS,
    ("java_records", "timestamptz_ns", "="): _JAVA_NANOS,
    ("java_records", "timestamptz_ns", ">="): _JAVA_NANOS,
    ("duckdb", "timestamptz", "="): Limit(
        "DuckDB's months and days of instants before 1970 are one too late"
    ),
    ("duckdb", "uuid", "="): Limit("DuckDB's bucket of a UUID is not the specification's"),
    ("duckdb", "decimal_38_10", "="): Limit("DuckDB's bucket of a wide decimal differs"),
}
"""Filters that an engine does not answer rightly, by engine, type and operator."""


@dataclass(frozen=True, slots=True)
class Loss:
    """Rows that a filter does not find in a table, for what its writer wrote.

    Attributes:
        reason: what is wrong with the table, in one sentence.
        witness: an engine that misses the same rows.
    """

    reason: str
    witness: str


_NO_PARTITION_BOUNDS: Final = Loss(
    "DuckDB's manifest lists have no bounds of such partitions, which says that all are NULL",
    "pyiceberg",
)
_NO_PARTITION_NAN: Final = Loss("DuckDB's manifest lists say that no partition is NaN", "pyiceberg")

DUCKDB_LOSES: Final[dict[tuple[str, str], Loss]] = {
    ("boolean", "="): _NO_PARTITION_BOUNDS,
    ("time", "="): _NO_PARTITION_BOUNDS,
    ("time", "<"): _NO_PARTITION_BOUNDS,
    ("uuid", "="): Loss(
        "no bounds, as above; and DuckDB's bucket of a UUID is not the specification's",
        "pyiceberg",
    ),
    ("uuid", ">="): _NO_PARTITION_BOUNDS,
    ("float", "is nan"): _NO_PARTITION_NAN,
    ("double", "is nan"): _NO_PARTITION_NAN,
    ("timestamp_ns", "="): Loss("DuckDB's bucket is one of nanoseconds", "duckdb"),
}
"""Filters that lose rows in partitioned tables of DuckDB's, by type and operator."""

DUCKDB_CREATES: Final[dict[str, Limit]] = {
    "fixed": Limit("DuckDB has no such type", "Type with name fixed does not exist"),
    "unknown": Limit("DuckDB has no such type", "Type with name unknown does not exist"),
    "timestamptz_ns": Limit("DuckDB has no such type", "Type with name timestamptz_ns"),
    "geography": Limit("DuckDB has no such type", "Type with name geography does not exist"),
    "geometry_3857": Limit("DuckDB knows other names of such a system", "syntax error"),
}
"""Columns that DuckDB does not create."""

DUCKDB_INSERTS: Final[dict[str, Limit]] = {
    "unknown": Limit("DuckDB has no such type", "Unrecognized primitive type: unknown"),
    "timestamptz_ns": Limit("DuckDB has no such type", "Unrecognized primitive type"),
    "geography": Limit("DuckDB has no such type", "Geography support"),
}
"""Columns of other writers' tables that DuckDB does not write."""

DUCKDB_BINARY_PARTITIONS: Final = Limit(
    "DuckDB takes a binary partition value for a text", "Invalid unicode"
)

NULL_KEYS_IN_STRUCTS: Final = Limit(
    "the Java runtime finds no row by a NULL key in a struct where the struct is NULL, or where "
    "the delete file has other keys too"
)
NULL_COLLECTIONS: Final = Limit(
    "PyIceberg writes a NULL list or map of structs as an empty one, and reads it so where the "
    "struct inside it has evolved"
)


def read_limit(engine: str, type_name: str, version: int) -> Limit | None:
    """The refusal to expect of an engine for a table of a type, if any."""
    limit = READS.get((engine, type_name))
    return limit if limit is not None and version in limit.versions else None


def filter_limit(engine: str, type_name: str, op: str) -> Limit | None:
    """What to expect of an engine in place of a filter's right answer, if anything."""
    return FILTERS.get((engine, type_name, op))
