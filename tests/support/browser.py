"""A real browser, and what a page in it shows and does."""

from __future__ import annotations

import importlib.util
import json
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from support.paths import programs

_PROGRAMS = [shutil.which(name) for name in ("chromium", "chromedriver")]
_SCRIPTS = programs(__file__)
needs_browser = pytest.mark.skipif(
    not all(_PROGRAMS) or importlib.util.find_spec("selenium") is None,
    reason="no chromium with chromedriver, or no selenium",
)
needs_page = pytest.mark.skipif(
    importlib.util.find_spec("vl_convert") is None, reason="pages need vl-convert"
)


class Browser:
    """One window; `evaluate` runs JavaScript and returns its value."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver

    def open(self, path: Path, state: str = "", width: int = 1200) -> None:
        """Open the page, at that width, and wait for its charts."""
        self.driver.get("about:blank")
        self.messages()
        self.driver.get_log("performance")
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        self.driver.get(path.as_uri() + state)
        self.until("document.querySelectorAll('.chart:not(:has(svg, canvas))').length === 0")

    def prefer(self, scheme: str) -> None:
        """Let the reader's system be light or dark."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})

    def evaluate(self, code: str) -> Any:
        return self.driver.execute_script(f"return {code}")

    def until(self, condition: str) -> None:
        """Wait for a condition; a busy machine draws slowly."""
        deadline = time.monotonic() + 30
        while not self.evaluate(condition):
            assert time.monotonic() < deadline, condition
            time.sleep(0.05)

    def choose(self, state: str, value: str) -> None:
        """Set every control of that name, as a reader would set one."""
        self.driver.execute_script(_SCRIPTS["choose"], state, value)
        self.until("document.querySelectorAll('.chart:not(:has(svg, canvas))').length === 0")

    def column(self, title: str) -> list[str]:
        """The cells of one column of the table of all results."""
        found: list[str] = self.driver.execute_script(_SCRIPTS["column"], title)
        return found

    def messages(self) -> list[str]:
        """What the console said since this was last asked, but for what is only told."""
        return [
            entry["message"]
            for entry in self.driver.get_log("browser")
            if entry["level"] in ("SEVERE", "WARNING")
        ]

    def requests(self) -> list[str]:
        """The addresses that were asked for since the page was opened, data in the page aside."""
        events = [json.loads(entry["message"]) for entry in self.driver.get_log("performance")]
        urls = [
            event["message"]["params"]["request"]["url"]
            for event in events
            if event["message"]["method"] == "Network.requestWillBeSent"
        ]
        return [url for url in urls if not url.startswith("data:")]


@contextmanager
def browser() -> Iterator[Browser]:
    """Chromium without a window."""
    from selenium import webdriver
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service

    options = Options()
    options.binary_location = str(_PROGRAMS[0])
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(str(_PROGRAMS[1])))
    try:
        yield Browser(driver)
    finally:
        driver.quit()


#: The fixture `opened`: a page of some record files, in the browser.
Opened = Callable[..., Browser]
