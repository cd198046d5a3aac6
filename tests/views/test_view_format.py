"""View metadata: the specification's example, what is refused, and what updates make of it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from frazil.errors import (
    CommitFailedError,
    ConfigurationError,
    FrazilError,
    InvalidMetadataError,
    UnsupportedError,
    UnsupportedVersionError,
    ValidationError,
)
from frazil.format import changes as C
from frazil.format.schema import Schema
from frazil.format.types import DateType, IntegerType, NestedField, StringType
from frazil.format.views import (
    AddViewVersion,
    AssertViewUUID,
    SetCurrentViewVersion,
    SqlRepresentation,
    ViewHistoryEntry,
    ViewMetadata,
    ViewVersion,
    apply_view_updates,
    check_view_requirements,
    new_view_metadata,
    parse_view_metadata,
    replacing_updates,
    view_metadata_from_json,
    view_metadata_to_json,
    view_requirement_from_json,
    view_update_from_json,
)

UUID = "fa6506c3-7681-40c8-86dc-e36561f83385"
SQL = "SELECT\n    COUNT(1), CAST(event_ts AS DATE)\nFROM events\nGROUP BY 2"


def example() -> dict[str, Any]:
    """Appendix A of the view specification."""
    return {
        "view-uuid": UUID,
        "format-version": 1,
        "location": "s3://bucket/warehouse/default.db/event_agg",
        "current-version-id": 1,
        "properties": {"comment": "Daily event counts"},
        "versions": [
            {
                "version-id": 1,
                "timestamp-ms": 1573518431292,
                "schema-id": 1,
                "default-catalog": "prod",
                "default-namespace": ["default"],
                "summary": {"engine-name": "Spark", "engine-version": "3.3.2"},
                "representations": [{"type": "sql", "sql": SQL, "dialect": "spark"}],
            }
        ],
        "schemas": [
            {
                "schema-id": 1,
                "type": "struct",
                "fields": [
                    {
                        "id": 1,
                        "name": "event_count",
                        "required": False,
                        "type": "int",
                        "doc": "Count of events",
                    },
                    {"id": 2, "name": "event_date", "required": False, "type": "date"},
                ],
            }
        ],
        "version-log": [{"timestamp-ms": 1573518431292, "version-id": 1}],
    }


def version(sql: str = "SELECT 1 AS a", **fields: Any) -> ViewVersion:
    given = {
        "version_id": 1,
        "schema_id": C.LAST_ADDED,
        "timestamp_ms": 1000,
        "summary": {},
        "representations": (SqlRepresentation(sql, "spark"),),
        "default_namespace": ("db",),
    }
    return ViewVersion(**{**given, **fields})


SCHEMA = Schema((NestedField(1, "a", IntegerType()),))
OTHER = Schema((NestedField(1, "a", StringType()),))


def made(**properties: str) -> ViewMetadata:
    return new_view_metadata(SCHEMA, version(), location="file:/v", properties=properties)


def test_the_example_of_the_specification() -> None:
    """Rules 279, 281, 282, 284, 286, 287."""
    metadata = parse_view_metadata(json.dumps(example()).encode())
    assert metadata.view_uuid == UUID
    assert metadata.schema.fields == (
        NestedField(1, "event_count", IntegerType(), doc="Count of events"),
        NestedField(2, "event_date", DateType()),
    )
    current = metadata.current_version
    assert current.sql_for("Spark") == SQL
    assert current.sql_for("trino") is None
    assert (current.default_catalog, current.default_namespace) == ("prod", ("default",))
    assert metadata.version_log == (ViewHistoryEntry(1573518431292, 1),)
    assert view_metadata_to_json(metadata) == example()


def test_what_is_not_known_is_kept_or_passed_over() -> None:
    given = example()
    given["new-field"] = {"a": 1}
    odd = {"type": "substrait", "plan": "…", "dialect": 3}
    given["versions"][0]["representations"].append(odd)
    del given["properties"]
    del given["versions"][0]["default-catalog"]
    written = view_metadata_to_json(view_metadata_from_json(given))
    assert odd in written["versions"][0]["representations"]
    assert written["properties"] == {}
    assert "default-catalog" not in written["versions"][0]
    assert view_metadata_from_json(given).current_version.dialects == ("spark",)


BROKEN: list[tuple[str, Any, type[Exception], str]] = [
    *(
        (name, None, InvalidMetadataError, name)
        for name in ("view-uuid", "location", "schemas", "current-version-id", "version-log")
    ),
    ("versions", None, InvalidMetadataError, "versions"),
    ("format-version", 2, UnsupportedVersionError, "2"),
    ("format-version", "1", InvalidMetadataError, "format-version"),
    ("current-version-id", 7, InvalidMetadataError, "7 is not among"),
    ("versions.0.schema-id", 9, InvalidMetadataError, "schema 9"),
    ("versions.0.version-id", None, InvalidMetadataError, "version-id"),
    ("versions.0.timestamp-ms", 2**63, InvalidMetadataError, "timestamp-ms"),
    ("versions.0.default-namespace", None, InvalidMetadataError, "default-namespace"),
    ("versions.0.default-namespace", [1], InvalidMetadataError, "default-namespace"),
    ("versions.0.representations", {}, InvalidMetadataError, "representations"),
    ("versions.0.representations.0.sql", None, InvalidMetadataError, "sql"),
    ("versions.0.representations.0.type", None, InvalidMetadataError, "type"),
    ("versions.0.summary.engine-name", 3, InvalidMetadataError, "engine-name"),
    ("schemas.0.fields.0.type", "word", InvalidMetadataError, "word"),
    ("properties.comment", 1, InvalidMetadataError, "comment"),
    ("version-log.0.version-id", "x", InvalidMetadataError, "version-id"),
]


@pytest.mark.parametrize(("path", "value", "error", "said"), BROKEN)
def test_malformed_metadata_is_typed(
    path: str, value: Any, error: type[Exception], said: str
) -> None:
    given: Any = example()
    *way, last = path.split(".")
    place = given
    for step in way:
        place = place[int(step)] if step.isdigit() else place[step]
    if value is None:
        del place[last]
    else:
        place[last] = value
    with pytest.raises(error, match=said):
        view_metadata_from_json(given)


def test_a_dialect_twice_is_refused() -> None:
    """Rule 282: one SQL per dialect, whatever the case."""
    given = example()
    given["versions"][0]["representations"].append({"type": "sql", "sql": "x", "dialect": "SPARK"})
    with pytest.raises(InvalidMetadataError, match="two of the dialect spark"):
        view_metadata_from_json(given)
    two = (SqlRepresentation("x", "spark"), SqlRepresentation("y", "Spark"))
    with pytest.raises(ValidationError, match="not two of spark"):
        new_view_metadata(SCHEMA, version(representations=two), location="file:/v")


@pytest.mark.parametrize(
    "update",
    [
        C.AssignUUID(UUID),
        C.UpgradeFormatVersion(1),
        C.AddSchema(SCHEMA),
        C.SetLocation("file:/w"),
        C.SetProperties({"a": "b"}),
        C.RemoveProperties(("a",)),
        AddViewVersion(version(default_catalog="c")),
        SetCurrentViewVersion(),
        SetCurrentViewVersion(3),
    ],
)
def test_updates_are_json_both_ways(update: Any) -> None:
    assert view_update_from_json(json.loads(json.dumps(update.to_json()))) == update


def test_what_is_no_update_of_a_view() -> None:
    for action in ("add-spec", "no-such"):
        with pytest.raises((UnsupportedError, InvalidMetadataError)):
            view_update_from_json({"action": action, "spec": {"spec-id": 0, "fields": []}})
    with pytest.raises(UnsupportedError):
        view_requirement_from_json({"type": "assert-create"})


def test_a_requirement() -> None:
    """Rule 280."""
    requirement = view_requirement_from_json(AssertViewUUID(UUID).to_json())
    metadata = view_metadata_from_json(example())
    check_view_requirements(metadata, [requirement, AssertViewUUID(UUID.upper())])
    with pytest.raises(CommitFailedError, match="uuid"):
        check_view_requirements(metadata, [AssertViewUUID(UUID.replace("f", "e"))])


def test_a_view_is_replaced() -> None:
    """Rules 283, 284: a new version beside the old one, and an entry of the log."""
    base = made()
    new = version("SELECT 2 AS a", timestamp_ms=2000)
    after = apply_view_updates(base, replacing_updates(OTHER, new, properties={"x": "y"}))
    assert [each.version_id for each in after.versions] == [1, 2]
    assert after.versions[0] == base.versions[0]
    assert after.current_version.sql_for("spark") == "SELECT 2 AS a"
    assert [each.schema_id for each in after.schemas] == [0, 1]
    assert after.schema.fields == OTHER.fields
    assert after.version_log == (ViewHistoryEntry(1000, 1), ViewHistoryEntry(2000, 2))
    assert after.properties == {"x": "y"}
    back = apply_view_updates(after, [SetCurrentViewVersion(1)], now_ms=3000)
    assert back.version_log[-1] == ViewHistoryEntry(3000, 1)
    assert back.schema.fields == SCHEMA.fields


def test_what_is_said_again_is_the_same_version() -> None:
    base = made()
    again = version(timestamp_ms=5000, version_id=9)
    assert apply_view_updates(base, replacing_updates(SCHEMA, again)) is base
    after = apply_view_updates(base, replacing_updates(SCHEMA, version("SELECT 3 AS a")))
    back = apply_view_updates(after, replacing_updates(SCHEMA, again), now_ms=7000)
    assert back.current_version_id == 1
    assert len(back.versions) == 2
    assert back.version_log[-1] == ViewHistoryEntry(7000, 1)


def test_updates_of_a_known_view_have_new_ids() -> None:
    """As Java's client sends them: a server may refuse an id that the view has."""
    base = made()
    new = version("SELECT 2 AS a")
    for schema, ids in ((SCHEMA, None), (OTHER, 1)):
        updates = replacing_updates(schema, new, base=base)
        added = [each.schema.schema_id for each in updates if isinstance(each, C.AddSchema)]
        assert added == ([] if ids is None else [ids])
        (sent,) = (each.view_version for each in updates if isinstance(each, AddViewVersion))
        assert (sent.version_id, sent.schema_id) == (2, 0 if ids is None else -1)
        after = apply_view_updates(base, updates)
        assert after == apply_view_updates(base, replacing_updates(schema, new))
    again = replacing_updates(SCHEMA, version(timestamp_ms=5000), base=base)
    assert again == (SetCurrentViewVersion(1),)


def test_versions_are_forgotten() -> None:
    """Rule 285, and the log past a version that is gone."""
    view = made(**{"version.history.num-entries": "2"})
    for number in range(4):
        view = apply_view_updates(view, replacing_updates(SCHEMA, version(f"SELECT {number}+1")))
    assert [each.version_id for each in view.versions] == [4, 5]
    assert [each.version_id for each in view.version_log] == [4, 5]
    back = apply_view_updates(view, [SetCurrentViewVersion(4)])
    after = apply_view_updates(back, replacing_updates(SCHEMA, version("SELECT 9")))
    # The current one and the newest, and no log from before what is gone.
    assert [each.version_id for each in after.versions] == [5, 6]
    assert [each.version_id for each in after.version_log] == [6]


def test_ten_versions_are_kept_by_default() -> None:
    view = made()
    for number in range(15):
        view = apply_view_updates(view, replacing_updates(SCHEMA, version(f"SELECT {number}+1")))
    assert len(view.versions) == len(view.version_log) == 10


def test_a_dialect_is_not_lost_by_accident() -> None:
    both = (SqlRepresentation("x", "spark"), SqlRepresentation("y", "trino"))
    base = new_view_metadata(SCHEMA, version(representations=both), location="file:/v")
    updates = replacing_updates(SCHEMA, version("z"))
    with pytest.raises(ValidationError, match="SQL for trino"):
        apply_view_updates(base, updates)
    allowed = C.SetProperties({"replace.drop-dialect.allowed": "true"})
    assert apply_view_updates(base, [allowed, *updates]).current_version.dialects == ("spark",)


REFUSED: list[tuple[Any, type[FrazilError], str]] = [
    (C.UpgradeFormatVersion(2), UnsupportedVersionError, "2"),
    (C.UpgradeFormatVersion(0), ValidationError, "0"),
    (C.AssignUUID(UUID), ValidationError, "uuid"),
    (C.SetLocation(""), ValidationError, "empty"),
    (SetCurrentViewVersion(5), ValidationError, "no version 5"),
    (SetCurrentViewVersion(), ValidationError, "was added"),
    (AddViewVersion(version()), ValidationError, "schema -1"),
    (AddViewVersion(version(schema_id=4)), ValidationError, "schema 4"),
    (AddViewVersion(version(schema_id=0, representations=())), ValidationError, "representation"),
]


@pytest.mark.parametrize(("update", "error", "said"), REFUSED)
def test_updates_that_contradict(update: Any, error: type[FrazilError], said: str) -> None:
    with pytest.raises(error, match=said):
        apply_view_updates(made(), [update])


@pytest.mark.parametrize("entries", ["0", "-1", "many"])
def test_a_history_without_entries_is_refused(entries: str) -> None:
    with pytest.raises(ConfigurationError, match="num-entries"):
        apply_view_updates(made(), [C.SetProperties({"version.history.num-entries": entries})])


def test_properties_and_places() -> None:
    base = made(a="1", b="2")
    after = apply_view_updates(base, [C.RemoveProperties(("a",)), C.SetLocation("file:/w")])
    assert (after.properties, after.location) == ({"b": "2"}, "file:/w")
    assert after.view_uuid == base.view_uuid
    assert apply_view_updates(base, [C.SetProperties({"a": "1"})]) is base


def test_a_view_needs_its_parts() -> None:
    with pytest.raises(ValidationError, match="location"):
        apply_view_updates(None, replacing_updates(SCHEMA, version()))
    with pytest.raises(ValidationError, match="current version"):
        apply_view_updates(None, [C.SetLocation("file:/v"), C.AddSchema(SCHEMA)])
