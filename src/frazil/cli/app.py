"""The `frazil` command itself: where the tables are, how a command is declared, how errors end."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import update_wrapper
from typing import TYPE_CHECKING, Any, TypeAlias

import click

from frazil.cli.listing import SECTIONS, Listed
from frazil.cli.output import Output
from frazil.errors import FrazilError
from frazil.later import import_now, later
from frazil.storage.paths import redact
from frazil.version import FRAZIL_VERSION

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from frazil.catalog.protocol import Catalog
    from frazil.cli.places import (
        catalog_if_there,
        catalog_there_is,
        handle_there_is,
        new_or_old_catalog,
    )
    from frazil.table.handle import TableHandle
else:
    CompletionItem = later("click.shell_completion", "CompletionItem")
    catalog_if_there, catalog_there_is, handle_there_is, new_or_old_catalog = later(
        "frazil.cli.places",
        "catalog_if_there",
        "catalog_there_is",
        "handle_there_is",
        "new_or_old_catalog",
    )

Decorator: TypeAlias = Callable[[Callable[..., None]], Callable[..., None]]

_COMMANDS = "frazil.cli.commands"

EXAMPLES = """\b
Examples:
  frazil --warehouse /data/lake tables
  frazil --warehouse /data/lake scan db.trips --where "fare > 10" --limit 5
  frazil snapshots /data/lake/db/trips --json

\b
Exit codes:
  0  done
  1  refused or failed; the reason is one line on standard error
  2  the command line is wrong
"""


@dataclass(frozen=True, slots=True)
class Settings:
    """Where the tables are.

    What opens them is imported when it is needed, since a prompt must not wait for it.
    """

    name: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)

    def catalog(self) -> Catalog:
        """Return the configured catalog; looking never makes one.

        Raises:
            ConfigurationError: nothing is configured, or there is no catalog at that place or of
                that name.
        """
        return catalog_there_is(self)

    def catalog_if_there(self) -> Catalog | None:
        """Return the configured catalog; None where `new_or_old_catalog` would make its database.

        Raises:
            ConfigurationError: nothing is configured, or there is no catalog of that name.
        """
        return catalog_if_there(self)

    def new_or_old_catalog(self) -> Catalog:
        """Return the configured catalog, made where it is not there.

        Raises:
            ConfigurationError: nothing is configured.
        """
        return new_or_old_catalog(self)

    def table(self, name: str) -> TableHandle:
        """Return a table by its name in the catalog, or by the path of its folder or metadata file.

        Raises:
            NoSuchTableError: there is none; the message names the nearest there is.
        """
        return handle_there_is(name, self)


class Commands(click.Group):
    """The listed commands; their typed errors are one line, not a traceback.

    A command's module is imported when the command is asked for. Until then its place is held by
    what the list says of it, which is all that help, completion and suggestions need.
    """

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        for listed in _all_listed():
            self.commands.setdefault(listed.word, _Unread(listed))

    def every_command(self) -> dict[str, ShownCommand]:
        """Return all commands by their words, in the order of the list."""
        return {listed.words: self._declare(listed) for listed in _all_listed()}

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command; its module is imported, and no other one is."""
        found = super().get_command(ctx, cmd_name)
        if isinstance(found, _Unread):
            import_now(f"{_COMMANDS}.{found.listed.module}")
            return super().get_command(ctx, cmd_name)
        return found

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order of the list."""
        return list(self.commands)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands of each section."""
        for section, below in SECTIONS.items():
            with formatter.section(section):
                formatter.write_dl([(listed.words, _text_of_list(listed, 60)) for listed in below])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return what a shell offers: commands that begin so, and options."""
        begun = {each.word: each for each in _all_listed() if each.word.startswith(incomplete)}
        found = [CompletionItem(word, help=_text_of_list(each, 60)) for word, each in begun.items()]
        return found + click.Command.shell_complete(self, ctx, incomplete)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command."""
        try:
            return super().invoke(ctx)
        except FrazilError as error:
            secrets = dict(ctx.obj.properties) if isinstance(ctx.obj, Settings) else {}
            line = " ".join(redact(str(error), secrets).split())
            raise click.ClickException(line) from error

    def _declare(self, listed: Listed) -> ShownCommand:
        import_now(f"{_COMMANDS}.{listed.module}")
        found: Any = self
        for word in listed.words.split():
            found = found.commands[word]
        if not isinstance(found, ShownCommand):
            raise TypeError(f"frazil.cli.listing names {listed.words}, which {listed.module} lacks")
        return found


class _Unread(click.Command):
    """A command whose module was not imported yet."""

    def __init__(self, listed: Listed) -> None:
        super().__init__(listed.word)
        self.listed = listed


def _all_listed() -> Iterator[Listed]:
    for below in SECTIONS.values():
        yield from below


def _text_of_list(listed: Listed, limit: int) -> str:
    return click.Command(None, help=listed.summary).get_short_help_str(limit)


class ShownCommand(click.Command):
    """A command with its examples."""

    def __init__(self, name: str, *, examples: tuple[str, ...], **more: Any) -> None:
        lines = "\n".join(f"  {example}" for example in examples)
        heading = "Example" if len(examples) == 1 else "Examples"
        super().__init__(name, epilog=f"\b\n{heading}:\n{lines}", **more)
        self.examples = examples


@click.group(
    cls=Commands,
    epilog=EXAMPLES,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.option("--catalog", "name", metavar="NAME", help="A catalog of the environment or the file.")
@click.option("--warehouse", metavar="PLACE", help="The folder or URI of the warehouse.")
@click.option("--uri", help="The catalog's database, as sqlite:////data/lake/catalog.db.")
@click.option("--type", "kind", metavar="TYPE", help="sql (the default) or hadoop.")
@click.option("--property", "-p", "pairs", multiple=True, metavar="KEY=VALUE", help="Any setting.")
@click.version_option(FRAZIL_VERSION, prog_name="frazil")
@click.pass_context
def main(
    context: click.Context,
    name: str | None,
    warehouse: str | None,
    uri: str | None,
    kind: str | None,
    pairs: tuple[str, ...],
) -> None:
    """Look at Iceberg tables and change them, by name in a catalog or by the path of a folder."""
    properties = pairs_of(pairs, "--property")
    named = {"warehouse": warehouse, "uri": uri, "type": kind}
    properties.update({key: value for key, value in named.items() if value is not None})
    context.obj = Settings(name, properties)


def command(*examples: str, name: str | None = None, group: click.Group | None = None) -> Decorator:
    """Declare a command of the list that takes the settings and an `Output`.

    Args:
        examples: lines that its help shows.
        name: its name, that of the function unless given.
        group: the command whose word stands before it; none unless given.
    """

    as_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
    wide = click.option("--wide", is_flag=True, help="Cut nothing, however long the lines get.")

    def declare(function: Callable[..., None]) -> Callable[..., None]:
        def run(settings: Settings, /, *, as_json: bool, wide: bool, **arguments: Any) -> None:
            function(settings, Output(as_json=as_json, is_wide=wide), **arguments)

        # It takes the function's options and help over.
        update_wrapper(run, function)
        declared = (group or main).command(name, cls=ShownCommand, examples=examples)
        declared(as_json(wide(click.pass_obj(run))))
        return function

    return declare


def of_snapshot(function: Callable[..., None]) -> Callable[..., None]:
    """Add the options that name a snapshot."""
    options = (
        click.option("--snapshot-id", type=int, metavar="ID", help="Of this snapshot."),
        click.option(
            "--as-of", metavar="TIME", help="Of what was current then; local time without a zone."
        ),
        click.option("--ref", metavar="NAME", help="Of a branch or a tag."),
    )
    for option in reversed(options):
        function = option(function)
    return function


yes_option = click.option("--yes", is_flag=True, help="Do not ask.")


def confirm(question: str, *, yes: bool) -> None:
    """Ask before something is removed; go on where the answer is yes.

    Raises:
        click.UsageError: there is nobody to ask, and --yes is not given.
        click.Abort: the answer is no.
    """
    if yes:
        return
    check_somebody_answers(question)
    click.confirm(question, abort=True, err=True)


def can_ask() -> bool:
    """Whether somebody is there to answer."""
    return sys.stdin.isatty()


def check_somebody_answers(question: str) -> None:
    """Check that a question can be asked.

    Raises:
        click.UsageError: there is nobody to ask.
    """
    if not can_ask():
        raise click.UsageError(f"{question} Nobody can be asked here: give --yes.")


def pairs_of(pairs: tuple[str, ...], option: str) -> dict[str, str]:
    """Return what an option given as KEY=VALUE says.

    Raises:
        click.BadParameter: one is not of that form.
    """
    found: dict[str, str] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise click.BadParameter("use KEY=VALUE", param_hint=option)
        found[key] = value
    return found
