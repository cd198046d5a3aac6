"""Scans that the server plans for its clients."""
