"""What the tests of the REST catalog share."""

from __future__ import annotations

from catalog_cases import NO_REPORTS as NO_REPORTS
from catalog_cases import QUICK_CHECKS as QUICK_CHECKS
