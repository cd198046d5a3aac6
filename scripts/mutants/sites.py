"""Places of a module that can be broken, and what stands there then."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise, zip_longest

KINDS = ("comparison", "guard", "argument", "and/or", "constant")
"""Turned, removed, dropped, turned, and one more."""

_TURNED: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Lt: ("<", ">="),
    ast.GtE: (">=", "<"),
    ast.Gt: (">", "<="),
    ast.LtE: ("<=", ">"),
    ast.Is: (r"\bis\b", "is not"),
    ast.IsNot: (r"\bis\s+not\b", "is"),
    ast.In: (r"\bin\b", "not in"),
    ast.NotIn: (r"\bnot\s+in\b", "in"),
}
# What these say changes no result: how long, how many at once, what a debugger shows, what the
# system's default is anyway.
_NO_RESULT = {"timeout", "stacklevel", "maxsize", "max_workers", "thread_name_prefix", "daemon"} | {
    *("repr", "compare", "encoding", "strict", "poll")
}
_NOT_TESTED = {"__repr__", "__hash__"}
_NO_CODE = {"overload", "abstractmethod"}
_FOR_TYPES = {"cast", "TypeVar", "NewType", "assert_never", "warn"}
_LOGGED = {"debug", "info", "warning", "error", "exception", "log"}


@dataclass(frozen=True, order=True)
class Site:
    """A place and what takes it.

    Attributes:
        path: of the module, from the root of the checkout.
        line: the line that shows whether a case comes by.
        kind: one of `KINDS`.
        start: first byte of what is replaced, `end` the first after it, by `new`.
        text: the source's line, without its indent; of a guard the condition before it too.
        function: first and last line of the function around it, if it is in one.
    """

    path: str
    line: int
    kind: str
    start: int
    end: int
    new: str
    text: str
    function: tuple[int, int] | None

    def broken(self, source: bytes) -> bytes:
        """The module's source with the fault."""
        return source[: self.start] + self.new.encode() + source[self.end :]

    def becomes(self, source: bytes) -> str:
        """The first line that is another one with the fault, without its indent."""
        before, after = source.decode().splitlines(), self.broken(source).decode().splitlines()
        pairs = zip_longest(before, after, fillvalue="")
        return next((new.strip() for old, new in pairs if old != new), "")

    def is_python(self, source: bytes) -> bool:
        """Whether Python can read the module with the fault."""
        try:
            ast.parse(self.broken(source))
        except SyntaxError:
            return False
        return True


def sites_of(path: str, source: bytes) -> list[Site]:
    """All places of a module, in their order."""
    return sorted(set(_Finder(path, source).found(ast.parse(source))))


class _Finder:
    """Goes through a module, but not through what no case can tell: types, messages, logs."""

    def __init__(self, path: str, source: bytes) -> None:
        self.path = path
        self.source = source
        self.lines = source.split(b"\n")
        self.starts = list(accumulate((len(line) + 1 for line in self.lines), initial=0))
        self.function: tuple[int, int] | None = None

    def found(self, node: ast.AST) -> Iterator[Site]:
        yield from self._here(node)
        outer = self.function
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            self.function = (node.body[0].lineno, node.end_lineno or node.lineno)
        for child in _children(node):
            yield from self.found(child)
        self.function = outer

    def _here(self, node: ast.AST) -> Iterator[Site]:
        match node:
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                old, new = _TURNED[type(op)]
                yield from self._between(left, right, old, new, "comparison")
            case ast.BoolOp(op=op, values=values):
                old, new = ("and", "or") if isinstance(op, ast.And) else ("or", "and")
                yield from self._all_between(values, rf"\b{old}\b", new)
            case ast.If(
                test=test, body=[ast.Raise() | ast.Return() | ast.Continue() | ast.Break() as body]
            ) if not node.orelse and not _says_impossible(body):
                site = self._site("guard", body, *self._span(body), "pass")
                yield replace(site, text=f"if {ast.unparse(test)}: {site.text}")
            case ast.Call(keywords=keywords):
                yield from self._dropped(keywords)
            case ast.Constant(value=int(value)) if not isinstance(value, bool):
                yield self._site("constant", node, *self._span(node), str(value + 1))

    def _between(
        self, left: ast.expr, right: ast.expr, old: str, new: str, kind: str
    ) -> Iterator[Site]:
        start, end = self._span(left)[1], self._span(right)[0]
        between = self.source[start:end].decode()
        if "#" not in between and (token := re.search(old, between)):
            first = start + len(between[: token.start()].encode())
            yield self._site(kind, right, first, first + len(token[0]), new)

    def _all_between(self, values: list[ast.expr], old: str, new: str) -> Iterator[Site]:
        start, end = self._span(values[0])[1], self._span(values[-1])[0]
        gaps = [(self._span(a)[1], self._span(b)[0]) for a, b in pairwise(values)]
        pieces, place = [], start
        for first, last in gaps:
            gap = self.source[first:last].decode()
            if "#" in gap:
                return
            pieces += [self.source[place:first].decode(), re.sub(old, new, gap, count=1)]
            place = last
        yield self._site("and/or", values[0], start, end, "".join(pieces))

    def _dropped(self, keywords: list[ast.keyword]) -> Iterator[Site]:
        for keyword in keywords:
            if keyword.arg is None or keyword.arg in _NO_RESULT:
                continue
            start, end = self._span(keyword)
            if comma := re.match(rb"\s*,\s*", self.source[end:]):
                end += comma.end()
            elif before := re.search(rb",\s*$", self.source[:start]):
                start = before.start()
            yield self._site("argument", keyword.value, start, end, "")

    def _site(self, kind: str, node: ast.expr | ast.stmt, start: int, end: int, new: str) -> Site:
        text = self.lines[node.lineno - 1].decode().strip()
        return Site(self.path, node.lineno, kind, start, end, new, text, self.function)

    def _span(self, node: ast.expr | ast.stmt | ast.keyword) -> tuple[int, int]:
        end_line, end_column = node.end_lineno or node.lineno, node.end_col_offset or 0
        return (
            self.starts[node.lineno - 1] + node.col_offset,
            self.starts[end_line - 1] + end_column,
        )


def _children(node: ast.AST) -> Iterable[ast.AST]:
    """What of a node is code that a case can tell apart."""
    match node:
        case ast.Raise() | ast.Assert() | ast.JoinedStr():
            return []
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            if node.name in _NOT_TESTED or _names(node.decorator_list) & _NO_CODE:
                return []
            defaults = [*node.args.defaults, *filter(None, node.args.kw_defaults)]
            return [*defaults, *node.body]
        case ast.ClassDef():
            return [] if "Protocol" in _names(node.bases) else node.body
        case ast.AnnAssign():
            return [node.value] if node.value else []
        case ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return node.orelse
        case ast.If(test=ast.Compare(left=ast.Name(id="__name__"))):
            return []
        case ast.Call():
            return [] if _only_says(node) else [node.func, *node.args, *map(_value, node.keywords)]
        case _:
            return ast.iter_child_nodes(node)


def _value(keyword: ast.keyword) -> ast.AST:
    return ast.Pass() if keyword.arg in _NO_RESULT else keyword.value


def _only_says(call: ast.Call) -> bool:
    """Whether a call makes an error, logs, or is for types."""
    name = _name(call.func)
    if isinstance(call.func, ast.Attribute) and name in _LOGGED:
        return "log" in _name(call.func.value).lower()
    return name.endswith("Error") or name in _FOR_TYPES


def _says_impossible(body: ast.stmt) -> bool:
    """Whether it raises what never is raised."""
    error = body.exc if isinstance(body, ast.Raise) else None
    made = error.func if isinstance(error, ast.Call) else error
    return made is not None and _name(made) in {"AssertionError", "NotImplementedError"}


def _names(nodes: Iterable[ast.expr]) -> set[str]:
    return {_name(node) for node in nodes}


def _name(node: ast.expr) -> str:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case ast.Subscript(value=value) | ast.Call(func=value):
            return _name(value)
        case _:
            return ""
