"""The columns that a changelog has besides the table's (SPEC rule 67)."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

CHANGE_TYPE: Final = "_change_type"
CHANGE_ORDINAL: Final = "_change_ordinal"
COMMIT_SNAPSHOT_ID: Final = "_commit_snapshot_id"
CHANGELOG_COLUMNS: Final = (CHANGE_TYPE, CHANGE_ORDINAL, COMMIT_SNAPSHOT_ID)


class ChangeType(StrEnum):
    """What happened to a row, by the Java runtime's names."""

    INSERT = "INSERT"
    DELETE = "DELETE"
    UPDATE_BEFORE = "UPDATE_BEFORE"
    UPDATE_AFTER = "UPDATE_AFTER"
