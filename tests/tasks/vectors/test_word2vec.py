"""word2vec: context pairs, subsampling, negative samples and the loss, for any number of processes."""

from collections import Counter
from itertools import islice

import numpy as np
import pytest
import torch

from regard.distributed import ProcessGroup
from regard.errors import ConfigError, DataError
from regard.models.word2vec import Word2VecConfig
from regard.objective import Batch, Objective
from regard.sequence import EOS, UNK, Tokens
from regard.spaces import Words
from regard.tasks.vectors.config import SEGMENT, VectorsConfig
from regard.tasks.vectors.loader import ContextLoader
from regard.tasks.vectors.prepare import WordFrequencies
from regard.tasks.vectors.word2vec import CBOW, METHODS, ContextPairs, SkipGram

SIZE = 30


def text(length=4 * SEGMENT, seed=1):
    return np.random.default_rng(seed).integers(4, SIZE, length)


def loader(ids, **task):
    group = task.pop("group", ProcessGroup())
    rows = task.pop("rows", 2)
    return ContextLoader(ids, ids, WordFrequencies.count(ids, SIZE), VectorsConfig(**task), rows=rows, group=group)


def pairs(batch):
    """Of each word in a window's middle the words around it, as lists; those with none around them are left out."""
    found = []
    for ids, length, near in zip(batch.source.data, batch.source.lengths, batch.target.mask):
        assert not near[length:].any() and not near[:, length:].any()  # padding is near to nothing
        found += [([int(ids[i])], ids[near[i]].tolist()) for i in range(int(length)) if near[i].any()]
    return found


def test_the_context_of_a_word_is_its_neighbors_and_nothing_else():
    """With a window of 1 nothing is left to chance: each word goes with the one before and the one after it."""
    ids = text()
    batch = loader(ids, window=1, subsample=0).collate(ids, np.array([2 * SEGMENT]), (1,))
    segment = ids[2 * SEGMENT : 3 * SEGMENT].tolist()
    assert pairs(batch) == [
        ([word], segment[max(0, i - 1) : i] + segment[i + 1 : i + 2]) for i, word in enumerate(segment)
    ]


def test_a_window_is_from_one_to_so_many_words_wide_and_each_width_as_often():
    ids = np.arange(4, 4 + SEGMENT)  # every word once, so that places can be read off
    found = ContextLoader(
        np.tile(ids, 80), ids, WordFrequencies.count(ids, 200), VectorsConfig(window=4, subsample=0), rows=80
    ).collate(np.tile(ids, 80), SEGMENT * np.arange(80), (3,))
    widths = Counter(
        max(abs(other - centre) for other in near)
        for (centre,), near in pairs(found)
        if 4 + 4 <= centre < 4 + SEGMENT - 4  # away from the ends
    )
    assert set(widths) == {1, 2, 3, 4}
    assert max(widths.values()) < 1.15 * min(widths.values())
    for (centre,), near in pairs(found):
        reach = max(abs(other - centre) for other in near)
        assert near == [w for w in range(max(4, centre - reach), min(4 + SEGMENT, centre + reach + 1)) if w != centre]


def test_no_window_reaches_over_the_end_of_a_text_or_of_a_segment():
    """Every word stands once, so that a word is its place."""
    ids = np.arange(4, 4 + 4 * SEGMENT)
    ends = np.arange(10, len(ids), 17)
    whose = {int(word): (i // SEGMENT, int((ends <= i).sum())) for i, word in enumerate(ids)}
    words = ids.copy()
    words[ends] = EOS
    found = ContextLoader(words, words, WordFrequencies.count(words, 4 + len(ids)), VectorsConfig(subsample=0), rows=4)
    batch = found.collate(words, SEGMENT * np.arange(4), (1,))
    together = [(centre, other) for (centre,), some in pairs(batch) for other in some]
    assert len(together) > 1000 and all(whose[a] == whose[b] for a, b in together)
    close = {
        (a, b) for a in whose for b in (a - 1, a + 1) if whose.get(b) == whose[a] and EOS not in words[[a - 4, b - 4]]
    }
    assert close <= set(together)  # the next word is in every window


def test_unknown_words_are_neither_inputs_nor_targets():
    ids = text()
    ids[::3] = UNK
    for batch, _ in islice(loader(ids, subsample=0).train_batches(None), 4):
        words = {word for centre, near in pairs(batch) for word in (*centre, *near)}
        assert len(words) > 10 and not {UNK, EOS} & words
        assert int(batch.target.negatives.min()) > EOS


def test_common_words_are_left_out_as_often_as_the_paper_says():
    ids = np.concatenate([np.full(3000, 4), np.arange(5, SIZE).repeat(40)])
    np.random.default_rng(1).shuffle(ids)
    found = loader(ids, subsample=0.01, rows=len(ids) // SEGMENT)
    share = 3000 / len(ids)
    expected = (0.01 / share) ** 0.5 + 0.01 / share
    assert found.keep[4] == pytest.approx(expected)
    read = Counter(
        word
        for number in range(20)
        for (word,), _ in pairs(found.collate(ids, SEGMENT * np.arange(found.segments(ids)), (number,)))
    )
    there = np.count_nonzero(ids[: found.segments(ids) * SEGMENT] == 4)
    assert read[4] / 20 / there == pytest.approx(expected, rel=0.1)
    assert found.keep[5] == pytest.approx(min(1.0, (0.01 / (40 / len(ids))) ** 0.5 + 0.01 / (40 / len(ids))))


def test_noise_is_drawn_by_frequency_to_the_power_of_three_quarters():
    ids = np.concatenate([np.full(1600, 4), np.full(100, 5), np.full(100, 6)])
    found = ContextLoader(
        ids, ids, WordFrequencies.count(ids, SIZE), VectorsConfig(shared_negatives=20_000, subsample=0), rows=1
    )
    counts = Counter(found.collate(ids, np.array([0]), (1,)).target.negatives[0].tolist())
    weights = {4: 1600**0.75, 5: 100**0.75, 6: 100**0.75}
    assert set(counts) == set(weights)
    for word, weight in weights.items():
        assert counts[word] / 20_000 == pytest.approx(weight / sum(weights.values()), rel=0.05)


def drawn_model(size=12):
    torch.manual_seed(1)
    model = Word2VecConfig(width=5).build(Words(size)).double()
    with torch.no_grad():
        model.embed.weight.normal_()
        model.readout.weight.normal_()
    return model


NEAR = {(0, 0): [1, 2], (0, 1): [0], (0, 3): [1, 2], (1, 0): [1]}
"""Row and place, and the places around it; row 1 has two words, and its second has none around it."""


@pytest.mark.parametrize("method", ["skipgram", "cbow"])
def test_the_loss_is_the_papers_summed_over_every_guess_and_every_noise_word(method):
    model, rows, noise = drawn_model(), [[5, 6, 7, 8], [9, 4]], [10, 11, 5, 10]
    near = torch.zeros(2, 4, 4, dtype=torch.bool)
    for (row, place), others in NEAR.items():
        near[row, place, others] = True
    batch = Batch(Tokens.pad(rows), ContextPairs(near, torch.tensor([noise] * 2)))
    task = METHODS[method](Words(12), negatives=2)
    loss, _ = task.loss(model, batch, Words(12).loss)
    expected, count = torch.zeros((), dtype=torch.double), 0
    for (row, place), others in NEAR.items():
        word, around = rows[row][place], [rows[row][other] for other in others]
        if method == "skipgram":
            examples = [(model.embed.weight[word], other) for other in around]
        else:
            examples = [(model.embed.weight[torch.tensor(around)].mean(0), word)]
        for h, other in examples:
            count += 1
            expected = expected - torch.log(torch.sigmoid(h @ model.readout.weight[other]))
            for k in noise:
                expected = expected - 2 / 4 * torch.log(torch.sigmoid(-h @ model.readout.weight[k]))
    assert task.counts(batch) == {"context": count}
    torch.testing.assert_close(loss.totals["context"], expected)
    gradients = torch.autograd.grad(loss.totals["context"], list(model.parameters()))
    torch.testing.assert_close(gradients, torch.autograd.grad(expected, list(model.parameters())))


def test_each_prediction_has_its_target():
    near = torch.tensor([[[False, True], [True, False]]])
    batch = Batch(Tokens.pad([[5, 6]]), ContextPairs(near, torch.tensor([[8]])))
    where, targets = SkipGram(Words(9)).targets(batch)["context"]
    assert targets[where].tolist() == [6, 5]
    where, targets = CBOW(Words(9)).targets(batch)["context"]
    assert targets[where].tolist() == [5, 6]


@pytest.mark.parametrize("method", ["skipgram", "cbow"])
def test_two_processes_read_what_one_reads(method):
    ids = text(12 * SEGMENT)
    single, *both = (loader(ids, rows=5, group=w) for w in (ProcessGroup(), ProcessGroup(0, 2), ProcessGroup(1, 2)))
    objective = Objective(drawn_model(SIZE), METHODS[method](Words(SIZE)))
    for whole, *parts in islice(zip(single.train_batches(None), *(f.train_batches(None) for f in both)), 4):
        assert sorted(pairs(whole[0])) == sorted(pair for part, _ in parts for pair in pairs(part))
        assert all(part.target.negatives[0].equal(whole[0].target.negatives[0]) for part, _ in parts)
        sums = [objective(batch)[0].totals["context"] for batch, _ in (whole, *parts)]
        torch.testing.assert_close(sums[0], sums[1] + sums[2])


def test_a_process_without_a_segment_of_its_own_has_an_empty_batch():
    ids = text()
    batch = loader(ids, rows=1, group=ProcessGroup(1, 2)).collate(ids, np.array([0]), (1,))
    assert len(batch) == 0 and SkipGram(Words(SIZE)).counts(batch) == {"context": 0}


def test_a_stream_goes_on_from_any_position_and_an_epoch_reads_each_segment_once():
    ids = np.arange(9 * SEGMENT - 1) + 4  # every word once: eight segments, wherever the first begins
    found = ContextLoader(ids, ids, WordFrequencies.count(ids, 4 + len(ids)), VectorsConfig(subsample=0), rows=2)
    every = list(islice(found.train_batches(None), 9))
    for k in range(8):
        batch, position = next(found.train_batches(every[k][1]))
        assert pairs(batch) == pairs(every[k + 1][0]) and position == every[k + 1][1]
    assert found.batches_per_epoch() == 4 and every[3][1] == {"epoch": 1, "batch": 0}
    for epoch in range(2):
        read = sorted(word for batch, _ in every[4 * epoch : 4 * epoch + 4] for (word,), _ in pairs(batch))
        assert read == ids[found.offset(epoch) :][: 8 * SEGMENT].tolist()
    assert found.offset(0) != found.offset(1)
    assert [pairs(batch) for batch, _ in every[:4]] != [pairs(batch) for batch, _ in every[4:8]]


def test_a_segment_of_which_no_two_words_are_left_together_is_left_out():
    ids = text(8 * SEGMENT)
    ids[: 2 * SEGMENT] = UNK
    ids[5] = 7  # alone
    for method in METHODS:
        found = loader(ids, subsample=0, rows=1)
        empty, full = (found.collate(ids, np.array([at * SEGMENT]), (1,)) for at in (0, 3))
        assert len(empty) == 0 and METHODS[method](Words(SIZE)).counts(empty) == {"context": 0}
        assert len(full) == 1 and METHODS[method](Words(SIZE)).counts(full)["context"] > 0


def test_training_and_validation_draw_by_other_numbers():
    ids = text()
    found = loader(ids, rows=4)
    valid, train = next(found.valid_batches()), found.collate(ids, SEGMENT * np.arange(4), (1, found.seed, 0, 0))
    assert not valid.target.negatives[0].equal(train.target.negatives[0])


def test_validation_is_the_same_each_time():
    found = loader(text(), rows=3)
    first, again = ([pairs(batch) for batch in found.valid_batches()] for _ in range(2))
    assert first == again and len(first) == 2


def test_a_text_that_is_too_short_is_refused():
    with pytest.raises(DataError, match=f"the training text has 100 words; at least {SEGMENT} are needed"):
        loader(text(100))
    with pytest.raises(DataError, match="fewer than two words of the vocabulary"):
        loader(np.full(SEGMENT, UNK))
    with pytest.raises(DataError, match=r"^task.subsample = 1e-09 keeps 0.0 of 128 words"):
        loader(text(), subsample=1e-9)


@pytest.mark.parametrize(
    "wrong", [{"window": 0}, {"window": SEGMENT}, {"negatives": 0}, {"shared_negatives": 0}, {"subsample": -1.0}]
)
def test_settings_that_mean_nothing_are_refused(wrong):
    with pytest.raises(ConfigError, match=r"must be (at least|below)"):
        VectorsConfig(**wrong)
