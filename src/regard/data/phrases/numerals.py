"""Patterns of the built-in phrases that count: numbers, dates, times of the day."""

from __future__ import annotations

from random import Random

from regard.data.phrases import english, french
from regard.data.phrases import lexicon as words
from regard.data.phrases.grammar import Action, Form, Negation, Phrase, Subject, Tense, clause, counted
from regard.data.phrases.lexicon import cells
from regard.data.phrases.sentences import Pair, noun_of, person, say


def numbers(draw: Random) -> Pair:
    """Soixante et onze."""
    n = draw.randint(0, 999)
    if draw.random() < 0.6:
        return french.number(n), english.number(n)
    phrase = counted(draw.randint(1, 200), noun_of(draw, "fstrcav"))
    return phrase.french, phrase.english


def date(day: int, month: tuple[str, str]) -> Pair:
    """A day of a month; the first is an ordinal in French too.

    >>> date(1, ("mai", "May")), date(21, ("juin", "June"))
    (('le premier mai', 'the first of May'), ('le vingt et un juin', 'the twenty-first of June'))
    """
    number = "premier" if day == 1 else french.number(day)
    return f"le {number} {month[0]}", f"the {english.ordinal(day)} of {month[1]}"


def dates(draw: Random) -> Pair:
    """Mon anniversaire est le premier mai."""
    month = draw.choice([tuple(cell.split()) for cell in cells(words.MONTHS)])
    last = 29 if month[0] == "février" else 30 if month[0] in ("avril", "juin", "septembre", "novembre") else 31
    when, english_when = date(draw.randint(1, last), (month[0], month[1]))
    day, english_day = draw.choice(cells(words.DAYS)).split()
    subject = person(draw)
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


def clock(hour: int, minute: int) -> Pair:
    """A time of the day in words, on a clock of twelve hours.

    >>> clock(3, 15), clock(1, 30)
    (('trois heures et quart', 'a quarter past three'), ('une heure et demie', 'half past one'))
    >>> clock(7, 45), clock(12, 0), clock(11, 50)
    (('huit heures moins le quart', 'a quarter to eight'), ('midi', 'noon'), ('midi moins dix', 'ten to twelve'))
    """
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


def times(draw: Random) -> Pair:
    """Il est trois heures et quart; le train part à midi."""
    when, english_when = clock(draw.randint(1, 11), draw.choice([*range(0, 60, 5)]))
    chance = draw.random()
    if chance < 0.1:
        return f"il est {when}", f"it is {english_when}"
    if chance < 0.25 and not when.startswith("midi"):
        part, english_part = draw.choice([("du matin", "in the morning"), ("du soir", "in the evening")])
        return f"il est {when} {part}", f"it is {english_when} {english_part}"
    if chance < 0.35:
        vehicle, english_vehicle = draw.choice(
            [("train", "train"), ("bus", "bus"), ("bateau", "boat"), ("film", "film")]
        )
        verb, meaning = ("commencer", "begin") if vehicle == "film" else ("arriver", "arrive")
        subject = Subject(f"le {vehicle}", f"the {english_vehicle}", 2, "m")
        return say(
            draw, subject, Action(verb, meaning, Phrase(f"à {when}", f"à {when}", f"at {english_when}")), "present"
        )
    verb, meaning = draw.choice(
        [
            ("se lever", "get up"),
            ("se coucher", "go to bed"),
            ("se réveiller", "wake up"),
            ("partir", "leave"),
            ("arriver", "arrive"),
        ]
    )
    at = Phrase(f"à {when}", f"à {when}", f"at {english_when}")
    tense: Tense = draw.choice(["present", "past", "future"])
    form: Form = "est-ce que" if draw.random() < 0.2 else "statement"
    negation: Negation = "pas" if form == "statement" and draw.random() < 0.2 else ""
    return clause(person(draw), Action(verb, meaning, at), tense, negation, form)
