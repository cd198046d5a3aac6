"""The text of a CALL: the procedure, and its arguments as they are written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from frazil.errors import ProcedureError, SqlSyntaxError
from frazil.spark.words import WordReader

_FORM: Final = "write it as CALL system.rewrite_data_files(table => 'db.t')"
_SHOWN: Final = 120


@dataclass(frozen=True, slots=True)
class CallStatement:
    """What a CALL says.

    Attributes:
        catalog: the catalog that it names; None where it names none.
        procedure: the name of the procedure, in lower case.
        positional: the texts of arguments without a name, in order.
        named: names as written, and the texts of their arguments.
    """

    catalog: str | None
    procedure: str
    positional: tuple[str, ...]
    named: tuple[tuple[str, str], ...]

    def only_looks(self) -> bool:
        """Whether the argument ``dry_run => true`` stands in it."""
        return any(
            name.lower() == "dry_run" and text.strip().lower() == "true"
            for name, text in self.named
        )


def parse_call(text: str) -> CallStatement:
    """Read one statement of the form ``CALL [catalog.]system.procedure(arguments)``.

    Raises:
        ProcedureError: the text is not such a statement.
    """
    if not isinstance(text, str):
        raise ProcedureError(f"{text!r} is not the text of a CALL; {_FORM}")
    try:
        reader = WordReader(text)
        reader.expect("CALL")
        *before, procedure = reader.names("the name of a procedure")
        arguments = reader.inner_reader()
        reader.finish()
        positional, named = _arguments(arguments)
    except SqlSyntaxError as error:
        raise ProcedureError(f"{_shorten(text)} cannot be read: {error}; {_FORM}") from error
    if len(before) not in (1, 2) or before[-1].lower() != "system":
        raise ProcedureError(
            f"{_shorten(text)} names no procedure: its name is system.… or catalog.system.…; "
            f"{_FORM}"
        )
    return CallStatement(
        catalog=before[0] if len(before) == 2 else None,
        procedure=procedure.lower(),
        positional=positional,
        named=named,
    )


def _arguments(reader: WordReader) -> tuple[tuple[str, ...], tuple[tuple[str, str], ...]]:
    positional: list[str] = []
    named: list[tuple[str, str]] = []
    while not reader.is_done:
        if reader.sees_after_one("=>"):
            name = reader.name("an argument")
            reader.expect("=>")
            named.append((name, reader.text_to(",", "=>")))
        elif named:
            raise ProcedureError(
                f"{reader.text_to(',')} has no name and stands after the argument {named[-1][0]}: "
                "arguments without names come first"
            )
        else:
            positional.append(reader.text_to(","))
        if not reader.is_done:
            reader.expect(",")
            if reader.is_done:
                raise reader.error("an argument is expected")
    return tuple(positional), tuple(named)


def _shorten(text: str) -> str:
    line = " ".join(text.split())
    return repr(line if len(line) <= _SHOWN else line[: _SHOWN - 1] + "…")
