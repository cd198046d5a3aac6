"""Files and tables come into a lake over Spark Connect, in a process of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from programs import run_program

pytestmark = pytest.mark.soak


def test_files_and_tables_come_in_over_connect(connect_url: str, tmp_path: Path) -> None:
    said = run_program(Path(__file__).parent / "connect_migration.py", connect_url, tmp_path)
    assert "ROWS [(0, 'x:0'), (2, 'x:0'), (3, 'x:1')]" in said
    assert "MOVED [(0, 'x:0'), (1, 'x:1'), (2, 'x:0'), (3, 'x:1')]" in said
    assert "CHANGES `added_changes` [(1, 'x:1', 'DELETE')]" in said
    assert "changed_partition_count=2" in said
