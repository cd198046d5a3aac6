"""Tables and namespaces of a Hive metastore, and what lies beside them in it."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import closing
from uuid import uuid4

import pytest
from catalog_cases import made_table, new_metadata, opened, place_of, set_properties
from hive_server import OF_SPARK, Metastore, client_of, properties_of
from pymetastore.hive_metastore import ttypes

from frazil.catalog.protocol import Catalog
from frazil.errors import (
    ConfigurationError,
    NamespaceAlreadyExistsError,
    NamespaceNotEmptyError,
    NoSuchNamespaceError,
    NoSuchTableError,
    TableAlreadyExistsError,
    UnsupportedError,
    ValidationError,
)

OWNER = "hive.metastore.database.owner"
OWNER_TYPE = "hive.metastore.database.owner-type"


@pytest.fixture
def catalog(hive: Metastore) -> Iterator[Catalog]:
    """A catalog in a warehouse of its own."""
    with closing(opened(properties_of(hive, ugi="anna"))) as made:
        yield made


@pytest.fixture
def db(catalog: Catalog) -> str:
    """A new namespace."""
    name = f"db{uuid4().hex[:10]}"
    catalog.create_namespace(name)
    return name


def record_of(
    database: str, name: str, table_type: str, parameters: dict[str, str], location: str
) -> ttypes.Table:
    """A record as another program makes it."""
    serde = ttypes.SerDeInfo(
        serializationLib="org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe", parameters={}
    )
    place = ttypes.StorageDescriptor(
        cols=[ttypes.FieldSchema("id", "bigint", None)],
        location=location,
        inputFormat="org.apache.hadoop.mapred.TextInputFormat",
        outputFormat="org.apache.hadoop.hive.ql.io.HiveIgnoreKeyTextOutputFormat",
        serdeInfo=serde,
    )
    return ttypes.Table(
        dbName=database,
        tableName=name,
        owner="anna",
        sd=place,
        partitionKeys=[],
        parameters=parameters,
        tableType=table_type,
    )


def found_record(hive: Metastore, database: str, name: str) -> ttypes.Table:
    """What the metastore has of a table."""
    with client_of(hive) as client:
        return client.get_table_req(ttypes.GetTableRequest(dbName=database, tblName=name)).table


# -- namespaces ------------------------------------------------------------------------------------


def test_namespaces_have_one_level(catalog: Catalog, db: str) -> None:
    assert {("default",), (db,)} <= set(catalog.list_namespaces())
    assert catalog.list_namespaces(db) == []
    with pytest.raises(NamespaceAlreadyExistsError, match=db):
        catalog.create_namespace(db)
    with pytest.raises(UnsupportedError, match="one level"):
        catalog.create_namespace(f"{db}.deep")
    assert not catalog.namespace_exists(f"{db}.deep")
    for call in (
        catalog.list_namespaces,
        catalog.list_tables,
        catalog.load_namespace_properties,
        catalog.drop_namespace,
    ):
        for name in ("none", f"{db}.deep"):
            with pytest.raises(NoSuchNamespaceError):
                call(name)
    with pytest.raises(NoSuchNamespaceError):
        catalog.create_table("none.t", new_metadata(catalog, "none.t"))
    made_table(catalog, f"{db}.t")
    with pytest.raises(NamespaceNotEmptyError, match=db):
        catalog.drop_namespace(db)
    catalog.drop_table(f"{db}.t")
    catalog.drop_namespace(db)
    assert not catalog.namespace_exists(db)


def test_names_have_no_case(catalog: Catalog, db: str) -> None:
    """Hive keeps names in small letters, and finds them by any."""
    made = made_table(catalog, f"{db}.Busy")
    assert catalog.list_tables(db) == [(db, "busy")]
    assert catalog.load_table(f"{db.upper()}.BUSY").metadata == made.metadata
    with pytest.raises(TableAlreadyExistsError):
        catalog.create_table(f"{db}.busy", made.metadata)
    set_properties(catalog, f"{db}.bUSY", a="1")
    assert catalog.load_table(f"{db}.busy").metadata.properties["a"] == "1"
    with pytest.raises(ValidationError, match="valid"):
        catalog.create_table((db, "a\\b"), made.metadata)


def changes_comments(catalog: Catalog, hive: Metastore, name: str) -> None:
    """Another comment is there, or it is said that it is not."""
    if hive.version != OF_SPARK:
        catalog.update_namespace_properties(name, updates={"comment": "another"})
        assert catalog.load_namespace_properties(name)["comment"] == "another"
        return
    with pytest.raises(UnsupportedError, match="comment"):
        catalog.update_namespace_properties(name, updates={"comment": "another"})


def test_properties_of_namespaces(catalog: Catalog, hive: Metastore) -> None:
    name = f"db{uuid4().hex[:10]}"
    own = {"a": "1", "b": "2", "comment": "what it is for"}
    catalog.create_namespace(name, own)
    found = catalog.load_namespace_properties(name)
    place = found.pop("location").replace("file:///", "file:/")
    assert place == f"{catalog.properties['warehouse']}/{name}.db".replace("file:///", "file:/")
    assert found == {**own, OWNER: "anna", OWNER_TYPE: "USER"}
    updates = {"b": "3", "c": "4", OWNER: "eve", OWNER_TYPE: "ROLE"}
    changes_comments(catalog, hive, name)
    updates["comment"] = catalog.load_namespace_properties(name)["comment"]
    catalog.update_namespace_properties(name, updates=updates, removals=["a", "x"])
    found = catalog.load_namespace_properties(name)
    del found["location"]
    assert found == updates
    catalog.update_namespace_properties(name, removals=["b", "c", OWNER])
    found = catalog.load_namespace_properties(name)
    assert set(found) == {"location", "comment", OWNER, OWNER_TYPE}
    assert (found[OWNER], found[OWNER_TYPE]) == ("anna", "USER")
    for updates, removals in (
        ({"b": "3"}, ["b"]),
        ({}, ["location"]),
        ({}, ["comment"]),
        ({OWNER: "eve", OWNER_TYPE: "ADMIRAL"}, []),
    ):
        with pytest.raises(ValidationError):
            catalog.update_namespace_properties(name, updates=updates, removals=removals)
    with pytest.raises(NoSuchNamespaceError):
        catalog.update_namespace_properties("none", updates={"b": "3"})


def test_a_namespace_elsewhere(catalog: Catalog, hive: Metastore) -> None:
    name, place = f"db{uuid4().hex[:10]}", f"{hive.warehouse}/{uuid4().hex}"
    catalog.create_namespace(name, {"location": place})
    assert catalog.default_table_location(f"{name}.t") == f"{place}/t"
    assert made_table(catalog, f"{name}.t").metadata.location == f"{place}/t"
    catalog.update_namespace_properties(name, updates={"location": place})
    if hive.version == OF_SPARK:
        with pytest.raises(UnsupportedError, match="location"):
            catalog.update_namespace_properties(name, updates={"location": f"{place}-2"})
    else:
        catalog.update_namespace_properties(name, updates={"location": f"{place}-2"})
        assert catalog.default_table_location(f"{name}.u") == f"{place}-2/u"
    for odd in ("..", "a/b"):
        with pytest.raises(ValidationError, match="folder's name"):
            catalog.default_table_location((name, odd))


def test_without_a_warehouse_the_metastore_says_where(hive: Metastore) -> None:
    with closing(opened({"type": "hive", "uri": hive.uri})) as catalog:
        name = f"db{uuid4().hex[:10]}"
        catalog.create_namespace(name)
        place = catalog.load_namespace_properties(name)["location"]
        assert str(hive.folder) in place
        assert place.endswith(f"{name}.db")
        made_table(catalog, f"{name}.t")
        with pytest.raises(ConfigurationError, match="warehouse"):
            catalog.default_table_location("none.t")


# -- tables ----------------------------------------------------------------------------------------


def test_the_record_of_a_table(catalog: Catalog, hive: Metastore, db: str) -> None:
    """As Java's HiveTableOperations writes it."""
    first = made_table(catalog, f"{db}.t", **{"gc.enabled": "true", "own": "1"})
    second = set_properties(catalog, f"{db}.t", more="2")
    record = found_record(hive, db, "t")
    assert record.tableType == "EXTERNAL_TABLE"
    assert record.owner == "anna"
    assert [(column.name, column.type) for column in record.sd.cols] == [
        ("id", "bigint"),
        ("s", "string"),
    ]
    assert record.sd.location.endswith(f"/{db}.db/t")
    expected = {
        "EXTERNAL": "TRUE",
        "table_type": "ICEBERG",
        "metadata_location": second.metadata_location,
        "previous_metadata_location": first.metadata_location,
        "uuid": first.metadata.table_uuid,
        "external.table.purge": "true",
        "own": "1",
        "more": "2",
        "snapshot-count": "0",
    }
    assert record.parameters.items() >= expected.items()
    assert '"name":"id"' in record.parameters["current-schema"]


def test_what_is_no_iceberg_table_is_not_listed(
    catalog: Catalog, hive: Metastore, db: str, tmp_path
) -> None:
    with client_of(hive) as client:
        parameters = {"EXTERNAL": "TRUE"}
        place = (tmp_path / "text").as_uri()
        client.create_table(record_of(db, "text", "EXTERNAL_TABLE", parameters, place))
    made_table(catalog, f"{db}.t")
    assert catalog.list_tables(db) == [(db, "t")]
    assert not catalog.table_exists(f"{db}.text")
    for call in (catalog.load_table, catalog.drop_table, catalog.purge_table):
        with pytest.raises(NoSuchTableError, match="TextInputFormat"):
            call(f"{db}.text")
    with pytest.raises(TableAlreadyExistsError):
        catalog.create_table(f"{db}.text", new_metadata(catalog, f"{db}.text"))
    with pytest.raises(TableAlreadyExistsError):
        catalog.rename_table(f"{db}.t", f"{db}.text")
    assert found_record(hive, db, "text").parameters.get("table_type") is None


@pytest.mark.parametrize("kind", ["EXTERNAL_TABLE", "MANAGED_TABLE"])
def test_drops_leave_the_files_and_purges_take_them(
    catalog: Catalog, hive: Metastore, db: str, kind: str
) -> None:
    """Of managed tables too, whose files Hive itself would take at a drop."""
    for name in ("dropped", "purged"):
        table = made_table(catalog, f"{db}.{name}", **{"gc.enabled": "true"})
        if kind == "MANAGED_TABLE":
            record = found_record(hive, db, name)
            catalog.drop_table(f"{db}.{name}")
            external = {"EXTERNAL", "external.table.purge"}
            kept = {k: v for k, v in record.parameters.items() if k not in external}
            with client_of(hive) as client:
                client.create_table(record_of(db, name, kind, kept, record.sd.location))
            assert catalog.load_table(f"{db}.{name}").metadata == table.metadata
            table = set_properties(catalog, f"{db}.{name}", a="1")
    assert catalog.list_tables(db) == [(db, "dropped"), (db, "purged")]
    catalog.purge_table(f"{db}.purged")
    assert not list(catalog.io.list(place_of(catalog, f"{db}.purged")))
    dropped = catalog.load_table(f"{db}.dropped")
    catalog.drop_table(f"{db}.dropped")
    again = catalog.register_table(f"{db}.again", dropped.metadata_location)
    assert again.metadata == dropped.metadata


def test_a_rename_moves_no_files(catalog: Catalog, hive: Metastore, db: str) -> None:
    table = made_table(catalog, f"{db}.t")
    catalog.rename_table(f"{db}.t", f"{db}.u")
    assert catalog.load_table(f"{db}.u").metadata_location == table.metadata_location
    record = found_record(hive, db, "u")
    parameters = {k: v for k, v in record.parameters.items() if k != "EXTERNAL"}
    place = f"{hive.folder.as_uri()}/managed/{db}.db/managed"
    with client_of(hive) as client:
        client.create_table(record_of(db, "managed", "MANAGED_TABLE", parameters, place))
    if found_record(hive, db, "managed").tableType == "MANAGED_TABLE":
        with pytest.raises(UnsupportedError, match="move"):
            catalog.rename_table(f"{db}.managed", f"{db}.other")
    else:
        catalog.rename_table(f"{db}.managed", f"{db}.other")
        assert catalog.load_table(f"{db}.other").metadata == table.metadata


def test_no_secret_is_told(
    hive: Metastore, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    secret = f"secret{uuid4().hex}"
    secrets = {"s3.secret-access-key": secret, "s3.session-token": secret}
    caplog.set_level(logging.DEBUG)
    with closing(opened(properties_of(hive, **secrets))) as catalog:
        name = f"db{uuid4().hex[:10]}"
        made_table(catalog, f"{name}.t")
        set_properties(catalog, f"{name}.t", a="1")
        with pytest.raises(NoSuchTableError):
            catalog.load_table(f"{name}.none")
        told = repr(catalog) + repr(found_record(hive, name, "t"))
        place = catalog.load_table(f"{name}.t").metadata_location
        written = catalog.io.read(place)
    dead = opened(properties_of(hive, **secrets) | {"uri": f"thrift://anna:{secret}@127.0.0.1:1"})
    with closing(dead), pytest.raises(Exception, match="reached") as caught:
        dead.list_namespaces()
    told += str(caught.value) + caplog.text + "".join(capfd.readouterr())
    assert secret not in told
    assert secret.encode() not in written + (hive.folder / "log").read_bytes()
