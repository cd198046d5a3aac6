"""`python -m frazil`."""

from frazil.cli.app import main

main()
