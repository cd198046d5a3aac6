"""Pages for browsers: an index of the lake, its tables, and a login with a token."""
