"""fsspec, imported without a look into the jars on Python's path.

Its import asks all of the path for plug-ins. Spark puts every jar of ``spark.jars.packages`` on the
path of executors' Python, and it takes seconds of each process to list the names in Amazon's; no
jar has plug-ins of Python's.
"""

from __future__ import annotations

import sys

_PATH = list(sys.path)
sys.path[:] = [place for place in _PATH if not place.endswith(".jar")]
try:
    import fsspec
finally:
    sys.path[:] = _PATH

__all__ = ["fsspec"]
