"""The commands of `frazil`, each imported when it is asked for."""
