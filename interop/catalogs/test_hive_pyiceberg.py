"""PyIceberg's HiveCatalog and Frazil's on one metastore: each commits on the other's tables.

PyIceberg reads tables by a call that Hive 4 has not: so these are Hive 3 and Hive 2.3.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest
from hive_server import OF_SPARK, Metastore, properties_of
from pyiceberg.catalog.hive import HiveCatalog
from pyiceberg.exceptions import CommitFailedException, NoSuchTableError
from pyiceberg.types import IntegerType, LongType

from frazil.spark.lake import Lake, connect

PATIENT = {"commit.retry.num-retries": "1000", "commit.retry.max-wait-ms": "500"}
ROWS = pa.schema([("id", pa.int32()), ("v", pa.string())])
COLUMNS = "id int, v string"


@dataclass(frozen=True)
class Both:
    """A namespace that both catalogs see.

    Attributes:
        lake: Frazil's.
        theirs: PyIceberg's catalog.
        db: the namespace.
        spark: the session of the lake.
        properties: of both catalogs.
    """

    lake: Lake
    theirs: HiveCatalog
    db: str
    spark: Any
    properties: dict[str, str]

    def name(self, table: str) -> str:
        return f"{self.db}.{table}"

    def append_ours(self, table: str, rows: dict[int, str]) -> None:
        frame = self.spark.createDataFrame(list(rows.items()), COLUMNS)
        self.lake.load_table(self.name(table)).append(frame)

    def append_theirs(self, catalog: HiveCatalog, table: str, rows: dict[int, str]) -> None:
        new = pa.table([list(rows), list(rows.values())], schema=ROWS)
        catalog.load_table(self.name(table)).append(new)

    def rows(self, table: str) -> dict[int, str]:
        """The rows that both read."""
        frame = self.lake.load_table(self.name(table)).scan().to_df()
        ours = sorted((row.id, row.v) for row in frame.collect())
        read = self.theirs.load_table(self.name(table)).scan().to_arrow().to_pylist()
        assert sorted((row["id"], row["v"]) for row in read) == ours
        return dict(ours)


@pytest.fixture
def both(hive: Metastore, spark: Any) -> Iterator[Both]:
    """Two catalogs and a new namespace."""
    properties = properties_of(hive)
    with connect(spark, **properties) as lake:
        db = f"db{uuid4().hex[:8]}"
        lake.create_namespace(db)
        yield Both(lake, HiveCatalog("theirs", **properties), db, spark, properties)


pytestmark = pytest.mark.parametrize("hive", ["3.1.3", OF_SPARK], indirect=True)


@pytest.mark.parametrize("maker", ["pyiceberg", "frazil"])
def test_each_commits_on_tables_of_either(both: Both, maker: str) -> None:
    if maker == "pyiceberg":
        both.theirs.create_table(both.name("t"), ROWS)
    else:
        both.lake.create_table(both.name("t"), COLUMNS)
    expected: dict[int, str] = {}
    for turn in range(3):
        ours = {turn * 10 + each: f"frazil{turn}" for each in range(4)}
        theirs = {turn * 10 + 4 + each: f"pyiceberg{turn}" for each in range(4)}
        both.append_ours("t", ours)
        both.append_theirs(both.theirs, "t", theirs)
        both.lake.load_table(both.name("t")).delete(f"id = {turn * 10 + 4}")
        both.theirs.load_table(both.name("t")).delete(f"id = {turn * 10}")
        expected |= ours | theirs
        del expected[turn * 10], expected[turn * 10 + 4]
        assert both.rows("t") == expected
    table = both.lake.load_table(both.name("t"))
    with table.update_schema() as change:
        change.add_column("more", "string")
    with both.theirs.load_table(both.name("t")).update_schema() as update:
        update.add_column("extra", IntegerType())
        update.update_column("id", LongType())
    assert [str(field.field_type) for field in table.refresh().schema.fields] == [
        *("long", "string", "string", "int")
    ]
    both.lake.rename_table(both.name("t"), both.name("u"))
    both.theirs.rename_table(both.name("u"), both.name("w"))
    assert both.rows("w") == expected
    with both.theirs.load_table(both.name("w")).transaction() as change:
        change.set_properties(theirs="1", other="2")
    table = both.lake.load_table(both.name("w"))
    table.set_properties(ours="1")
    table.remove_properties("other")
    found = both.theirs.load_table(both.name("w")).properties
    assert found.items() >= {"theirs": "1", "ours": "1"}.items()
    assert "other" not in found
    listed = [(both.db, "w")]
    assert both.theirs.list_tables(both.db) == both.lake.list_tables(both.db) == listed
    if maker == "pyiceberg":
        both.lake.drop_table(both.name("w"))
        with pytest.raises(NoSuchTableError):
            both.theirs.load_table(both.name("w"))
    else:
        both.theirs.drop_table(both.name("w"))
        assert both.lake.list_tables(both.db) == []


@pytest.mark.parametrize("maker", ["pyiceberg", "frazil"])
def test_both_at_once(both: Both, maker: str) -> None:
    """Each tries again after the other was first, and no commit of either is lost."""
    if maker == "pyiceberg":
        both.theirs.create_table(both.name("t"), ROWS, properties=PATIENT)
    else:
        both.lake.create_table(both.name("t"), COLUMNS, properties=PATIENT)

    def theirs(writer: int) -> dict[int, str]:
        catalog, own = HiveCatalog("theirs", **both.properties), {}
        for number in range(6):
            new = {writer * 100 + number: "theirs"}
            for _ in range(100):
                try:
                    both.append_theirs(catalog, "t", new)
                    break
                except CommitFailedException:
                    continue
            own |= new
        return own

    def ours(writer: int) -> dict[int, str]:
        own = {writer * 100 + number: "ours" for number in range(6)}
        for each in own:
            both.append_ours("t", {each: own[each]})
        return own

    with ThreadPoolExecutor(4) as threads:
        told = [threads.submit(theirs, 1), threads.submit(theirs, 2)]
        told += [threads.submit(ours, 3), threads.submit(ours, 4)]
        expected = {key: value for each in told for key, value in each.result().items()}
    assert len(expected) == 24
    assert both.rows("t") == expected
    snapshots = both.lake.load_table(both.name("t")).metadata.snapshots
    assert [each.sequence_number for each in snapshots] == list(range(1, 25))


def test_namespaces_of_each(both: Both) -> None:
    name = f"made{uuid4().hex[:8]}"
    both.theirs.create_namespace(name, {"comment": "theirs", "a": "1"})
    found = both.lake.load_namespace_properties(name)
    assert found.items() >= {"comment": "theirs", "a": "1"}.items()
    both.lake.create_table(f"{name}.t", "id bigint")
    both.lake.update_namespace_properties(name, updates={"b": "2"})
    assert both.theirs.load_namespace_properties(name).items() >= {"a": "1", "b": "2"}.items()
    both.theirs.drop_table(f"{name}.t")
    both.theirs.drop_namespace(name)
    assert not both.lake.namespace_exists(name)
