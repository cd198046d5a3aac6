"""Maintenance whose work executors share: orphan files, statistics, checks."""
