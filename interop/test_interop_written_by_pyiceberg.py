"""Every type that PyIceberg writes, read by Frazil and the Java runtime; and turns on one table."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from interop_cases import PRIMITIVES, TypeCase, in_turn, schema_json, shown_rows
from interop_engines import arrow_of_table, pyiceberg_catalog
from interop_limits import NOT_IN_SPARK, filter_limit
from interop_tables import Engines
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform, Transform, parse_transform

from frazil.spark.lake import Lake

WRITTEN = [
    in_turn(case, version, versions=(1, 2))
    for case in PRIMITIVES
    for version in (1, 2)
    if version in case.versions and case.name != "fixed_identity"
]

_TRANSFORM = re.compile(r"(\w+)\((?:(\d+), )?v\)")


_TIME_REFUSED = "no attribute 'hour'"


def _transforms(case: TypeCase) -> list[str]:
    return [text for spec in case.specs for text in spec if _TRANSFORM.fullmatch(text)]


def _pyiceberg_transform(text: str) -> Transform[Any, Any]:
    name, parameter = _TRANSFORM.fullmatch(text).groups()
    return parse_transform(f"{name}[{parameter}]" if parameter else name)


TRANSFORMED = [case for case in PRIMITIVES if 2 in case.versions and _transforms(case)]
SINGLE = [
    pytest.param(
        case,
        text,
        id=f"{case.name}-{text}",
        marks=[] if place == number % len(_transforms(case)) else pytest.mark.soak,
    )
    for number, case in enumerate(TRANSFORMED)
    for place, text in enumerate(_transforms(case))
]
"""In CI one transform of each type, turn about."""


@pytest.fixture(scope="module")
def catalog(sql_lake: Lake, warehouse: Path) -> SqlCatalog:
    """PyIceberg's catalog on the database that Frazil and the Java runtime use."""
    return pyiceberg_catalog(warehouse)


@pytest.mark.parametrize(("case", "version"), WRITTEN)
def test_rows_and_filters(
    catalog: SqlCatalog, engines: Engines, case: TypeCase, version: int
) -> None:
    """Unpartitioned, then by identity.

    PyIceberg takes the rows of a partition by equality: it fails on NaN, which equals nothing, and
    writes -0.0 and 0.0 twice where it gets both, so it gets one.
    """
    name = f"p{version}_{case.name}"
    table = catalog.create_table(
        f"db.{name}",
        Schema.model_validate(schema_json(case)),
        properties={"format-version": str(version)},
    )
    table.append(arrow_of_table(case, case.rows_of_stage(0)))
    rows = case.rows_of_stage(0)
    if case.name not in ("fixed", "fixed_identity") and case.specs:
        with table.update_spec() as change:
            change.add_field("v", IdentityTransform())
        added = case.rows_of_stage(1)
        nan = [row for row in added if row[1] != row[1]]
        if nan:
            with pytest.raises(ZeroDivisionError):
                table.append(arrow_of_table(case, nan))
        zeros = [row for row in added if repr(row[1]) == "-0.0"]
        added = [row for row in added if row not in nan and row not in zeros]
        table.append(arrow_of_table(case, added))
        rows += added
    results = engines.read("frazil", name, case, case.filters)
    assert shown_rows(results[0]) == shown_rows(rows)
    for wanted, found in zip(case.filters, results[1:], strict=True):
        assert shown_rows(found) == shown_rows(r for r in rows if wanted.keeps(r[1])), wanted
    if case.name not in NOT_IN_SPARK:
        assert shown_rows(engines.read("java", name, case, ())[0]) == shown_rows(rows)


@pytest.mark.interop
@pytest.mark.parametrize("case", TRANSFORMED, ids=[case.name for case in TRANSFORMED])
def test_transforms(catalog: SqlCatalog, engines: Engines, case: TypeCase) -> None:
    """By each transform in turn; PyIceberg does not append by two transforms of one column."""
    name = f"t2_{case.name}"
    table = catalog.create_table(f"db.{name}", Schema.model_validate(schema_json(case)))
    rows, previous = [], None
    for stage, text in enumerate(_transforms(case)):
        with table.update_spec() as change:
            if previous is not None:
                change.remove_field(previous)
            previous = f"v{stage}"
            change.add_field("v", _pyiceberg_transform(text), previous)
        added = case.rows_of_stage(stage)
        if case.name == "time":
            with pytest.raises(AttributeError, match=_TIME_REFUSED):
                table.append(arrow_of_table(case, added))
            return
        table.append(arrow_of_table(case, added))
        rows += added
    for engine in ("frazil", *(["java"] if case.name not in NOT_IN_SPARK else [])):
        filters = [item for item in case.filters if not filter_limit(engine, case.name, item.op)]
        results = engines.read(engine, name, case, filters)
        assert shown_rows(results[0]) == shown_rows(rows)
        for wanted, found in zip(filters, results[1:], strict=True):
            assert shown_rows(found) == shown_rows(r for r in rows if wanted.keeps(r[1])), wanted


@pytest.mark.interop
@pytest.mark.parametrize(("case", "text"), SINGLE)
def test_transforms_of_version_1(
    catalog: SqlCatalog, engines: Engines, case: TypeCase, text: str
) -> None:
    """One transform in each table.

    A v1 spec keeps a removed field as void, and PyIceberg appends by one of a column alone.
    """
    name = "t1_" + re.sub(r"\W+", "_", f"{case.name}_{text}")
    table = catalog.create_table(
        f"db.{name}",
        Schema.model_validate(schema_json(case)),
        properties={"format-version": "1"},
    )
    table.append(arrow_of_table(case, case.rows_of_stage(0)))
    with table.update_spec() as change:
        change.add_field("v", _pyiceberg_transform(text), "part")
    if case.name == "time":
        with pytest.raises(AttributeError, match=_TIME_REFUSED):
            table.append(arrow_of_table(case, case.rows_of_stage(1)))
        return
    table.append(arrow_of_table(case, case.rows_of_stage(1)))
    rows = case.rows_to_stage(2)
    results = engines.read("frazil", name, case, case.filters)
    assert shown_rows(results[0]) == shown_rows(rows)
    for wanted, found in zip(case.filters, results[1:], strict=True):
        assert shown_rows(found) == shown_rows(r for r in rows if wanted.keeps(r[1])), wanted

    with table.update_spec() as change:
        change.remove_field("part")
        change.add_field("v", IdentityTransform(), "again")
    with pytest.raises(ValueError, match="Cannot have redundant partitions"):
        table.append(arrow_of_table(case, case.rows_of_stage(2)))


def test_version_3(catalog: SqlCatalog, sql_lake: Lake, spark: Any) -> None:
    """PyIceberg neither makes such a table, nor upgrades to one, nor appends to one."""
    columns = pa.schema([("id", pa.int32())])
    with pytest.raises(NotImplementedError, match="Writing V3 is not yet supported"):
        catalog.create_table("db.p3", columns, properties={"format-version": "3"})
    theirs = catalog.create_table("db.p2", columns)
    with pytest.raises(ValueError, match="3"), theirs.transaction() as transaction:
        transaction.upgrade_table_version(3)
    ours = sql_lake.create_table("db.f3", "id int", format_version=3)
    ours.append(spark.createDataFrame([(1,)], "id int"))
    with pytest.raises(ValueError, match="Cannot write manifest for table version: 3"):
        catalog.load_table("db.f3").append(pa.table({"id": pa.array([2], pa.int32())}))
    assert [row.id for row in ours.refresh().to_df().collect()] == [1]


def test_turns(catalog: SqlCatalog, spark: Any, sql_lake: Lake) -> None:
    """Appends by three writers, a delete by PyIceberg, each seen by the next."""
    ours = sql_lake.create_table("db.three", "id int, v string", partition_by=["v"])
    ours.append(spark.createDataFrame([(1, "a"), (2, None)], "id int, v string"))
    theirs = catalog.load_table("db.three")
    theirs.append(theirs.scan().to_arrow().slice(0, 1))
    spark.sql("insert into java_sql.db.three values (3, 'c'), (4, 'c')")
    theirs.refresh()
    theirs.delete("id = 3")
    ours.append(spark.createDataFrame([(5, "e")], "id int, v string"))
    rows = sorted((row.id, row.v) for row in ours.to_df().collect() if row.v is not None)
    arrow = theirs.refresh().scan().to_arrow().to_pylist()
    assert rows == sorted((row["id"], row["v"]) for row in arrow if row["v"] is not None)
    assert [number for number, _ in rows][-2:] == [4, 5]
    assert 3 not in dict(rows)
    assert len(arrow) == 5 == spark.table("java_sql.db.three").count()
