"""What the manifests say of the same rows in the same specs: Frazil's entries are Java's."""

from __future__ import annotations

from typing import Any

import pytest
from interop_cases import PRIMITIVES, TypeCase, in_turn
from interop_limits import NOT_IN_SPARK
from interop_tables import MadeOnce

COMPARED = [
    (case, version)
    for case in PRIMITIVES
    for version in case.versions
    if case.name not in (*NOT_IN_SPARK, "fixed_identity")
]
COUNTS = ("value_counts", "null_value_counts")
BOUNDS = ("lower_bounds", "upper_bounds")
WITHOUT_BOUNDS = ("float", "double", "uuid")
"""Spark's writer keeps no NaN counts, so bounds of files that may hold NaN are left out, where
Java's writer counts; and Java's metrics hold no bounds of UUIDs."""

WITHOUT_COUNTS = ("variant",)
"""Java counts the values of a variant; Frazil leaves these counts, which are optional, out."""

UNREADABLE_PARTITIONS = ("uuid",)
"""Java's metadata tables fail on a UUID as a partition value, also of Java's own tables."""


@pytest.mark.parametrize(("case", "version"), [in_turn(*item) for item in COMPARED])
def test_entries(
    frazil_tables: MadeOnce, java_tables: MadeOnce, spark: Any, case: TypeCase, version: int
) -> None:
    ours = _entries(spark, frazil_tables(case, version), case)
    theirs = _entries(spark, java_tables(case, version), case)
    assert ours == theirs


def _entries(spark: Any, name: str, case: TypeCase) -> list[tuple[Any, ...]]:
    described = [
        "record_count",
        *(() if case.name in WITHOUT_COUNTS else COUNTS),
        *(() if case.name in WITHOUT_BOUNDS else BOUNDS),
    ]
    if case.specs and case.name not in UNREADABLE_PARTITIONS:
        described.insert(0, "to_json(partition) as partition")
    files = spark.table(f"java_sql.db.{name}.files")
    rows = files.selectExpr(*described).collect()
    return sorted((tuple(_plain(value) for value in row) for row in rows), key=repr)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in sorted(value.items())}
    return bytes(value).hex() if isinstance(value, bytearray) else value
