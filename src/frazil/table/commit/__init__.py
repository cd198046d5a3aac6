"""How a change becomes part of a table: operations, the commit loop, transactions."""
