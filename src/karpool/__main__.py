"""`python -m karpool`: the command line, where the program is not on PATH."""

from karpool.cli.main import main

if __name__ == "__main__":
    main()
