"""WordPiece training (Schuster and Nakajima 2012), as in BERT: pieces of words, "##" before those that continue one.

The library's own trainer numbers its pieces in the order of a hash table, which differs from run to run. Here each
character becomes one sign at the beginning of a word and another inside, and byte-pair merges of these signs, which
have one order, are the pieces.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

import tokenizers
from tokenizers import models, pre_tokenizers, trainers

CONTINUES = "##"
FIRST, INSIDE = 0xF0000, 0x100000
"""the two private planes of Unicode: signs at the beginning of a word, and inside"""
MAX_CHARACTERS = 65_534
"""characters that a plane has room for; rarer ones are unknown"""
LINE = 1000
"""repetitions of a word that are counted at once"""


def learn_wordpieces(counts: Mapping[str, int], size: int) -> list[str]:
    """At most `size` pieces, characters first, then by the order of their merges; size counts no special tokens.

    Every character can begin a word; those that were seen inside of one can continue it.

    >>> learn_wordpieces({"lamb": 5, "lambs": 4}, 12)
    ['a', 'b', 'l', 'm', 's', '##a', '##b', '##m', '##s', 'la', '##mb', 'lamb']
    """
    signs = _signs(counts)
    learner = tokenizers.Tokenizer(models.BPE())
    learner.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    alphabet = [chr(FIRST + sign) for sign in signs.values()]
    trainer = trainers.BpeTrainer(vocab_size=size, min_frequency=2, initial_alphabet=alphabet, show_progress=False)
    learner.train_from_iterator(_lines(counts, signs), trainer)
    numbers = learner.get_vocab()
    characters = {sign: character for character, sign in signs.items()}
    return [_piece(token, characters) for token in sorted(numbers, key=lambda token: numbers[token])]


def _signs(counts: Mapping[str, int]) -> dict[str, int]:
    """A number for each character, in the order of the characters; the most frequent ones if there are too many."""
    frequency = Counter[str]()
    for word, times in counts.items():
        for character in word:
            frequency[character] += times
    kept = sorted(frequency, key=lambda character: (-frequency[character], character))[:MAX_CHARACTERS]
    return {character: number for number, character in enumerate(sorted(kept))}


def _lines(counts: Mapping[str, int], signs: Mapping[str, int]) -> Iterator[str]:
    """The words in signs, as often as they occur."""
    for word in sorted(counts):
        if all(character in signs for character in word):
            planes = (FIRST, *[INSIDE] * (len(word) - 1))
            mapped = "".join(chr(plane + signs[character]) for plane, character in zip(planes, word, strict=True))
            for start in range(0, counts[word], LINE):
                yield " ".join([mapped] * min(LINE, counts[word] - start))


def _piece(token: str, characters: Mapping[int, str]) -> str:
    text = "".join(characters[ord(sign) - (INSIDE if ord(sign) >= INSIDE else FIRST)] for sign in token)
    return CONTINUES + text if ord(token[0]) >= INSIDE else text
