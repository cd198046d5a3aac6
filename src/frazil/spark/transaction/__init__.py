"""One transaction of a table, and a table in a transaction of several."""
