"""Safety and operation of the page: hostile texts, error messages, keyboard, contrast."""

import json

import numpy as np
import pytest

from browsing import TABS, TEXT, go

pytestmark = pytest.mark.slow
HOSTILE = [
    "<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "\"><svg onload=alert(1)>", "javascript:alert(1)",
    "{{constructor.constructor('alert(1)')()}}", "${alert(1)}", "' onmouseover='alert(1)",
    "</title><script>alert(1)</script>", "<iframe srcdoc='<script>alert(1)</script>'>",
    "<math><mtext></form><form><mglyph><style></math><img src onerror=alert(1)>", "]]><script>alert(1)</script>",
    "&lt;script&gt;alert(1)&lt;/script&gt;", "\u202e<b>turned</b>", "<a href=http://evil.example>x</a>",
    "<style>*{display:none}</style>", "<base href=http://evil.example/>",
    "<meta http-equiv=refresh content=0;url=http://evil.example>",
]  # fmt: skip
WRAPPERS = ("{}", " {}", "a {} b", "{0}{0}", "«{}»", "{}\u200d", "1{}", "{}…", "\t{}", "é{}", "{} </p>", "\u202e{}")
FORBIDDEN = "script, iframe, img:not(.preview), base, style, meta, a[href^='http://evil'], [onerror], [onload]"


def hostile_header(header, texts):
    """A header whose tokens, model, text and answer are hostile texts."""
    words = [{"token": text, "label": text} for text in texts]
    sides = {side: (words * 9)[: len(header["sequences"][side])] for side in ("source", "target", "read")}
    steps = [
        {
            **step,
            "chosen": {**step["chosen"], **words[0]},
            "best": [{**c, **words[i % len(words)]} for i, c in enumerate(step["best"])],
        }
        for step in header["steps"]
    ]
    beam = [{**node, **words[i % len(words)]} for i, node in enumerate(header["beam"])]
    names = {"text": texts[0], "answer": texts[1], "model": {"id": "x", "name": texts[2]}}
    return header | names | {"sequences": sides, "steps": steps, "beam": beam}


def test_two_hundred_hostile_texts_stay_text(page, server):
    """Each as sentence, answer, model name or token, in three tabs, so that each tab shows several dozens.

    None runs a script or creates an element.
    """
    go(page, server, "#/")
    texts = [wrapper.format(text) for text in HOSTILE for wrapper in WRAPPERS][:200]
    assert len(texts) == 200
    header = server.trace("transformer", TEXT, beam=4)
    data = server.get(f"/api/v1/traces/{header['id']}/export?format=safetensors").body
    for number, group in enumerate(np.array_split(texts, 10)):
        path = server.studio.trace_store.folder / f"hostile{number}"
        hostile = hostile_header(header, group.tolist()) | {"id": path.name}
        path.with_suffix(".json").write_text(json.dumps(hostile), encoding="utf-8")
        path.with_suffix(".safetensors").write_bytes(data)
        for tab in TABS[number % 3 :: 3]:
            go(page, server, f"#/t/{path.name}?tab={tab}")
            page.wait_for_selector(".panel > *")
            assert page.locator(", ".join(f"#app {part.strip()}" for part in FORBIDDEN.split(", "))).count() == 0
            assert page.locator(".inspector h1").inner_text().startswith(group[0].strip()[:5])


def test_errors_are_shown_and_the_page_continues(page, server):
    go(page, server, "#/")
    page.goto(f"{server.address}/#/t/nothing")
    page.wait_for_selector(".notice")
    assert "no such trace" in page.locator(".notice").inner_text()
    page.get_by_role("link", name="Go to the start page").click()
    page.wait_for_selector("section:has(h2:text-is('Models'))")
    assert page.locator(".notice").count() == 0
    page.get_by_label("Sentence").fill("un " * 600)
    page.get_by_role("button", name="Run").click()
    page.wait_for_selector(".notice")
    assert "the limit is 256" in page.locator(".notice").inner_text()


def test_the_page_is_operated_by_keyboard_alone(page, server):
    trace = server.trace("transformer", TEXT, beam=4)
    go(page, server, f"#/t/{trace['id']}?tab=attention&tensor=decoder.layers.1.cross.weights&head=0")
    page.locator("main").focus()
    page.keyboard.press("[")
    assert "tensor=decoder.layers.1.attention.weights" in page.evaluate("location.hash")
    page.keyboard.press("}")
    assert "head=1" in page.evaluate("location.hash")
    page.keyboard.press("?")
    assert page.get_by_role("dialog", name="Keys").is_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("e")
    assert page.get_by_role("dialog", name="Export").is_visible()
    page.keyboard.press("Escape")
    page.get_by_role("tab", name="Attention").focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_selector(".candidates")
    page.locator("main").focus()
    page.keyboard.press(".")
    assert "step=1" in page.evaluate("location.hash")
    page.keyboard.press(",")
    assert "step=" not in page.evaluate("location.hash")
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.name") == "text"


def test_text_has_enough_contrast_in_both_themes(page, server):
    """A contrast ratio of at least 4.5 for every color role on page and panel."""
    go(page, server, "#/")
    found = page.evaluate(
        """() => {
            const light = (hex) => {
                const [r, g, b] = [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16) / 255)
                    .map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
                return 0.2126 * r + 0.7152 * g + 0.0722 * b;
            };
            const poor = [];
            for (const theme of ["light", "dark"]) {
                document.documentElement.dataset.theme = theme;
                const style = getComputedStyle(document.documentElement);
                const get = (role) => light(style.getPropertyValue(`--${role}`).trim());
                const roles = ["text", "muted", "query", "key", "value", "attention", "chosen", "source", "target",
                    "error", "ok"];
                for (const back of ["page", "panel"])
                    for (const role of roles) {
                        const [a, b] = [get(back), get(role)].sort((x, y) => y - x);
                        if ((a + 0.05) / (b + 0.05) < 4.5) poor.push([theme, back, role]);
                    }
            }
            return poor;
        }"""
    )
    assert found == []
