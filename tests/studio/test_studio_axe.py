"""Every screen judged by axe, in both themes and at both widths: nothing serious, nothing critical."""

import pytest

from browsing import SIZES, TEXT, everywhere, go, judged, until
from regard.lessons import CONTENTS

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("browser")]


@pytest.fixture(params=[(theme, size) for theme in ("light", "dark") for size in SIZES], ids="-".join)
def looked(request, browser):
    theme, size = request.param
    width, height = SIZES[size]
    context = browser.new_context(
        viewport={"width": width, "height": height}, color_scheme=theme, reduced_motion="reduce"
    )
    yield context.new_page()
    context.close()


def test_axe_finds_what_is_wrong(page, server, axe):
    go(page, server, "#/")
    page.evaluate(
        """() => {
            const [image, text] = [document.createElement("img"), document.createElement("p")];
            [text.textContent, text.style.color] = ["pale", "#ddd"];
            document.querySelector("main").append(image, text);
        }"""
    )
    assert {found.split()[1] for found in judged(page, axe, "#/")} == {"image-alt:", "color-contrast:"}


def test_axe_finds_nothing_grave_on_any_screen(looked, server, axe):
    found = []
    for address in everywhere(server):
        go(looked, server, address)
        found += judged(looked, axe, address)
    assert found == []


def test_axe_finds_nothing_grave_in_what_opens_on_a_screen(looked, server, axe):
    """The explanation of a number, the same numbers as a table, what is exported, the keys, a message."""
    trace, found = server.trace("transformer", TEXT, beam=4)["id"], []
    go(looked, server, f"#/t/{trace}?tab=attention&tensor=decoder.layers.1.cross.weights&head=1")
    looked.locator("summary", has_text="As a table").first.click()
    looked.locator(".matrix").first.focus()
    looked.keyboard.press("ArrowDown")
    looked.keyboard.press("Enter")
    looked.wait_for_selector(".drawer math")
    found += judged(looked, axe, "explained")
    looked.keyboard.press("Escape")
    looked.locator("main").focus()
    for key, name in (("e", "Export"), ("?", "Keys")):
        looked.keyboard.press(key)
        looked.get_by_role("dialog", name=name).wait_for()
        found += judged(looked, axe, name)
        looked.keyboard.press("Escape")
    looked.goto(f"{server.address}/#/t/nothing")
    looked.wait_for_selector(".notice")
    assert found + judged(looked, axe, "a message") == []


def test_axe_finds_nothing_grave_in_the_lessons(page, server, axe):
    """Opened once each, since some are worked out for seconds: light and wide, then dark and narrow."""
    found = []
    for address in ("#/learn", *(f"#/learn/{name}" for name, entry in CONTENTS.items() if not entry.needs)):
        go(page, server, address)
        for theme, size in (("light", "desktop"), ("dark", "phone")):
            page.emulate_media(color_scheme=theme, reduced_motion="reduce")
            page.set_viewport_size(dict(zip(("width", "height"), SIZES[size], strict=True)))
            until(page, "(theme) => document.documentElement.dataset.theme === theme", theme)
            found += judged(page, axe, f"{address} {theme} {size}")
    assert found == []
