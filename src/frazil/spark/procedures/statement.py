"""The text of a CALL as a tree: Spark's dialect, read by sqlglot."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import SqlglotError

from frazil.errors import PredicateError, ProcedureError
from frazil.format.predicates.sql.sql_literals import spark_tokens

_FORM: Final = "write it as CALL system.rewrite_data_files(table => 'db.t')"
_SHOWN: Final = 120


@dataclass(frozen=True, slots=True)
class CallStatement:
    """What a CALL says.

    Attributes:
        catalog: the catalog that it names; None where it names none.
        procedure: the name of the procedure, in lower case.
        positional: arguments without a name, in order.
        named: names as written, and their arguments.
    """

    catalog: str | None
    procedure: str
    positional: tuple[exp.Expression, ...]
    named: tuple[tuple[str, exp.Expression], ...]

    def only_looks(self) -> bool:
        """Whether the argument ``dry_run => true`` stands in it."""
        return any(
            name.lower() == "dry_run" and isinstance(value, exp.Boolean) and value.this
            for name, value in self.named
        )


def parse_call(text: str) -> CallStatement:
    """Read one statement of the form ``CALL [catalog.]system.procedure(arguments)``.

    Raises:
        ProcedureError: the text is not such a statement.
    """
    if not isinstance(text, str):
        raise ProcedureError(f"{text!r} is not the text of a CALL; {_FORM}")
    *before, function = _names_and_function(_tree(text), text)
    if len(before) not in (1, 2) or str(before[-1]).lower() != "system":
        raise ProcedureError(
            f"{_shortened(text)} names no procedure: its name is system.… or catalog.system.…; "
            f"{_FORM}"
        )
    assert isinstance(function, exp.Anonymous)
    positional, named = _arguments(function)
    return CallStatement(
        catalog=str(before[0]) if len(before) == 2 else None,
        procedure=str(function.name).lower(),
        positional=positional,
        named=named,
    )


def _tree(text: str) -> exp.Expression:
    try:
        # The tokenizer takes what follows CALL for one string, so the rest is read on its own.
        tokens = Spark().tokenize(text)
        if not tokens or tokens[0].text.upper() != "CALL":
            raise ProcedureError(f"{_shortened(text)} does not begin with CALL; {_FORM}")
        rest = text[tokens[0].end + 1 :]
        parsed = Spark().parser().parse(spark_tokens(rest), rest)
    except ProcedureError:
        raise
    except (SqlglotError, PredicateError, ValueError, IndexError, RecursionError) as error:
        lines = str(error).splitlines()
        reason = lines[0] if lines else type(error).__name__
        raise ProcedureError(f"{_shortened(text)} cannot be read: {reason}") from error
    statements = [node for node in parsed if isinstance(node, exp.Expression)]
    if len(statements) != 1:
        raise ProcedureError(f"{_shortened(text)} holds {len(statements)} calls; give one")
    return statements[0]


def _names_and_function(node: exp.Expression, text: str) -> Iterator[str | exp.Anonymous]:
    """The names before a function, and the function."""
    if isinstance(node, exp.Dot):
        yield from _names_and_function(node.this, text)
        yield from _names_and_function(node.expression, text)
    elif isinstance(node, exp.Anonymous):
        yield node
    elif isinstance(node, exp.Identifier):
        yield str(node.this)
    else:
        raise ProcedureError(f"{_shortened(text)} is not the call of a procedure; {_FORM}")


def _arguments(
    function: exp.Anonymous,
) -> tuple[tuple[exp.Expression, ...], tuple[tuple[str, exp.Expression], ...]]:
    positional: list[exp.Expression] = []
    named: list[tuple[str, exp.Expression]] = []
    for argument in function.expressions:
        if isinstance(argument, exp.Kwarg):
            named.append((str(argument.this.this), argument.expression))
        elif named:
            raise ProcedureError(
                f"{argument.sql(dialect='spark')} has no name and stands after the argument "
                f"{named[-1][0]}: arguments without names come first"
            )
        else:
            positional.append(argument)
    return tuple(positional), tuple(named)


def _shortened(text: str) -> str:
    line = " ".join(text.split())
    return repr(line if len(line) <= _SHOWN else line[: _SHOWN - 1] + "…")
