"""Rows of every kind of partition, as Spark writes them."""

COLUMNS = (
    "id bigint, name string, at timestamp, point struct<x: int, y: array<double>>, "
    "dept string, n int, day date"
)
KEYS = ("dept", "n", "day")
ROWS = """
    (1, 'a', TIMESTAMP '2024-01-01 10:00:00.123456', named_struct('x', 1, 'y', array(1.5D)),
        'hr', 1, DATE '2024-01-31'),
    (2, 'b', NULL, NULL, 'x:y / 50%', -2, DATE '1969-12-31'),
    (3, NULL, TIMESTAMP '1969-12-31 23:59:59.5', named_struct('x', NULL, 'y', array()),
        NULL, NULL, NULL),
    (4, 'd', TIMESTAMP '2024-02-01 00:00:00', named_struct('x', 4, 'y', NULL),
        'hr', 7, DATE '2024-01-31'),
    (5, 'e', NULL, NULL, ' {é} ', 1, NULL)
"""
