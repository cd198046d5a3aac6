"""Commands that look at tables; none of them starts Spark."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

import click

from frazil.cli.app import Settings, command, of_snapshot
from frazil.cli.describe import as_number, describe_table
from frazil.cli.layout import TextColumn
from frazil.cli.output import Output, readable_bytes, readable_duration
from frazil.format.types import ListType, MapType, NestedField, StructType
from frazil.later import later
from frazil.storage.paths import redact_properties
from frazil.table.inspect.metadata_rows import history_rows, ref_rows, snapshot_rows

if TYPE_CHECKING:
    from frazil.cli.format import partition_text, rows_of
    from frazil.cli.planned import Read
else:
    partition_text, rows_of = later("frazil.cli.format", "partition_text", "rows_of")
    Read = later("frazil.cli.planned", "Read")


_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@command("frazil --warehouse /data/lake tables", "frazil --warehouse /data/lake tables db")
@click.argument("namespace", required=False)
def tables(settings: Settings, out: Output, *, namespace: str | None) -> None:
    """List the tables, of one namespace or of all."""
    found = [
        {"namespace": ".".join(identifier[:-1]), "table": identifier[-1]}
        for identifier in settings.catalog().list_tables_below(namespace or ())
    ]
    columns = {"namespace": TextColumn("namespace"), "table": TextColumn("table")}
    out.listing(found, columns, nothing="no tables")


@command("frazil --warehouse /data/lake namespaces")
@click.argument("parent", required=False)
def namespaces(settings: Settings, out: Output, *, parent: str | None) -> None:
    """List the namespaces, at the top or below another one."""
    found = [".".join(each) for each in settings.catalog().list_namespaces(parent or ())]
    columns = {"namespace": TextColumn("namespace")}
    out.listing(found, columns, nothing="no namespaces", shown=lambda name: {"namespace": name})


@command("frazil --warehouse /data/lake describe db.trips")
@click.argument("table")
def describe(settings: Settings, out: Output, *, table: str) -> None:
    """Show a table's columns, layout and newest snapshot."""
    facts = describe_table(settings.table(table))
    if out.as_json:
        out.document(facts)
        return
    columns = facts.pop("columns")
    snapshot = facts.pop("snapshot")
    for name in ("partitioned_by", "sorted_by"):
        facts[name] = ", ".join(facts[name]) or "nothing"
    out.pairs((name.replace("_", " "), value) for name, value in facts.items())
    click.echo()
    _show_columns(out, columns)
    click.echo()
    if snapshot is None:
        click.echo("no snapshot: the table is empty")
    else:
        out.pairs((name.replace("_", " "), value) for name, value in snapshot.items())


@command(
    "frazil --warehouse /data/lake schema db.trips",
    "frazil --warehouse /data/lake schema db.trips --ref v1 --json",
)
@click.argument("table")
@of_snapshot
def schema(
    settings: Settings,
    out: Output,
    *,
    table: str,
    **moment: Any,
) -> None:
    """Show every column with its id, nested ones too."""
    rows = list(_fields_in(Read.of(settings.table(table), **moment).schema.fields))
    _show_columns(out, rows)


@command("frazil --warehouse /data/lake history db.trips")
@click.argument("table")
def history(settings: Settings, out: Output, *, table: str) -> None:
    """Show which snapshot was current when."""
    rows = [
        {**row, "made_current_at": _instant(row["made_current_at"])}
        for row in history_rows(settings.table(table).metadata)
    ]
    columns = {
        "made_current_at": TextColumn("current since"),
        "snapshot_id": TextColumn("snapshot", "number"),
        "parent_id": TextColumn("parent", "number"),
        "is_current_ancestor": TextColumn("ancestor"),
    }
    out.listing(rows, columns, nothing="no snapshot yet")


@command(
    "frazil --warehouse /data/lake snapshots db.trips",
    "frazil snapshots /data/lake/db/trips --json",
)
@click.argument("table")
def snapshots(settings: Settings, out: Output, *, table: str) -> None:
    """Show every snapshot that is kept, and what it changed."""
    rows = [
        {
            **row,
            "committed_at": _instant(row["committed_at"]),
            "summary": {each["key"]: each["value"] for each in row["summary"]},
        }
        for row in snapshot_rows(settings.table(table).metadata)
    ]
    counts = {
        "added-records": "added rows",
        "deleted-records": "deleted rows",
        "total-records": "rows",
        "total-data-files": "files",
        "total-delete-files": "delete files",
    }

    def with_counts(row: dict[str, Any]) -> dict[str, Any]:
        missing = {name: "0" for name in counts if not name.startswith("total-")}
        summary = {**missing, **row["summary"]}
        return {**row, **{name: as_number(summary.get(name)) for name in counts}}

    columns = {
        "committed_at": TextColumn("committed at"),
        "snapshot_id": TextColumn("snapshot", "number"),
        "operation": TextColumn("operation"),
        **{name: TextColumn(heading, "number") for name, heading in counts.items()},
    }
    out.listing(rows, columns, nothing="no snapshot yet", shown=with_counts)


@command(
    "frazil --warehouse /data/lake files db.trips --limit 10",
    "frazil --warehouse /data/lake files db.trips --ref v1 --wide",
)
@click.argument("table")
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="At most this many files.")
@of_snapshot
def files(
    settings: Settings,
    out: Output,
    *,
    table: str,
    limit: int | None,
    **moment: Any,
) -> None:
    """Show the files of the current or another snapshot."""
    handle = settings.table(table)
    frame = handle.inspect.files(**moment)
    found = frame if limit is None else frame.head(limit)
    rows = rows_of(found.drop("readable_metrics", strict=False))
    if out.as_json:
        out.document(rows)
        return
    kinds = {0: "data", 1: "position deletes", 2: "equality deletes"}
    for row in rows:
        row["kind"] = kinds.get(row["content"], str(row["content"]))
        row["part"] = partition_text(handle.metadata, row["spec_id"], row.get("partition"))
        row["size"] = readable_bytes(row["file_size_in_bytes"])
    columns = {
        "kind": TextColumn("content"),
        "part": TextColumn("partition"),
        "record_count": TextColumn("rows", "number"),
        "size": TextColumn("size", "number"),
        "file_path": TextColumn("file", "path"),
    }
    if not any(row["part"] for row in rows):
        del columns["part"]
    out.rows(rows, columns, nothing="no files")
    if len(rows) < len(frame):
        click.echo(f"{len(rows)} of {len(frame)} files")


@command("frazil --warehouse /data/lake partitions db.trips")
@click.argument("table")
@of_snapshot
def partitions(
    settings: Settings,
    out: Output,
    *,
    table: str,
    **moment: Any,
) -> None:
    """Show the partitions with their rows, files and sizes."""
    handle = settings.table(table)
    rows = rows_of(handle.inspect.partitions(**moment))

    def shown_row(row: dict[str, Any]) -> dict[str, Any]:
        part = "the whole table"
        if "partition" in row:
            part = partition_text(handle.metadata, row["spec_id"], row["partition"])
        size = readable_bytes(row["total_data_file_size_in_bytes"])
        deletes = row["position_delete_file_count"] + row["equality_delete_file_count"]
        return {**row, "part": part, "size": size, "deletes": deletes}

    columns = {
        "part": TextColumn("partition"),
        "record_count": TextColumn("rows", "number"),
        "file_count": TextColumn("files", "number"),
        "size": TextColumn("size", "number"),
        "deletes": TextColumn("delete files", "number"),
        "last_updated_at": TextColumn("updated at"),
    }
    out.listing(rows, columns, nothing="no partitions", shown=shown_row)


@command("frazil --warehouse /data/lake refs db.trips")
@click.argument("table")
def refs(settings: Settings, out: Output, *, table: str) -> None:
    """Show branches and tags, and how long they are kept."""
    ages = ("max_reference_age_in_ms", "max_snapshot_age_in_ms")

    def shown_row(row: dict[str, Any]) -> dict[str, Any]:
        readable = {name: readable_duration(row[name]) for name in ages}
        return {**row, **readable, "type": row["type"].lower()}

    columns = {
        "name": TextColumn("name"),
        "type": TextColumn("type"),
        "snapshot_id": TextColumn("snapshot", "number"),
        "max_reference_age_in_ms": TextColumn("kept for"),
        "min_snapshots_to_keep": TextColumn("least snapshots", "number"),
        "max_snapshot_age_in_ms": TextColumn("snapshots kept for"),
    }
    rows = ref_rows(settings.table(table).metadata)
    out.listing(rows, columns, nothing="no branches or tags yet", shown=shown_row)


@command("frazil --warehouse /data/lake properties db.trips")
@click.argument("table")
def properties(settings: Settings, out: Output, *, table: str) -> None:
    """Show the table's properties."""
    found = redact_properties(dict(sorted(settings.table(table).properties.items())))
    if out.as_json:
        out.document(found)
    elif found:
        out.pairs(found.items())
    else:
        click.echo("no properties")


def _instant(milliseconds: int) -> datetime:
    """A point in time by its milliseconds since the epoch."""
    return _EPOCH + timedelta(milliseconds=milliseconds)


def _show_columns(out: Output, rows: Sequence[dict[str, Any]]) -> None:
    columns = {
        "id": TextColumn("id", "number"),
        "column": TextColumn("column"),
        "type": TextColumn("type", "text"),
        "required": TextColumn("required"),
    }
    if any(row["doc"] for row in rows):
        columns["doc"] = TextColumn("doc", "text")
    out.listing(rows, columns, nothing="no columns")


def _fields_in(fields: Sequence[NestedField], path: str = "") -> Iterator[dict[str, Any]]:
    for each in fields:
        name = f"{path}.{each.name}" if path else each.name
        yield {
            "id": each.field_id,
            "column": name,
            # What is inside of a type has lines of its own.
            "type": str(each.field_type).partition("<")[0],
            "required": each.required,
            "doc": each.doc,
        }
        if isinstance(each.field_type, StructType | ListType | MapType):
            yield from _fields_in(each.field_type.fields, name)
