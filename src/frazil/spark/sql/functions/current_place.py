"""What USE has set, as `current_catalog()` and its like tell it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from frazil.catalog.identifiers import Identifier
from frazil.format.predicates.sql.quoting import quote_name, string_text
from frazil.spark.sql.functions.calls import FunctionCall
from frazil.spark.sql.functions.with_functions import with_values
from frazil.spark.words import Word, words_of

_CATALOG: Final = "CURRENT_CATALOG"
_SCHEMA: Final = "CURRENT_SCHEMA"
_NAMES: Final = (_CATALOG, "CURRENT_DATABASE", "CURRENT_NAMESPACE", _SCHEMA)
_MAY_CALL: Final = re.compile(rf"\b({'|'.join(_NAMES)})\b", re.IGNORECASE)


def with_current_place(text: str, place: Identifier) -> str:
    """Return a text with a catalog and a namespace in place of the calls that tell them.

    Args:
        place: the catalog, and the levels of the namespace, if one is set.

    Raises:
        SqlSyntaxError: the text cannot be read.
    """
    if not _MAY_CALL.search(text):
        return text
    # Spark names a column by the function, which has one name for all of a namespace.
    for call in reversed([*_calls(words_of(text))]):
        own = _CATALOG if call.name == _CATALOG else _SCHEMA
        text = f"{text[: call.start]}{own.lower()}(){text[call.stop :]}"
    words = words_of(text)
    namespace = quote_name(place[1:]) if place[1:] else ""
    return with_values(
        text,
        words,
        [
            (call, string_text(place[0] if call.name == _CATALOG else namespace))
            for call in _calls(words)
        ],
    )


def _calls(words: Sequence[Word]) -> Iterator[FunctionCall]:
    for at in range(len(words) - 2):
        name, opening, closing = words[at : at + 3]
        is_part = at > 0 and words[at - 1].keyword == "."
        if name.keyword in _NAMES and not is_part and opening.keyword + closing.keyword == "()":
            yield FunctionCall(
                name=name.keyword,
                start=name.start,
                stop=closing.stop,
                number=0,
                value=None,
                has_simple_value=False,
                key=name.keyword,
            )
