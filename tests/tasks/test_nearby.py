"""Words near one another: what is read and what is guessed is what the text says, whatever the number of processes."""

from collections import Counter
from itertools import islice

import numpy as np
import pytest
import torch

from regard.errors import ConfigError, DataError
from regard.models.word2vec import Word2VecConfig
from regard.sequence import EOS, UNK, Tokens
from regard.spaces import Words
from regard.tasks.base import Batch, Objective
from regard.tasks.nearby import SEGMENT, Frequencies, Guessed, Nearby, NearbyConfig, NearbyFeed, windows
from regard.world import World

SIZE = 30


def text(length=4 * SEGMENT, seed=1):
    return np.random.default_rng(seed).integers(4, SIZE, length)


def feed(ids, **task):
    world = task.pop("world", World())
    rows = task.pop("rows", 2)
    return NearbyFeed(ids, ids, Frequencies.of(ids, SIZE), NearbyConfig(**task), rows=rows, world=world)


def pairs(batch):
    """Of each row what is read and what is guessed, as lists."""
    sides = batch.source, batch.target.words
    return list(zip(*([row[:n].tolist() for row, n in zip(s.data, s.lengths)] for s in sides)))


@pytest.mark.parametrize("method", ["skipgram", "cbow"])
def test_what_is_guessed_stands_near_what_is_read_and_nothing_else_does(method):
    """With a window of 1 nothing is left to chance: each word goes with the one before and the one after it."""
    ids = text()
    batch = feed(ids, window=1, common=0, method=method).batch(ids, np.array([2]), (1,))
    segment = ids[2 * SEGMENT : 3 * SEGMENT].tolist()
    wanted = []
    for i, word in enumerate(segment):
        near = segment[max(0, i - 1) : i] + segment[i + 1 : i + 2]
        wanted.append(([word], near) if method == "skipgram" else (near, [word]))
    assert pairs(batch) == wanted


def test_a_window_is_from_one_to_so_many_words_wide_and_each_width_as_often():
    ids = np.arange(4, 4 + SEGMENT)  # every word once, so that places can be read off
    found = NearbyFeed(
        np.tile(ids, 80), ids, Frequencies.of(ids, 200), NearbyConfig(window=4, common=0), rows=80
    ).batch(np.tile(ids, 80), np.arange(80), (3,))
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
    ids = text()
    ids[10::17] = EOS
    batch = feed(ids, window=5, common=0, rows=4).batch(ids, np.arange(4), (1,))
    whose, texts = {}, 0
    for place, word in enumerate(ids):
        texts += word == EOS or place % SEGMENT == 0
        whose.setdefault(texts, []).append(int(word))
    near = {(a, b) for words in whose.values() for a in words for b in words if EOS not in (a, b)}
    assert {(centre, other) for (centre,), some in pairs(batch) for other in some} <= near


def test_what_is_unknown_is_neither_read_nor_guessed():
    ids = text()
    ids[::3] = UNK
    for batch, _ in islice(feed(ids, common=0).stream(None), 4):
        assert not {UNK, EOS} & {word for read, guessed in pairs(batch) for word in (*read, *guessed)}
        assert int(batch.target.noise.min()) > EOS


def test_common_words_are_left_out_as_often_as_the_paper_says():
    ids = np.concatenate([np.full(3000, 4), np.arange(5, SIZE).repeat(40)])
    np.random.default_rng(1).shuffle(ids)
    found = feed(ids, common=0.01, rows=len(ids) // SEGMENT)
    share = 3000 / len(ids)
    wanted = (0.01 / share) ** 0.5 + 0.01 / share
    assert found.keep[4] == pytest.approx(wanted)
    read = Counter(
        word for number in range(20) for (word,), _ in pairs(found.batch(ids, np.arange(found.rows), (number,)))
    )
    assert read[4] / 20 / 3000 == pytest.approx(wanted, rel=0.1)
    assert found.keep[5] == pytest.approx(min(1.0, (0.01 / (40 / len(ids))) ** 0.5 + 0.01 / (40 / len(ids))))


def test_noise_is_drawn_by_frequency_to_the_power_of_three_quarters():
    ids = np.concatenate([np.full(1600, 4), np.full(100, 5), np.full(100, 6)])
    found = NearbyFeed(ids, ids, Frequencies.of(ids, SIZE), NearbyConfig(shared=20_000), rows=1)
    drawn = Counter(found.batch(ids, np.array([0]), (1,)).target.noise[0].tolist())
    weights = {4: 1600**0.75, 5: 100**0.75, 6: 100**0.75}
    assert set(drawn) == set(weights)
    for word, weight in weights.items():
        assert drawn[word] / 20_000 == pytest.approx(weight / sum(weights.values()), rel=0.05)


def test_the_loss_is_the_papers_summed_over_every_pair_and_every_noise_word():
    torch.manual_seed(1)
    model = Word2VecConfig(width=5).build(Words(12)).double()
    with torch.no_grad():
        model.embed.weight.normal_()
        model.readout.weight.normal_()
    guessed, noise = [[5, 6, 7], [8], [9, 4]], [10, 11, 5, 10]
    batch = Batch(Tokens.of([[4], [5], [6]]), Guessed(Tokens.of(guessed), torch.tensor([noise] * 3)))
    loss, _ = Nearby(Words(12), negatives=2).loss(model, batch, Words(12).loss)
    wanted = torch.zeros((), dtype=torch.double)
    for word, near in zip([4, 5, 6], guessed):
        h = model.embed.weight[word]
        for other in near:
            wanted = wanted - torch.log(torch.sigmoid(h @ model.readout.weight[other]))
            for k in noise:
                wanted = wanted - 2 / 4 * torch.log(torch.sigmoid(-h @ model.readout.weight[k]))
    assert Nearby(Words(12)).counts(batch) == {"near": 6}
    torch.testing.assert_close(loss.totals["near"], wanted)
    got = torch.autograd.grad(loss.totals["near"], list(model.parameters()))
    torch.testing.assert_close(got, torch.autograd.grad(wanted, list(model.parameters())))


def test_cbow_reads_the_mean_of_what_stands_around():
    torch.manual_seed(1)
    model = Word2VecConfig(width=5).build(Words(12))
    rows = [[5, 6, 7], [8], [9, 9]]
    wanted = torch.stack([model.embed.weight[torch.tensor(row)].mean(0) for row in rows])
    torch.testing.assert_close(model(Tokens.of(rows)), wanted)


@pytest.mark.parametrize("method", ["skipgram", "cbow"])
def test_two_processes_read_what_one_reads(method):
    ids = text(12 * SEGMENT)
    alone, *both = (feed(ids, method=method, rows=5, world=w) for w in (World(), World(0, 2), World(1, 2)))
    torch.manual_seed(1)
    objective = Objective(Word2VecConfig(width=5).build(Words(SIZE)), Nearby(Words(SIZE)))
    torch.nn.init.normal_(objective.model.readout.weight)
    for whole, *parts in islice(zip(alone.stream(None), *(f.stream(None) for f in both)), 4):
        assert sorted(pairs(whole[0])) == sorted(pair for part, _ in parts for pair in pairs(part))
        assert all(part.target.noise[0].equal(whole[0].target.noise[0]) for part, _ in parts)
        sums = [objective(batch)[0].totals["near"] for batch, _ in (whole, *parts)]
        torch.testing.assert_close(sums[0], sums[1] + sums[2])


def test_a_stream_goes_on_from_any_position_and_an_epoch_reads_each_segment_once():
    ids = np.arange(8 * SEGMENT) % (SIZE - 4) + 4
    found = feed(ids, rows=2, common=0)
    every = list(islice(found.stream(None), 9))
    for k in range(8):
        batch, position = next(found.stream(every[k][1]))
        assert pairs(batch) == pairs(every[k + 1][0]) and position == every[k + 1][1]
    assert found.epoch() == 4 and every[3][1] == {"epoch": 1, "batch": 0}
    read = Counter(word for batch, _ in every[:4] for (word,), _ in pairs(batch))
    assert read == Counter(ids.tolist())
    assert pairs(every[0][0]) != pairs(every[4][0])


def test_validation_is_the_same_each_time():
    found = feed(text(), rows=3)
    first, again = ([pairs(batch) for batch in found.valid()] for _ in range(2))
    assert first == again and len(first) == 2


def test_a_text_that_is_too_short_is_told():
    with pytest.raises(DataError, match=f"there are 100 words to learn from; at least {SEGMENT} are needed"):
        feed(text(100))
    with pytest.raises(DataError, match="fewer than two words that are known"):
        feed(np.full(SEGMENT, UNK))


@pytest.mark.parametrize("wrong", [{"window": 0}, {"negatives": 0}, {"shared": 0}, {"common": -1.0}])
def test_settings_that_mean_nothing_are_refused(wrong):
    with pytest.raises(ConfigError, match="must be at least"):
        NearbyConfig(**wrong)


def test_a_lone_word_has_nothing_around_it():
    ids, around, there = windows(np.array([7]), np.array([0]), np.array([5]), window=5)
    assert ids.tolist() == [7] and around.shape == (1, 10) and not there.any()
