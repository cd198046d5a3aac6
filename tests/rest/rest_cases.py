"""What the tests of the REST catalog share."""

from __future__ import annotations

from typing import Final

from catalog_cases import QUICK_CHECKS as QUICK_CHECKS

NO_REPORTS: Final = {"rest-metrics-reporting-enabled": "false"}
"""No report comes between the requests that a test counts, or breaks."""
