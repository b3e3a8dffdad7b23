"""The command `matbench`, also as `python -m matbench`."""

import os
import sys
from contextlib import suppress

from matbench import signals


def main() -> None:
    """Listen to signals first: while the commands are imported, they can come too."""
    _open_missing_streams()
    # Processes that it starts are `python -c …`, which would import from the current folder first,
    # whoever filled that. Python 3.10 does not know this.
    os.environ["PYTHONSAFEPATH"] = "1"
    signals.listen()
    try:
        from matbench.cli import main as commands

        commands(prog_name="matbench")
    except KeyboardInterrupt:
        signals.ignore()
        with suppress(OSError):  # a terminal that was closed
            print("interrupted", file=sys.stderr)
        sys.exit(signals.exit_code())
    finally:
        signals.ignore()
        # Where Ctrl-C came within an `exec`, as of a named tuple, Python as `python -m` would end
        # by SIGINT whatever we exit with, unless another `exec` ended well.
        exec("")  # noqa: S102


def _open_missing_streams() -> None:
    """Let closed standard streams be the null device, before a file or a pipe takes their place."""
    for descriptor, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # as the lowest that is free
            os.set_inheritable(descriptor, True)
            mode = "w" if descriptor else "r"
            setattr(sys, name, os.fdopen(descriptor, mode, encoding="utf-8", closefd=False))


if __name__ == "__main__":
    main()
