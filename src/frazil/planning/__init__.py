"""From a snapshot and a predicate to a scan plan, in columns."""
