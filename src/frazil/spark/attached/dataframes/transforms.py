"""`pyspark.sql.functions.partitioning` as the terms of a partition spec."""

from __future__ import annotations

import re
from typing import Any, Final

from pyspark.sql import Column

from frazil.errors import ValidationError
from frazil.format.predicates.sql.quoting import quote_name
from frazil.spark.words import WordReader

_SHOWN: Final = re.compile(r"Column<'(.*)'>", re.DOTALL)
_TERM: Final = re.compile(r"(years|months|days|hours)\((.+)\)", re.DOTALL)
_BUCKET: Final = re.compile(r"bucket\((\d+), (.+)\)", re.DOTALL)


def partition_term(column: Column | str) -> str:
    """Return a term, as ``days(ts)``, of a column or of a transform of one.

    Raises:
        ValidationError: it is another expression.
    """
    if isinstance(column, str):
        return _name(column)
    text = _text(column)
    transformed = _TERM.fullmatch(text)
    if transformed is not None:
        return f"{transformed[1]}({_name(transformed[2])})"
    bucket = _BUCKET.fullmatch(text)
    if bucket is not None:
        return f"bucket({bucket[1]}, {_name(bucket[2])})"
    return _name(text)


def _text(column: Any) -> str:
    found = _SHOWN.fullmatch(str(column))
    return str(column) if found is None else found[1]


def _name(text: str) -> str:
    """A column's name with quotes where it needs them; its dots lead into structs."""
    if re.fullmatch(r"[\w.]+", text):
        return text
    if text.startswith("`"):
        return quote_name(WordReader(text).names("a column"))
    if "(" in text:
        raise ValidationError(
            f"{text} is no partition: a column, or years, months, days, hours or bucket of one"
        )
    return quote_name([text])
