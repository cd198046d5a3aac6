"""Commands of maintenance that start no Spark: orphan files, checks, copies."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, cast

import click

from frazil.cli.app import Settings, command, confirm, yes_option
from frazil.cli.layout import TextColumn
from frazil.cli.output import Output, readable_bytes
from frazil.errors import StorageError
from frazil.later import later

if TYPE_CHECKING:
    from frazil.cli.progress import shown_progress
    from frazil.table.maintenance import orphans
    from frazil.table.maintenance.check import CheckResult
    from frazil.table.maintenance.orphans import (
        OrphanFilesResult,
        OrphanSettings,
        PrefixMismatchMode,
    )
    from frazil.table.time_travel import timestamp_ms_of
else:
    orphans = later("frazil.table.maintenance.orphans")
    timestamp_ms_of = later("frazil.table.time_travel", "timestamp_ms_of")
    shown_progress = later("frazil.cli.progress", "shown_progress")


_SHOWN = 20


@command(
    "frazil --warehouse /data/lake remove-orphan-files db.trips --dry-run",
    name="remove-orphan-files",
)
@click.argument("table")
@click.option("--older-than", metavar="TIME", help="Changed before; 3 days ago unless given.")
@click.option("--location", metavar="PLACE", help="The folder to search; the table's else.")
@click.option(
    "--prefix-mismatch",
    type=click.Choice(["error", "ignore", "delete"]),
    default="error",
    help="Of files that metadata names with another scheme or authority.",
)
@click.option("--dry-run", is_flag=True, help="Show what would go, and remove nothing.")
@yes_option
def remove_orphan_files(
    settings: Settings,
    out: Output,
    *,
    table: str,
    older_than: str | None,
    location: str | None,
    prefix_mismatch: str,
    dry_run: bool,
    yes: bool,
) -> None:
    """Delete files in a table's folder that no metadata reaches.

    Shows first what would go, and asks.
    """
    handle = settings.table(table)
    limit = int((time.time() - orphans.DEFAULT_AGE.total_seconds()) * 1000)
    older_than_ms = limit if older_than is None else timestamp_ms_of(older_than)
    mode = cast("PrefixMismatchMode", prefix_mismatch.upper())
    more: OrphanSettings = {"prefix_mismatch_mode": mode}
    if location is not None:
        more["location"] = location
    with shown_progress(out, "looking for files") as tell:
        found = handle.maintenance.remove_orphan_files(
            older_than=older_than_ms, dry_run=True, on_progress=tell, **more
        )
    if not out.as_json:
        _show_orphans(out, found)
    if dry_run or not found.orphan_files_count:
        if out.as_json:
            out.document(_orphan_facts(handle.name, found))
        return
    confirm("Remove them?", yes=yes)
    with shown_progress(out, "looking for files") as tell:
        done = handle.maintenance.remove_orphan_files(
            older_than=older_than_ms, on_progress=tell, **more
        )
    out.print_done(_orphan_facts(handle.name, done), f"removed {done.deleted_files_count} files")
    if done.failures:
        path, reason = done.failures[0]
        raise StorageError(
            f"{len(done.failures)} files could not be deleted, {path} among them: {reason}"
        )


@command(
    "frazil --warehouse /data/lake check db.trips",
)
@click.argument("table")
def check(settings: Settings, out: Output, *, table: str) -> None:
    """Look for files that are lost, broken, or not as the metadata says.

    Exit code 1 says that there are some.
    """
    handle = settings.table(table)
    with shown_progress(out, "check") as tell:
        result = handle.maintenance.check(on_progress=tell)
    if out.as_json:
        facts = {
            "table": handle.name,
            "is_sound": result.is_sound,
            "snapshots": result.snapshots_count,
            "manifests": result.manifests_count,
            "files": result.files_count,
            "problems": result.frame.to_dicts(),
        }
        out.document(facts)
    else:
        _show_problems(out, result)
    if not result.is_sound:
        raise click.exceptions.Exit(1)


@command("frazil --warehouse /data/lake repair db.trips --yes")
@click.argument("table")
@yes_option
def repair(settings: Settings, out: Output, *, table: str, yes: bool) -> None:
    """Mend what a check finds: forget lost data files and statistics, correct sizes and counts.

    Shows first what is wrong, and asks. The rows of lost data files stay lost.
    """
    handle = settings.table(table)
    found = handle.maintenance.check()
    if not out.as_json:
        _show_problems(out, found)
    if not found.is_sound:
        confirm("Mend what can be mended?", yes=yes)
    done = handle.maintenance.repair()
    facts = {
        "table": handle.name,
        "removed_data_files_count": done.removed_data_files_count,
        "corrected_files_count": done.corrected_files_count,
        "removed_statistics_count": done.removed_statistics_count,
        "removed_delete_files_count": done.removed_delete_files_count,
        "left": done.frame.to_dicts(),
    }
    text = (
        f"forgot {done.removed_data_files_count} lost data files and "
        f"{done.removed_statistics_count} statistics, corrected {done.corrected_files_count} "
        f"files, left {len(done.frame)} problems"
    )
    if done.removed_delete_files_count:
        text += f"\nremoved {done.removed_delete_files_count} superfluous delete files"
    out.print_done(facts, text)


@command(
    "frazil --warehouse /data/lake rewrite-table-path db.trips file:///data/lake s3://new/lake",
    name="rewrite-table-path",
)
@click.argument("table")
@click.argument("source_prefix")
@click.argument("target_prefix")
@click.option("--start-version", metavar="NAME", help="The metadata file that was copied last.")
@click.option("--end-version", metavar="NAME", help="The newest metadata file to copy.")
@click.option("--staging", metavar="PLACE", help="For files that are written anew.")
def rewrite_table_path(
    settings: Settings,
    out: Output,
    *,
    table: str,
    source_prefix: str,
    target_prefix: str,
    start_version: str | None,
    end_version: str | None,
    staging: str | None,
) -> None:
    """Stage a table's metadata for another place, with a list of files to copy.

    The table stays as it is.
    """
    handle = settings.table(table)
    done = handle.maintenance.rewrite_table_path(
        source_prefix,
        target_prefix,
        start_version=start_version,
        end_version=end_version,
        staging_location=staging,
    )
    facts = {
        "table": handle.name,
        "latest_version": done.latest_version,
        "file_list_location": done.file_list_location,
        "rewritten_manifest_file_paths_count": done.rewritten_manifest_file_paths_count,
        "rewritten_delete_file_paths_count": done.rewritten_delete_file_paths_count,
    }
    out.print_done(
        facts, f"{len(done.file_list)} files are to be copied, see {done.file_list_location}"
    )


def _show_problems(out: Output, result: CheckResult) -> None:
    columns = {
        "problem": TextColumn("problem"),
        "kind": TextColumn("of"),
        "stated": TextColumn("stated", "number"),
        "found": TextColumn("found", "number"),
        "file_path": TextColumn("file", "path"),
    }
    rows = result.frame.head(_SHOWN).to_dicts()
    out.rows(rows, columns, nothing="no problems")
    click.echo()
    facts = [
        ("problems", len(result.frame)),
        ("snapshots", result.snapshots_count),
        ("manifests", result.manifests_count),
        ("files", result.files_count),
    ]
    out.pairs(facts)


def _orphan_facts(name: str, result: OrphanFilesResult) -> dict[str, Any]:
    return {
        "table": name,
        "removed": not result.is_dry_run,
        "orphan_files_count": result.orphan_files_count,
        "orphan_bytes": result.orphan_bytes,
        "deleted_files_count": result.deleted_files_count,
        "orphan_file_locations": result.frame[orphans.FILE_COLUMN].to_list(),
    }


def _show_orphans(out: Output, found: OrphanFilesResult) -> None:
    rows = found.frame.head(_SHOWN).to_dicts()
    columns = {orphans.FILE_COLUMN: TextColumn("orphan file", "path")}
    out.rows(rows, columns, nothing="nothing to remove: no orphan files")
    if found.orphan_files_count:
        if found.orphan_files_count > len(rows):
            click.echo(f"and {found.orphan_files_count - len(rows)} more")
        click.echo()
        size = readable_bytes(found.orphan_bytes)
        out.pairs([("files", found.orphan_files_count), ("size", size)])
