"""A catalog behind the REST protocol, for every engine that has a client of it."""
