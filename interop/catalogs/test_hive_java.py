"""Java's HiveCatalog and Frazil's on one metastore: each commits on the other's tables.

Spark 4.1 has the client of Hive 2.3, which asks by a call that Hive 4 has not: so these are Hive 3
and Hive 2.3 itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import pytest
from hive_server import OF_SPARK, Metastore, properties_of

from frazil.errors import NoSuchTableError
from frazil.spark.lake import Lake, connect
from frazil.table.handle import TableHandle

PATIENT = {"commit.retry.num-retries": "1000", "commit.retry.max-wait-ms": "500"}


@dataclass(frozen=True)
class Both:
    """A namespace that both catalogs see.

    Attributes:
        lake: Frazil's.
        java: the name of the Java runtime's catalog.
        db: the namespace.
        spark: the session of both.
    """

    lake: Lake
    java: str
    db: str
    spark: Any

    def sql(self, text: str) -> list[Any]:
        """Rows of a statement of Java's, in which `db` is the namespace."""
        found: list[Any] = self.spark.sql(
            text.replace(" db.", f" {self.java}.{self.db}.")
        ).collect()
        return found

    def name(self, table: str) -> str:
        return f"{self.db}.{table}"


@pytest.fixture
def both(hive: Metastore, spark: Any) -> Iterator[Both]:
    """Two catalogs and a new namespace."""
    name, properties = f"java_{uuid4().hex[:8]}", properties_of(hive)
    spark.conf.set(f"spark.sql.catalog.{name}", "org.apache.iceberg.spark.SparkCatalog")
    for key, value in {**properties, "cache-enabled": "false"}.items():
        spark.conf.set(f"spark.sql.catalog.{name}.{key}", value)
    with connect(spark, **properties) as lake:
        db = f"db{uuid4().hex[:8]}"
        lake.create_namespace(db)
        yield Both(lake, name, db, spark)


def same_rows(both: Both, table: str) -> set[tuple[int, str]]:
    ours = {
        (row.id, row.v) for row in both.lake.load_table(both.name(table)).scan().to_df().collect()
    }
    theirs = {(row.id, row.v) for row in both.sql(f"select * from db.{table}")}
    assert ours == theirs
    return ours


pytestmark = pytest.mark.parametrize("hive", ["3.1.3", OF_SPARK], indirect=True)


@pytest.mark.parametrize("maker", ["java", "frazil"])
def test_each_commits_on_tables_of_either(both: Both, maker: str) -> None:
    columns, schema = "id int, v string", "id int, v string"
    if maker == "java":
        both.sql(f"create table db.t ({columns}) using iceberg")
    else:
        both.lake.create_table(both.name("t"), columns)
    rows: dict[int, str] = {}
    for turn in range(3):
        new = {turn * 10 + each: f"frazil{turn}" for each in range(4)}
        table = both.lake.load_table(both.name("t"))
        table.append(both.spark.createDataFrame(list(new.items()), schema))
        both.sql(f"insert into db.t values ({turn * 10 + 8}, 'java{turn}')")
        table.refresh().delete(f"id = {turn * 10}")
        both.sql(f"update db.t set v = 'changed' where id = {turn * 10 + 1}")
        rows |= {**new, turn * 10 + 8: f"java{turn}", turn * 10 + 1: "changed"}
        del rows[turn * 10]
        assert same_rows(both, "t") == set(rows.items())
    table = both.lake.load_table(both.name("t"))
    assert len(table.metadata.snapshots) == 12
    with table.update_schema() as change:
        change.add_column("more", "string")
    both.sql("alter table db.t add column extra bigint")
    names = [field.name for field in table.refresh().schema.fields]
    assert names == ["id", "v", "more", "extra"]
    assert [row.col_name for row in both.sql("describe table db.t")][:4] == names
    both.lake.rename_table(both.name("t"), both.name("u"))
    both.sql("alter table db.u rename to " + f"{both.db}.w")
    assert same_rows(both, "w") == set(rows.items())
    if maker == "java":
        both.lake.drop_table(both.name("w"))
        assert both.sql(f"show tables in {both.java}.{both.db}") == []
    else:
        both.sql("drop table db.w purge")
        assert both.lake.list_tables(both.db) == []
        with pytest.raises(NoSuchTableError):
            both.lake.load_table(both.name("w"))


def test_both_at_once(both: Both) -> None:
    """Each tries again after the other was first, and no commit of either is lost."""
    both.lake.create_table(both.name("t"), "id bigint", properties=PATIENT)

    def theirs() -> None:
        for number in range(12):
            both.sql(f"alter table db.t set tblproperties ('java{number}' = 'done')")

    def ours(writer: int) -> None:
        catalog = both.lake.catalog
        table = TableHandle(catalog, catalog.load_table(both.name("t")))
        for number in range(12):
            table.refresh().set_properties(**{f"frazil{writer}-{number}": "done"})

    with ThreadPoolExecutor(3) as threads:
        for each in [threads.submit(theirs), *(threads.submit(ours, one) for one in range(2))]:
            each.result()
    found = both.lake.load_table(both.name("t")).metadata
    done = {name for name, value in found.properties.items() if value == "done"}
    writers = ("java", "frazil0-", "frazil1-")
    assert done == {f"{writer}{number}" for writer in writers for number in range(12)}
    assert len(found.metadata_log) == 36


def test_namespaces_of_each(both: Both) -> None:
    name = f"made{uuid4().hex[:8]}"
    both.sql(f"create namespace {both.java}.{name} comment 'theirs' with dbproperties ('a' = '1')")
    found = both.lake.load_namespace_properties(name)
    assert found.items() >= {"comment": "theirs", "a": "1"}.items()
    both.lake.create_table(f"{name}.t", "id bigint")
    both.lake.update_namespace_properties(name, updates={"b": "2"})
    told = {row[0]: row[1] for row in both.sql(f"describe namespace extended {both.java}.{name}")}
    assert "(b,2)" in told["Properties"].replace(" ", "")
    both.sql(f"drop table {both.java}.{name}.t")
    both.sql(f"drop namespace {both.java}.{name}")
    assert not both.lake.namespace_exists(name)
