"""Parquet files whose old dates are of the Julian calendar, as Spark wrote them before version 3.

Spark's readers see it in the footer and turn the dates into those of today's calendar. Readers of
Iceberg tables take the numbers as they are, and so do bounds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import pyarrow.parquet as pq

from frazil.errors import SchemaMismatchError
from frazil.spark.files.layout.footers import FooterColumn

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


def _is_julian(told: Mapping[bytes, bytes]) -> bool:
    version = told.get(_VERSION)
    return _LEGACY in told or (version is not None and version < _FIRST_CORRECT)


def _smallest(footer: pq.FileMetaData, index: int) -> list[Any]:
    columns = (footer.row_group(n).column(index) for n in range(footer.num_row_groups))
    found = (column.statistics for column in columns)
    return [each.min_raw for each in found if each is not None and each.has_min_max]
