"""Names of tables by sqlglot, for sessions without a virtual machine at hand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Final

from sqlglot import Token, TokenType, exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import SqlglotError

from frazil.errors import PredicateError, SqlSyntaxError
from frazil.format.predicates.sql.sql_literals import spark_tokens
from frazil.spark.sql.parsers.table_name import TableName

_VERSIONS: Final = {
    "SYSTEM_VERSION": (TokenType.VAR, "VERSION"),
    "SYSTEM_TIME": (TokenType.TIMESTAMP, "TIMESTAMP"),
}
_QUOTED: Final = (TokenType.STRING, TokenType.IDENTIFIER)
_BEFORE_QUERIES: Final = frozenset(
    {
        TokenType.SEMICOLON,
        TokenType.L_PAREN,
        TokenType.R_PAREN,
        TokenType.UNION,
        TokenType.EXCEPT,
        TokenType.INTERSECT,
        TokenType.ALL,
        TokenType.DISTINCT,
    }
)


def names_by_sqlglot(query: str) -> list[TableName]:
    """Return the names of tables in a query.

    Raises:
        SqlSyntaxError: sqlglot cannot read it.
    """
    return [name for name, _ in tables_by_sqlglot(query)]


def tables_by_sqlglot(query: str) -> list[tuple[TableName, exp.Table]]:
    """Return the names of tables in a query, each with its node in the tree.

    Raises:
        SqlSyntaxError: sqlglot cannot read it.
    """
    try:
        trees = Spark().parser().parse(_as_sqlglot_says(spark_tokens(query)), query)
    except (SqlglotError, PredicateError, ValueError, RecursionError) as error:
        lines = str(error).splitlines()
        raise SqlSyntaxError(
            f"the query cannot be read: {lines[0] if lines else type(error).__name__}; Spark may "
            "know it: over Spark Connect make a DataFrame of each table with lake.load_table(…) "
            "and give it to spark.sql as {name}"
        ) from error
    return [found for tree in trees if isinstance(tree, exp.Expression) for found in _tables(tree)]


def _as_sqlglot_says(tokens: Sequence[Token]) -> list[Token]:
    """The tokens in words that sqlglot knows; each stands where the user's word does."""
    found: list[Token] = []
    tokens = _without_options(tokens)
    for at, token in enumerate(tokens):
        word = "" if token.token_type in _QUOTED else token.text.upper()
        before = tokens[at - 1] if at else None
        after = [each.text.upper() for each in tokens[at + 1 : at + 3]]
        if word in _VERSIONS and after == ["AS", "OF"]:
            kind, name = _VERSIONS[word]
            found.append(_in_place_of(token, kind, name))
        elif token.token_type == TokenType.TABLE and _begins_a_query(before):
            found += [
                _in_place_of(token, TokenType.SELECT, "SELECT"),
                _in_place_of(token, TokenType.STAR, "*"),
                _in_place_of(token, TokenType.FROM, "FROM"),
            ]
        elif token.token_type == TokenType.INSERT and after[:1] not in (["INTO"], ["OVERWRITE"]):
            # A name: to Spark the word is not reserved.
            found.append(_in_place_of(token, TokenType.VAR, token.text))
        else:
            found.append(token)
    return found


def _without_options(tokens: Sequence[Token]) -> list[Token]:
    """The tokens less those of ``WITH (…)`` after a table's name, which sqlglot does not know."""
    found: list[Token] = []
    depth, is_inside = 0, False
    for token, after in zip_longest(tokens, tokens[1:]):
        kind = token.token_type
        if kind == TokenType.WITH and after is not None:
            is_inside = is_inside or after.token_type == TokenType.L_PAREN
        if not is_inside:
            found.append(token)
            continue
        depth += (kind == TokenType.L_PAREN) - (kind == TokenType.R_PAREN)
        is_inside = kind != TokenType.R_PAREN or depth > 0
    return found


def _begins_a_query(before: Token | None) -> bool:
    """Whether the word after a token is the first of a query."""
    return before is None or before.token_type in _BEFORE_QUERIES


def _in_place_of(token: Token, kind: TokenType, text: str) -> Token:
    return Token(kind, text, token.line, token.col, token.start, token.end, [])


def _tables(tree: exp.Expression) -> Iterator[tuple[TableName, exp.Table]]:
    for table in tree.find_all(exp.Table):
        if table.find_ancestor(exp.Hint) is not None:
            continue
        parts = table.parts
        if not all(isinstance(part, exp.Identifier) and "start" in part.meta for part in parts):
            continue
        names = tuple(str(part.this) for part in parts)
        if len(names) > 1 or names[0].lower() not in _hidden_names(table):
            start, stop = parts[0].meta["start"], parts[-1].meta["end"] + 1
            yield TableName(names, start, stop, bool(table.alias)), table


def _hidden_names(table: exp.Table) -> set[str]:
    """Names of the CTEs that a table's name may mean, in small letters."""
    hidden: set[str] = set()
    inner: exp.Expr = table
    node: exp.Expr | None = table.parent
    while node is not None:
        if isinstance(node, exp.With):
            ctes = node.expressions
            place = next((i for i, each in enumerate(ctes) if each is inner), len(ctes))
            last = place + 1 if node.args.get("recursive") else place
            hidden |= {str(each.alias).lower() for each in ctes[:last]}
        else:
            ctes_of = node.args.get("with_") or node.args.get("with")
            if isinstance(ctes_of, exp.With) and ctes_of is not inner:
                hidden |= {str(each.alias).lower() for each in ctes_of.expressions}
        inner, node = node, node.parent
    return hidden
