"""`frazil cdc`: a table of another database is followed into a table."""

from __future__ import annotations

import re
from types import ModuleType
from typing import TYPE_CHECKING

import click

from frazil.catalog.identifiers import parse_table_identifier, shown
from frazil.cli.app import Settings, command
from frazil.cli.interrupts import until_interrupted
from frazil.cli.layout import one_line
from frazil.cli.output import Output
from frazil.errors import ConfigurationError, UnsupportedError
from frazil.later import later

if TYPE_CHECKING:
    from frazil.cli.local_spark import opened_lake
else:
    opened_lake = later("frazil.cli.local_spark", "opened_lake")


_SLOT_NAME = re.compile(r"[a-z0-9_]{1,63}")


@command(
    "frazil --warehouse /data/lake cdc postgres postgresql://me@db/shop --table db.trips --once",
    "frazil --warehouse /data/lake cdc postgres service=shop --table db.trips --interval 10",
)
@click.argument("kind", metavar="postgres", type=click.Choice(["postgres"]))
@click.argument("dsn")
@click.option("--table", required=True, metavar="NAME", help="The table; made if there is none.")
@click.option("--source", metavar="RELATION", help="In PostgreSQL; public.NAME unless given.")
@click.option("--once", is_flag=True, help="Take over what is committed by now, and stop.")
@click.option(
    "--interval",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="Between two rounds; 1 unless given.",
)
@click.option(
    "--batch-rows",
    type=click.IntRange(min=1),
    default=100_000,
    show_default=True,
    help="A commit ends with the transaction that reaches so many changes.",
)
@click.option("--slot", metavar="NAME", help="The replication slot; frazil_TABLE unless given.")
@click.option(
    "--publication", metavar="NAME", help="Made if there is none; the slot's name unless given."
)
@click.option("--partition-by", multiple=True, metavar="EXPR", help="Of a table that is made.")
@click.option("--load-again", is_flag=True, help="Replace the table's rows by all of the source's.")
@click.option("--drop-slot", is_flag=True, help="Remove the slot, and stop.")
def cdc(
    settings: Settings,
    out: Output,
    *,
    kind: str,
    dsn: str,
    table: str,
    source: str | None,
    once: bool,
    interval: float | None,
    batch_rows: int,
    slot: str | None,
    publication: str | None,
    partition_by: tuple[str, ...],
    load_again: bool,
    drop_slot: bool,
) -> None:
    """Follow a table of PostgreSQL: its rows first, then every change.

    DSN is a connection string of libpq. Better than in it the password is in PGPASSWORD or
    ~/.pgpass. The server needs wal_level = logical.
    """
    if once and interval is not None:
        raise click.UsageError("--interval goes without --once")
    if drop_slot and load_again:
        raise click.UsageError("--drop-slot and --load-again contradict each other")
    following = _follow_module()
    name = shown(parse_table_identifier(table))
    named = slot or "frazil_" + re.sub("[^a-z0-9_]", "_", name.lower())
    if not _SLOT_NAME.fullmatch(named):
        raise ConfigurationError(
            f"{named!r} is no name of a replication slot: those have up to 63 lower-case letters, "
            "digits and underscores; give another with --slot"
        )
    wanted = following.CdcSettings(
        dsn=following.Dsn.of(dsn),
        source=source or f"public.{parse_table_identifier(table)[-1]}",
        slot=named,
        publication=publication or named,
        batch_rows=batch_rows,
        partition_by=partition_by,
        loads_again=load_again,
    )
    taken = {"rows": 0, "transactions": 0, "lsn": None}

    def tell(progress: object) -> None:
        click.echo(one_line(str(progress)), err=True)
        for each in ("rows", "transactions"):
            taken[each] += getattr(progress, each)
        taken["lsn"] = following.lsn_text(progress.lsn)  # type: ignore[attr-defined]

    with opened_lake(settings.catalog()) as lake:
        follower = following.PostgresFollower(
            lake=lake, name=table, settings=wanted, on_progress=tell
        )
        if drop_slot:
            was_there = follower.drop_slot()
            text = f"removed the slot {named}" if was_there else f"there is no slot {named}"
            out.print_done({"slot": named, "removed": was_there}, text)
            return
        with until_interrupted() as stop:
            if once:
                follower.drain()
            else:
                follower.follow(interval=interval or 1.0, stop=stop, on_error=_tell_error)
    text = f"{name} took {taken['rows']} rows and changes of {taken['transactions']} transactions"
    out.print_done({"table": name, "slot": named, **taken}, text)


def _follow_module() -> ModuleType:
    """The module that needs PostgreSQL's driver, which is not installed everywhere."""
    try:
        from frazil.cdc import follow
    except ImportError as error:
        raise UnsupportedError(
            "following PostgreSQL needs its driver: pip install 'frazil[cdc]'"
        ) from error
    return follow


def _tell_error(error: Exception) -> None:
    click.echo(one_line(f"this round failed, the next one tries again: {error}"), err=True)
