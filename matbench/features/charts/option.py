"""The option that draws where C is wrong."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from matbench.cli.options import option
from matbench.errors import MatbenchError

if TYPE_CHECKING:
    from matbench.records.outcome import Outcome


@dataclass(frozen=True)
class ErrorMapOptions:
    """The file of the first error map, if any are drawn."""

    TITLE: ClassVar = None

    error_map: str | None = option(
        "--error-map",
        metavar="FILE.png",
        help="Draw where C is wrong. Further maps go to FILE_2.png and so on; existing files "
        "are kept.",
    )

    def checked(self) -> str | None:
        """The file; `UsageError` if nothing can be drawn there. Call this before measuring."""
        if self.error_map is not None:
            from matbench.features.charts import drawing

            drawing.require(Path(self.error_map))
        return self.error_map

    def draw(self, outcome: Outcome) -> str:
        """Draw where C is wrong, to a new file; returns a note that names it, or says why not.

        The note is empty if no map is wanted, or the outcome has none.
        """
        if self.error_map is None or not outcome.error_map:
            return ""
        from matbench.features.charts import error_map_chart

        title = f"{outcome.case.label} on {outcome.case.device}"
        unused = error_map_chart.unused(Path(self.error_map))
        try:
            error_map_chart.draw(outcome.error_map, unused, title, outcome.reason or "")
        except (MatbenchError, MemoryError) as error:
            return f"no error map: {error}"
        return f"error map: {unused}"
