"""The option that makes `serve` speak the Model Context Protocol."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from matbench.cli.options import option
from matbench.errors import UsageError


@dataclass(frozen=True)
class McpOptions:
    """How requests come."""

    TITLE: ClassVar = None

    mcp: bool = option(
        "--mcp",
        is_flag=True,
        help="Speak the Model Context Protocol in place of JSON Lines: docs/agents.md.",
    )

    def __post_init__(self) -> None:
        if self.mcp and importlib.util.find_spec("mcp") is None:
            raise UsageError("--mcp needs the package mcp; pip install 'matbench-cuda[mcp]'")

    def serve(self, request: type, answer: Callable[[bytes], dict[str, Any]]) -> None:
        """Answer requests of this type, as JSON, until the input ends."""
        from matbench.features.mcp_server import server

        server.serve(request, answer)
