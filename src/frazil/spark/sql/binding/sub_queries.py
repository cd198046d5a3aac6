"""Sub-queries that are values of a row, and what Spark's optimizer needs to read them rightly.

Spark carries a list of SELECT into the parts of a union, and where a sub-query of that list names
columns around it that ends in ``key not found``. Tables with deletes or changed columns are read
as unions.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from frazil.format.predicates.sql.quoting import quote_name_always
from frazil.spark.words import Word

_OF_VALUES: Final = frozenset({"SELECT", "GROUP", "ORDER", "SORT", "EXTEND", "SET", "AGGREGATE"})
_OF_ROWS: Final = frozenset({"FROM", "JOIN", "ON", "WHERE", "HAVING", "QUALIFY", "WITH", "LATERAL"})
_QUERIES: Final = frozenset({"SELECT", "WITH", "FROM", "VALUES", "TABLE"})
_ONE: Final = "_frazil_one"


def has_sub_queries_as_values(words: Iterable[Word]) -> bool:
    """Whether a sub-query may stand in a list of SELECT, or where a list of it comes of it."""
    clauses = [""]
    keywords = [word.keyword for word in words]
    for key, follows in pairwise([*keywords, ""]):
        if key == "(":
            if follows in _QUERIES and clauses[-1] in _OF_VALUES:
                return True
            clauses.append("" if follows in _QUERIES else clauses[-1])
        elif key == ")":
            clauses = clauses[:-1] or [""]
        elif key in _OF_VALUES or key in _OF_ROWS:
            clauses[-1] = key
    return False


def separated_rows(rows: DataFrame) -> DataFrame:
    """Return the same rows with a step before them that no list of SELECT is carried across.

    Conditions are, and columns that are not asked for are not read.
    """
    one = F.explode(F.array(F.lit(1))).alias(_ONE)
    names = [F.col(quote_name_always([name])) for name in rows.columns]
    return rows.select(*names, one).select(*names)
