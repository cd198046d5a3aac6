"""Java's GlueCatalog and Frazil's on one server of Glue's protocol: each on the other's tables."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from hive_server import METASTORES
from test_hive_java import PATIENT, Both, same_rows

from frazil.spark.lake import connect
from frazil.table.handle import TableHandle
from glue_server import GlueServer, glue_server


@pytest.fixture(scope="module")
def glue() -> Iterator[GlueServer]:
    """A server of Glue's protocol."""
    with glue_server() as server:
        yield server


@pytest.fixture
def both(glue: GlueServer, spark: Any, tmp_path: Path) -> Iterator[Both]:
    """Two catalogs and a new namespace."""
    jars = list((METASTORES / "glue").glob("iceberg-aws-bundle-*.jar"))
    if not jars:
        pytest.skip("Java's client of Glue is not there: `make catalogs` gets it, or says why")
    java: Any = spark.sparkContext._jvm
    java.Thread.currentThread().getContextClassLoader().addURL(
        java.java.io.File(str(jars[0])).toURI().toURL()
    )
    properties = glue.emptied((tmp_path / "wh").as_uri())
    java.System.setProperty("aws.accessKeyId", properties["glue.access-key-id"])
    java.System.setProperty("aws.secretAccessKey", properties["glue.secret-access-key"])
    name = f"java_{uuid4().hex[:8]}"
    for key, value in {
        "": "org.apache.iceberg.spark.SparkCatalog",
        ".type": "glue",
        ".warehouse": properties["warehouse"],
        ".io-impl": "org.apache.iceberg.hadoop.HadoopFileIO",
        ".glue.endpoint": glue.address,
        ".client.region": "us-east-1",
        ".cache-enabled": "false",
    }.items():
        spark.conf.set(f"spark.sql.catalog.{name}{key}", value)
    with connect(spark, **properties) as lake:
        db = f"db{uuid4().hex[:8]}"
        lake.create_namespace(db)
        yield Both(lake, name, db, spark)


@pytest.mark.parametrize("maker", ["java", "frazil"])
def test_each_commits_on_tables_of_either(both: Both, maker: str) -> None:
    columns = "id int, v string"
    if maker == "java":
        both.sql(f"create table db.t ({columns}) using iceberg")
    else:
        both.lake.create_table(both.name("t"), columns)
    rows: dict[int, str] = {}
    for turn in range(2):
        new = {turn * 10 + each: f"frazil{turn}" for each in range(4)}
        table = both.lake.load_table(both.name("t"))
        table.append(both.spark.createDataFrame(list(new.items()), columns))
        both.sql(f"insert into db.t values ({turn * 10 + 8}, 'java{turn}')")
        table.refresh().delete(f"id = {turn * 10}")
        both.sql(f"update db.t set v = 'changed' where id = {turn * 10 + 1}")
        rows |= {**new, turn * 10 + 8: f"java{turn}", turn * 10 + 1: "changed"}
        del rows[turn * 10]
        assert same_rows(both, "t") == set(rows.items())
    table = both.lake.load_table(both.name("t"))
    with table.update_schema() as change:
        change.add_column("more", "string")
    both.sql("alter table db.t add column extra bigint")
    names = [field.name for field in table.refresh().schema.fields]
    assert names == ["id", "v", "more", "extra"]
    both.lake.rename_table(both.name("t"), both.name("u"))
    both.sql("alter table db.u rename to " + f"{both.db}.w")
    assert same_rows(both, "w") == set(rows.items())
    if maker == "java":
        both.lake.drop_table(both.name("w"))
        assert both.sql(f"show tables in {both.java}.{both.db}") == []
    else:
        both.sql("drop table db.w")
        assert both.lake.list_tables(both.db) == []


def test_both_at_once(both: Both) -> None:
    """Each tries again after the other was first, and no commit of either is lost."""
    both.lake.create_table(both.name("t"), "id bigint", properties=PATIENT)

    def theirs() -> None:
        for number in range(8):
            both.sql(f"alter table db.t set tblproperties ('java{number}' = 'done')")

    def ours() -> None:
        catalog = both.lake.catalog
        table = TableHandle(catalog, catalog.load_table(both.name("t")))
        for number in range(8):
            table.refresh().set_properties(**{f"frazil{number}": "done"})

    with ThreadPoolExecutor(2) as threads:
        for each in [threads.submit(theirs), threads.submit(ours)]:
            each.result()
    found = both.lake.load_table(both.name("t")).metadata
    done = {name for name, value in found.properties.items() if value == "done"}
    assert done == {f"{who}{number}" for who in ("java", "frazil") for number in range(8)}
    assert len(found.metadata_log) == 16
