"""Commands that change rows: DELETE, UPDATE, MERGE and upsert."""
