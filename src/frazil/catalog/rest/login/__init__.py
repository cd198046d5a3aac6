"""How a catalog logs in at its server."""
