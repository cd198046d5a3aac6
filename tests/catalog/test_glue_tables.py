"""What stands in Glue of tables and databases, and what PyIceberg's GlueCatalog makes of it."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import pyarrow as pa
import pytest
from catalog_cases import SCHEMA, made_table, new_metadata, opened, set_properties
from pyiceberg.catalog.glue import GlueCatalog as PyIcebergGlue

from frazil.catalog.pointer.glue import GlueCatalog
from frazil.catalog.pointer.glue.entries import glue_type
from frazil.catalog.protocol import Catalog
from frazil.errors import (
    ConfigurationError,
    InvalidMetadataError,
    NamespaceNotEmptyError,
    NoSuchNamespaceError,
    NoSuchTableError,
    TableAlreadyExistsError,
    UnsupportedError,
    ValidationError,
)
from frazil.format.changes import AddSchema, SetCurrentSchema, SetProperties
from frazil.format.new_table import new_table_metadata
from frazil.format.schema import Schema
from frazil.format.types import NestedField, StringType, type_named
from frazil.planning.plan import plan
from glue_server import GlueServer

ARROW = "pyiceberg.io.pyarrow.PyArrowFileIO"
OTHERS = {
    "hive": {
        "Name": "hive",
        "TableType": "EXTERNAL_TABLE",
        "Parameters": {"classification": "csv"},
    },
    "delta": {"Name": "delta", "Parameters": {"spark.sql.sources.provider": "delta"}},
    "hudi": {"Name": "hudi", "Parameters": {"table_type": "HUDI"}},
    "view": {"Name": "view", "TableType": "VIRTUAL_VIEW"},
}


@pytest.fixture
def kind() -> str:
    return "glue"


@pytest.fixture
def theirs(properties: dict[str, str]) -> PyIcebergGlue:
    return PyIcebergGlue("lake", **{**properties, "py-io-impl": ARROW})


def in_glue(glue: GlueServer, name: str = "t") -> dict[str, Any]:
    found: dict[str, Any] = glue.client.get_table(DatabaseName="db", Name=name)["Table"]
    return found


def test_what_stands_in_glue(glue: GlueServer, catalog: Catalog) -> None:
    made = made_table(catalog, comment="trips of all years")
    first = in_glue(glue)
    assert first["TableType"] == "EXTERNAL_TABLE"
    assert first["Description"] == "trips of all years"
    assert first["StorageDescriptor"]["Location"] == made.metadata.location
    assert made.metadata.location == f"{catalog.properties['warehouse']}/db.db/t"
    assert first["Parameters"] == {
        "table_type": "ICEBERG",
        "metadata_location": made.metadata_location,
    }
    glue.client.update_table(
        DatabaseName="db",
        TableInput={
            "Name": "t",
            "Owner": "them",
            "Parameters": {**first["Parameters"], "of": "others"},
            "StorageDescriptor": {"Columns": [{"Name": "s", "Type": "x", "Comment": "said there"}]},
        },
    )
    changed = set_properties(catalog, "db.t", **{"write.data.path": "s3://else/where"})
    second = in_glue(glue)
    assert second["Owner"] == "them"
    assert second["Parameters"] == {
        "table_type": "ICEBERG",
        "metadata_location": changed.metadata_location,
        "previous_metadata_location": made.metadata_location,
        "of": "others",
    }
    assert second["StorageDescriptor"]["AdditionalLocations"] == ["s3://else/where"]
    assert [each.get("Comment") for each in second["StorageDescriptor"]["Columns"]] == [
        None,
        "said there",
    ]
    sent = [arguments for operation, arguments in glue.rules.calls if operation == "UpdateTable"]
    assert (sent[-1]["SkipArchive"], sent[-1]["VersionId"]) == (True, "2")


def test_former_columns_stay(glue: GlueServer, catalog: Catalog) -> None:
    made_table(catalog)
    doc = f"two\nlines, {'ö' * 200}"
    new = Schema((SCHEMA.fields[0], NestedField(3, "n", StringType(), doc=doc)), schema_id=1)
    catalog.commit_table("db.t", (), (AddSchema(new, last_column_id=3), SetCurrentSchema(-1)))
    columns = in_glue(glue)["StorageDescriptor"]["Columns"]
    shown = [(each["Name"], *sorted(each["Parameters"].items())) for each in columns]
    id_, optional, current = "iceberg.field.id", "iceberg.field.optional", "iceberg.field.current"
    assert shown == [
        ("id", (current, "true"), (id_, "1"), (optional, "false")),
        ("n", (current, "true"), (id_, "3"), (optional, "true")),
        ("s", (current, "false"), (id_, "2"), (optional, "true")),
    ]
    assert columns[1]["Comment"] == f"two lines, {'ö' * 122}"


# As IcebergToGlueConverter has them.
TYPES = {
    "boolean": "boolean",
    "int": "int",
    "long": "bigint",
    "float": "float",
    "double": "double",
    "decimal(9, 2)": "decimal(9,2)",
    "date": "date",
    "time": "string",
    "timestamp": "timestamp",
    "timestamptz": "timestamp",
    "timestamp_ns": "timestamp_nano",
    "timestamptz_ns": "timestamp_nano",
    "string": "string",
    "uuid": "string",
    "fixed[3]": "binary",
    "binary": "binary",
    "variant": "variant",
    "unknown": "unknown",
    "geometry": "geometry",
    "geography": "geography",
}


@pytest.mark.parametrize(("iceberg", "expected"), TYPES.items())
def test_types_as_java_shows_them(iceberg: str, expected: str) -> None:
    assert glue_type(type_named(iceberg)) == expected


def test_pyiceberg_shows_the_same_columns(
    glue: GlueServer, catalog: Catalog, theirs: PyIcebergGlue
) -> None:
    schema = pa.schema(
        [
            pa.field("id", pa.int64(), nullable=False),
            pa.field("l", pa.list_(pa.struct([("a", pa.int32()), ("b", pa.decimal128(5, 1))]))),
            pa.field("m", pa.map_(pa.string(), pa.timestamp("us", tz="UTC"))),
        ]
    )
    theirs.create_namespace("db")
    theirs.create_table("db.theirs", schema)
    table = catalog.load_table("db.theirs").metadata
    place = catalog.default_table_location("db.ours")
    catalog.create_table("db.ours", new_table_metadata(table.schema, location=place))
    ours, expected = (in_glue(glue, each)["StorageDescriptor"] for each in ("ours", "theirs"))
    assert ours["Columns"] == expected["Columns"]
    assert in_glue(glue, "ours")["TableType"] == in_glue(glue, "theirs")["TableType"]


def test_turns_with_pyiceberg_on_s3(glue: GlueServer) -> None:
    properties = glue.emptied(f"{glue.s3.new_bucket('turns-in-glue')}/wh")
    theirs = PyIcebergGlue("lake", **{**properties, "py-io-impl": ARROW})
    with closing(opened(properties)) as catalog:
        take_turns(catalog, theirs)
    assert glue.s3.keys("s3://turns-in-glue") == []


def take_turns(catalog: Catalog, theirs: PyIcebergGlue) -> None:
    catalog.create_namespace("db", {"owner": "me", "location": "s3://a/place"})
    assert theirs.load_namespace_properties("db") == {"owner": "me", "location": "s3://a/place"}
    catalog.update_namespace_properties("db", removals=["location"])
    made_table(catalog, a="1")
    assert theirs.list_tables("db") == [("db", "t")]
    table = theirs.load_table("db.t")
    rows = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "s": ["a", "b", None]})
    table.append(rows.cast(table.schema().as_arrow()))
    loaded = catalog.load_table("db.t").metadata
    planned = plan(loaded, loaded.current_snapshot, catalog.io)
    assert planned.files["record_count"].to_list() == [3]
    changed = set_properties(catalog, "db.t", b="2")
    assert theirs.load_table("db.t").metadata_location == changed.metadata_location
    assert changed.metadata_location.rpartition("/")[2].startswith("00002-")
    theirs.load_table("db.t").append(rows.cast(table.schema().as_arrow()))
    assert theirs.load_table("db.t").scan().to_arrow().num_rows == 6
    catalog.rename_table("db.t", "db.u")
    assert theirs.load_table("db.u").properties["b"] == "2"
    theirs.rename_table("db.u", "db.v")
    assert catalog.load_table("db.v").metadata.current_snapshot is not None
    theirs.create_namespace("of_theirs", {"Description": "said", "x": "y"})
    assert catalog.load_namespace_properties("of_theirs") == {"comment": "said", "x": "y"}
    catalog.purge_table("db.v")
    assert theirs.list_tables("db") == []


def test_other_formats(glue: GlueServer, catalog: Catalog) -> None:
    made_table(catalog, "db.t")
    for entry in OTHERS.values():
        glue.client.create_table(DatabaseName="db", TableInput=entry)
    for number in range(5):
        made_table(catalog, f"db.u{number}")
        catalog.create_namespace(f"n{number}")
    names = [("db", "t"), *(("db", f"u{number}") for number in range(5))]
    assert catalog.list_tables("db") == names
    assert catalog.list_namespaces() == [("db",), *((f"n{number}",) for number in range(5))]
    shown = {"hive": "csv", "delta": "delta", "hudi": "HUDI", "view": "VIRTUAL_VIEW"}
    for name, said in shown.items():
        assert not catalog.table_exists(("db", name))
        for call in (catalog.load_table, catalog.drop_table, catalog.purge_table):
            with pytest.raises(NoSuchTableError, match=rf"db\.{name} .* no Iceberg .* {said}"):
                call(("db", name))
        with pytest.raises(NoSuchTableError, match="no Iceberg table"):
            catalog.rename_table(("db", name), "db.new")
        with pytest.raises(TableAlreadyExistsError, match="another format"):
            catalog.create_table(("db", name), new_metadata(catalog, ("db", name)))
    assert {each for each in OTHERS if in_glue(glue, each)} == set(OTHERS)
    for _, name in names:
        catalog.drop_table(("db", name))
    for name in ("hive", "hudi", "view"):
        glue.client.delete_table(DatabaseName="db", Name=name)
    with pytest.raises(NamespaceNotEmptyError, match="it holds delta, a table of the format delta"):
        catalog.drop_namespace("db")


def test_a_half_made_table(glue: GlueServer, catalog: Catalog) -> None:
    catalog.create_namespace("db")
    entry = {"Name": "t", "Parameters": {"table_type": "iceberg"}}
    glue.client.create_table(DatabaseName="db", TableInput=entry)
    with pytest.raises(InvalidMetadataError, match="metadata_location"):
        catalog.load_table("db.t")
    catalog.drop_table("db.t")


def test_namespaces(glue: GlueServer, catalog: Catalog) -> None:
    catalog.create_namespace("b")
    catalog.create_namespace("a", {"comment": "words", "location": "s3://x/y/", "k": "v"})
    found = glue.client.get_database(Name="a")["Database"]
    assert (found["Description"], found["LocationUri"]) == ("words", "s3://x/y/")
    assert found["Parameters"] == {"k": "v"}
    assert catalog.default_table_location("a.t") == "s3://x/y/t"
    assert catalog.list_namespaces() == [("a",), ("b",)]
    assert catalog.list_namespaces("a") == []
    assert not catalog.namespace_exists("a.b")
    with pytest.raises(ValidationError, match=r"one level, a\.b has 2"):
        catalog.create_namespace("a.b")
    for call in (catalog.list_tables, catalog.list_namespaces, catalog.drop_namespace):
        with pytest.raises(NoSuchNamespaceError, match="one level"):
            call("a.b")
    made_table(catalog, "b.t")
    with pytest.raises(NamespaceNotEmptyError, match="it holds t"):
        catalog.drop_namespace("b")
    catalog.drop_namespace("a")
    assert catalog.list_namespaces() == [("b",)]


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        (("db", "Trips"), r"\['T'\]"),
        (("db", "a-b.c"), r"\['-', '\.'\]"),
        (("db", "x" * 256), "256 characters: use 1 to 255"),
        (("y" * 253, "t"), "253 characters: use 1 to 252"),
        (("db", "sub", "t"), "one level"),
    ],
)
def test_names_that_glue_cannot_hold(catalog: Catalog, name: tuple[str, ...], fault: str) -> None:
    table = made_table(catalog, "db.t")
    new = new_table_metadata(SCHEMA, location=f"{table.metadata.location}-new")
    for call in (
        lambda: catalog.create_table(name, new),
        lambda: catalog.rename_table("db.t", name),
    ):
        with pytest.raises(ValidationError, match=fault):
            call()
    with pytest.raises((ValidationError, NoSuchNamespaceError)):
        catalog.register_table(name, table.metadata_location)
    assert not catalog.table_exists(name)
    with pytest.raises(NoSuchTableError, match=fault):
        catalog.load_table(name)
    assert catalog.list_tables("db") == [("db", "t")]


def test_the_service_alone_decides_on_names(properties: dict[str, str]) -> None:
    free = {**properties, "glue.skip-name-validation": "true"}
    with closing(opened(free)) as catalog:
        made_table(catalog, "my-db.A-b")
        assert catalog.list_tables("my-db") == [("my-db", "A-b")]
        with pytest.raises(ValidationError, match="one level"):
            catalog.create_namespace("a.b")


def test_settings(glue: GlueServer, properties: dict[str, str]) -> None:
    others = {**properties, "glue.id": "210987654321", "glue.skip-archive": "false"}
    with closing(opened(others)) as catalog:
        made_table(catalog)
        set_properties(catalog, "db.t", a="1")
    assert {arguments["CatalogId"] for _, arguments in glue.rules.calls} == {"210987654321"}
    assert glue.rules.calls[-1][1]["SkipArchive"] is False


def test_a_role_is_assumed(glue: GlueServer, properties: dict[str, str]) -> None:
    role = {
        "client.assume-role.arn": "arn:aws:iam::210987654321:role/lake",
        "client.assume-role.region": "eu-west-1",
        "client.assume-role.external-id": "known-to-two",
        "client.assume-role.session-name": "tests",
        "client.assume-role.endpoint": glue.address,
        "client.assume-role.tags.team": "data",
        "client.factory": "org.apache.iceberg.aws.AssumeRoleAwsClientFactory",
    }
    with closing(opened(properties)) as own, closing(opened({**properties, **role})) as assumed:
        own.create_namespace("mine")
        assumed.create_namespace("of_the_role")
        # The role is of another account and in another region, which has a catalog of its own.
        assert own.list_namespaces() == [("mine",)]
        assert assumed.list_namespaces() == [("of_the_role",)]
        assert "known-to-two" not in repr(assumed)
        assert "known-to-two" not in repr(assumed._connection.settings)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("changed", "error", "said"),
    [
        ({"glue.region": ""}, ConfigurationError, "glue.region or client.region"),
        ({"glue.secret-access-key": ""}, ConfigurationError, "give both"),
        ({"glue.max-retries": "often"}, ConfigurationError, "glue.max-retries"),
        ({"glue.retry-mode": "never"}, ConfigurationError, "legacy, standard, adaptive"),
        ({"glue.lakeformation-enabled": "true"}, UnsupportedError, "Lake Formation"),
        ({"client.factory": "com.example.Own"}, UnsupportedError, "com.example.Own"),
        ({"glue.profile-name": "nobody"}, ConfigurationError, "nobody"),
        ({"glue.endpoint": "no address"}, ConfigurationError, "endpoint"),
    ],
)
def test_settings_that_cannot_be(
    properties: dict[str, str],
    changed: dict[str, str],
    error: type[Exception],
    said: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(error, match=said) as caught, closing(opened(properties | changed)) as made:
        made.list_namespaces()
    assert "made-up-secret" not in str(caught.value)


def test_both_engines_names_are_read(properties: dict[str, str]) -> None:
    plain = {
        name.replace("glue.", "client.") if name != "glue.endpoint" else name: value
        for name, value in properties.items()
    }
    timeouts = {
        "http-client.apache.connection-timeout-ms": "1500",
        "http-client.urlconnection.socket-timeout-ms": "2500",
    }
    with closing(opened({**plain, **timeouts})) as catalog:
        assert isinstance(catalog, GlueCatalog)
        made_table(catalog)
        settings = catalog._connection.settings
    assert (settings.region, settings.connect_seconds, settings.read_seconds) == (
        *("us-east-1", 1.5),
        2.5,
    )


def test_a_commit_that_changes_nothing_asks_once(glue: GlueServer, catalog: Catalog) -> None:
    made_table(catalog, a="1")
    glue.rules.calls.clear()
    catalog.commit_table("db.t", (), (SetProperties({"a": "1"}),))
    assert glue.operations() == ["GetTable"]
