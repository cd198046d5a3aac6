"""Every type in every spec, written by Frazil: the other engines and Frazil read the same rows."""

from __future__ import annotations

import pytest
from interop_cases import MATRIX, TypeCase, in_turn
from interop_limits import NOT_IN_SPARK
from interop_tables import ENGINES, Engines, MadeOnce

READS = [
    in_turn(case, version, engine)
    for case, version in MATRIX
    for engine in (*ENGINES, *(["java_records"] if case.name in NOT_IN_SPARK else []))
]


@pytest.mark.parametrize(("case", "version", "engine"), READS)
def test_rows_and_filters(
    frazil_tables: MadeOnce, engines: Engines, case: TypeCase, version: int, engine: str
) -> None:
    engines.check(engine, frazil_tables(case, version), case, version)
