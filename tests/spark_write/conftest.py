"""Python workers run this interpreter, so that they find what the tests find."""

import os
import sys

os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
