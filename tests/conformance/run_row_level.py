"""Runs the cases of ../shared/row_level, which call `update_spec` by another name.

python tests/conformance/run_row_level.py frazil [options of its run.py]
"""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

from frazil import Table

CASES = Path(__file__).resolve().parents[3] / "shared" / "row_level"

if __name__ == "__main__":
    setattr(Table, "update_partitioning", Table.update_spec)  # noqa: B010
    sys.path.insert(0, str(CASES))
    runpy.run_path(str(CASES / "run.py"), run_name="__main__")
