"""Which tests belong to a room of `src/frazil`: rooms.py spark/write prints their folders."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCES, TESTS = ROOT / "src" / "frazil", ROOT / "tests"

_ELSEWHERE = {
    "catalog/rest": "rest",
    "catalog/views": "views",
    "format/views": "views",
    "spark/creation": "spark_table",
    "spark/delete_files": "spark_deletes",
    "spark/files": "spark_read",
    "spark/hadoop": "storage",
    "spark/lake": "spark_table",
    "spark/lake_transaction": "spark_transactions",
    "spark/maintenance": "maintenance",
    "spark/maintenance/compaction": "spark_compaction",
    "spark/maintenance/optimizing": "spark_optimizing",
    "spark/metadata_frames": "spark_table",
    "spark/row_level": "spark_row_level spark_rows",
    "spark/row_level/rivals": "spark_row_level",
    "spark/schemas": "spark_write spark_read",
    "spark/session": "spark_costs spark_table spark_local",
    "spark/transaction": "spark_transactions",
    "table/maintenance": "maintenance",
    "table/migration": "spark_migration",
}
"""Rooms whose tests have another name than the room, or its first words."""


def tests_of(room: str) -> list[Path]:
    """The folders of tests of a room, or of the nearest room around it that has some.

    Raises:
        ValueError: there is no such room.
    """
    room = room.removeprefix("src/frazil/").strip("/").removesuffix(".py")
    if not ((SOURCES / room).is_dir() or (SOURCES / f"{room}.py").is_file()):
        raise ValueError(f"there is no room {room} in src/frazil; rooms are spark/write, format …")
    parts = room.split("/")
    for count in range(len(parts), 0, -1):
        around = "/".join(parts[:count])
        names = _ELSEWHERE.get(around, around.replace("/", "_")).split()
        folders = [TESTS / name for name in names]
        if all(folder.is_dir() for folder in folders):
            # The room `format` has `tests/format` and `tests/format_metadata` beside it.
            near = sorted(TESTS.glob(f"{parts[0]}_*")) if count == len(parts) == 1 else []
            return [*folders, *near]
    return sorted(TESTS.glob(f"{parts[0]}_*"))


if __name__ == "__main__":
    try:
        print(*(folder.relative_to(ROOT) for folder in tests_of(sys.argv[1])))
    except ValueError as error:
        sys.exit(str(error))
