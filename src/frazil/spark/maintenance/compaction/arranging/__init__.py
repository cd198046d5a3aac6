"""The order in which compaction writes rows: by columns, or by a curve through several."""
