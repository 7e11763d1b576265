"""Chat formats: a message as the prompt of a model that was trained on conversations (ChatML)."""

from __future__ import annotations

from dataclasses import dataclass

from regard.errors import ModelError
from regard.text import Tokenizer

START, END = "<|im_start|>", "<|im_end|>"


@dataclass(frozen=True)
class ChatML:
    """ChatML: each turn is <|im_start|>, the role, the text and <|im_end|>, on lines of their own."""

    system: str = ""
    """system message, which begins every conversation; empty: none"""

    def prompt_ids(self, tokenizer: Tokenizer, message: str) -> list[int]:
        """The ids of a user's message, up to where the model's answer begins."""
        vocabulary = tokenizer.vocabulary
        if START not in vocabulary or END not in vocabulary:
            raise ModelError(f"the chat format needs the tokens {START} and {END}, and the vocabulary has them not")
        start, end = vocabulary.index(START), vocabulary.index(END)
        line, ids = tokenizer.encode("\n").ids, list[int]()
        for role, content in (("system", self.system), ("user", message)):
            if content or role == "user":
                ids += [start, *tokenizer.encode(f"{role}\n{content}").ids, end, *line]
        return [*ids, start, *tokenizer.encode("assistant\n").ids]
