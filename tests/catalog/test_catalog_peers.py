"""The same database under PyIceberg, tables without a catalog, and purges of real files."""

from __future__ import annotations

import json
import shutil
import sqlite3
from pathlib import Path

import pyarrow as pa
import pytest
from catalog_cases import made_table, opened, properties_of, set_properties
from pyiceberg.catalog.sql import SqlCatalog as PyIcebergCatalog
from pyiceberg.table import StaticTable

from frazil.catalog.config import CatalogConfig, open_catalog
from frazil.catalog.protocol import Catalog
from frazil.catalog.static import StaticCatalog, open_table
from frazil.errors import (
    FrazilError,
    InvalidMetadataError,
    MissingFileError,
    NoSuchTableError,
    UnsupportedError,
)
from frazil.storage.files import local_path


@pytest.fixture
def kind() -> str:
    return "sqlite"


def peer(tmp_path: Path, name: str = "lake") -> PyIcebergCatalog:
    return PyIcebergCatalog(
        name, uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=str(tmp_path / "wh")
    )


def test_pyiceberg_opens_our_catalog(catalog: Catalog, tmp_path: Path) -> None:
    catalog.create_namespace("db", {"owner": "me"})
    made_table(catalog, "db.t", a="1")
    made_table(catalog, "db.deep.u")
    theirs = peer(tmp_path)
    assert set(theirs.list_namespaces()) == {("db",)}
    assert theirs.list_namespaces("db") == [("db", "deep")]
    assert theirs.list_tables("db") == [("db", "t")]
    assert theirs.load_namespace_properties("db")["owner"] == "me"
    table = theirs.load_table("db.t")
    assert table.properties["a"] == "1"
    assert [field.name for field in table.schema().fields] == ["id", "s"]
    with table.transaction() as transaction:
        transaction.set_properties(b="2")
    assert catalog.load_table("db.t").metadata.properties["b"] == "2"
    set_properties(catalog, "db.t", c="3")
    assert theirs.load_table("db.t").properties["c"] == "3"


def test_we_open_pyicebergs_catalog(tmp_path: Path) -> None:
    theirs = peer(tmp_path)
    theirs.create_namespace("db", {"owner": "them"})
    schema = pa.schema([pa.field("id", pa.int64())])
    table = theirs.create_table("db.t", schema)
    table.append(pa.table({"id": [1, 2, 3]}, schema=schema))
    catalog = opened(properties_of("sqlite", tmp_path))
    assert catalog.list_namespaces() == [("db",)]
    assert catalog.load_namespace_properties("db") == {"owner": "them"}
    loaded = catalog.load_table("db.t")
    assert loaded.metadata_location == table.metadata_location
    assert loaded.metadata.current_snapshot is not None
    changed = set_properties(catalog, "db.t", a="1")
    name = changed.metadata_location.rpartition("/")[2]
    assert name.startswith("00002-")
    assert theirs.load_table("db.t").scan().to_arrow()["id"].to_pylist() == [1, 2, 3]


def test_catalogs_of_other_names_share_a_database(catalog: Catalog, tmp_path: Path) -> None:
    made_table(catalog)
    other = opened(properties_of("sqlite", tmp_path), name="other")
    assert other.list_namespaces() == []
    assert not other.table_exists("db.t")


def v0_database(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "catalog.db") as connection:
        connection.executescript(
            "CREATE TABLE iceberg_tables(catalog_name VARCHAR(255) NOT NULL,"
            " table_namespace VARCHAR(255) NOT NULL, table_name VARCHAR(255) NOT NULL,"
            " metadata_location VARCHAR(1000), previous_metadata_location VARCHAR(1000),"
            " PRIMARY KEY (catalog_name, table_namespace, table_name));"
            "CREATE TABLE iceberg_namespace_properties(catalog_name VARCHAR(255) NOT NULL,"
            " namespace VARCHAR(255) NOT NULL, property_key VARCHAR(255),"
            " property_value VARCHAR(1000), PRIMARY KEY (catalog_name, namespace, property_key));"
        )


def columns(tmp_path: Path) -> list[str]:
    with sqlite3.connect(tmp_path / "catalog.db") as connection:
        return [row[1] for row in connection.execute("PRAGMA table_info(iceberg_tables)")]


def test_the_older_schema_of_java(tmp_path: Path) -> None:
    """JdbcCatalog's V0 has no iceberg_type; it stays so unless V1 is asked for."""
    v0_database(tmp_path)
    catalog = opened(properties_of("sqlite", tmp_path))
    made_table(catalog)
    set_properties(catalog, "db.t", a="1")
    assert "iceberg_type" not in columns(tmp_path)
    newer = opened({**properties_of("sqlite", tmp_path), "jdbc.schema-version": "V1"})
    assert "iceberg_type" in columns(tmp_path)
    assert newer.list_tables("db") == [("db", "t")]
    set_properties(newer, "db.t", b="1")
    made_table(newer, "db.u")
    assert newer.list_tables("db") == [("db", "t"), ("db", "u")]


def test_a_namespace_is_implied_by_its_tables(catalog: Catalog, tmp_path: Path) -> None:
    """As in Java: rows of tables alone make a namespace."""
    made_table(catalog, "a.b.t")
    with sqlite3.connect(tmp_path / "catalog.db") as connection:
        connection.execute("DELETE FROM iceberg_namespace_properties")
    assert catalog.list_namespaces() == [("a",)]
    assert catalog.list_namespaces("a") == [("a", "b")]
    assert catalog.load_namespace_properties("a.b") == {}


def test_a_missing_catalog_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(FrazilError, match="holds no catalog"):
        opened({**properties_of("sqlite", tmp_path), "init_catalog_tables": "false"})


def test_pyiceberg_reads_our_folders(tmp_path: Path) -> None:
    catalog = opened(properties_of("filesystem", tmp_path))
    made_table(catalog, a="1")
    set_properties(catalog, "db.t", b="2")
    table = StaticTable.from_metadata(str(tmp_path / "wh" / "db" / "t"))
    assert table.properties.items() >= {"a": "1", "b": "2"}.items()


@pytest.mark.parametrize("kind", ["filesystem", "sqlite"])
def test_tables_without_a_catalog(catalog: Catalog, tmp_path: Path) -> None:
    made_table(catalog)
    table = set_properties(catalog, "db.t", a="1")
    folder = str(tmp_path / "wh" / "db" / "t")
    for place in (folder, f"file:{folder}/", f"{folder}/metadata", table.metadata_location):
        assert open_table(place).metadata == table.metadata
    static = StaticCatalog(folder)
    assert static.identifier == ("static", "t")
    assert static.list_tables(()) == [("static", "t")]
    with pytest.raises(UnsupportedError, match="register it"):
        set_properties(static, "static.t", b="1")
    for refused in (static.drop_table, static.purge_table, static.create_namespace):
        with pytest.raises(UnsupportedError):
            refused("static.t")
    newer = set_properties(catalog, "db.t", c="1")
    assert static.load_table("static.t").metadata == newer.metadata


def test_places_without_a_table(tmp_path: Path) -> None:
    with pytest.raises(NoSuchTableError, match=str(tmp_path)):
        open_table(str(tmp_path))
    assert not StaticCatalog(str(tmp_path)).table_exists("a.b")
    with pytest.raises(MissingFileError):
        open_table(str(tmp_path / "x.metadata.json"))
    (tmp_path / "y.metadata.json").write_text("{}")
    with pytest.raises(InvalidMetadataError):
        open_table(str(tmp_path / "y.metadata.json"))


def test_real_tables_open_at_their_newest(fixtures_dir: Path) -> None:
    """The fixtures name the newest metadata file of each table."""
    compared = 0
    for line in (fixtures_dir / "EXPECTED.jsonl").read_text().splitlines():
        expected = json.loads(line)
        if "metadata" not in expected:
            continue
        folder = fixtures_dir / expected["path"]
        try:
            found = open_table(str(folder))
        except UnsupportedError:
            continue
        hint = folder / "metadata" / "version-hint.text"
        if hint.exists():
            assert hint.read_text().strip() in found.metadata_location
        else:
            assert found.metadata_location.endswith("/" + expected["metadata"])
        compared += 1
    assert compared > 60


@pytest.mark.parametrize("kind", ["filesystem", "sqlite"])
def test_purge_removes_every_reachable_file(tmp_path: Path, kind: str) -> None:
    """Data of all snapshots, by a table that PyIceberg wrote; a neighbour's files stay."""
    theirs = peer(tmp_path)
    theirs.create_namespace("db")
    schema = pa.schema([pa.field("id", pa.int64())])
    elsewhere = tmp_path / "elsewhere"
    table = theirs.create_table("db.t", schema, properties={"write.data.path": elsewhere.as_uri()})
    for number in range(3):
        table.append(pa.table({"id": [number]}, schema=schema))
    table.delete("id = 1")
    neighbour = tmp_path / "wh" / "db" / "u" / "data.parquet"
    neighbour.parent.mkdir(parents=True)
    neighbour.write_bytes(b"")
    catalog = opened(properties_of("sqlite", tmp_path))
    if kind == "filesystem":
        metadata = Path(local_path(table.metadata_location) or "")
        shutil.copy(metadata, metadata.parent / "v1.metadata.json")
        catalog = opened(properties_of("filesystem", tmp_path))
    assert len(list(elsewhere.rglob("*.parquet"))) == 3
    catalog.purge_table("db.t")
    assert not list(elsewhere.rglob("*.parquet"))
    left = [p for p in (tmp_path / "wh").rglob("*") if p.is_file()]
    assert left == [neighbour]
    assert not catalog.table_exists("db.t")


def test_warehouse_defaults(tmp_path: Path) -> None:
    catalog = open_catalog(CatalogConfig("x", {"uri": f"sqlite:///{tmp_path}/c.db"}))
    catalog.create_namespace("db")
    with pytest.raises(FrazilError, match="warehouse"):
        catalog.default_table_location("db.t")
    catalog.update_namespace_properties("db", updates={"location": f"{tmp_path}/there"})
    assert catalog.default_table_location("db.t") == f"file://{tmp_path}/there/t"
