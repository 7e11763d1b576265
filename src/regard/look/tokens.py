"""Display of tokens: any script, invisible characters made visible, no control characters, bidirectional isolation."""

from __future__ import annotations

import unicodedata

from rich.cells import cell_len

FSI, PDI = "\u2068", "\u2069"
"""First strong isolate and pop directional isolate: the text between them does not change the direction around it."""
ELLIPSIS = "…"
JOINERS = {"\u200c", "\u200d"}
"""They shape Persian and Indic words and join emoji; elsewhere they are invisible."""
WORD_START = (" ", "▁")
"""Word-start marks of tokens: a space (tokenizers trained here) or U+2581 (SentencePiece)."""
CONTROLS = {"\n": "↵", "\r": "␍", "\t": "⇥", "\x7f": "␡"}


def token_label(token: str) -> str:
    """A token as a label: without its word-start mark, and with invisible characters made visible.

    >>> [token_label(token) for token in ("▁suis", " suis", "ent", "▁", "a\\nb", "\\u202egnp", "")]
    ['suis', 'suis', 'ent', '␣', 'a↵b', 'U+202Egnp', '∅']
    """
    return make_visible(token[1:] if token.startswith(WORD_START) and len(token) > 1 else token)


def make_visible(token: str) -> str:
    """A whole token, word-start mark included, with invisible characters made visible.

    >>> make_visible("▁suis"), make_visible("\\u0301"), make_visible("\\x1b[2J")
    ('␣suis', '◌\\u0301', '␛[2J')
    """
    inner = token.replace("▁", " ").strip(" ")
    if not inner:
        return "␣" * len(token) or "∅"
    start = token.replace("▁", " ").index(inner)
    middle = "".join(_visible_char(inner, i) for i in range(len(inner)))
    base = "◌" if unicodedata.category(inner[0]).startswith("M") else ""  # a mark would sit on its neighbor
    return "␣" * start + base + middle + "␣" * (len(token) - start - len(inner))


def _visible_char(text: str, i: int) -> str:
    char = text[i]
    if char in CONTROLS:
        return CONTROLS[char]
    if char < " ":
        return chr(0x2400 + ord(char))
    inside = 0 < i < len(text) - 1
    if char in JOINERS and inside and not {text[i - 1], text[i + 1]} & JOINERS:
        return char
    if 0xE0020 <= ord(char) <= 0xE007F and text[:i].rstrip(_TAGS).endswith("\U0001f3f4"):
        return char  # a tag in a flag, such as Scotland's
    hidden = unicodedata.category(char) in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp")
    blank = unicodedata.category(char) == "Zs" and char != " "
    if hidden or blank or char in _BLANK or (ord(char) & 0xFFFE) == 0xFFFE or 0xFDD0 <= ord(char) <= 0xFDEF:
        return f"U+{ord(char):04X}"
    return char


_TAGS = "".join(map(chr, range(0xE0020, 0xE0080)))
_BLANK = set("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
"""Letters and marks that fonts draw blank."""


def truncate(text: str, cells: int) -> str:
    """At most `cells` terminal columns of a text, whole characters only, with an ellipsis if it was longer.

    >>> truncate("Donaudampfschiff", 8), truncate("学生です", 5), truncate("👩‍👩‍👧👍", 3)
    ('Donauda…', '学生…', '👩‍👩‍👧…')
    """
    if cell_len(text) <= cells:
        return text
    start = ""
    for cluster in grapheme_clusters(text):
        if cell_len(start + cluster) > cells - 1:
            break
        start += cluster
    return start + ELLIPSIS


def grapheme_clusters(text: str) -> list[str]:
    """Grapheme clusters: a base with its marks, joined emoji, a flag."""
    found: list[str] = []
    for char in text:
        if found and _extends(found[-1], char):
            found[-1] += char
        else:
            found.append(char)
    return found


def _extends(before: str, char: str) -> bool:
    if unicodedata.category(char).startswith("M") or char in JOINERS or char in _TAGS:
        return True
    if 0x1F3FB <= ord(char) <= 0x1F3FF:  # skin tone
        return ord(before[0]) >= 0x2600
    if before[-1] == "\u200d" or unicodedata.combining(before[-1]) == 9:  # zero-width joiner or virama
        return True
    flags = [0x1F1E6 <= ord(c) <= 0x1F1FF for c in before + char]
    return all(flags) and len(flags) == 2


def is_rtl(text: str) -> bool:
    """Whether a text runs from right to left, by its first character with a strong direction."""
    for char in text:
        if (direction := unicodedata.bidirectional(char)) in ("L", "R", "AL"):
            return direction != "L"
    return False


def isolate_bidi(text: str) -> str:
    """A text in directional isolates, if any of it runs from right to left."""
    has_rtl = any(unicodedata.bidirectional(char) in ("R", "AL", "AN") for char in text)
    return f"{FSI}{text}{PDI}" if has_rtl else text
