"""What each script that generates documentation ends with: it writes files, or names stale ones."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent


def finish(changes: dict[Path, str]) -> int:
    """Write the files that changed; with `--check` only name them. The exit code of the script."""
    check = "--check" in sys.argv[1:]
    for path, text in changes.items():
        print(f"{path.relative_to(ROOT)}: {'not up to date' if check else 'written'}")
        if not check:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
    return int(check and bool(changes))
