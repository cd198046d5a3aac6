"""Which files a query can need, and what of it metadata answers."""
