"""Which rows of the source match which rows of the table, found by place, by file or by key."""
