"""MERGE: its clauses, what they match, and what becomes of the rows."""
