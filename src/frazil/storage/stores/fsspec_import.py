"""fsspec, imported without a look into the jars on Python's path."""

from __future__ import annotations

import sys
from importlib import import_module


def import_fsspec() -> None:
    """Import fsspec, whose import asks all of the path for plug-ins.

    Spark puts every jar of ``spark.jars.packages`` on the path of executors' Python, and it takes
    seconds of each process to list the names in Amazon's; no jar has plug-ins of Python's.
    """
    if "fsspec" in sys.modules:
        return
    whole = list(sys.path)
    sys.path[:] = [place for place in whole if not place.endswith(".jar")]
    try:
        import_module("fsspec")
    finally:
        sys.path[:] = whole
