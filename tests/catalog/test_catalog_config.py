"""Where a catalog's settings come from, and that its secrets stay there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from catalog_cases import made_table

from frazil.catalog.config import CatalogConfig, load_catalog, open_catalog, refuse_unknown, resolve
from frazil.catalog.kinds import register_catalog
from frazil.catalog.pointer.filesystem import FilesystemCatalog
from frazil.catalog.pointer.sql import SqlCatalog
from frazil.errors import ConfigurationError, FrazilError, StorageError, UnsupportedError


def test_keywords_beat_environment_beats_file(tmp_path: Path) -> None:
    file = tmp_path / ".frazil.yaml"
    file.write_text(
        "catalog:\n  prod:\n    uri: from-file\n    warehouse: w\n    type: sql\n"
        "    s3.region: eu\n    s3:\n      endpoint: http://e\n    pool: 5\n    flag: true\n"
    )
    environment = {
        "PYICEBERG_CATALOG__PROD__URI": "from-pyiceberg",
        "FRAZIL_CATALOG__PROD__URI": "from-environment",
        "PYICEBERG_CATALOG__PROD__S3__ACCESS_KEY_ID": "key",
        "FRAZIL_CATALOG__OTHER__URI": "other",
        "FRAZIL_CATALOG__PROD__INIT_CATALOG_TABLES": "false",
    }
    found = resolve("prod", {"warehouse": "kw"}, environment=environment, files=[file])
    assert found.properties == {
        "uri": "from-environment",
        "warehouse": "kw",
        "type": "sql",
        "s3.region": "eu",
        "s3.endpoint": "http://e",
        "s3.access-key-id": "key",
        "pool": "5",
        "flag": "true",
        "init_catalog_tables": "false",
    }


def test_the_first_file_wins(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("catalog: {default: {uri: a}}")
    (tmp_path / "b").write_text("catalog: {default: {uri: b}}")
    files = [tmp_path / "none", tmp_path / "a", tmp_path / "b"]
    assert resolve(environment={}, files=files).properties == {"uri": "a"}


@pytest.mark.parametrize(
    "text", ["[1]", "catalog: 5", "catalog: {default: x}", "a: [", "catalog: {default: {a: [1]}}"]
)
def test_malformed_files_are_named_and_not_quoted(tmp_path: Path, text: str) -> None:
    (tmp_path / "f").write_text(text + " # s3cr3t")
    with pytest.raises(ConfigurationError, match=str(tmp_path)) as caught:
        resolve(environment={}, files=[tmp_path / "f"])
    assert "s3cr3t" not in str(caught.value)


def test_the_default_is_sqlite_in_the_warehouse(tmp_path: Path) -> None:
    catalog = open_catalog(CatalogConfig("lake", {"warehouse": str(tmp_path / "w h%20")}))
    assert isinstance(catalog, SqlCatalog)
    made_table(catalog)
    assert (tmp_path / "w h%20" / "catalog.db").exists()
    assert (tmp_path / "w h%20" / "db" / "t" / "metadata").is_dir()
    again = load_catalog("lake", warehouse=tmp_path / "w h%20")
    assert again.list_tables("db") == [("db", "t")]


def test_types() -> None:
    made = open_catalog(CatalogConfig("x", {"type": "hadoop", "warehouse": "/nowhere"}))
    assert isinstance(made, FilesystemCatalog)
    for properties, error in [
        (
            {"type": "rest", "uri": "http://127.0.0.1:1", "rest.client.max-retries": "0"},
            StorageError,
        ),
        ({"uri": "https://u:s3cr3t@x"}, ConfigurationError),
        ({"type": "rest"}, ConfigurationError),
        ({"uri": "dynamodb", "type": "dynamodb"}, UnsupportedError),
        ({"type": "odd"}, ConfigurationError),
        ({}, ConfigurationError),
        ({"type": "sql"}, ConfigurationError),
        ({"type": "filesystem"}, ConfigurationError),
        ({"warehouse": "s3://b/w"}, ConfigurationError),
        ({"uri": "not a url", "type": "sql"}, ConfigurationError),
        ({"uri": "nosuchdb://u:s3cr3t@h/d", "type": "sql"}, ConfigurationError),
        ({"uri": "sqlite:////proc/no/such.db"}, ConfigurationError),
        ({"uri": "sqlite:////dev/null/x.db"}, ConfigurationError),
        ({"uri": "sqlite:///:memory:", "echo": "maybe"}, ConfigurationError),
    ]:
        with pytest.raises(error) as caught:
            open_catalog(CatalogConfig("x", properties))
        assert "s3cr3t" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("warehose", "is warehouse meant"),
        ("s3.enpoint", "is s3.endpoint meant"),
        ("init-catalog-tables", "is init_catalog_tables meant"),
        ("zzz", "properties.md"),
    ],
)
def test_an_unknown_keyword_is_refused(tmp_path: Path, name: str, advice: str) -> None:
    with pytest.raises(ConfigurationError, match=advice):
        load_catalog("lake", **{"warehouse": tmp_path, name: "1"})
    # Environment and file are shared with other engines.
    found = resolve("lake", {}, environment={"FRAZIL_CATALOG__LAKE__DOWNCAST": "1"}, files=[])
    assert found.properties == {"downcast": "1"}


def test_every_documented_property_is_known() -> None:
    page = Path(__file__).parents[2] / "docs" / "reference" / "properties.md"
    table = page.read_text().partition("## Catalog properties")[2]
    rows = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    found = re.findall(r"`([^`]+)`", " ".join(rows))
    names = [name for name in found if "…" not in name]
    assert len(names) > 40
    refuse_unknown(dict.fromkeys(name.replace("<account>", "a") for name in names))


class CrateCatalog(FilesystemCatalog):
    """A kind of catalog that another package might have."""

    kind = "crate"
    property_names = frozenset({"crate.size"})


def test_a_registered_class_is_named_by_its_type(tmp_path: Path) -> None:
    register_catalog("crate", CrateCatalog)
    register_catalog("crate", CrateCatalog)
    with pytest.raises(ConfigurationError, match="CrateCatalog already"):
        register_catalog("crate", FilesystemCatalog)
    made = load_catalog("x", type="Crate", warehouse=tmp_path, **{"crate.size": "1"})
    assert type(made) is CrateCatalog
    assert made.properties["crate.size"] == "1"
    with pytest.raises(ConfigurationError, match=r"is crate\.size meant"):
        load_catalog("x", type="crate", warehouse=tmp_path, **{"crate.sise": "1"})


def test_an_installed_class_is_found_by_its_entry_point(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "boxes-1.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Name: boxes\nVersion: 1\n")
    lines = ["[frazil.catalogs]", f"box = {__name__}:CrateCatalog", "tin = json:JSONDecoder"]
    (package / "entry_points.txt").write_text("\n".join(lines))
    monkeypatch.syspath_prepend(tmp_path)
    assert type(load_catalog("x", type="box", warehouse=tmp_path)) is CrateCatalog
    with pytest.raises(UnsupportedError, match="JSONDecoder"):
        load_catalog("x", type="tin", warehouse=tmp_path)


def test_a_class_is_named_by_its_path_as_in_pyiceberg(tmp_path: Path) -> None:
    path = f"{__name__}.CrateCatalog"
    found = {"py-catalog-impl": path, "warehouse": str(tmp_path)}
    assert type(load_catalog("x", **found)) is CrateCatalog
    for wrong, error, match in [
        ({"type": "sql"}, ConfigurationError, "one of them"),
        ({"py-catalog-impl": "pyiceberg.catalog.sql.SqlCatalog"}, UnsupportedError, "of Frazil"),
        ({"py-catalog-impl": "no_such_module.Catalog"}, ConfigurationError, "no_such_module"),
        ({"py-catalog-impl": "Catalog"}, ConfigurationError, r"package\.module\.Class"),
    ]:
        with pytest.raises(error, match=match):
            open_catalog(CatalogConfig("x", {**found, **wrong}))


def test_a_driver_that_says_much_is_cut_short() -> None:
    pytest.importorskip("pyarrow.fs")
    with pytest.raises(FrazilError) as caught:
        load_catalog("x", type="hadoop", warehouse="hdfs://nowhere.invalid:1/wh").list_namespaces()
    assert len(str(caught.value)) < 700


SECRETS = {
    "uri": "postgresql://me:s3cr3t-pw@127.0.0.1:1/db",
    "s3.secret-access-key": "s3cr3t-key",
    "jdbc.password": "s3cr3t-jdbc",
    "token": "s3cr3t-token",
}


def test_secrets_do_not_show() -> None:
    config = CatalogConfig("x", SECRETS)
    assert "s3cr3t" not in repr(config)
    with pytest.raises(StorageError) as caught:
        open_catalog(config)
    error: BaseException | None = caught.value
    while error is not None:
        assert "s3cr3t" not in repr(error)
        error = error.__cause__
    memory = open_catalog(CatalogConfig("x", {**SECRETS, "uri": "sqlite:///:memory:"}))
    assert "s3cr3t" not in repr(memory)


@pytest.mark.parametrize("uri", ["sqlite:///:memory:", "jdbc:sqlite:{}/j.db"])
def test_other_places_of_the_database(tmp_path: Path, uri: str) -> None:
    """In memory, and as JDBC spells it."""
    given = {"uri": uri.format(tmp_path), "warehouse": str(tmp_path)}
    catalog = open_catalog(CatalogConfig("x", given))
    made_table(catalog)
    assert catalog.table_exists("db.t")
    assert (tmp_path / "j.db").exists() == ("jdbc" in uri)


def test_a_database_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "x.db").write_bytes(b"not a database" * 100)
    with pytest.raises(FrazilError, match="not a database"):
        open_catalog(CatalogConfig("x", {"uri": f"sqlite:///{tmp_path}/x.db"}))
