"""The stores that files lie in."""
