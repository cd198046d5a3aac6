"""Commands that set up this machine: configured catalogs, and what is missing."""
