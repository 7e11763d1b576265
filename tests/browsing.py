"""Helpers for browser tests of the studio's page: addresses of all screens, navigation, waiting, displayed numbers."""

import math
import re
from contextlib import contextmanager

from helpers import PATIENCE, wait_until

PAGE_PATIENCE = PATIENCE / 2
"""seconds that a page gets to show something"""
TEXT = "je suis étudiant"
TABS = ("scene", "attention", "generation", "predictions", "lens", "decode", "states", "gradients", "numbers")
SIZES = {"desktop": (1280, 900), "phone": (390, 844)}
LOOKS = (("light", "desktop"), ("dark", "phone"))
"""Themes with sizes: contrast depends on the theme, scrolling and the size of targets on the width."""
SEVERE = ("serious", "critical")
RUN_AXE = """async (grave) => (await axe.run(document, { resultTypes: ["violations"] })).violations
    .filter((found) => grave.includes(found.impact))
    .flatMap((found) => found.nodes.map((node) => `${found.id}: ${node.target.join(" ")} ${node.failureSummary}`))"""


def screen_addresses(server):
    """Addresses of all screens: start, tabs of a trace and of a changed one, comparison, training run, words."""
    trace, other = server.trace("transformer", TEXT, beam=4), server.trace("rnnsearch", TEXT)
    change = {"kind": "head", "tensor": "decoder.layers.1.cross.weights", "head": 1}
    changed = server.post(f"/api/v1/traces/{trace['id']}/fork", {"change": change}).table
    return [
        "#/",
        *(f"#/t/{trace['id']}?tab={tab}" for tab in TABS),
        f"#/t/{changed['id']}?tab=attention&head=1&mode=change",
        f"#/compare?t={trace['id']},{other['id']}",
        f"#/runs/{server.models()['transformer']}",
        f"#/embed/{server.models()['transformer']}?side=target",
    ]


@contextmanager
def open_page(browser, address):
    """A page; a request to another origin, an error or a violation of the security policy fails the test."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    context.grant_permissions(["clipboard-read", "clipboard-write"], origin=address)
    page, problems = context.new_page(), []
    page.on("request", lambda r: None if r.url.startswith((address, "data:", "blob:")) else problems.append(r.url))
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on(
        "console", lambda m: problems.append(m.text) if m.type == "error" and "Failed to load" not in m.text else None
    )
    page.on("dialog", lambda dialog: (problems.append(f"a dialog: {dialog.message}"), dialog.dismiss()))
    yield page
    context.close()
    assert problems == []


@contextmanager
def open_look(browser, theme, size):
    """A page in a theme and a size of the screen, without transitions."""
    width, height = SIZES[size]
    viewport = {"width": width, "height": height}
    context = browser.new_context(viewport=viewport, color_scheme=theme, reduced_motion="reduce")
    yield context.new_page()
    context.close()


def fits(page):
    """Whether the page does not scroll sideways."""
    return page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def go(page, server, address):
    """Open an address and wait until it is drawn."""
    if page.url.startswith(server.address):
        page.evaluate("delete document.documentElement.dataset.ready")
    page.goto(f"{server.address}/{address}")
    page.wait_for_selector(f"html[data-ready^='{address.split('?')[0]}']", state="attached")


def until(page, expression, argument=None):
    """Wait for an expression to become true. Playwright's wait_for_function needs eval, which the policy forbids."""
    wait_until(lambda: page.evaluate(expression, argument), expression, seconds=PAGE_PATIENCE, pause=0.05)


def read(text):
    """Parse a number as displayed on the page."""
    return float(text.replace("−", "-").replace("∞", "inf"))


def shows(text, value):
    """Whether a displayed number equals a value, to the displayed digits."""
    if text == "–":
        return math.isnan(value)
    digits = re.fullmatch(r"(−?\d\.\d+)e([+−]\d+)", text)
    step = 10.0 ** (int(digits[2].replace("−", "-")) - 3) if digits else 1e-4
    return abs(read(text) - value) <= step * 0.51 + 1e-12


def axe_violations(page, axe, where):
    """Serious and critical accessibility violations. Playwright's evaluate bypasses the page's security policy."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(axe)
    return [f"{where} {found}" for found in page.evaluate(RUN_AXE, SEVERE)]
