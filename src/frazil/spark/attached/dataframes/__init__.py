"""Readers and writers of an attached session: Spark's own, that know names of lakes too."""
