"""The command `matbench`, also as `python -m matbench`."""

import sys

from matbench import signals


def main() -> None:
    """Listen to signals first: while the commands are imported, they can come too."""
    signals.listen()
    try:
        from matbench.cli import main as commands

        commands(prog_name="matbench")
    except KeyboardInterrupt:
        signals.ignore()
        print("interrupted", file=sys.stderr)
        sys.exit(signals.exit_code())
    finally:
        signals.ignore()


if __name__ == "__main__":
    main()
