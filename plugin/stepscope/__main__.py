"""`python -m stepscope` is the command line."""

from stepscope.cli import main

main()
