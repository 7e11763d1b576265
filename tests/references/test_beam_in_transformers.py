"""Our beam search beside Hugging Face's, with the same weights, in double precision: there is no rounding to blame."""

import pytest
import torch

from agreement import Case, compared, narrowest, ours, theirs
from decoding import decide, end_at
from marian import to_marian
from regard.models.transformer import TransformerConfig
from regard.spaces import Words


@pytest.fixture(scope="module")
def case():
    torch.manual_seed(0)
    config = TransformerConfig(layers=1, width=32, inner=64, heads=2, dropout=0.0, longest=128)
    model = config.build(Words(60), Words(60)).eval()
    decide(model, 4.0)
    sources = [torch.randint(4, 60, (n % 9 + 2,)).tolist() for n in range(24)]
    end_at(model, sources, wanted=8.0)
    return Case("small", model, model, to_marian(model, config), sources).double()


@pytest.mark.slow
@pytest.mark.parametrize(("width", "batch"), [(1, 12), (2, 12), (4, 12), (7, 12), (4, 1)])
def test_both_find_the_same_sentences(case, width, batch):
    parts = [case.sources[i : i + batch] for i in range(0, len(case.sources), batch)]
    mine = [said for part in parts for said in ours(case.ours, part, width)]
    assert mine == [said for part in parts for said in theirs(case.theirs, part, width)]
    assert len({len(said) for said in mine}) > 4 and len(set(mine)) > 8


def test_the_narrowest_decision_is_where_rounding_can_tell_two_programs_apart(case):
    margins = [narrowest(case.ours, source, 4) for source in case.sources]
    assert 0 < min(margins) < 1e-2 and max(margins) < 1


@pytest.mark.slow
def test_what_differs_is_told(case):
    other = Case("small", case.module, case.ours, to_other(case), case.sources)
    lines = []
    compared(other, 12, 4, 24, lines.append)
    assert lines[0].startswith("  same output for ") and lines[0].endswith(" of 24 sentences")
    assert len(lines) > 1 and all("in double precision they differ too" in line for line in lines[1:])
    assert all(line.endswith(" - NOT EXPLAINED BY ROUNDING") for line in lines[1:])


def to_other(case):
    """The same model but for one weight."""
    import copy

    other = copy.deepcopy(case.theirs)
    with torch.no_grad():
        other.lm_head.weight[7] += 3.0
    return other
