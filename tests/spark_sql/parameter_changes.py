"""Statements that change rows by values of parameters, and plain Spark's query of what must come.

They change a table ``db.t`` of these rows; plain Spark has them in a view ``model``.
"""

from decimal import Decimal

ROWS = [(i, 10 + i, i % 2) for i in range(6)]

CHANGES = [
    (
        "DELETE FROM db.t WHERE v > 12.0 -? AND k = 1",
        [Decimal("-1.5")],
        "SELECT * FROM model WHERE NOT (v > 12.0 - ? AND k = 1)",
    ),
    (
        "MERGE INTO db.t USING (SELECT 1 -:x AS id) s ON t.id = s.id -:y "
        "WHEN MATCHED THEN UPDATE SET v = v -:x",
        {"x": -2, "y": -1},
        "SELECT id, if(id = 4, v - :x, v) v, k FROM model WHERE :y < 0",
    ),
    (
        "DELETE FROM db.t WHERE v > 10 -:x AND k = 1",
        {"x": -1},
        "SELECT * FROM model WHERE NOT (v > 10 - :x AND k = 1)",
    ),
    (
        "UPDATE db.t SET v = v -:x WHERE CASE WHEN:y THEN id = 1 END",
        {"x": -5, "y": True},
        "SELECT id, if(id = 1, v - :x, v) v, k FROM model WHERE :y",
    ),
    (
        "INSERT INTO db.t SELECT id, v -:x, k FROM db.t WHERE id = 1",
        {"x": -100},
        "SELECT * FROM model UNION ALL SELECT id, v - :x, k FROM model WHERE id = 1",
    ),
]
