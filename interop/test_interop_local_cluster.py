"""Every kind of write and read on Spark 4.1, with executors in their own processes."""

from __future__ import annotations

from pathlib import Path

import pytest

from ci_share import only_in_soak
from programs import run_program

ROOT = Path(__file__).resolve().parents[1]
PROGRAM = ROOT / "tests" / "spark_row_level" / "local_cluster.py"


@pytest.mark.parametrize(
    ("mode", "version", "executors", "parts"),
    [
        pytest.param("copy-on-write", 2, 1, "kept up", marks=pytest.mark.interop),
        only_in_soak("copy-on-write", 2, 2, "both"),
        only_in_soak("merge-on-read", 3, 2, "both"),
    ],
)
def test_every_kind_of_write_and_read(
    tmp_path: Path, mode: str, version: int, executors: int, parts: str
) -> None:
    words = (tmp_path, mode, version, executors, parts)
    paths = {"PYTHONPATH": str(ROOT / "src")}
    printed = run_program(PROGRAM, *words, cwd=tmp_path, variables=paths)
    assert printed.strip().endswith("right")
