"""The learned mix of ELMo's layers on the page."""

import pytest
import torch
from torch import nn

from browsing import read
from regard.look import Recording
from regard.models.elmo import ELMoConfig
from regard.sequence import Tokens
from regard.spaces import SpelledWords
from regard.trace import record, trace_context

pytestmark = pytest.mark.slow
WORDS = ("<PAD>", "<UNK>", "<SOS>", "<EOS>", "the", "river", "bank", "opens")


@pytest.fixture(scope="module")
def recorded():
    torch.manual_seed(3)
    config = ELMoConfig(width=8, cells=8, characters=5, filters=(4, 6), highways=1)
    encoder = config.build_encoder(SpelledWords(len(WORDS), vocabulary=WORDS)).eval()
    with torch.no_grad():
        encoder.mix.weight.copy_(torch.tensor([0.5, -1.0, 1.5][: config.layers + 1]))
    with record(nn.ModuleDict({"encoder": encoder})) as trace, trace_context(source=[list(WORDS[4:])]), torch.no_grad():
        encoder(Tokens.pad([[4, 5, 6, 7]]))
    return Recording(trace), encoder


@pytest.mark.parametrize("width", [1280, 390])
def test_the_weights_of_the_layers_and_their_contribution_to_a_word_are_shown(browser, recorded, tmp_path, axe, width):
    recording, encoder = recorded
    (tmp_path / "a.html").write_text(recording.html(start_view="tab=mix"), encoding="utf-8")
    page = browser.new_page(viewport={"width": width, "height": 850})
    try:
        page.goto((tmp_path / "a.html").as_uri())
        page.wait_for_selector("table.mix")
        weights = encoder.mix.weight.detach().softmax(0)
        page.get_by_role("group", name="Word").get_by_role("button", name="bank").click()
        rows = page.locator("table.mix tbody tr").all()
        assert len(rows) == len(weights) == 3
        for number, row in enumerate(rows):
            layer = recording.find(f"encoder.layer{number}")[0].data[0, 2]
            cells = row.locator("td")
            assert read(cells.nth(0).inner_text()) == pytest.approx(float(weights[number]), abs=1e-4)
            assert read(cells.nth(2).inner_text()) == pytest.approx(float(weights[number] * layer.norm()), abs=1e-4)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        page.evaluate(axe)
        severe = page.evaluate(
            "async () => (await axe.run(document)).violations.filter((v) => ['serious', 'critical'].includes(v.impact))"
        )
        assert severe == []
    finally:
        page.close()
