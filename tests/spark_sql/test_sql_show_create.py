"""The text of SHOW CREATE TABLE makes the table again."""

import re

import pytest

from ci_share import only_in_check
from frazil.format.types import FixedType, TimestampNanoType, TimestamptzNanoType, UUIDType

DEFINED = {
    "plain": "(id BIGINT, n STRING)",
    "of a version": "(id BIGINT) TBLPROPERTIES ('format-version' = '1', 'a' = 'b''s')",
    "partitioned": (
        "(id INT NOT NULL COMMENT 'it''s', `odd name` STRING, ts TIMESTAMP, s STRUCT<x: DATE>) "
        "PARTITIONED BY (days(ts), bucket(4, id), truncate(3, `odd name`), s.x) COMMENT 'say \"x\"'"
    ),
    "nested": (
        "(s STRUCT<x: INT NOT NULL COMMENT 'in', `o d`: ARRAY<STRUCT<q: DECIMAL(9,2)>>> NOT NULL, "
        "m MAP<STRING, STRUCT<v: INT COMMENT 'vv'>>)"
    ),
    "types of Iceberg": (
        "(id UUID NOT NULL, b FIXED(16), t TIMESTAMP_NS, z TIMESTAMPTZ_NS, "
        "s STRUCT<u: UUID, l: ARRAY<FIXED(2)>>, v VARIANT) TBLPROPERTIES ('format-version' = '3')"
    ),
    "defaults": (
        "(a BIGINT DEFAULT 5, b STRING NOT NULL DEFAULT 'it''s' COMMENT 'c', d DECIMAL(9, 2) "
        "DEFAULT 1.50, e DATE DEFAULT DATE '2024-01-01', f FLOAT DEFAULT 1.5, g BOOLEAN DEFAULT "
        "true, h TIMESTAMP DEFAULT TIMESTAMP '2024-01-01 10:00:00', i BINARY DEFAULT X'00FF', "
        "j TIMESTAMP_NTZ DEFAULT TIMESTAMP_NTZ '2024-01-01 10:00:00', k FLOAT DEFAULT 0.1F) "
        "TBLPROPERTIES ('format-version' = '3')"
    ),
    "parquet": "(id INT) USING parquet PARTITIONED BY (c STRING)",
}


@pytest.fixture
def lake_settings(lake_settings):
    return {**lake_settings, "name": "lake"}


def _shown(lake, name):
    text = lake.sql(f"SHOW CREATE TABLE db.{name}").collect()[0][0]
    described = lake.sql(f"DESCRIBE EXTENDED db.{name}").collect()
    return text, [tuple(row) for row in described]


@pytest.mark.parametrize(
    "name", [only_in_check(name) if name == "plain" else name for name in DEFINED]
)
def test_a_table_is_made_again(lake, name):
    lake.sql(f"CREATE TABLE db.t {DEFINED[name]}")
    text, described = _shown(lake, "t")
    before = lake.load_table("db.t").metadata
    lake.sql("DROP TABLE db.t")
    lake.sql(text)
    assert _shown(lake, "t") == (text, described)
    after = lake.load_table("db.t").metadata
    assert (after.schema, after.spec) == (before.schema, before.spec)
    assert after.properties == before.properties
    lake.sql(text.replace("lake.db.t", "lake.db.u"))
    assert _shown(lake, "u")[0] == text.replace("lake.db.t", "lake.db.u")


def test_what_the_metadata_holds_is_not_made_again(lake):
    lake.sql("CREATE TABLE db.t (id INT NOT NULL, k STRING)")
    lake.sql("INSERT INTO db.t VALUES (1, 'a')")
    lake.sql("ALTER TABLE db.t SET IDENTIFIER FIELDS id")
    lake.sql("ALTER TABLE db.t WRITE ORDERED BY k")
    text, _ = _shown(lake, "t")
    told = re.findall("'(current-snapshot-id|identifier-fields|sort-order)' = ", text)
    assert told == ["current-snapshot-id", "identifier-fields", "sort-order"]
    lake.sql("DROP TABLE db.t")
    lake.sql(text)
    table = lake.load_table("db.t")
    assert table.metadata.current_snapshot is None
    assert table.metadata.schema.identifier_field_ids == ()
    assert table.metadata.sort_order.is_unsorted
    assert not {"current-snapshot-id", "sort-order"} & table.metadata.properties.keys()


def test_columns_as_text_by_the_method(lake):
    columns = "id uuid not null, b FIXED(16), s struct<t: timestamp_ns, l: array<timestamptz_ns>>"
    table = lake.create_table("db.t", columns, format_version=3)
    id_, b, s = table.metadata.schema.fields
    assert (id_.field_type, id_.required, b.field_type) == (UUIDType(), True, FixedType(16))
    t, many = s.field_type.fields
    assert t.field_type == TimestampNanoType()
    assert many.field_type.element_type == TimestamptzNanoType()
    with table.update_schema() as change:
        change.add_column("more", "array<fixed(3)>")
    assert table.metadata.schema.fields[-1].field_type.element_type == FixedType(3)
