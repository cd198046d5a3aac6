"""Reading: a scan plan becomes one native DataFrame."""
