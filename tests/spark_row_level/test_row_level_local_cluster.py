"""Writes and reads where executors are processes of their own, as on a cluster."""

from pathlib import Path

import pytest

from ci_share import only_in_soak
from programs import run_program

HERE = Path(__file__).parent


@pytest.mark.parametrize(
    ("mode", "version", "executors", "parts"),
    [
        # CI has executors of their own on Spark 4.1, in `interop/test_interop_local_cluster.py`.
        only_in_soak("merge-on-read", 3, 1, "changed"),
        only_in_soak("merge-on-read", 3, 1, "both"),
        only_in_soak("merge-on-read", 2, 2, "both"),
        only_in_soak("copy-on-write", 2, 2, "both"),
    ],
)
def test_every_kind_of_write_and_read(tmp_path, mode, version, executors, parts):
    words = (tmp_path, mode, version, executors, parts)
    paths = {"PYTHONPATH": str(HERE.parents[1] / "src")}
    printed = run_program(HERE / "local_cluster.py", *words, cwd=tmp_path, variables=paths)
    assert printed.strip().endswith("right")
