"""How a table's schema may change, and what becomes of its values."""
