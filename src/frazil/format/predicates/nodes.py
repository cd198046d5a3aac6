"""The nodes of predicates, walked over and written as SQL text.

`frazil.format.predicates.expressions` says what each means.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

from frazil.errors import PredicateError
from frazil.format.predicates.sql.quoting import (
    SparkForms,
    python_text,
    quote_name,
    spark_text,
)
from frazil.format.predicates.terms import BoundRef, Op, Reference

N = TypeVar("N")
R = TypeVar("R")
_READABLE = SparkForms(timestamp_ns="text")


class Expression:
    """A predicate; combine with ``&``, ``|`` and ``~``."""

    __slots__ = ()

    def __and__(self, other: Expression) -> Expression:
        return And(self, other) if isinstance(other, Expression) else NotImplemented

    def __or__(self, other: Expression) -> Expression:
        return Or(self, other) if isinstance(other, Expression) else NotImplemented

    def __invert__(self) -> Expression:
        return self.negation()

    def __bool__(self) -> bool:
        raise PredicateError(
            "a predicate has no truth value in Python: combine predicates with &, | and ~ (with "
            "parentheses), not with and, or, not or a chain like 1 < col('a') < 3"
        )

    def negation(self) -> Expression:
        """NOT of this predicate."""
        return Not(self)

    def to_sql(self) -> str:
        """The predicate as SQL text that Spark and `parse_predicate` read."""
        return render(self, _literal_text, quote_name)

    def __repr__(self) -> str:
        return self.to_sql()


@dataclass(frozen=True, slots=True, repr=False)
class AlwaysTrue(Expression):
    """Keeps every row."""

    def negation(self) -> Expression:
        """Keeps no row."""
        return AlwaysFalse()


@dataclass(frozen=True, slots=True, repr=False)
class AlwaysFalse(Expression):
    """Keeps no row; every row under NOT."""

    def negation(self) -> Expression:
        """Keeps every row."""
        return AlwaysTrue()


@dataclass(frozen=True, slots=True, repr=False)
class AlwaysNull(Expression):
    """A comparison with NULL: keeps no row, also under NOT."""

    def negation(self) -> Expression:
        """NOT NULL is NULL."""
        return self


class Junction(Expression):
    """AND or OR of any number of predicates, without a nested one of the same kind."""

    __slots__ = ("_flat", "_parts")
    _flat: tuple[Expression, ...] | None
    _parts: tuple[Expression, ...]

    def __init__(self, *parts: Expression) -> None:
        object.__setattr__(self, "_parts", parts)
        object.__setattr__(self, "_flat", None)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"a {type(self).__name__} is immutable")

    def __reduce__(self) -> tuple[type[Junction], tuple[Expression, ...]]:
        return type(self), self.children

    @property
    def children(self) -> tuple[Expression, ...]:
        """The operands, in order."""
        if self._flat is None:
            # Flattened once and late: a chain of n operators costs n, not n squared.
            object.__setattr__(self, "_flat", tuple(self._flatten()))
            object.__setattr__(self, "_parts", self._flat)
        flat = self._flat
        assert flat is not None
        return flat

    def _flatten(self) -> Iterator[Expression]:
        stack = list(reversed(self._parts))
        while stack:
            part = stack.pop()
            if isinstance(part, Junction) and type(part) is type(self):
                stack.extend(reversed(part._parts))
            else:
                yield part

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self.children == other.children

    def __hash__(self) -> int:
        return hash((type(self).__name__, self.children))


class And(Junction):
    """TRUE where every operand is TRUE, FALSE where one is FALSE, NULL otherwise."""

    __slots__ = ()


class Or(Junction):
    """TRUE where one operand is TRUE, FALSE where all are FALSE, NULL otherwise."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, repr=False)
class Not(Expression):
    """TRUE where the operand is FALSE and the reverse; NULL where it is NULL."""

    child: Expression

    def negation(self) -> Expression:
        """The operand itself."""
        return self.child


@dataclass(frozen=True, slots=True, repr=False)
class SparkCondition(Expression):
    """A condition that only Spark can evaluate: it stands in plans for people to read.

    Attributes:
        text: as it was written.
    """

    text: str


@dataclass(frozen=True, slots=True, repr=False)
class Leaf(Expression):
    """A predicate on one column."""

    ref: Reference | BoundRef

    @property
    def bound_ref(self) -> BoundRef:
        """The bound column; `PredicateError` where the predicate is not bound."""
        if isinstance(self.ref, BoundRef):
            return self.ref
        raise PredicateError(f"{self!r} is not bound to a schema: call bind() first")


@dataclass(frozen=True, slots=True, repr=False)
class Comparison(Leaf):
    """``column op literal``; NULL where the column is NULL."""

    op: Op
    literal: Any

    def __init__(self, op: Op, ref: Reference | BoundRef, literal: Any) -> None:
        object.__setattr__(self, "op", op)
        object.__setattr__(self, "ref", ref)
        object.__setattr__(self, "literal", literal)

    def negation(self) -> Expression:
        """The opposite comparison, which is NULL on NULL as well."""
        return Comparison(self.op.negation, self.ref, self.literal)


@dataclass(frozen=True, slots=True, repr=False)
class In(Leaf):
    """The column equals one of the values; bound, they are sorted and distinct."""

    values: tuple[Any, ...]

    def negation(self) -> Expression:
        """NOT IN."""
        return NotIn(self.ref, self.values)


@dataclass(frozen=True, slots=True, repr=False)
class NotIn(Leaf):
    """The column is not NULL and equals none of the values; bound, sorted and distinct."""

    values: tuple[Any, ...]

    def negation(self) -> Expression:
        """IN."""
        return In(self.ref, self.values)


@dataclass(frozen=True, slots=True, repr=False)
class IsNull(Leaf):
    """The column is NULL, also because a struct around it is."""

    def negation(self) -> Expression:
        """IS NOT NULL."""
        return NotNull(self.ref)


@dataclass(frozen=True, slots=True, repr=False)
class NotNull(Leaf):
    """The column is not NULL."""

    def negation(self) -> Expression:
        """IS NULL."""
        return IsNull(self.ref)


@dataclass(frozen=True, slots=True, repr=False)
class IsNaN(Leaf):
    """The column is NaN; FALSE on NULL."""

    def negation(self) -> Expression:
        """Not NaN."""
        return NotNaN(self.ref)


@dataclass(frozen=True, slots=True, repr=False)
class NotNaN(Leaf):
    """The column is a number or NULL."""

    def negation(self) -> Expression:
        """NaN."""
        return IsNaN(self.ref)


@dataclass(frozen=True, slots=True, repr=False)
class StartsWith(Leaf):
    """The string begins with the prefix; NULL on NULL."""

    prefix: str

    def negation(self) -> Expression:
        """Not starts with."""
        return NotStartsWith(self.ref, self.prefix)


@dataclass(frozen=True, slots=True, repr=False)
class NotStartsWith(Leaf):
    """The string is not NULL and does not begin with the prefix."""

    prefix: str

    def negation(self) -> Expression:
        """Starts with."""
        return StartsWith(self.ref, self.prefix)


def fold(
    root: Expression,
    leaf: Callable[[Expression], R],
    combine: Callable[[Expression, list[R]], R],
) -> R:
    """Evaluate a predicate from its leaves up, without recursion.

    `combine` gets an `And`, `Or` or `Not` and the results of its operands in their order.
    """
    return fold_tree(root, operands_of, leaf, combine)


def fold_tree(
    root: N,
    operands: Callable[[N], Iterable[N] | None],
    leaf: Callable[[N], R],
    combine: Callable[[N, list[R]], R],
) -> R:
    """Evaluate a tree from its leaves up, without recursion; a leaf has None for operands."""
    frames: list[tuple[N, Iterator[N], list[R]]] = []
    node = root
    while True:
        inner = operands(node)
        if inner is not None:
            frames.append((node, iter(inner), []))
        else:
            result = leaf(node)
            if not frames:
                return result
            frames[-1][2].append(result)
        while True:
            parent, rest, results = frames[-1]
            following = next(rest, None)
            if following is not None:
                node = following
                break
            frames.pop()
            result = combine(parent, results)
            if not frames:
                return result
            frames[-1][2].append(result)


def operands_of(node: Expression) -> tuple[Expression, ...] | None:
    """The operands of an `And`, `Or` or `Not`; None for every other node."""
    if isinstance(node, Junction):
        return node.children
    return (node.child,) if isinstance(node, Not) else None


def leaves(root: Expression) -> Iterator[Leaf]:
    """Every predicate on a column, in order."""
    stack = [root]
    while stack:
        node = stack.pop()
        if isinstance(node, Leaf):
            yield node
        else:
            stack.extend(reversed(operands_of(node) or ()))


def render(
    root: Expression,
    literal_text: Callable[[Leaf, Any], str],
    name_text: Callable[[tuple[str, ...]], str],
) -> str:
    """SQL text of a predicate, given how names and literals are written."""

    def leaf(node: Expression) -> str:
        return _leaf_text(node, literal_text, name_text)

    def combine(node: Expression, parts: list[str]) -> str:
        if isinstance(node, Not):
            return f"NOT ({parts[0]})"
        if not parts:
            return "TRUE" if isinstance(node, And) else "FALSE"
        operands = operands_of(node) or ()
        word = " AND " if isinstance(node, And) else " OR "
        return word.join(
            f"({text})" if isinstance(operand, Junction) else text
            for operand, text in zip(operands, parts, strict=True)
        )

    return fold(root, leaf, combine)


def _leaf_text(
    node: Expression,
    literal_text: Callable[[Leaf, Any], str],
    name_text: Callable[[tuple[str, ...]], str],
) -> str:
    match node:
        case AlwaysTrue():
            return "TRUE"
        case AlwaysFalse():
            return "FALSE"
        case AlwaysNull():
            return "NULL"
        case SparkCondition(text=text):
            return f"({text})"
        case Comparison(op=op, ref=ref, literal=literal):
            return f"{name_text(ref.parts)} {op} {literal_text(node, literal)}"
        case In(ref=ref, values=values):
            listed = ", ".join(literal_text(node, value) for value in values)
            return f"{name_text(ref.parts)} IN ({listed})" if values else "FALSE"
        case NotIn(ref=ref, values=values):
            listed = ", ".join(literal_text(node, value) for value in values)
            return f"{name_text(ref.parts)} NOT IN ({listed})" if values else "TRUE"
        case IsNull(ref=ref):
            return f"{name_text(ref.parts)} IS NULL"
        case NotNull(ref=ref):
            return f"{name_text(ref.parts)} IS NOT NULL"
        case IsNaN(ref=ref):
            return f"isnan({name_text(ref.parts)})"
        case NotNaN(ref=ref):
            return f"NOT isnan({name_text(ref.parts)})"
        case StartsWith(ref=ref, prefix=prefix):
            return f"startswith({name_text(ref.parts)}, {python_text(prefix)})"
        case NotStartsWith(ref=ref, prefix=prefix):
            return f"NOT startswith({name_text(ref.parts)}, {python_text(prefix)})"
        case _:
            raise PredicateError(f"{type(node).__name__} is not a predicate that has SQL text")


def _literal_text(node: Leaf, value: Any) -> str:
    if isinstance(node.ref, BoundRef):
        return spark_text(node.ref.type, value, _READABLE)
    return python_text(value)
