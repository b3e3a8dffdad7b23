"""`python -m matbench`."""

from matbench.cli import main

if __name__ == "__main__":
    main()
