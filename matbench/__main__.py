"""The command `matbench`, also as `python -m matbench`."""

import os
import signal
import sys
from contextlib import suppress
from pathlib import Path


def main() -> None:
    """Handle signals first, because they can arrive while anything else is imported."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, lambda number, _: os._exit(128 + number))
    from matbench import programs, signals
    from matbench.errors import explanation

    # Closed standard streams are the null device, before another file takes their number.
    for descriptor, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest free number
            os.set_inheritable(descriptor, True)
            mode = "w" if descriptor else "r"
            setattr(sys, name, os.fdopen(descriptor, mode, encoding="utf-8", closefd=False))
    # Child processes run as `python -c …`, which would import from the current folder first, and
    # that may be anyone's. Python 3.10 ignores this variable.
    os.environ["PYTHONSAFEPATH"] = "1"
    signals.listen()
    try:
        # Processes started from here work in other folders, and must find the same files there.
        # Relative folders of PATH could be anyone's: they are left out.
        os.environ["PATH"] = programs.absolute_folders(os.environ.get("PATH", "")) or os.defpath
        for name in ("MATBENCH_CACHE_DIR", "MATBENCH_STATE_DIR", "OCL_ICD_VENDORS"):
            given = os.environ.get(name)
            if given and (name.startswith("MATBENCH") or Path(given).exists()):
                os.environ[name] = str(Path(given).absolute())
        from matbench.cli import main as commands

        commands(prog_name="matbench")
    except KeyboardInterrupt:
        signals.ignore()
        with suppress(OSError):  # the terminal may be closed
            print("interrupted", file=sys.stderr)
        sys.exit(signals.exit_code())
    except (ImportError, MemoryError, OSError) as error:  # with hardly any memory or open files
        sys.exit(f"matbench: {explanation(error)}")
    finally:
        signals.ignore()
        # If Ctrl-C arrived within an `exec`, as in namedtuple, `python -m` would end by SIGINT
        # whatever our exit code, unless a later `exec` succeeds.
        exec("")  # noqa: S102


if __name__ == "__main__":
    main()
