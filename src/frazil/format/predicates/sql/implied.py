"""What a condition in Spark's SQL implies of single columns.

The condition may be anything that Spark can evaluate. Of its parts those count that are comparisons
of a column with literals and mean in Spark what they mean here; of the others nothing is said. With
NOT pushed down to the parts, leaving one out keeps more rows and never fewer.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import tzinfo
from functools import cached_property
from typing import Any, Final

from sqlglot import Token, TokenType, exp
from sqlglot.errors import SqlglotError

from frazil.errors import PredicateError
from frazil.format.predicates.bind import bind, resolve
from frazil.format.predicates.expressions import (
    AlwaysTrue,
    Expression,
    Leaf,
    Reference,
    leaves,
    push_down_not,
    with_leaves,
    with_ref,
)
from frazil.format.predicates.sql.parse import leaf_predicate, predicate_of_tree, sql_tree
from frazil.format.predicates.sql.spark_reading import (
    TYPES_OF_OWN,
    LiteralKind,
    SparkLiteral,
    reads_alike,
    spark_literal,
)
from frazil.format.predicates.sql.sql_literals import spark_tokens, without_parentheses
from frazil.format.schema import Schema
from frazil.format.types import IcebergType

_COMPARISONS: Final = (
    exp.EQ,
    exp.NEQ,
    exp.LT,
    exp.LTE,
    exp.GT,
    exp.GTE,
    exp.NullSafeEQ,
    exp.NullSafeNEQ,
)
_OPENING: Final = (TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.CASE)
_CLOSING: Final = (TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.END)
# A query begins with one of these; all but SELECT are words for other things too.
_QUERY_WORDS: Final = frozenset({"from", "table", "values", "with", "map", "reduce"})


@dataclass(frozen=True, slots=True)
class Unread(Expression):
    """A part of which nothing is known, which holds under NOT as well."""

    def negation(self) -> Expression:
        """Nothing is known of it either."""
        return self


@dataclass(frozen=True, slots=True, kw_only=True)
class Implied:
    """What a text implies.

    Attributes:
        predicate: bound; TRUE for every row for which the text is TRUE.
        is_exact: whether the text is TRUE for no other row.
    """

    predicate: Expression
    is_exact: bool


NOTHING_IMPLIED: Final = Implied(predicate=AlwaysTrue(), is_exact=False)


@dataclass(frozen=True, kw_only=True)
class ConditionReader:
    """Reads conditions over the rows of a table.

    Attributes:
        alias: the name that qualifies the row's columns, as in ``t.id``.
        time_zone: the session's zone, by its name or as a `tzinfo`.
    """

    schema: Schema
    case_sensitive: bool
    time_zone: str | tzinfo
    alias: str | None = None

    def read_condition(self, text: str) -> Implied:
        """Return what a text implies; nothing where it cannot be read."""
        try:
            tree = sql_tree(text)
        except PredicateError:
            return NOTHING_IMPLIED
        found = self._implied_by_tree(tree, TYPES_OF_OWN)
        # A literal of a type that Spark lacks is only understood where Spark need not read it.
        return found if found.is_exact else self._implied_by_tree(tree, ())

    def _implied_by_tree(self, tree: exp.Expression, own: tuple[type[IcebergType], ...]) -> Implied:
        unread: list[exp.Expression] = []

        def leaf(node: exp.Expression) -> Expression:
            expression = self._leaf(node, own)
            if expression is None:
                unread.append(node)
                return Unread()
            return expression

        pushed = push_down_not(predicate_of_tree(tree, leaf))
        known = with_leaves(pushed, _true_where_unread) if unread else pushed
        return Implied(predicate=self._bind(known), is_exact=not unread)

    def _leaf(self, node: exp.Expression, own: tuple[type[IcebergType], ...]) -> Expression | None:
        """The predicate of a part without AND, OR and NOT; None where Spark may read another."""
        try:
            expression = self._by_columns(leaf_predicate(node))
            refs = {each.ref for each in leaves(expression)}
            types = [self._type(ref) for ref in refs if isinstance(ref, Reference)]
            is_own = bool(own) and any(isinstance(each, own) for each in types)
            if not is_own and not self._reads_alike(node, types):
                return None
            self._bind(expression)
        except PredicateError:
            return None
        return expression

    def _bind(self, expression: Expression) -> Expression:
        return bind(
            expression,
            self.schema,
            case_sensitive=self.case_sensitive,
            time_zone=self.time_zone,
        )

    def _type(self, ref: Reference) -> IcebergType:
        return resolve(ref, self.schema, case_sensitive=self.case_sensitive).type

    def _reads_alike(self, node: exp.Expression, types: list[IcebergType]) -> bool:
        groups = _compared_literals(node)
        if groups is None:
            return False
        listed = isinstance(node, exp.In)
        if not types:
            return all(map(_are_constants, groups))
        return len(types) == 1 and all(
            reads_alike(types[0], group, listed=listed, time_zone=self.time_zone)
            for group in groups
        )

    def _by_columns(self, expression: Expression) -> Expression:
        """The predicate with names of columns only, without the alias before them."""
        if self.alias is None:
            return expression

        def leaf(node: Expression) -> Expression:
            if not isinstance(node, Leaf) or not isinstance(node.ref, Reference):
                return node
            first, *rest = node.ref.parts
            if not rest or not self._is_same_name(first, self.alias or ""):
                return node
            if not any(self._is_same_name(rest[0], name) for name in self._names):
                return node
            return with_ref(node, Reference(tuple(rest)))

        return with_leaves(expression, leaf)

    def _is_same_name(self, one: str, other: str) -> bool:
        return one == other or (not self.case_sensitive and one.lower() == other.lower())

    @cached_property
    def _names(self) -> tuple[str, ...]:
        return tuple(field.name for field in self.schema.fields)


def _true_where_unread(node: Expression) -> Expression:
    return AlwaysTrue() if isinstance(node, Unread) else node


def _compared_literals(node: exp.Expression) -> list[list[SparkLiteral]] | None:
    """The literals of a part, those together that are cast to one type; None: not all are known."""
    match node:
        case exp.In():
            groups = [list(node.expressions)]
        case exp.Between():
            groups = [[node.args["low"]], [node.args["high"]]]
        case exp.Like() | exp.StartsWith():
            groups = [[node.expression]]
        case exp.Escape():
            groups = [[node.this.expression]]
        case _ if isinstance(node, _COMPARISONS):
            sides = [without_parentheses(side) for side in (node.this, node.expression)]
            others = [side for side in sides if not isinstance(side, exp.Column | exp.Dot)]
            groups = [others]
        case _:
            groups = []
    known = [[spark_literal(each) for each in group] for group in groups]
    if any(each is None for group in known for each in group):
        return None
    return [[each for each in group if each is not None] for group in known]


def _are_constants(literals: list[SparkLiteral]) -> bool:
    """Whether a part without a column is one whose truth Python tells as Spark does."""
    kinds = {each.kind for each in literals} - {LiteralKind.NULL}
    return len(kinds) <= 1 and kinds <= {
        LiteralKind.INTEGER,
        LiteralKind.STRING,
        LiteralKind.BOOLEAN,
    }


def conjuncts_of(text: str) -> list[str]:
    """Return the parts of a text that AND joins at its top; the text alone where it is unsure."""
    try:
        tree = sql_tree(text)
        pieces = [text[part[0].start : part[-1].end + 1] for part in _split(spark_tokens(text))]
        read = [sql_tree(piece) for piece in pieces]
        flat = list(tree.flatten()) if isinstance(tree, exp.And) else [tree]
        # The pieces are what the parser takes for the operands, or the text stays whole.
        is_sure = [each.unnest() for each in read] == [each.unnest() for each in flat]
    except (PredicateError, SqlglotError, IndexError, RecursionError):
        return [text]
    return pieces if is_sure else [text]


def _split(tokens: list[Token]) -> Iterator[list[Token]]:
    depth = between = 0
    part: list[Token] = []
    for token in tokens:
        depth += (token.token_type in _OPENING) - (token.token_type in _CLOSING)
        if depth == 0 and token.token_type is TokenType.BETWEEN:
            between += 1
        if depth == 0 and token.token_type is TokenType.AND:
            if between == 0:
                yield part
                part = []
                continue
            between -= 1
        part.append(token)
    yield part


@dataclass(frozen=True, slots=True)
class WordsOfText:
    """The words of a text, in lower case, without what stands in strings.

    Attributes:
        names: all that may be a name.
        has_query: whether a sub-query may stand in it.
        has_star: whether ``*`` may stand for columns.
    """

    names: frozenset[str]
    has_query: bool
    has_star: bool

    def name_any_of(self, names: Collection[str]) -> bool:
        """Return whether one of the names is among the words, whatever its case."""
        return self.has_star or any(name.lower() in self.names for name in names)


def words_in_text(text: str) -> WordsOfText | None:
    """Return the words of a text; None where it cannot be told."""
    try:
        tokens = spark_tokens(text)
    except (PredicateError, SqlglotError, ValueError, IndexError):
        return None
    names: set[str] = set()
    has_query = has_star = False
    before: Any = None
    for token in tokens:
        kind, word = token.token_type, token.text.lower()
        if kind is not TokenType.STRING:
            names.add(word)
        opened = before is TokenType.L_PAREN
        has_query |= kind is TokenType.SELECT or (opened and word in _QUERY_WORDS)
        if kind is TokenType.STAR:
            has_star |= before in (TokenType.L_PAREN, TokenType.COMMA, TokenType.DOT, None)
        before = kind
    return WordsOfText(frozenset(names), has_query, has_star)
