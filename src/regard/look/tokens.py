"""Tokens as people may see them: any script, nothing invisible, nothing that moves or runs."""

from __future__ import annotations

import unicodedata

from rich.cells import cell_len

FSI, PDI = "\u2068", "\u2069"
"""First strong isolate and its end: what is between them has its own direction and does not turn its neighbours."""
ELLIPSIS = "…"
JOINERS = {"\u200c", "\u200d"}
"""They shape Persian and Indic words and make families of emoji; anywhere else they are only invisible."""
WORD_START = (" ", "▁")
"""How a token says that a word begins: a space (the tokenizers made here) or U+2581 (SentencePiece)."""
CONTROLS = {"\n": "↵", "\r": "␍", "\t": "⇥", "\x7f": "␡"}


def shown(token: str) -> str:
    """A token as a label: without its word-start mark, and with all that is invisible made visible.

    >>> [shown(token) for token in ("▁suis", " suis", "ent", "▁", "a\\nb", "\\u202egnp", "")]
    ['suis', 'suis', 'ent', '␣', 'a↵b', 'U+202Egnp', '∅']
    """
    return visible(token[1:] if token.startswith(WORD_START) and len(token) > 1 else token)


def visible(token: str) -> str:
    """A whole token, word-start mark included, with all that is invisible made visible.

    >>> visible("▁suis"), visible("\\u0301"), visible("\\x1b[2J")
    ('␣suis', '◌\\u0301', '␛[2J')
    """
    inner = token.replace("▁", " ").strip(" ")
    if not inner:
        return "␣" * len(token) or "∅"
    start = token.replace("▁", " ").index(inner)
    middle = "".join(_visible(inner, i) for i in range(len(inner)))
    alone = "◌" if unicodedata.category(inner[0]).startswith("M") else ""  # else it would sit on its neighbour
    return "␣" * start + alone + middle + "␣" * (len(token) - start - len(inner))


def _visible(text: str, i: int) -> str:
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
"""Letters and marks that no font draws."""


def cut(text: str, cells: int) -> str:
    """At most `cells` columns of a terminal, whole characters only, with an ellipsis where something is missing.

    >>> cut("Donaudampfschiff", 8), cut("学生です", 5), cut("👩‍👩‍👧👍", 3)
    ('Donauda…', '学生…', '👩‍👩‍👧…')
    """
    if cell_len(text) <= cells:
        return text
    kept = ""
    for cluster in clusters(text):
        if cell_len(kept + cluster) > cells - 1:
            break
        kept += cluster
    return kept + ELLIPSIS


def clusters(text: str) -> list[str]:
    """What a reader calls characters: a base with its marks, a family of emoji, a flag.

    >>> clusters("e\\u0301👩‍👩‍👧🇫🇷🇩🇪")
    ['e\\u0301', '👩‍👩‍👧', '🇫🇷', '🇩🇪']
    """
    found: list[str] = []
    for char in text:
        if found and _belongs(found[-1], char):
            found[-1] += char
        else:
            found.append(char)
    return found


def _belongs(before: str, char: str) -> bool:
    if unicodedata.category(char).startswith("M") or char in JOINERS or char in _TAGS:
        return True
    if 0x1F3FB <= ord(char) <= 0x1F3FF:  # the colour of a skin
        return ord(before[0]) >= 0x2600
    if before[-1] == "\u200d" or unicodedata.combining(before[-1]) == 9:  # joined, or by a virama
        return True
    flags = [0x1F1E6 <= ord(c) <= 0x1F1FF for c in before + char]
    return all(flags) and len(flags) == 2


def right_to_left(text: str) -> bool:
    """Whether a text runs from right to left: its first letter with a direction does.

    >>> right_to_left("دانشجو"), right_to_left("שלום"), right_to_left("12 ab")
    (True, True, False)
    """
    for char in text:
        if (direction := unicodedata.bidirectional(char)) in ("L", "R", "AL"):
            return direction != "L"
    return False


def isolated(text: str) -> str:
    """A text that does not turn the line around it: fenced if anything in it runs from right to left.

    >>> isolated("suis"), isolated("من") == FSI + "من" + PDI
    ('suis', True)
    """
    turning = any(unicodedata.bidirectional(char) in ("R", "AL", "AN") for char in text)
    return f"{FSI}{text}{PDI}" if turning else text
