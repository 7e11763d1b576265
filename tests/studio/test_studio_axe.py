"""Accessibility: axe-core finds no serious or critical violation on any screen, in both themes and widths."""

from itertools import cycle

import pytest

from browsing import LOOKS, SIZES, TEXT, axe_violations, fits, go, open_look, screen_addresses, until
from regard.lessons import LESSONS

pytestmark = pytest.mark.slow
NAMELESS = """() => [...document.querySelectorAll("button, input, select, a, [role=button], [role=img]")]
    .filter((e) => e.checkVisibility())
    .filter((e) => !(e.getAttribute("aria-label") || e.textContent.trim() || e.title || e.labels?.length))
    .map((e) => e.outerHTML.slice(0, 120))"""


@pytest.fixture
def themed_page(browser, theme, size):
    with open_look(browser, theme, size) as page:
        yield page


def test_axe_reports_violations(page, server, axe):
    go(page, server, "#/")
    page.evaluate(
        """() => {
            const [image, text] = [document.createElement("img"), document.createElement("p")];
            [text.textContent, text.style.color] = ["pale", "#ddd"];
            document.querySelector("main").append(image, text);
        }"""
    )
    assert {found.split()[1] for found in axe_violations(page, axe, "#/")} == {"image-alt:", "color-contrast:"}


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_screen_is_accessible_fits_its_width_and_has_its_theme(themed_page, server, axe, theme):
    """No severe violation, and no control or picture without a name, whatever axe thinks of its role."""
    found = []
    for address in screen_addresses(server):
        go(themed_page, server, address)
        assert themed_page.evaluate("document.documentElement.dataset.theme") == theme
        assert fits(themed_page), address
        found += [f"{address}: no name: {element}" for element in themed_page.evaluate(NAMELESS)]
        found += axe_violations(themed_page, axe, address)
    assert found == []


@pytest.mark.parametrize(("theme", "size"), LOOKS)
def test_dialogs_tables_and_messages_have_no_severe_violations(themed_page, server, axe):
    """The explanation of a number, a table, the export dialog, the keys, an error message."""
    trace, found = server.trace("transformer", TEXT, beam=4)["id"], []
    go(themed_page, server, f"#/t/{trace}?tab=attention&tensor=decoder.layers.1.cross.weights&head=1")
    themed_page.locator("summary", has_text="As a table").first.click()
    themed_page.locator(".matrix").first.focus()
    themed_page.keyboard.press("ArrowDown")
    themed_page.keyboard.press("Enter")
    themed_page.wait_for_selector(".drawer math")
    found += axe_violations(themed_page, axe, "explained")
    themed_page.keyboard.press("Escape")
    themed_page.locator("main").focus()
    for key, name in (("e", "Export"), ("?", "Keys")):
        themed_page.keyboard.press(key)
        themed_page.get_by_role("dialog", name=name).wait_for()
        found += axe_violations(themed_page, axe, name)
        themed_page.keyboard.press("Escape")
    themed_page.goto(f"{server.address}/#/t/nothing")
    themed_page.wait_for_selector(".notice")
    assert found + axe_violations(themed_page, axe, "a message") == []


def test_lessons_have_no_severe_violations(page, server, axe):
    """Each once, since some take seconds to compute: in turn light and wide, dark and narrow; one drawing makes all."""
    found = []
    addresses = ("#/learn", *(f"#/learn/{name}" for name, entry in LESSONS.items() if not entry.needs))
    for address, (theme, size) in zip(addresses, cycle(LOOKS)):
        page.emulate_media(color_scheme=theme, reduced_motion="reduce")
        page.set_viewport_size(dict(zip(("width", "height"), SIZES[size], strict=True)))
        go(page, server, address)
        until(page, "(theme) => document.documentElement.dataset.theme === theme", theme)
        found += axe_violations(page, axe, f"{address} {theme} {size}")
    assert found == []
