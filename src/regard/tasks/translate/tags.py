"""Tags: single tokens at the start of a source text that choose the target language or the kind of text.

One model for several languages reads the target language from a tag (Johnson et al. 2017), and training text that was
back-translated is marked by one (Caswell et al. 2019). A tag is typed before the text, as in "<2de> Good morning".
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from regard.errors import ConfigError, LineError
from regard.text import Tokenizer

TAG = re.compile(r"<[^<>\s]*\w[^<>\s]*>")
"""A tag has a letter or a digit, so that it is no piece of text: letters never share a piece with signs"""
RESERVED = ("<PAD>", "<UNK>", "<SOS>", "<EOS>", "<pad>", "<unk>", "<s>", "</s>", "<|endoftext|>")
"""special tokens with another meaning"""


def check_tag(tag: str) -> None:
    """Refuse a tag that a tokenizer would split, or that is another special token."""
    if not TAG.fullmatch(tag):
        raise ConfigError(
            f'tag = "{tag}": expected one token in angle brackets without spaces, such as "<2de>"; '
            "anything else is text, which the tokenizer splits"
        )
    if tag in RESERVED:
        raise ConfigError(f'tag = "{tag}" is a special token with another meaning; choose another name')


@dataclass(frozen=True)
class SourceTags:
    """The tags of a model, and whether it was trained on texts without a tag as well.

    >>> tags = SourceTags(("<2de>", "<2fr>"), optional=False)
    >>> tags.split("<2de> Good morning"), tags.split("Good morning")
    (('<2de>', 'Good morning'), ('', 'Good morning'))
    """

    names: tuple[str, ...] = ()
    optional: bool = True
    """whether a text may have no tag"""

    def split(self, text: str) -> tuple[str, str]:
        """The tag at the start of a text, "" if there is none, and the text after it."""
        for name in self.names:
            if text.startswith(name):
                return name, text.removeprefix(name).removeprefix(" ")
        return "", text

    def join(self, tag: str | None, text: str) -> str:
        """A text with a tag in front, unless it has that tag already."""
        return text if not tag or self.split(text)[0] == tag else f"{tag} {text}"

    def encode_batch(self, tokenizer: Tokenizer, texts: Sequence[str]) -> list[list[int]]:
        """Ids of texts, that of the tag first; a text that is empty but for its tag has no ids."""
        both = [self.split(text) for text in texts]
        rows = tokenizer.encode_batch([rest for _, rest in both])
        return [[tokenizer.id_of(tag), *row] if tag and row else row for (tag, _), row in zip(both, rows, strict=True)]

    def extend(self, tokenizer: Tokenizer) -> Tokenizer:
        """The tokenizer with each tag as a token."""
        extended = tokenizer.with_special(self.names)
        special = (extended.pad, extended.unk, extended.sos, extended.eos)
        for name in self.names:
            if extended.id_of(name) in special:
                raise ConfigError(f'tag = "{name}" is a special token of text.tokenizer; choose another name')
        return extended

    def check(self, tag: str) -> None:
        """Refuse a tag that the model does not have."""
        if tag not in self.names:
            raise ConfigError(f'tag "{tag}": {self.describe()}')

    def choose(self, text: str, tag: str | None, line: int) -> str:
        """A text with its tag: the one it starts with, or `tag`; `line` is for the error if there is none, or both."""
        typed = self.split(text)[0]
        if typed and tag:
            raise LineError(
                f"line {line} starts with the tag {typed}, and --tag puts {tag} before it; leave one out", line
            )
        if not (typed or tag or self.optional or not text):
            raise LineError(f"line {line} has no tag: {self.describe()}", line)
        return text if typed else self.join(tag, text)

    def describe(self) -> str:
        """What the model expects, for messages."""
        if not self.names:
            return "this model was trained without tags; leave it out"
        tags = ", ".join(self.names)
        return f'this model expects one of {tags} before the text, as in "{self.names[0]} ..." or by --tag'
