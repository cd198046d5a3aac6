"""Every type that Spark has, in every spec, written by the Java runtime and read by Frazil."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from interop_cases import PRIMITIVES, TypeCase
from interop_limits import FILTERS, NOT_IN_SPARK
from interop_tables import Engines, MadeOnce, write_with_java

from frazil.errors import InvalidManifestError

WRITTEN = [
    (case, max(case.versions[0], 2))
    for case in PRIMITIVES
    if case.name not in (*NOT_IN_SPARK, "fixed_identity")
]
CONTROLS = sorted({(engine, type_name) for engine, type_name, _ in FILTERS if engine != "frazil"})


@pytest.fixture(scope="module")
def tables(spark: Any, engines: Engines) -> MadeOnce:
    """The tables, made by the Java runtime."""
    return MadeOnce(partial(write_with_java, spark), "j")


@pytest.mark.parametrize(("case", "version"), WRITTEN, ids=[case.name for case, _ in WRITTEN])
def test_frazil_reads(tables: MadeOnce, engines: Engines, case: TypeCase, version: int) -> None:
    engines.check("frazil", tables(case, version), case, version)


def test_frazil_refuses_a_manifest_that_is_not_avro(
    tables: MadeOnce, engines: Engines
) -> None:
    """Java's fixed partition values: a typed error, never rows of a wrong partition."""
    case = next(case for case in PRIMITIVES if case.name == "fixed_identity")
    name = tables(case, 2)
    with pytest.raises(InvalidManifestError, match=r"-m0\.avro"):
        engines.read("frazil", name, case, ())


@pytest.mark.parametrize(("engine", "type_name"), CONTROLS)
def test_limits_are_those_of_the_engine(
    tables: MadeOnce, engines: Engines, engine: str, type_name: str
) -> None:
    for case, version in WRITTEN:
        if case.name == type_name:
            engines.check(engine, tables(case, version), case, version)
