"""Sentence patterns with numbers, dates and times of the day."""

from __future__ import annotations

from random import Random

from regard.data.phrases import english, french
from regard.data.phrases import lexicon as words
from regard.data.phrases.grammar import Action, Form, Negation, Phrase, Subject, Tense, clause, number_phrase
from regard.data.phrases.lexicon import table_entries, word_pairs
from regard.data.phrases.sentences import Pair, random_clause, random_noun, random_person


def number_sentence(draw: Random) -> Pair:
    """Soixante et onze."""
    n = draw.randint(0, 999)
    if draw.random() < 0.6:
        return french.number(n), english.number(n)
    phrase = number_phrase(draw.randint(1, 200), random_noun(draw, "fstrcav"))
    return phrase.french, phrase.english


def date_phrase(day: int, month: tuple[str, str]) -> Pair:
    """A day of a month; the first is an ordinal in French too."""
    number = "premier" if day == 1 else french.number(day)
    return f"le {number} {month[0]}", f"the {english.ordinal(day)} of {month[1]}"


def date_sentence(draw: Random) -> Pair:
    """Mon anniversaire est le premier mai."""
    month = draw.choice([tuple(cell.split()) for cell in table_entries(words.MONTHS)])
    last = 29 if month[0] == "février" else 30 if month[0] in ("avril", "juin", "septembre", "novembre") else 31
    when, english_when = date_phrase(draw.randint(1, last), (month[0], month[1]))
    day, english_day = draw.choice(table_entries(words.DAYS)).split()
    subject = random_person(draw)
    chance = draw.random()
    if chance < 0.15:
        return f"aujourd'hui, c'est {when}", f"today is {english_when}"
    if chance < 0.3:
        return f"le {day} {when.removeprefix('le ')}", f"{english_day} {english_when}"
    if chance < 0.45:
        whose = draw.choice([0, 1, 3, 4])
        mine, my = french.POSSESSIVES[whose][0], english.POSSESSIVES[whose]
        return f"{mine} anniversaire est {when}", f"{my} birthday is on {english_when}"
    if chance < 0.75:
        born = Action("naître", "be born", Phrase(when, when, f"on {english_when}"))
        return clause(subject, born, "past", form="est-ce que" if draw.random() < 0.2 else "statement")
    future = clause(subject, Action("partir", "leave", Phrase(when, when, f"on {english_when}")), "future")
    past = clause(subject, Action("arriver", "arrive", Phrase(when, when, f"on {english_when}")), "past")
    return draw.choice([future, past])


def clock_phrase(hour: int, minute: int) -> Pair:
    """A time of the day in words, on a clock of twelve hours."""
    shown = hour + (minute > 30)
    noon = shown == 12
    hours = "midi" if noon else f"{french.number(shown, 'f')} heure{'s' if shown > 1 else ''}"
    number = english.number(shown)
    if minute == 0:
        return hours, "noon" if noon else f"{number} o'clock"
    if minute == 30:
        return f"{hours} et {'demi' if noon else 'demie'}", f"half past {number}"
    if minute == 15:
        return f"{hours} et quart", f"a quarter past {number}"
    if minute == 45:
        return f"{hours} moins le quart", f"a quarter to {number}"
    if minute < 30:
        return f"{hours} {french.number(minute)}", f"{english.number(minute)} past {number}"
    return f"{hours} moins {french.number(60 - minute)}", f"{english.number(60 - minute)} to {number}"


def time_sentence(draw: Random) -> Pair:
    """Il est trois heures et quart; le train part à midi."""
    when, english_when = clock_phrase(draw.randint(1, 11), draw.choice([*range(0, 60, 5)]))
    at = Phrase(f"à {when}", f"à {when}", f"at {english_when}")
    chance = draw.random()
    if chance < 0.1:
        return f"il est {when}", f"it is {english_when}"
    if chance < 0.25 and not when.startswith("midi"):
        part, english_part = draw.choice([("du matin", "in the morning"), ("du soir", "in the evening")])
        return f"il est {when} {part}", f"it is {english_when} {english_part}"
    if chance < 0.35:
        vehicle, english_vehicle = draw.choice(word_pairs("train|train;bus|bus;bateau|boat;film|film"))
        verb, meaning = ("commencer", "begin") if vehicle == "film" else ("arriver", "arrive")
        subject = Subject(f"le {vehicle}", f"the {english_vehicle}", 2, "m")
        return random_clause(draw, subject, Action(verb, meaning, at), "present")
    daily = "se lever|get up;se coucher|go to bed;se réveiller|wake up;partir|leave;arriver|arrive"
    verb, meaning = draw.choice(word_pairs(daily))
    tense: Tense = draw.choice(["present", "past", "future"])
    form: Form = "est-ce que" if draw.random() < 0.2 else "statement"
    negation: Negation = "pas" if form == "statement" and draw.random() < 0.2 else ""
    return clause(random_person(draw), Action(verb, meaning, at), tense, negation, form)
