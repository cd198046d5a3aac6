"""The tables of Java's JdbcCatalog and PyIceberg's SqlCatalog."""

from __future__ import annotations

from sqlalchemy import (
    Column,
    MetaData,
    String,
    Table,
    inspect,
    text,
)
from sqlalchemy.engine import Connection, Engine

SCHEMA = MetaData()
TABLES = Table(
    "iceberg_tables",
    SCHEMA,
    Column("catalog_name", String(255), primary_key=True, nullable=False),
    Column("table_namespace", String(255), primary_key=True, nullable=False),
    Column("table_name", String(255), primary_key=True, nullable=False),
    Column("metadata_location", String(1000)),
    Column("previous_metadata_location", String(1000)),
    Column("iceberg_type", String(5)),
)
NAMESPACE_PROPERTIES = Table(
    "iceberg_namespace_properties",
    SCHEMA,
    Column("catalog_name", String(255), primary_key=True, nullable=False),
    Column("namespace", String(255), primary_key=True, nullable=False),
    Column("property_key", String(255), primary_key=True, nullable=False),
    Column("property_value", String(1000)),
)


def has_type_column(engine: Engine) -> bool | None:
    """Whether iceberg_tables is of schema V1; None if there is no such table."""
    with engine.connect() as connection:
        inspector = inspect(connection)
        names = {TABLES.name, NAMESPACE_PROPERTIES.name}
        if not names <= set(inspector.get_table_names()):
            return None
        return any(c["name"] == "iceberg_type" for c in inspector.get_columns(TABLES.name))


def add_type_column(connection: Connection) -> None:
    """Turn schema V0 into V1 (``jdbc.schema-version=V1``)."""
    connection.execute(text("ALTER TABLE iceberg_tables ADD COLUMN iceberg_type VARCHAR(5)"))
