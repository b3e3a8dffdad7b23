"""The git revision of the current folder.

It does not say whether files were modified: to compare them, git would run the repository's clean
filters. Each record has the hash of its kernel's source.
"""

from __future__ import annotations

from matbench import git


def project_revision() -> str | None:
    """The commit of the project in the current folder; None without git or a commit."""
    return git.commit("HEAD")
