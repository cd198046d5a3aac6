"""A table's state as one page of HTML."""
