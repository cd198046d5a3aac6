"""Every type in every spec and version, written by the Java runtime and read by Frazil."""

from __future__ import annotations

import pytest
from interop_cases import MATRIX, PRIMITIVES, TypeCase, in_turn, version_in_ci
from interop_limits import FILTERS
from interop_tables import Engines, MadeOnce

from frazil.errors import InvalidManifestError

WRITTEN = [item for item in MATRIX if item[0].name != "fixed_identity"]
WRONG_ANSWERS = sorted(
    {(engine, name) for (engine, name, _), limit in FILTERS.items() if limit.message is None}
)


@pytest.mark.parametrize(("case", "version"), [in_turn(*item) for item in WRITTEN])
def test_frazil_reads(
    java_tables: MadeOnce, engines: Engines, case: TypeCase, version: int
) -> None:
    engines.check("frazil", java_tables(case, version), case, version)


def test_frazil_refuses_a_manifest_that_is_not_avro(
    java_tables: MadeOnce, engines: Engines
) -> None:
    """Java's fixed partition values: a typed error, never rows of a wrong partition."""
    case = next(case for case in PRIMITIVES if case.name == "fixed_identity")
    name = java_tables(case, 2)
    with pytest.raises(InvalidManifestError, match=r"-m0\.avro"):
        engines.read("frazil", name, case, ())


@pytest.mark.parametrize(("engine", "type_name"), WRONG_ANSWERS)
def test_wrong_answers_are_the_engines_own(
    java_tables: MadeOnce, engines: Engines, engine: str, type_name: str
) -> None:
    case = next(case for case in PRIMITIVES if case.name == type_name)
    engines.check_wrong_answers(engine, java_tables(case, version_in_ci(case)), case)
