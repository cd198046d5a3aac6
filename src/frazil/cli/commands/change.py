"""Commands that change tables and their names; none of them starts Spark."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from frazil.catalog.identifiers import parse_named_namespace, shown
from frazil.cli.app import Settings, command, confirm, of_snapshot, pairs_of, yes_option
from frazil.cli.layout import TextColumn
from frazil.cli.output import Output, readable_bytes
from frazil.errors import InvalidFormatError, NoSuchSnapshotError, StorageError
from frazil.format.metadata import TableMetadata
from frazil.format.new_table import new_table_metadata
from frazil.format.partitions.partitioning import spec_for
from frazil.format.sorting import order_for
from frazil.later import later
from frazil.storage.paths import normalize_location

if TYPE_CHECKING:
    from frazil.cli.places import require
    from frazil.cli.progress import shown_progress
    from frazil.format.schema.ddl import schema_of_ddl
    from frazil.table.handle import TableHandle
    from frazil.table.maintenance.expire import ExpireResult
    from frazil.table.time_travel import find_snapshot, timestamp_ms_of
else:
    require = later("frazil.cli.places", "require")
    schema_of_ddl = later("frazil.format.schema.ddl", "schema_of_ddl")
    find_snapshot, timestamp_ms_of = later(
        "frazil.table.time_travel", "find_snapshot", "timestamp_ms_of"
    )
    shown_progress = later("frazil.cli.progress", "shown_progress")


@command(
    "frazil --warehouse /data/lake create-namespace staging",
    name="create-namespace",
)
@click.argument("namespace")
def create_namespace(settings: Settings, out: Output, *, namespace: str) -> None:
    """Make a namespace, and a catalog if there is none."""
    settings.new_or_old_catalog().create_namespace(namespace)
    name = shown(parse_named_namespace(namespace))
    out.print_done({"namespace": name}, f"made the namespace {name}")


@command(
    'frazil --warehouse /data/lake create db.visits "id bigint not null, ts timestamp" '
    "--partition-by 'month(ts)'",
)
@click.argument("table")
@click.argument("columns")
@click.option(
    "--partition-by", multiple=True, metavar="EXPR", help="As 'bucket(16, id)'; may be repeated."
)
@click.option("--sort-by", multiple=True, metavar="EXPR", help="As 'ts desc'; may be repeated.")
@click.option("--set", "pairs", multiple=True, metavar="KEY=VALUE", help="A table property.")
@click.option("--location", metavar="PLACE", help="Where its files lie.")
@click.option("--format-version", type=int, metavar="N", help="1, 2 (the default) or 3.")
def create(
    settings: Settings,
    out: Output,
    *,
    table: str,
    columns: str,
    partition_by: tuple[str, ...],
    sort_by: tuple[str, ...],
    pairs: tuple[str, ...],
    location: str | None,
    format_version: int | None,
) -> None:
    """Make an empty table.

    COLUMNS are written as in Spark's CREATE TABLE: "id bigint not null, city string".
    """
    schema = schema_of_ddl(columns)
    catalog = settings.catalog()
    metadata = new_table_metadata(
        schema,
        spec_for(schema, partition_by),
        order_for(schema, sort_by),
        location=normalize_location(location)
        if location is not None
        else catalog.default_table_location(table),
        properties=pairs_of(pairs, "--set"),
        format_version=format_version,
    )
    made = catalog.create_table(table, metadata)
    facts = {
        "table": shown(made.identifier),
        "location": made.metadata.location,
        "metadata": made.metadata_location,
    }
    out.print_done(facts, f"made {facts['table']} at {facts['location']}")


@command("frazil --warehouse /data/lake rename db.visits staging.visits")
@click.argument("table")
@click.argument("new_name")
def rename(settings: Settings, out: Output, *, table: str, new_name: str) -> None:
    """Give a table another name; its files stay in place."""
    catalog = settings.catalog()
    require(catalog, table)
    catalog.rename_table(table, new_name)
    out.print_done({"table": new_name, "previous_name": table}, f"{table} is now {new_name}")


@command(
    "frazil --warehouse /data/lake branch db.trips audit",
    "frazil --warehouse /data/lake branch db.trips audit --remove",
)
@click.argument("table")
@click.argument("name")
@of_snapshot
@click.option("--replace", is_flag=True, help="Move the branch, which is there.")
@click.option("--remove", is_flag=True, help="Remove it; its snapshots stay until they expire.")
def branch(settings: Settings, out: Output, *, table: str, **arguments: Any) -> None:
    """Make, move or remove a branch.

    A branch starts at the current snapshot unless you name another.
    """
    handle = settings.table(table)
    methods = handle.create_branch, handle.replace_branch, handle.remove_branch
    _change_ref(out, handle, "branch", methods, **arguments)


@command(
    "frazil --warehouse /data/lake tag db.trips end-of-january --ref v1",
    "frazil --warehouse /data/lake tag db.trips end-of-january --remove",
)
@click.argument("table")
@click.argument("name")
@of_snapshot
@click.option("--replace", is_flag=True, help="Move the tag, which is there.")
@click.option("--remove", is_flag=True, help="Remove it; its snapshot stays until it expires.")
def tag(settings: Settings, out: Output, *, table: str, **arguments: Any) -> None:
    """Make, move or remove a tag.

    A tag names the current snapshot unless you name another.
    """
    handle = settings.table(table)
    methods = handle.create_tag, handle.replace_tag, handle.remove_tag
    _change_ref(out, handle, "tag", methods, **arguments)


@command("frazil --warehouse /data/lake rollback db.trips --ref v1")
@click.argument("table")
@of_snapshot
def rollback(settings: Settings, out: Output, *, table: str, **moment: Any) -> None:
    """Make an earlier snapshot the current one.

    Later snapshots stay until they expire.
    """
    handle = settings.table(table)
    target = _snapshot_id(handle, moment)
    if target is None:
        raise click.UsageError("say where to: give --snapshot-id, --as-of or --ref")
    before = handle.metadata.current_snapshot_id
    handle.rollback_to_snapshot(target)
    facts = {"table": handle.name, "snapshot_id": target, "previous_snapshot_id": before}
    out.print_done(facts, f"{handle.name} is at snapshot {target}; it was at {before}")


@command(
    "frazil --warehouse /data/lake expire db.trips --older-than 2024-03-01 --dry-run",
    "frazil --warehouse /data/lake expire db.trips --retain-last 10 --yes",
)
@click.argument("table")
@click.option("--older-than", metavar="TIME", help="Of this age; by the table's properties else.")
@click.option("--retain-last", type=int, metavar="N", help="Keep this many of each branch.")
@click.option("--snapshot-id", "ids", type=int, multiple=True, metavar="ID", help="These too.")
@click.option("--dry-run", is_flag=True, help="Show what would go, and remove nothing.")
@yes_option
def expire(
    settings: Settings,
    out: Output,
    *,
    table: str,
    older_than: str | None,
    retain_last: int | None,
    ids: tuple[int, ...],
    dry_run: bool,
    yes: bool,
) -> None:
    """Remove old snapshots and the files that only they need.

    Shows first what would go, and asks.
    """
    handle = settings.table(table)
    older_than_ms = None if older_than is None else timestamp_ms_of(older_than)
    expire_snapshots = partial(
        handle.maintenance.expire_snapshots,
        older_than=older_than_ms,
        retain_last=retain_last,
        snapshot_ids=ids,
    )
    expiry = expire_snapshots(dry_run=True)
    files = {
        "data files": expiry.deleted_data_files,
        "position delete files": expiry.deleted_position_delete_files,
        "equality delete files": expiry.deleted_equality_delete_files,
        "manifests": expiry.deleted_manifest_files,
        "manifest lists": expiry.deleted_manifest_lists,
        "statistics files": expiry.deleted_statistics_files,
    }
    facts = {
        "snapshots": list(expiry.snapshot_ids),
        "refs": list(expiry.ref_names),
        "files": files,
    }
    is_empty = not (expiry.snapshot_ids or expiry.ref_names or any(files.values()))
    if not out.as_json:
        if is_empty:
            click.echo("nothing to remove: every snapshot stays")
        else:
            _show_expiry(out, handle.metadata, expiry, files)
    if dry_run or is_empty:
        if out.as_json:
            out.document({"table": handle.name, "removed": False, **facts})
        return
    confirm("Remove them?", yes=yes)
    with shown_progress(out, "expiring snapshots") as tell:
        done = expire_snapshots(on_progress=tell)
    text = f"removed {len(done.snapshot_ids)} snapshots"
    out.print_done({"table": handle.name, "removed": True, **facts}, text)
    if done.failures:
        path, reason = done.failures[0]
        raise StorageError(
            f"{len(done.failures)} files could not be deleted, {path} among them: {reason}"
        )


@command("frazil --warehouse /data/lake drop staging.visits --yes")
@click.argument("table")
@click.option("--purge", is_flag=True, help="Delete its files too.")
@yes_option
def drop(settings: Settings, out: Output, *, table: str, purge: bool, yes: bool) -> None:
    """Remove a table from the catalog.

    Its files stay unless you say --purge.
    """
    catalog = settings.catalog()
    require(catalog, table)
    location = None
    with suppress(InvalidFormatError, StorageError):
        # A table whose metadata cannot be read can still be dropped.
        loaded = catalog.load_table(table)
        location = loaded.metadata_location
        if purge and not out.as_json:
            _show_purge(out, loaded.metadata)
    confirm(f"Remove {table}{' and all of its files' if purge else ''}?", yes=yes)
    if purge:
        catalog.purge_table(table)
        out.print_done({"table": table, "purged": True}, f"removed {table} and its files")
        return
    catalog.drop_table(table)
    facts = {"table": table, "purged": False, "metadata": location}
    stay = "" if location is None else f"; its files stay, its metadata is {location}"
    out.print_done(facts, f"removed {table}{stay}")


def _change_ref(
    out: Output,
    handle: TableHandle,
    kind: str,
    methods: tuple[Callable[..., None], Callable[..., None], Callable[..., None]],
    *,
    name: str,
    replace: bool,
    remove: bool,
    **moment: Any,
) -> None:
    """Make, move or remove a branch or tag by the handle's methods for that, and show it."""
    if replace and remove:
        raise click.UsageError("give --replace or --remove, not both")
    named = [option for option, value in moment.items() if value is not None]
    if remove and named:
        raise click.UsageError(f"--remove takes no --{named[0].replace('_', '-')}")
    create_one, replace_one, remove_one = methods
    if remove:
        remove_one(name)
    else:
        move = replace_one if replace else create_one
        move(name, snapshot_id=_snapshot_id(handle, moment))
    ref = handle.metadata.refs.get(name)
    at = None if ref is None else ref.snapshot_id
    text = f"removed the {kind} {name}" if ref is None else f"{kind} {name} is at snapshot {at}"
    out.print_done({"table": handle.name, kind: name, "snapshot_id": at}, text)


def _snapshot_id(handle: TableHandle, moment: dict[str, Any]) -> int | None:
    """The snapshot that the options name; None where they name none."""
    if all(value is None for value in moment.values()):
        return None
    found = find_snapshot(handle.metadata, **moment)
    if found is None:
        raise NoSuchSnapshotError(f"{handle.name} has no snapshot there yet")
    return found.snapshot_id


def _show_purge(out: Output, metadata: TableMetadata) -> None:
    snapshot = metadata.current_snapshot
    totals = {} if snapshot is None or snapshot.summary is None else snapshot.summary
    size = totals.get("total-files-size", "")
    facts = [
        ("location", metadata.location),
        ("snapshots", len(metadata.snapshots)),
        ("rows", totals.get("total-records")),
        ("data files", totals.get("total-data-files")),
        ("files size", readable_bytes(int(size) if size.isdigit() else None)),
    ]
    out.pairs(facts)


def _show_expiry(
    out: Output, metadata: TableMetadata, expiry: ExpireResult, files: Mapping[str, int]
) -> None:
    rows = [
        {
            "committed at": datetime.fromtimestamp(snapshot.timestamp_ms / 1000, UTC),
            "snapshot": snapshot.snapshot_id,
            "operation": snapshot.operation,
        }
        for snapshot in metadata.snapshots
        if snapshot.snapshot_id in expiry.snapshot_ids
    ]
    columns = {
        "committed at": TextColumn("committed at"),
        "snapshot": TextColumn("snapshot", "number"),
        "operation": TextColumn("operation"),
    }
    out.rows(rows, columns, nothing="no snapshot goes")
    click.echo()
    facts: list[tuple[str, Any]] = [(kind, count) for kind, count in files.items() if count]
    if expiry.ref_names:
        facts.insert(0, ("branches and tags", ", ".join(expiry.ref_names)))
    out.pairs(facts)
