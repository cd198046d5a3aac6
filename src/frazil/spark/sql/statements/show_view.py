"""What SHOW and DESCRIBE tell of a view."""

from __future__ import annotations

from typing import Final

from frazil.catalog.protocol import LoadedView
from frazil.format.predicates.sql.quoting import quote_name, string_text
from frazil.format.views import ViewMetadata
from frazil.spark.sql.binding.bind import DIALECT
from frazil.spark.sql.binding.view_columns import ENGINE_VERSIONS, QUERY_COLUMN_NAMES
from frazil.spark.sql.context import SqlContext
from frazil.spark.types import type_to_spark

_HIDDEN: Final = frozenset({"comment", QUERY_COLUMN_NAMES, *ENGINE_VERSIONS})
"""Properties that Java's runtime does not show among the others."""


def shown_view_properties(metadata: ViewMetadata) -> list[tuple[str, str]]:
    """Return a view's properties, with those that its metadata tells."""
    own = {
        "format-version": str(metadata.format_version),
        "location": metadata.location,
        "provider": "iceberg",
    }
    shown: dict[str, str] = {**metadata.properties, **own}
    return sorted((key, value) for key, value in shown.items() if key not in _HIDDEN)


def create_view_statement(context: SqlContext, view: LoadedView) -> str:
    """Return the CREATE VIEW that makes such a view."""
    metadata = view.metadata
    columns = [
        f"  {quote_name([field.name])}"
        + (f" COMMENT {string_text(field.doc)}" if field.doc else "")
        for field in metadata.schema.fields
    ]
    lines = [
        f"CREATE VIEW {quote_name([context.name, *view.identifier])} (",
        ",\n".join(columns) + ")",
    ]
    said = metadata.properties.get("comment")
    if said:
        lines.append(f"COMMENT {string_text(said)}")
    pairs = [
        f"  {string_text(key)} = {string_text(value)}"
        for key, value in shown_view_properties(metadata)
    ]
    lines.append("TBLPROPERTIES (\n" + ",\n".join(pairs) + ")")
    lines.append(f"AS\n{metadata.current_version.sql_for(DIALECT) or ''}")
    return "\n".join(lines) + "\n"


def view_rows(
    context: SqlContext, view: LoadedView, *, extended: bool
) -> list[tuple[str, str, str]]:
    """Return what DESCRIBE tells of a view."""
    rows = [
        (field.name, type_to_spark(field.field_type).simpleString(), field.doc or "")
        for field in view.metadata.schema.fields
    ]
    if extended:
        rows += [("", "", ""), ("# Detailed View Information", "", "")]
        rows += [(key, value, "") for key, value in _facts(context, view)]
    return rows


def named_view_facts(context: SqlContext, view: LoadedView) -> list[tuple[str, str]]:
    """Return what SHOW TABLE EXTENDED tells of a view."""
    name = ".".join((context.name, *view.identifier))
    return [("Name", name), ("Type", "VIEW"), *_facts(context, view)]


def _facts(context: SqlContext, view: LoadedView) -> list[tuple[str, str]]:
    version = view.metadata.current_version
    properties = ", ".join(
        f"{string_text(key)} = {string_text(value)}"
        for key, value in shown_view_properties(view.metadata)
    )
    catalog = version.default_catalog or context.name
    return [
        ("Comment", view.metadata.properties.get("comment", "")),
        ("View Catalog and Namespace", ".".join((catalog, *version.default_namespace))),
        ("View Query Output Columns", f"[{view.metadata.properties.get(QUERY_COLUMN_NAMES, '')}]"),
        ("View Properties", f"[{properties}]"),
        ("View Text", version.sql_for(DIALECT) or ""),
        ("View Dialects", ", ".join(version.dialects)),
        ("Created By", view.metadata.properties.get(ENGINE_VERSIONS[0], "")),
    ]


def view_facts_as_json(context: SqlContext, view: LoadedView) -> dict[str, object]:
    """Return what DESCRIBE AS JSON tells of a view, beside its name and columns."""
    version, properties = view.metadata.current_version, view.metadata.properties
    outputs = properties.get(QUERY_COLUMN_NAMES, "")
    facts = {
        "type": "VIEW",
        "comment": properties.get("comment"),
        "view_text": version.sql_for(DIALECT),
        "view_catalog_and_namespace": ".".join(
            (version.default_catalog or context.name, *version.default_namespace)
        ),
        "view_query_output_columns": outputs.split(",") if outputs else None,
        "view_dialects": list(version.dialects),
        "location": view.metadata.location,
        "provider": "iceberg",
        "created_by": properties.get(ENGINE_VERSIONS[0]),
        "table_properties": dict(shown_view_properties(view.metadata)),
    }
    return {key: value for key, value in facts.items() if value is not None}
