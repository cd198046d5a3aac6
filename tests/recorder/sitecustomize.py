"""Has programs that a test starts record too: what records has this folder on their path."""

import os

if os.environ.get("FRAZIL_CIRCLES"):
    import run_recorder  # noqa: F401
