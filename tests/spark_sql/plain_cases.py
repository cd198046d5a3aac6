"""Queries that must give what plain Spark gives for temporary views of the same rows.

``{t}``, ``{u}``, ``{s}`` and ``{insert}`` are tables. A case that is refused over Spark Connect
says why. Where `hidden` is given, it is the query for plain Spark: one without the hidden columns
that only a table of the lake has.
"""

from __future__ import annotations

from dataclasses import dataclass

TABLES = {
    "t": "SELECT id, CAST(id % 3 AS INT) k, concat('s', id) s FROM range(6)",
    "u": "SELECT id, CAST(id AS INT) v FROM range(4)",
    "s": "SELECT id, named_struct('s', named_struct('id', id + 10, 'x', 'in')) AS db FROM range(3)",
    "insert": "SELECT id, CAST(id AS INT) AS `insert` FROM range(3)",
}
"""The rows of each table."""


@dataclass(frozen=True)
class PlainCase:
    """One query."""

    text: str
    hidden: str | None = None
    over_connect: str | None = None

    def over(self, prefix: str) -> str:
        """The query over tables whose names begin so."""
        return _named(self.text, prefix)

    def plain(self, prefix: str) -> str:
        """The query that says what must come, over temporary views whose names begin so."""
        return _named(self.hidden or self.text, prefix)


def _named(text: str, prefix: str) -> str:
    return text.format(**{name: f"{prefix}{name}" for name in TABLES})


ALIASES = [
    PlainCase("SELECT a, b, c FROM {t} AS x(a, b, c)"),
    PlainCase("SELECT a FROM {u} x(a, b) WHERE b > 2"),
    PlainCase("SELECT k FROM {t} AS x(k, id, s) WHERE k = 5"),
    PlainCase("SELECT x.a, y.v FROM {u} y JOIN {u} AS x(a, b) ON y.id = x.a WHERE x.b > 2"),
    PlainCase("SELECT id, (SELECT max(b) FROM {u} AS x(a, b) WHERE x.a <= o.id) m FROM {u} o"),
    PlainCase("SELECT a FROM {u} TABLESAMPLE (100 PERCENT) AS x(a, b)"),
    PlainCase("SELECT x.id FROM {u} TABLESAMPLE (100 PERCENT) x"),
]
INSERT = [
    PlainCase("SELECT insert FROM {insert}"),
    PlainCase("SELECT id AS insert FROM {t}"),
    PlainCase("SELECT x.insert + 1 AS y FROM {insert} x WHERE x.insert > 1"),
    PlainCase("WITH insert AS (SELECT id FROM {t}) SELECT * FROM insert"),
    PlainCase("SELECT id FROM {insert} ORDER BY insert"),
    PlainCase("SELECT count(*) AS insert, id % 2 AS even FROM {t} GROUP BY 2"),
    PlainCase("FROM {insert} |> WHERE insert > 1 |> SELECT id"),
]
HIDDEN_WORDS = [
    PlainCase("SELECT * EXCEPT (k) FROM {t} WHERE s <> '_pos'"),
    PlainCase("SELECT id, xxhash64(*) AS h FROM {t} WHERE s <> '_file'"),
    PlainCase("FROM {t} |> WHERE s <> '_pos'"),
    PlainCase("TABLE {t} UNION ALL SELECT * FROM {t} WHERE s = '_pos'"),
    PlainCase("SELECT * FROM {t} NATURAL JOIN {u} WHERE s <> '_file'"),
    PlainCase("SELECT id FROM {u} WHERE (id, v) IN (TABLE {u}) AND '_pos' <> 'x'"),
    PlainCase("SELECT k AS _pos, count(*) FROM {t} GROUP BY _pos"),
    PlainCase("SELECT id, _pos FROM {t} LATERAL VIEW posexplode(array(5, 6)) p AS _pos, val"),
    PlainCase(
        "WITH x AS (SELECT id AS _file FROM {t}) SELECT _file, v FROM x JOIN {u} ON _file = id"
    ),
    PlainCase("SELECT _pos.* FROM (SELECT named_struct('a', id) AS _pos FROM {t})"),
    PlainCase("SELECT transform(array(1, 2), _pos -> _pos + id) AS a FROM {u}"),
]
HIDDEN_COLUMNS = [
    PlainCase(
        "SELECT id, xxhash64(*) AS h FROM {t} WHERE _pos >= 0",
        "SELECT id, xxhash64(*) AS h FROM {t}",
    ),
    PlainCase(
        "SELECT to_json(struct(*)) j, _file IS NOT NULL f FROM {t}",
        "SELECT to_json(struct(*)) j, true f FROM {t}",
    ),
    PlainCase("SELECT * EXCEPT (k) FROM {t} WHERE _pos >= 0", "SELECT * EXCEPT (k) FROM {t}"),
    PlainCase(
        "SELECT *, count(*) OVER () n FROM {t} WHERE `_file` > ''", "SELECT *, 6L n FROM {t}"
    ),
    PlainCase(
        "SELECT * FROM {t} a JOIN {u} b USING (id) WHERE a._pos >= 0 AND b._pos < 2",
        "SELECT * FROM {t} a JOIN {u} b USING (id) WHERE id < 2",
    ),
    PlainCase(
        "SELECT id FROM {u} o WHERE EXISTS (SELECT * FROM {t} i WHERE i.id = o.id AND o._pos > 1)",
        "SELECT id FROM {u} WHERE id > 1",
    ),
    PlainCase(
        "WITH x AS (SELECT 5 _pos) SELECT max(_pos) a, (SELECT max(_pos) FROM {u}) b FROM x",
        "SELECT 5 a, 3L b",
    ),
    PlainCase(
        "SELECT id FROM (({t} a JOIN {u} b USING (id))) WHERE b._POS = 1",
        "SELECT id FROM {t} WHERE id = 1",
    ),
    PlainCase(
        "SELECT _pos, count(*) FROM {t} GROUP BY ALL",
        "SELECT id AS _pos, count(*) FROM {t} GROUP BY ALL",
    ),
    PlainCase(
        "SELECT id FROM {t} WHERE (id, s) IN (SELECT id, _file FROM {u}) OR _pos = 1",
        "SELECT id FROM {t} WHERE id = 1",
    ),
]
HIDDEN_OF_ALL = [
    PlainCase(
        "FROM {t} |> WHERE _pos >= 0",
        "FROM {t}",
        over_connect="a pipe takes hidden columns for the table's own: it is refused",
    ),
    PlainCase(
        "SELECT * FROM {t} a NATURAL JOIN {u} b WHERE a._pos >= 0 AND b._pos >= 0",
        "SELECT * FROM {t} NATURAL JOIN {u}",
        over_connect="a natural join takes hidden columns for the table's own: it is refused",
    ),
    PlainCase(
        "SELECT * FROM {u} AS x(a, b) WHERE _pos >= 0",
        "SELECT * FROM {u} AS x(a, b)",
        over_connect="names of columns are given to the hidden ones too",
    ),
    PlainCase(
        "SELECT * FROM (SELECT id, k FROM {t} WHERE _pos < 9) PIVOT (sum(id) FOR k IN (0, 1))",
        "SELECT * FROM (SELECT id, k FROM {t}) PIVOT (sum(id) FOR k IN (0, 1))",
    ),
    PlainCase(
        "SELECT a.id, b._pos p FROM {t} a JOIN {t} b ON a._pos = b._pos + 1 WHERE a._file > ''",
        "SELECT a.id, b.id p FROM {t} a JOIN {t} b ON a.id = b.id + 1",
    ),
    PlainCase(
        "SELECT id FROM {t} WHERE _pos IN (SELECT max(_pos) FROM {t})",
        "SELECT id FROM {t} WHERE id IN (SELECT max(id) FROM {t})",
    ),
    PlainCase(
        "WITH x AS (SELECT * FROM {t} WHERE _pos > 1), y AS (SELECT id, _pos p FROM {t} z)"
        " SELECT * FROM x JOIN y USING (id)",
        "WITH x AS (SELECT * FROM {t} WHERE id > 1), y AS (SELECT id, id p FROM {t} z)"
        " SELECT * FROM x JOIN y USING (id)",
    ),
]
STRUCTS = [
    PlainCase(
        "SELECT db.s.x, s.db.s.id AS i, db.s.id AS j FROM {s}",
        "SELECT db.s.x, db.s.id AS i, id AS j FROM {s}",
    ),
    PlainCase("SELECT (SELECT max(db.s.x) FROM {s}) m FROM {u}"),
]
KINDS = (ALIASES, INSERT, HIDDEN_WORDS, HIDDEN_COLUMNS, HIDDEN_OF_ALL, STRUCTS)
CASES = [case for kind in KINDS for case in kind]
