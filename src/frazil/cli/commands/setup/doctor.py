"""`frazil doctor`: what of this machine, its catalogs and stores will do, and what will not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from frazil.cli.app import Settings, command
from frazil.cli.output import Output
from frazil.errors import FrazilError
from frazil.later import later
from frazil.storage.paths import redact

if TYPE_CHECKING:
    from frazil.cli.commands.setup.findings import Finding
    from frazil.cli.commands.setup.places import meant_catalogs, place_findings
    from frazil.cli.commands.setup.versions import extra_findings, version_findings
else:
    Finding = later("frazil.cli.commands.setup.findings", "Finding")
    meant_catalogs, place_findings = later(
        "frazil.cli.commands.setup.places", "meant_catalogs", "place_findings"
    )
    extra_findings, version_findings = later(
        "frazil.cli.commands.setup.versions", "extra_findings", "version_findings"
    )


@command("frazil doctor", "frazil --warehouse /data/lake doctor --write")
@click.option("--write", is_flag=True, help="Write a file to each warehouse, and delete it.")
def doctor(settings: Settings, out: Output, *, write: bool) -> None:
    """Look at versions, catalogs and stores, and say what to do.

    It looks at the configured catalogs, or at the one that --catalog or --warehouse says. Spark is
    not started. The exit code is 1 if something failed.
    """
    findings = list(_findings(settings, write=write))
    if out.as_json:
        out.document([asdict(each) for each in findings])
    else:
        out.pairs((f"{each.state:<7}  {each.check}", str(each)) for each in findings)
    if any(each.state == "failed" for each in findings):
        raise click.exceptions.Exit(1)


def _findings(settings: Settings, *, write: bool) -> Iterator[Finding]:
    yield from version_findings()
    try:
        catalogs = meant_catalogs(settings)
    except FrazilError as error:
        yield Finding("catalogs", "failed", redact(str(error)))
        catalogs = []
    else:
        if not catalogs:
            advice = "frazil catalog add NAME --warehouse PLACE adds one"
            yield Finding("catalogs", "ok", f"none is configured; {advice}")
    for each in catalogs:
        yield from place_findings(each, write=write)
    yield from extra_findings()
