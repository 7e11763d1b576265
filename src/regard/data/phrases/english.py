"""English morphology: articles, plural, third person, numbers and ordinals."""

from __future__ import annotations

import re

POSSESSIVES = ("my", "your", "his", "our", "your", "their")
BE = ("am", "are", "is", "are", "are", "are")
WAS = ("was", "were", "was", "were", "were", "were")
THIRD = {"have": "has", "do": "does", "go": "goes"}

UNITS = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"),
    *("ten", "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"),
)
TENS = ["-", "-", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
ORDINALS = {"one": "first", "two": "second", "three": "third", "five": "fifth", "eight": "eighth", "nine": "ninth"}


def plural(noun: str) -> str:
    """The plural of a noun that follows a rule."""
    if re.search("(s|x|z|ch|sh)$", noun):
        return noun + "es"
    return noun[:-1] + "ies" if re.search("[^aeiou]y$", noun) else noun + "s"


def third_person(verb: str) -> str:
    """The form for he, she and it; only the first word of a verb changes."""
    head, space, rest = verb.partition(" ")
    return THIRD.get(head, plural(head)) + space + rest


def with_article(phrase: str) -> str:
    """A phrase with a or an before it, by sound."""
    sounds_like_a_vowel = re.match("[aeiou]|hour|honest", phrase, re.I) and not re.match("uni|use|eu|one", phrase, re.I)
    return ("an " if sounds_like_a_vowel else "a ") + phrase


def possessive_noun(owner: str) -> str:
    """An owner with 's, or with the apostrophe alone after the s of a plural."""
    return owner + ("'" if re.search("[^s]s$", owner) and owner[0].islower() else "'s")


def number(n: int) -> str:
    """A number from 0 to 999 in words."""
    hundreds, rest = divmod(n, 100)
    if hundreds:
        return f"{UNITS[hundreds]} hundred" + (f" and {number(rest)}" if rest else "")
    if n < 20:
        return UNITS[n]
    return TENS[n // 10] + (f"-{UNITS[n % 10]}" if n % 10 else "")


def ordinal(n: int) -> str:
    """The ordinal of a number below 100, as in a date."""
    head, hyphen, last = number(n).rpartition("-")
    if last in ORDINALS:
        return head + hyphen + ORDINALS[last]
    last = last.replace("twelve", "twelf")
    return head + hyphen + (last[:-1] + "ieth" if last.endswith("y") else last + "th")
