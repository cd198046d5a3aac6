"""A lake as a catalog of Spark's own: its parser, its catalogs, and the clients that reach them."""
