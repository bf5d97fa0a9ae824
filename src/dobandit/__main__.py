"""`python -m dobandit`."""

from dobandit.cli.main import main

main()
