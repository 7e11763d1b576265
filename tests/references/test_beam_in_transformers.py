"""Our beam search against Hugging Face's, with the same weights, in double precision, where rounding plays no role."""

import pytest
import torch

from agreement import Case, narrowest_margin, ours, report_agreement, theirs
from decoding import set_end_probability, sharpen_attention
from marian import to_marian
from regard.models.transformer import TransformerConfig
from regard.spaces import Words


@pytest.fixture(scope="module")
def case():
    torch.manual_seed(0)
    config = TransformerConfig(layers=1, width=32, ffn_width=64, heads=2, dropout=0.0, max_positions=128)
    model = config.build(Words(60), Words(60)).eval()
    sharpen_attention(model, 4.0)
    sources = [torch.randint(4, 60, (n % 9 + 2,)).tolist() for n in range(24)]
    set_end_probability(model, sources, 8.0)
    return Case("small", model, model, to_marian(model, config), sources).double()


@pytest.mark.slow
@pytest.mark.parametrize(("width", "batch"), [(1, 12), (2, 12), (4, 12), (7, 12), (4, 1)])
def test_both_find_the_same_sentences(case, width, batch):
    parts = [case.sources[i : i + batch] for i in range(0, len(case.sources), batch)]
    mine = [output for part in parts for output in ours(case.ours, part, width)]
    assert mine == [output for part in parts for output in theirs(case.theirs, part, width)]
    assert len({len(output) for output in mine}) > 4 and len(set(mine)) > 8


def test_the_narrowest_margin_is_where_rounding_can_change_the_output(case):
    margins = [narrowest_margin(case.ours, source, 4) for source in case.sources]
    assert 0 < min(margins) < 1e-2 and max(margins) < 1


@pytest.mark.slow
def test_differences_are_reported(case):
    other = Case("small", case.module, case.ours, to_other(case), case.sources)
    lines = []
    report_agreement(other, 12, 4, 24, lines.append)
    assert lines[0].startswith("  same output for ") and lines[0].endswith(" of 24 sentences")
    assert len(lines) > 1 and all("in double precision they differ, too" in line for line in lines[1:])
    assert all(line.endswith(" - NOT EXPLAINED BY ROUNDING") for line in lines[1:])


def to_other(case):
    """The same model but for one weight."""
    import copy

    other = copy.deepcopy(case.theirs)
    with torch.no_grad():
        other.lm_head.weight[7] += 3.0
    return other
