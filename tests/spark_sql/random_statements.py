"""Random queries and changes, as texts for a lake and for plain Spark over the same rows.

Tables have columns ``id``, ``k``, ``s`` and ``p``; ``{pos}`` is a row's place in its file, which
``p`` holds. Names of CTEs, of aliases and of views are those of tables too, so that scopes meet.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

TABLES = ("t", "u", "w")
_NAMES = ("t", "u", "w", "x", "T")
COLUMNS = ("id", "k", "s", "p")


@dataclass
class Scope:
    """What is known where a text is made.

    Attributes:
        ctes: their names, in small letters.
        columns: of the relations in reach, with their aliases; those of a table have its places.
    """

    ctes: frozenset[str] = frozenset()
    columns: list[str] = field(default_factory=list)


class Statements:
    """Texts by a seed; ``{t}`` is a table's whole name, and `t` its short one."""

    def __init__(self, seed: int, *, views: tuple[str, ...] = (), places: bool = True) -> None:
        self._random = random.Random(seed)
        self._tables = (*TABLES, *views)
        self._places = places
        self._alias = 0

    def query(self) -> str:
        """A query, whose columns have names of their own."""
        return self._query(Scope(), depth=3)

    def change(self) -> tuple[str, str]:
        """A change of the table `t`, and the query that gives the rows after it."""
        reach = Scope(columns=[f"a.{each}" for each in COLUMNS])
        kind = self._one("DELETE", "UPDATE", "INSERT", "MERGE")
        if kind == "INSERT":
            query = f"SELECT id, k, s, p FROM ({self._query(Scope(), 2)}) WHERE id < 20"
            return f"INSERT INTO {{t}} {query}", f"SELECT * FROM {{t}} UNION ALL {query}"
        if kind == "MERGE":
            return self._merge()
        condition = self._condition(reach, 2, [])
        kept = f"SELECT a.* FROM {{t}} AS a WHERE NOT coalesce({condition}, false)"
        if kind == "DELETE":
            return f"DELETE FROM {{t}} AS a WHERE {condition}", kept
        changed = f"SELECT id, k + 1, concat(s, 'x'), p FROM {{t}} AS a WHERE {condition}"
        return (
            f"UPDATE {{t}} AS a SET s = concat(a.s, 'x'), k = k + 1 WHERE {condition}",
            f"{kept} UNION ALL {changed}",
        )

    def _merge(self) -> tuple[str, str]:
        source = (
            f"(SELECT id, max(k) AS k, max(s) AS s, max(p) AS p FROM ({self._query(Scope(), 2)}) "
            "WHERE id IS NOT NULL GROUP BY id) b"
        )
        goes = self._simple(["b.k", "b.s", "a.k", "a.s"])
        text = (
            f"MERGE INTO {{t}} a USING {source} ON a.id = b.id WHEN MATCHED AND {goes} THEN DELETE "
            "WHEN MATCHED THEN UPDATE SET a.s = b.s, k = b.k WHEN NOT MATCHED THEN INSERT "
            "(id, k, s, p) VALUES (b.id, b.k, b.s, b.p)"
        )
        after = (
            f"SELECT a.* FROM {{t}} a LEFT ANTI JOIN {source} ON a.id = b.id UNION ALL "
            f"SELECT a.id, b.k, b.s, a.p FROM {{t}} a JOIN {source} ON a.id = b.id "
            f"WHERE NOT coalesce({goes}, false) UNION ALL "
            f"SELECT b.* FROM {source} LEFT ANTI JOIN {{t}} a ON a.id = b.id"
        )
        return text, after

    def _one(self, *choices):
        return self._random.choice(choices)

    def _is(self, chance: float) -> bool:
        return self._random.random() < chance

    def _query(self, scope: Scope, depth: int) -> str:
        if depth > 0 and self._is(0.35):
            return self._with(scope, depth)
        if depth > 0 and self._is(0.12):
            word = self._one("UNION", "UNION ALL", "EXCEPT", "INTERSECT")
            return f"{self._bracket(scope, depth)} {word} {self._bracket(scope, depth)}"
        return self._select(scope, depth)

    def _bracket(self, scope: Scope, depth: int) -> str:
        return f"({self._query(scope, depth - 1)})"

    def _with(self, scope: Scope, depth: int) -> str:
        ctes, own = [], scope.ctes
        for name in self._random.sample(_NAMES, self._one(1, 1, 2)):
            if name.lower() in {each.split(" ")[0].lower() for each in ctes}:
                continue
            inner = self._query(Scope(own), depth - 1)
            names = " (id, k, s, p)" if self._is(0.2) else ""
            ctes.append(f"{name}{names} AS ({inner})")
            own |= {name.lower()}
        child = self._query(Scope(own, scope.columns), depth - 1)
        if child.startswith("WITH"):
            child = f"({child})"
        return f"WITH {', '.join(ctes)} {child}"

    def _select(self, scope: Scope, depth: int) -> str:
        relation, columns = self._relation(scope, depth)
        joins, all_columns = [], list(columns)
        while depth > 0 and len(joins) < 2 and self._is(0.35):
            other, more = self._relation(scope, depth - 1)
            on = self._joined(columns, more)
            joins.append(f"{self._one('JOIN', 'LEFT JOIN', 'JOIN', 'CROSS JOIN')} {other}")
            if not joins[-1].startswith("CROSS"):
                joins[-1] += f" ON {on}"
            all_columns += more
        reach = Scope(scope.ctes, all_columns)
        picked = self._picked(all_columns)
        text = f"SELECT {picked} FROM {relation} {' '.join(joins)}"
        if self._is(0.7):
            text += f" WHERE {self._condition(reach, depth, scope.columns)}"
        return text

    def _picked(self, columns: list[str]) -> str:
        texts = [each for each in columns if each.endswith(".s")]
        numbers = [each for each in columns if not each.endswith(".s")]
        first, second, place = (self._random.choice(numbers) for _ in range(3))
        return (
            f"{first} AS id, {second} + {self._one(0, 1)} AS k, "
            f"{self._random.choice(texts)} AS s, {place} AS p"
        )

    def _relation(self, scope: Scope, depth: int) -> tuple[str, list[str]]:
        self._alias += 1
        alias = self._one(f"a{self._alias}", f"a{self._alias}", f"`t {self._alias}`")
        if depth > 0 and self._is(0.25):
            inner = self._bracket(Scope(scope.ctes), depth)
            return f"{inner} AS {alias}", [f"{alias}.{each}" for each in COLUMNS]
        ctes = [each for each in _NAMES if each.lower() in scope.ctes]
        if ctes and self._is(0.6):
            name = self._random.choice(ctes)
            return f"{name} {alias}", [f"{alias}.{each}" for each in COLUMNS]
        name = self._random.choice(self._tables)
        is_short = name.lower() not in scope.ctes and self._is(0.5)
        said = name if is_short else f"{{{name}}}"
        if self._is(0.15):
            return f"{said} AS {alias} (k, id, s, p)", [f"{alias}.{each}" for each in COLUMNS]
        columns = [f"{alias}.{each}" for each in COLUMNS]
        if self._places and name in TABLES and self._is(0.3):
            columns.append(f"{alias}.{{pos}}")
        return f"{said} {self._one('', 'AS ')}{alias}", columns

    def _joined(self, columns: list[str], more: list[str]) -> str:
        left = self._random.choice([each for each in columns if each.endswith((".id", ".k"))])
        right = self._random.choice([each for each in more if each.endswith((".id", ".k"))])
        return f"{left} = {right}" + (f" AND {self._simple(more)}" if self._is(0.3) else "")

    def _simple(self, columns: list[str]) -> str:
        column = self._random.choice(columns)
        if column.endswith(".s"):
            return self._one(
                f"{column} = 's{self._random.randrange(12)}'",
                f"{column} LIKE 's1%'",
                f"{column} <> '_pos'",
                f"{column} IN ('s1', 's5', 's9')",
            )
        number = self._random.randrange(12)
        return self._one(
            f"{column} = {number}",
            f"{column} > {number}",
            f"{column} <= {number}",
            f"{column} IN ({number}, {number + 3})",
            f"{column} BETWEEN {number} AND {number + 4}",
            f"{column} IS NULL",
            f"NOT {column} = {number}",
        )

    def _condition(self, reach: Scope, depth: int, outer: list[str]) -> str:
        parts = [self._simple(reach.columns) for _ in range(self._one(1, 1, 2))]
        if depth > 0 and self._is(0.4):
            parts.append(self._nested(reach, depth))
        if outer and self._is(0.6):
            own = [each for each in reach.columns if each.endswith(".id")]
            around = [each for each in outer if each.endswith(".id")]
            parts.append(f"{self._random.choice(own)} = {self._random.choice(around)}")
        if outer:
            return " AND ".join(f"({each})" for each in parts)
        return self._one(" AND ", " AND ", " OR ").join(f"({each})" for each in parts)

    def _nested(self, reach: Scope, depth: int) -> str:
        number = self._random.choice([each for each in reach.columns if each.endswith(".id")])
        if self._is(0.3):
            # A sub-query that looks out is plain, since Spark allows few shapes of it.
            inner = self._select(Scope(reach.ctes, reach.columns), 0)
            return f"{self._one('', 'NOT ')}EXISTS ({inner})"
        inner = self._query(Scope(reach.ctes), depth - 1)
        if self._is(0.5):
            return f"{number} {self._one('', 'NOT ')}IN (SELECT id FROM ({inner}))"
        return f"{number} {self._one('=', '<', '>=')} (SELECT max(k) FROM ({inner}))"
