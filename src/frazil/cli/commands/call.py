"""`frazil call`: maintenance by the text of a CALL."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from frazil.cli.app import Settings, check_somebody_answers, command, confirm
from frazil.cli.output import Output, column_of
from frazil.later import later

if TYPE_CHECKING:
    from frazil.cli.local_spark import opened_lake
    from frazil.cli.progress import shown_progress
    from frazil.spark.procedures.call import procedure_of, would_delete
    from frazil.spark.procedures.statement import parse_call
else:
    opened_lake = later("frazil.cli.local_spark", "opened_lake")
    procedure_of, would_delete = later(
        "frazil.spark.procedures.call", "procedure_of", "would_delete"
    )
    parse_call = later("frazil.spark.procedures.statement", "parse_call")
    shown_progress = later("frazil.cli.progress", "shown_progress")


@command(
    "frazil --warehouse /data/lake call \"CALL system.ancestors_of('db.trips')\"",
)
@click.argument("statement")
@click.option("--yes", is_flag=True, help="Do not ask before files are deleted.")
def call(settings: Settings, out: Output, *, statement: str, yes: bool) -> None:
    """Run a procedure of maintenance, as CALL does in Spark's SQL with Iceberg's Java runtime.

    STATEMENT is CALL system.procedure(arguments). A wrong name lists those that there are, and
    wrong arguments show the right ones. Before files are deleted it shows which, and asks;
    dry_run => true deletes none.
    """
    catalog = settings.catalog()
    parsed = parse_call(statement)
    procedure = procedure_of(parsed, catalog.name)
    asks = procedure.deletes_files and not parsed.only_looks() and not yes
    question = f"{procedure.signature.name} deletes files. Go on?"
    if asks:
        check_somebody_answers(question)
    with opened_lake(catalog) as lake:
        if asks:
            click.echo(str(would_delete(lake.spark, catalog, statement)), err=True)
            confirm(question, yes=yes)
        with shown_progress(out, procedure.signature.name) as tell:
            result = lake.call(statement, on_progress=tell)
            rows = [row.asDict() for row in result.collect()]
    if out.as_json:
        out.document(rows)
    elif len(rows) == 1:
        out.pairs(rows[0].items())
    else:
        columns = {name: column_of(name, (row[name] for row in rows)) for name in result.columns}
        out.rows(rows, columns, nothing="no rows")
