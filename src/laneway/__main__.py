"""`python -m laneway` is the command line."""

from laneway.cli.main import main

if __name__ == "__main__":
    main()
