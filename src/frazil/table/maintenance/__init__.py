"""What a table no longer needs."""
