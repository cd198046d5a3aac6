"""`python -m frazil.cli`."""

from frazil.cli.commands import main

main()
