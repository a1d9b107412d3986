"""A real browser over the page: Debian's Chromium, driven by selenium, with its log and its requests.

Chromium lays out no window under 500 pixels wide, so widths are those of an emulated screen.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from selenium.webdriver import ActionChains, Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement

from tests.support.processes.daemon_process import until

AXE = Path(__file__).parent / "vendor" / "axe.min.js"
WIDTHS = (360, 1280, 2560)
SECONDS = 60
_SERIOUS = ("serious", "critical")


def missing() -> str:
    """What this machine lacks for a browser; empty if it has one."""
    lacking = [name for name in ("chromium", "chromedriver") if shutil.which(name) is None]
    return f"{' and '.join(lacking)} not found (Debian: apt install chromium chromium-driver)" if lacking else ""


@contextmanager
def chromium(profile: Path) -> Iterator[Chrome]:
    """A browser with a profile of its own."""
    options = ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for flag in ("headless=new", "no-sandbox", "disable-gpu", "disable-dev-shm-usage", "no-first-run"):
        options.add_argument(f"--{flag}")
    # Nothing of Chromium's own goes out.
    for flag in ("disable-background-networking", "disable-component-update", "disable-sync"):
        options.add_argument(f"--{flag}")
    options.add_argument(f"--user-data-dir={profile}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = Chrome(options=options, service=Service(shutil.which("chromedriver")))
    driver.set_page_load_timeout(SECONDS)
    driver.set_script_timeout(SECONDS)
    try:
        yield driver
    finally:
        driver.quit()


class Browser:
    """A browser that has come in by a link; `address` is that of the page."""

    def __init__(self, driver: Chrome, address: str) -> None:
        self.driver, self.address = driver, address

    def open(self, path: str) -> None:
        """Load a page of the site, or another address.

        A search field that is to have the focus has it then: Chromium complains if keys come before.
        """
        self.driver.get(path if "://" in path else self.address + path)
        has_focus = "const [field] = document.querySelectorAll('[data-search][autofocus]');"
        has_focus += "return !field || document.activeElement === field"
        self.until(lambda: self.run(has_focus), "the focus in the search field")

    def resize(self, width: int, height: int = 900, *, dark: bool = False) -> None:
        """Show the following pages on a screen of this width."""
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})

    def find(self, selector: str) -> WebElement:
        """The first element, as soon as there is one."""
        return self.until(lambda: self.all(selector), f"an element {selector}")[0]

    def all(self, selector: str) -> list[WebElement]:
        """All elements that there are now."""
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def text(self, selector: str = "main") -> str:
        """What can be read there now."""
        return str(self.run("return document.querySelector(arguments[0])?.innerText ?? ''", selector))

    def texts(self, selector: str) -> list[str]:
        """The text of each such element, all of the same moment."""
        script = "return [...document.querySelectorAll(arguments[0])].map((each) => each.textContent.trim())"
        return [str(text) for text in self.run(script, selector)]

    def run(self, script: str, *arguments: Any) -> Any:
        """What a script answers."""
        return self.driver.execute_script(script, *arguments)

    def press(self, *keys: str) -> None:
        """Press keys one after another, where the focus is, as soon as the page is loaded, with its script."""
        self.until(lambda: self.run("return document.readyState") == "complete", "the loaded page")
        ActionChains(self.driver).send_keys(*keys).perform()

    def type(self, selector: str, words: str) -> None:
        """Put words into a field in place of those that it has."""
        field = self.find(selector)
        field.send_keys(Keys.CONTROL, "a")
        field.send_keys(words)

    def until(self, ask: Callable[[], Any], what: str) -> Any:
        """What `ask` answers as soon as that is true."""
        return until(ask, SECONDS, what)

    def log(self) -> list[str]:
        """What the browser has complained about since it was last asked, violations of the policy among it.

        That htmx has given up a search for the next one is no complaint, although it writes it as an error.
        """
        messages = [entry["message"] for entry in self.driver.get_log("browser") if entry["level"] != "DEBUG"]
        return [message for message in messages if not re.search(r'"htmx:(afterRequest|sendAbort)\b', message)]

    def requests(self) -> list[str]:
        """The addresses that were asked for since the last call."""
        events = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        return [event["params"]["request"]["url"] for event in events if event["method"] == "Network.requestWillBeSent"]

    def barriers(self) -> list[str]:
        """What axe finds that is serious: rule, element and why."""
        self.run(AXE.read_text())
        script = "axe.run().then(arguments[0], (error) => arguments[0]({error: String(error)}))"
        found = self.driver.execute_async_script(script)
        assert found.get("passes"), found  # it has looked at something
        return [
            f"{violation['id']}: {node['html'][:200]}: {node['failureSummary']}"
            for violation in found["violations"]
            if violation["impact"] in _SERIOUS
            for node in violation["nodes"]
        ]

    def is_too_wide(self) -> bool:
        """Whether the page has to be moved sideways."""
        return bool(self.run("return document.documentElement.scrollWidth > document.documentElement.clientWidth"))

    def photograph(self, image: Path) -> None:
        """Write what can be seen."""
        self.driver.save_screenshot(str(image))
