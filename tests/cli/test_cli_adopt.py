"""`frazil adopt`: tables of a folder and of other catalogs get names in a catalog of SQLite."""

import pytest
import yaml
from commands import actions, adopt, everything_below, rows
from pyiceberg.catalog.sql import SqlCatalog as PyIcebergCatalog

from frazil.catalog.config import load_catalog
from frazil.format.changes import SetProperties
from frazil.format.new_table import new_table_metadata
from frazil.format.schema import Schema
from frazil.format.types import LongType, NestedField

SCHEMA = Schema((NestedField(1, "id", LongType(), required=True),))
VERSIONS = {"db.a": 1, "db.b": 2, "deep.er.c": 3}
"""The tables of the old warehouse, with their format versions."""


@pytest.fixture
def old(home):
    """A Hadoop warehouse of three tables; db.b has a second commit."""
    folder = home / "old"
    catalog = load_catalog("old", type="hadoop", warehouse=str(folder))
    for name, version in VERSIONS.items():
        made(catalog, name, version)
    catalog.commit_table("db.b", [], [SetProperties({"owner": "me"})])
    return folder


def made(catalog, name, version=2):
    namespace = name.rpartition(".")[0]
    if not catalog.namespace_exists(namespace):
        catalog.create_namespace(namespace)
    place = catalog.default_table_location(name)
    metadata = new_table_metadata(SCHEMA, location=place, format_version=version)
    return catalog.create_table(name, metadata)


def newest(folder, name, version=1):
    return (folder.joinpath(*name.split(".")) / "metadata" / f"v{version}.metadata.json").as_uri()


def lake():
    return load_catalog(warehouse="new")


def test_a_dry_run_shows_what_would_be_done_and_changes_nothing(home, old):
    before = everything_below(home)
    text = adopt(old)
    assert text.splitlines()[0].split() == ["source", "table", "action", "version", "metadata"]
    assert text.splitlines()[2].split() == ["db.b", "db.b", "register", "2", newest(old, "db.b", 2)]
    assert "3 register\nnew namespaces: db, deep.er\nnothing was changed: --apply" in text
    assert everything_below(home) == before
    lake_there = load_catalog(warehouse="new")
    lake_there.create_namespace("db")
    before = everything_below(home)
    assert "new namespaces: deep.er\n" in adopt(old)
    assert everything_below(home) == before


def test_adopted_tables_are_those_of_the_folder(home, old):
    files = everything_below(old)
    found = rows(old, "--apply")
    assert {name: row["action"] for name, row in found.items()} == dict.fromkeys(
        VERSIONS, "registered"
    )
    assert {name: row["format_version"] for name, row in found.items()} == VERSIONS
    assert everything_below(old) == files
    other = PyIcebergCatalog("default", uri=f"sqlite:///{home}/new/catalog.db")
    for name in VERSIONS:
        expected = newest(old, name, 2 if name == "db.b" else 1)
        assert other.load_table(name).metadata_location == found[name]["metadata"] == expected
    lake().commit_table("db.a", [], [SetProperties({"owner": "me"})])
    assert other.load_table("db.a").properties["owner"] == "me"


def test_a_second_run_says_what_exists(old):
    adopt(old, "--apply")
    text = adopt(old, "--apply")
    assert "3 exists\n" in text
    assert "registered" not in text
    lake().commit_table("db.a", [], [SetProperties({"owner": "me"})])
    found = rows(old)
    assert {row["action"] for row in found.values()} == {"exists"}
    assert "only one of them may be written to" in found["db.a"]["reason"]
    assert found["db.b"]["reason"] is None


def test_what_cannot_be_adopted_is_said_and_the_others_are(home, old):
    damaged = home / "old/db/b/metadata/v2.metadata.json"
    damaged.write_text("{")
    other = lake()
    made(other, "db.a")
    made(load_catalog("rows", warehouse="old"), "db.rows")
    text = adopt(old, "--apply", code=1)
    assert "2 failed, 2 registered\n" in text
    found = rows(old, code=1)
    assert {name: row["action"] for name, row in found.items()} == {
        "db.a": "failed",
        "db.b": "failed",
        "db.rows": "exists",
        "deep.er.c": "exists",
    }
    assert "db.a is another table" in found["db.a"]["reason"]
    assert "v2.metadata.json" in found["db.b"]["reason"]
    assert lake().load_table("deep.er.c").metadata_location == newest(old, "deep.er.c")
    assert not lake().table_exists("db.b")


def test_one_namespace_gets_all_tables(home, old):
    made(load_catalog("old", type="hadoop", warehouse=str(old)), "deep.a")
    found = rows(old, "--into", "x.y", "--apply", code=1, key="source")
    assert {name: (row["table"], row["action"]) for name, row in found.items()} == {
        "db.a": ("x.y.a", "registered"),
        "db.b": ("x.y.b", "registered"),
        "deep.a": ("x.y.a", "failed"),
        "deep.er.c": ("x.y.c", "registered"),
    }
    assert found["deep.a"]["reason"] == "db.a takes this name already"
    assert lake().list_tables("x.y") == [("x", "y", each) for each in "abc"]


def test_a_dropped_table_of_a_sql_catalog_comes_back_by_its_folder(home):
    for name in ("db.kept", "db.gone", "db.before", "db.again"):
        made(lake(), name)
    gone = lake().commit_table("db.gone", [], [SetProperties({"owner": "me"})])
    lake().rename_table("db.before", "db.after")
    for name in ("db.gone", "db.again"):
        lake().drop_table(name)
    made(lake(), "db.again")
    again = lake().load_table("db.again")
    found = rows("./new", "--apply")
    assert {name: row["action"] for name, row in found.items()} == {
        "db.kept": "exists",
        "db.gone": "registered",
        "db.before": "exists",
        "db.again": "exists",
    }
    assert found["db.before"]["reason"] == "as db.after"
    assert "newest metadata file" in found["db.gone"]["reason"]
    assert lake().load_table("db.gone").metadata_location == gone.metadata_location
    assert lake().load_table("db.again").metadata_location == again.metadata_location
    assert set(actions("./new").values()) == {"exists"}


def test_a_folder_of_tables_is_a_namespace(old):
    assert actions(old / "db") == {"db.a": "register", "db.b": "register"}
    assert actions("./old/deep/er") == {"er.c": "register"}


def test_folders_of_other_files_are_told(home, old):
    for name in ("db/plain/part-0.parquet", "db/parted/city=Rome/part-0.parquet", "loose.parquet"):
        path = home / "old" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"PAR1")
    found = actions(old)
    assert {name for name, action in found.items() if action == "not Iceberg"} == {
        "db.plain",
        "db.parted",
    }
    assert set(found) == {*VERSIONS, "db.plain", "db.parted"}


def test_a_configured_catalog_is_a_source(home):
    place = str(home / "shop")
    (home / ".frazil.yaml").write_text(yaml.safe_dump({"catalog": {"shop": {"warehouse": place}}}))
    shop = load_catalog("shop")
    for name in ("sales.eu.orders", "sales.orders", "db.t"):
        made(shop, name)
    assert "there is no namespace none" in adopt("shop/none", "--apply", code=1)
    assert not (home / "new").exists()
    assert actions("shop") == dict.fromkeys(("db.t", "sales.eu.orders", "sales.orders"), "register")
    assert set(actions("shop/sales")) == {"sales.eu.orders", "sales.orders"}
    assert actions("shop/sales.eu", "--into", "eu", "--apply") == {"eu.orders": "registered"}
    expected = shop.load_table("sales.eu.orders").metadata_location
    assert lake().load_table("eu.orders").metadata_location == expected


REFUSED = {
    "a folder that is not there": ("./nowhere", "there is no folder"),
    "a table": ("./old/db/a", "is a table"),
    "no catalog": ("nowhere", "no catalog nowhere is configured"),
    "a folder without its dot": ("old/db", "a folder is written ./old/db"),
    "a metastore without a host": ("hive:///db", "write hive://host:port"),
    "a user": ("hive://me:hush-hush@host/db", "without a user"),
    "a port": ("hive://host:many/db", "write hive://host:port"),
    "a metastore that is not there": ("hive://127.0.0.1:1/db", "hive"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_sources_that_are_refused(home, old, case):
    source, said = REFUSED[case]
    text = adopt(source, "--apply", code=1)
    assert said in text
    assert "hush-hush" not in text
    assert not (home / "new").exists()
