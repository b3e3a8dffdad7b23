"""The git revision of an untrusted folder, without running anything that it configures.

It does not say whether files were modified: to compare them, git would run the repository's clean
filters. Each record has the hash of its kernel's source.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

_TIMEOUT_S = 5.0
_SAFE = (
    "--no-pager",
    "-c", "core.fsmonitor=false",
    "-c", f"core.hooksPath={os.devnull}",
    # Ignore folders that merely look like a repository, such as one among a project's files.
    "-c", "safe.bareRepository=explicit",
)  # fmt: skip
_KEPT = {"GIT_CEILING_DIRECTORIES", "GIT_DISCOVERY_ACROSS_FILESYSTEM"}


def project_revision() -> str | None:
    """The commit of the project in the current folder; None without git or a commit."""
    # A relative entry of PATH could run a `git` from the folder itself.
    folders = os.environ.get("PATH", "").split(os.pathsep)
    path = os.pathsep.join(folder for folder in folders if Path(folder).is_absolute())
    git = shutil.which("git", path=path) if path else None
    if git is None:
        return None
    kept = {k: v for k, v in os.environ.items() if not k.startswith("GIT_") or k in _KEPT}
    try:
        found = subprocess.run(
            [git, *_SAFE, "rev-parse", "--verify", "HEAD"],
            env=kept | {"GIT_OPTIONAL_LOCKS": "0", "GIT_NO_LAZY_FETCH": "1"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=True,
            timeout=_TIMEOUT_S,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return found.stdout.decode("ascii", "replace").strip() or None
