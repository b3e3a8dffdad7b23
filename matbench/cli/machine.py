"""`matbench info` and `matbench cache`: this machine's devices, and the cache."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from matbench.cli.app import CommandGroup, main
from matbench.cli.console import say, show_rich

if TYPE_CHECKING:
    from matbench.model import DeviceInfo


@main.command()
def info() -> None:
    """Show all devices, why a backend is unavailable, and the cache."""
    from rich.table import Table
    from rich.text import Text

    from matbench import backends
    from matbench.cache import Cache

    cache = Cache()
    cache.prepare()
    devices: list[DeviceInfo] = []
    for name in backends.NAMES:
        try:
            devices += backends.devices(name)
        except backends.UnavailableError as error:
            say(f"{name} is unavailable: {error}")
    for device in devices:
        table = Table.grid(padding=(0, 2))
        rows: dict[str, Any] = {
            "driver": device.driver,
            "toolkit or runtime": device.toolkit,
            **device.properties,
        }
        for label, value in rows.items():
            shown = f"{value:,}" if isinstance(value, int) else value or "unknown"
            table.add_row(f"  {label}", str(shown))
        title = Text.assemble((device.label, "bold"), f" ({device.kind.upper()})")
        show_rich("", title, table)
    say(
        f"\ncache: {cache.folder}, {cache.size_bytes() / 1e6:,.1f} MB "
        f"of at most {cache.limit_bytes / 1e6:,.0f} MB (`matbench cache clear` empties it)"
    )


@main.group("cache", cls=CommandGroup)
def cache_group() -> None:
    """Manage cached references and compiled code."""


@cache_group.command("clear")
def cache_clear() -> None:
    """Remove everything from the cache."""
    from matbench.cache import Cache

    cache = Cache()
    say(f"removed {cache.clear() / 1e6:,.1f} MB from {cache.folder}")
