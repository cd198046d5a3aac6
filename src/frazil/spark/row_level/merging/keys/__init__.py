"""Keys of a merge: as the table stores them, collected, and as a test of rows."""
