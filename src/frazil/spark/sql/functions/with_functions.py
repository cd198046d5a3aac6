"""A text with expressions of Spark's in place of calls of a lake's functions.

Which expression a call is depends on its value's type, which Spark tells: the text is analysed with
something in the call's place that no type fits, and the error says the type. Nothing is run.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from logging import LogRecord
from typing import Final

from pyspark.errors import AnalysisException
from pyspark.logger import PySparkLogger
from pyspark.sql import DataFrame

from frazil.format.predicates.sql.quoting import quote_name_always
from frazil.spark.sql.functions.calls import TRUNCATE, FunctionCall
from frazil.spark.sql.functions.transform_text import RESULTS, transform_text, version_text
from frazil.spark.words import Word

Analyse = Callable[[str], DataFrame]
"""Returns what a text is over relations without rows."""

_LOGGER: Final = "SQLQueryContextLogger"
"""PySpark's log of errors in statements."""

_ASKED: Final = "map_keys(array("
_TYPE: Final = re.compile(r'"ARRAY<(.*)>"', re.DOTALL)
_CLAUSES: Final = frozenset(
    {
        "FROM", "WHERE", "GROUP", "ORDER", "SORT", "CLUSTER", "DISTRIBUTE", "HAVING", "QUALIFY",
        "WINDOW", "LIMIT", "OFFSET", "UNION", "EXCEPT", "MINUS", "INTERSECT", "LATERAL", "ON",
        "BY", "USING", "INTO", ";", "|>",
    }
)  # fmt: skip
_OPENING: Final = frozenset("([")
_CLOSING: Final = frozenset(")]")


@dataclass(frozen=True, slots=True)
class TypedCall:
    """A call whose value's type is known.

    Attributes:
        kind: the type, as Spark writes it; nothing for functions without a value.
    """

    call: FunctionCall
    kind: str


@dataclass(frozen=True, slots=True)
class WithFunctions:
    """A text without calls, and what was replaced in the one that was given.

    Attributes:
        changes: from where to where, and by what; none lies in another.
        calls: what was replaced.
    """

    text: str
    changes: Sequence[tuple[int, int, str]] = ()
    calls: Sequence[TypedCall] = ()


def with_functions(
    text: str, words: Sequence[Word], calls: Sequence[FunctionCall], analyse: Analyse
) -> WithFunctions:
    """Return a text with expressions in place of calls.

    Args:
        calls: those of the text, the inner ones first.

    Raises:
        AnalysisException, ParseException: of Spark, where the mistake is in the text around.
        ValidationError: a function does not take the type of its value.
    """
    kinds: dict[int, str] = {call.start: "" for call in calls if call.value is None}
    # The value of one may be made of what another truncates, which has its type a round later.
    rounds = len(calls) if any(call.name == TRUNCATE for call in calls) else 1
    for _ in range(rounds):
        before = dict(kinds)
        _ask_each(text, words, calls, kinds, analyse)
        if before == kinds:
            break
    rendering = _Rendering(text, calls, kinds)
    changes = [*rendering.changes(), *_aliases(text, words, calls)]
    typed = [TypedCall(call, kinds[call.start]) for call in calls]
    return WithFunctions(_changed_text(text, changes), tuple(sorted(changes)), tuple(typed))


def with_values(
    text: str, words: Sequence[Word], values: Sequence[tuple[FunctionCall, str]]
) -> str:
    """Return a text with values in place of calls; columns keep the names that the calls give."""
    changes = [(call.start, call.stop, value) for call, value in values]
    names = _aliases(text, words, [call for call, _ in values])
    return _changed_text(text, [*changes, *names])


def _ask_each(
    text: str,
    words: Sequence[Word],
    calls: Sequence[FunctionCall],
    kinds: dict[int, str],
    analyse: Analyse,
) -> None:
    """Ask for the type of each call's value, given those of the others as far as they are known."""
    known: dict[tuple[str, int], str] = {}
    for call in calls:
        if call.value is None:
            continue
        same = (call.key, _select_of(words, _place_of(words, call)))
        try:
            kind = _kind(analyse, _Rendering(text, calls, kinds, asked=call).text())
        except AnalysisException:
            # In HAVING and ORDER BY it means what it means in GROUP BY.
            if same not in known:
                raise
            kind = known[same]
        kinds[call.start] = known[same] = kind


def as_changes_of(
    first: Sequence[tuple[int, int, str]], later: Sequence[tuple[int, int, str]]
) -> tuple[tuple[int, int, str], ...]:
    """Return two rounds of changes as one of the text that the first began with.

    What the second changes within something new is left out: its place is that of the call.
    """
    found = list(first)
    for start, stop, new in later:
        moved, is_within = 0, False
        for begin, end, put in sorted(first):
            if start < begin + moved:
                break
            is_within = start < begin + moved + len(put)
            if is_within:
                break
            moved += len(put) - (end - begin)
        if not is_within:
            found.append((start - moved, stop - moved, new))
    return tuple(sorted(found))


def _kind(analyse: Analyse, text: str) -> str:
    try:
        with _without_its_log():
            _ = analyse(text).schema
    except AnalysisException as error:
        said = error.getMessageParameters() or {}
        expression, kind = str(said.get("sqlExpr", "")), str(said.get("inputType", ""))
        found = _TYPE.fullmatch(kind)
        if found is None or not expression.startswith(f'"{_ASKED}'):
            raise
        return found[1]
    raise AssertionError("an array has passed for a map")


@contextmanager
def _without_its_log() -> Iterator[None]:
    """Keep PySpark from logging the error that is waited for; others are logged."""
    logger = PySparkLogger.getLogger(_LOGGER)

    def is_another(record: LogRecord) -> bool:
        return _ASKED not in str(record.msg)

    logger.addFilter(is_another)
    try:
        yield
    finally:
        logger.removeFilter(is_another)


@dataclass(frozen=True, slots=True)
class _Rendering:
    """A text in which calls are replaced.

    Attributes:
        kinds: types of values by the places of calls.
        asked: the call whose value's type is asked for; None where all are known.
    """

    given: str
    calls: Sequence[FunctionCall]
    kinds: Mapping[int, str]
    asked: FunctionCall | None = None

    def text(self) -> str:
        return _changed_text(self.given, self.changes())

    def changes(self) -> list[tuple[int, int, str]]:
        """What the outermost calls become."""
        return [
            (each.start, each.stop, self._call_text(each)) for each in _outermost_calls(self.calls)
        ]

    def _call_text(self, call: FunctionCall) -> str:
        if call.value is None:
            return version_text()
        value = self._inner_text(*call.value)
        if self.asked is not None and call.start == self.asked.start:
            return f"{_ASKED}{value}))"
        if call.start in self.kinds:
            kind, simple = self.kinds[call.start], call.has_simple_value
            return transform_text(call.name, call.number, kind, value, is_simple=simple)
        if _ASKED in value:
            return value
        return "NULL" if call.name == TRUNCATE else f"CAST(NULL AS {RESULTS[call.name]})"

    def _inner_text(self, start: int, stop: int) -> str:
        inner = [each for each in self.calls if start <= each.start and each.stop <= stop]
        changes = [
            (each.start - start, each.stop - start, self._call_text(each))
            for each in _outermost_calls(inner)
        ]
        return _changed_text(self.given[start:stop], changes)


def _outermost_calls(calls: Sequence[FunctionCall]) -> list[FunctionCall]:
    return [
        each
        for each in calls
        if not any(o is not each and o.start <= each.start and each.stop <= o.stop for o in calls)
    ]


def _changed_text(text: str, changes: Sequence[tuple[int, int, str]]) -> str:
    for start, stop, new in sorted(changes, reverse=True):
        text = text[:start] + new + text[stop:]
    return text


def _aliases(
    text: str, words: Sequence[Word], calls: Sequence[FunctionCall]
) -> Iterator[tuple[int, int, str]]:
    """Names for columns of a SELECT that have none: what the user wrote, not what replaces it."""
    named: set[int] = set()
    for call in calls:
        at = _place_of(words, call)
        item = next((each for each in _items_around(words, at) if each[0] <= at < each[1]), None)
        if item is None or item[0] in named:
            continue
        named.add(item[0])
        own = words[item[0] : item[1]]
        if not _has_alias(own):
            name = text[own[0].start : own[-1].stop]
            yield own[-1].stop, own[-1].stop, f" AS {quote_name_always([name])}"


def _place_of(words: Sequence[Word], call: FunctionCall) -> int:
    return next(place for place, word in enumerate(words) if word.start == call.start)


def _select_of(words: Sequence[Word], at: int) -> int:
    """The place of the SELECT that is nearest around a word; -1 where there is none."""
    depth, place = 0, at - 1
    while place >= 0 and not (depth == 0 and words[place].keyword == "SELECT"):
        depth += (words[place].keyword in _CLOSING) - (words[place].keyword in _OPENING)
        depth, place = max(depth, 0), place - 1
    return place


def _items_around(words: Sequence[Word], at: int) -> Iterator[tuple[int, int]]:
    """The columns in the list of the SELECT that is nearest around a word."""
    place = _select_of(words, at)
    if place < 0:
        return
    begin = place + 1
    begin += words[begin].keyword in ("DISTINCT", "ALL")
    depth = 0
    for end in range(begin, len(words)):
        key = words[end].keyword
        if depth == 0 and (key == "," or key in _CLOSING or key in _CLAUSES):
            yield begin, end
            begin = end + 1
            if key != ",":
                return
        depth += (key in _OPENING) - (key in _CLOSING)
    yield begin, len(words)


def _has_alias(words: Sequence[Word]) -> bool:
    if len(words) < 2:
        return False
    last, before = words[-1], words[-2]
    if before.keyword == "AS":
        return True
    is_word = last.is_name or (last.may_be_name and not last.text[0].isdigit())
    return is_word and before.text not in {".", "+", "-", "*", "/", "%", "=", "<", ">", "(", ","}
