"""Reading the studio's page: going to an address, waiting, and numbers as they are shown."""

import math
import re

TEXT = "je suis étudiant"
TABS = ("story", "attention", "decode", "states", "gradients", "numbers")


def go(page, server, address):
    """Open an address and wait until it is drawn."""
    if page.url.startswith(server.address):
        page.evaluate("delete document.documentElement.dataset.ready")
    page.goto(f"{server.address}/{address}")
    page.wait_for_selector(f"html[data-ready^='{address.split('?')[0]}']", state="attached")


def until(page, expression, argument=None):
    """Wait for something to become true. Playwright's own waiting needs eval, which the page's policy forbids."""
    for _ in range(200):
        if page.evaluate(expression, argument):
            return
        page.wait_for_timeout(50)
    raise AssertionError(f"it never became true: {expression}")


def read(text):
    """A number as the page shows it."""
    return float(text.replace("−", "-").replace("∞", "inf"))


def shows(text, value):
    """Whether a shown number is this one, to the shown digits."""
    if text == "–":
        return math.isnan(value)
    digits = re.fullmatch(r"(−?\d\.\d+)e([+−]\d+)", text)
    step = 10.0 ** (int(digits[2].replace("−", "-")) - 3) if digits else 1e-4
    return abs(read(text) - value) <= step * 0.51 + 1e-12
