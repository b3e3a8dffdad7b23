"""What a terminal shows at each moment of a session."""

from __future__ import annotations

import re

from rich.cells import cell_len

_TOKEN = re.compile(r"\x1b\[(\??[0-9;]*)([A-Za-z])|\x1b.|(.)", re.DOTALL)


class Screen:
    """A terminal with what rich's live display needs: line ends, wrapping, moving up, erasing."""

    def __init__(self, width: int, height: int) -> None:
        self.width, self.height = width, height
        self.rows = [""] * height
        self.x = self.y = 0

    def write(self, text: str) -> None:
        for number, command, letter in _TOKEN.findall(text):
            if letter:
                self._put(letter)
            elif command == "A":
                self.y = max(0, self.y - int(number or 1))
            elif command == "K":
                assert number == "2"
                self.rows[self.y] = ""
            else:
                assert command in "mhl", f"not known here: {number}{command}"

    def _put(self, letter: str) -> None:
        if letter == "\r":
            self.x = 0
        elif letter == "\n":
            self._down()
        else:
            if self.x + cell_len(letter) > self.width:
                self.x = 0
                self._down()
            row = self.rows[self.y].ljust(self.x)
            self.rows[self.y] = row[: self.x] + letter + row[self.x + 1 :]
            self.x += cell_len(letter)

    def _down(self) -> None:
        if self.y == self.height - 1:
            self.rows = [*self.rows[1:], ""]
        else:
            self.y += 1

    @property
    def shown(self) -> str:
        return "\n".join(row.rstrip() for row in self.rows).strip("\n")


def screens(written: str, width: int, height: int) -> list[str]:
    """What was shown whenever a live display was about to be drawn again, and at the end."""
    screen, found = Screen(width, height), []
    for piece in re.split(r"(?=\r\x1b\[2K)", written):
        screen.write(piece)
        found.append(screen.shown)
    return found
