"""The clauses of a merge: as stated, as Spark understands them, and which one a row falls under."""
