"""Names of the lake's tables and views in a query, bound to rows."""
