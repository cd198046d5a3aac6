"""Schemas and types in the forms that users have them in."""
