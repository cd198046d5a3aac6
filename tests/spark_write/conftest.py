"""Python workers run this interpreter, so that they find what the tests find."""

from __future__ import annotations

import os
import sys

os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
