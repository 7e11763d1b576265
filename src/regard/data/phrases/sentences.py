"""Sentence patterns of the built-in phrases: each samples words and gives one sentence in French and in English."""

from __future__ import annotations

import functools
from collections.abc import Callable
from random import Random

from regard.data.phrases import english, french
from regard.data.phrases import lexicon as words
from regard.data.phrases.french import join_words
from regard.data.phrases.grammar import (
    PRONOUNS,
    Action,
    Form,
    Negation,
    Phrase,
    Subject,
    Tense,
    clause,
    infinitive,
    noun_phrase,
    number_phrase,
)  # fmt: skip
from regard.data.phrases.lexicon import (
    ADJECTIVES,
    NOUNS,
    Adjective,
    Noun,
    expand_kinds,
    table_entries,
    verbs,
    word_pairs,
)

Pair = tuple[str, str]
Pattern = Callable[[Random], Pair]
EVERYTHING = "fstrcavulhi"
QUESTIONS: tuple[Form, ...] = ("est-ce que", "inversion")
TIMES: dict[Tense, str] = {"present": words.ALWAYS, "past": words.YESTERDAY, "future": words.TOMORROW}
NOW_ONLY = ("connaître", "savoir", "vouloir")
ONE_ONLY = ("mother", "father")
INDOORS = ("travailler", "entrer", "sortir")
STATES = ("be", "have", "like", "love", "hate", "prefer", "know", "want", "live")
YOURS = {"ton": "1", "ta": "1", "tes": "1", "votre": "4", "vos": "4"}


def random_noun(draw: Random, kinds: str) -> Noun:
    """A noun of one of the kinds."""
    return draw.choice(_nouns(kinds))


@functools.cache
def _nouns(kinds: str) -> tuple[Noun, ...]:
    return tuple(noun for noun in NOUNS if noun.kind in kinds)


def random_adjective(draw: Random, noun: Noun) -> Adjective:
    """An adjective that suits a noun."""
    return draw.choice(_adjectives(noun.kind))


@functools.cache
def _adjectives(kind: str) -> tuple[Adjective, ...]:
    return tuple(adjective for adjective in ADJECTIVES if kind in adjective.kinds)


def random_possessive(draw: Random, subject: Subject | None) -> str:
    """Whose it is: mine, yours, ours, or the subject's own (French has one his and her); never ton beside votre."""
    if subject is None:
        return draw.choice("0134")
    if draw.random() < 0.5:
        said = YOURS.get(subject.french.split()[0], str(subject.person))
        return draw.choice({"1": "013", "4": "034"}.get(said, "0134"))
    return "2f" if (subject.person, subject.gender) == (2, "f") else str(subject.person)


def random_object(
    draw: Random, kinds: str, subject: Subject | None = None, sure: bool = False, plain: bool = False
) -> Phrase:
    """An object of one of the kinds; `sure`: one that is known (the, this, my); `plain`: without an adjective."""
    noun = random_noun(draw, kinds)
    while subject is not None and noun.french in subject.french:
        noun = random_noun(draw, kinds)
    return random_noun_phrase(draw, noun, subject, sure, plain)[0]


def random_noun_phrase(
    draw: Random, noun: Noun, subject: Subject | None, sure: bool, plain: bool
) -> tuple[Phrase, bool]:
    """A noun with a determiner, and perhaps an adjective; and whether it is more than one."""
    many = noun.kind not in "md" and noun.english not in ONE_ONLY and draw.random() < 0.35
    adjective = random_adjective(draw, noun) if not plain and noun.kind != "k" and draw.random() < 0.35 else None
    if noun.kind == "k":
        determiner = random_possessive(draw, subject)
    elif noun.kind in "md":
        determiner = draw.choice(["the", "this"] if sure else ["some", "some", "some", "the", "this"])
    elif noun.kind in "pilu":
        determiner = draw.choice(["the", "the", "this"] if sure else ["a", "a", "the", "the", "this"])
    else:
        known = ["the", "the", "this", "the" if noun.kind in "fs" else random_possessive(draw, subject)]
        determiner = draw.choice(known if sure else [*known, "a", "a", "a"])
    return noun_phrase(noun, determiner, many, adjective), many


def random_person(draw: Random) -> Subject:
    """A subject that acts: a pronoun, a name, a relative, a person."""
    chance = draw.random()
    if chance < 0.6:
        return draw.choice(PRONOUNS)
    names = [cell.split() for cell in table_entries(words.NAMES)]
    if chance < 0.72:
        name, gender = draw.choice(names)
        return Subject(name, name, 2, gender)
    if chance < 0.78:
        (one, his), (other, hers) = draw.sample(names, 2)
        return Subject(f"{one} et {other}", f"{one} and {other}", 5, "f" if his == hers == "f" else "m")
    return random_noun_subject(draw, "k" if chance < 0.92 else "p")


def random_noun_subject(draw: Random, kinds: str) -> Subject:
    """A subject that is a noun of one of the kinds."""
    noun = random_noun(draw, kinds)
    phrase, many = random_noun_phrase(draw, noun, None, sure=True, plain=True)
    return Subject(phrase.french, phrase.english, 5 if many else 2, noun.gender)


def append_words(phrase: Phrase, french_words: str, english_words: str) -> Phrase:
    """A phrase with more words after it."""
    meaning = f"{phrase.english} {english_words}".strip()
    return Phrase(join_words(phrase.french, french_words), join_words(phrase.negated, french_words), meaning)


def random_clause(
    draw: Random, subject: Subject, action: Action, tenses: str = "present past future", no: str = ""
) -> Pair:
    """A clause about an action: in one of the tenses, perhaps negated, perhaps a question, perhaps with a time.

    `no` has the negations that suit it; without it all do that suit the tense.
    """
    tense: Tense = "present" if action.french in NOW_ONLY else draw.choice([name for name in TIMES if name in tenses])
    form = question_form(draw, subject) if draw.random() < 0.2 else "statement"
    if form == "statement" and draw.random() < 0.35:
        usual: tuple[Negation, ...] = ("pas", "pas", "jamais") if tense == "past" else ("pas", "pas", "jamais", "plus")
        if action.english in STATES:
            usual = ("pas", "pas", "plus")
        negation = draw.choice([one for one in usual if one in (no or usual)])
        return clause(subject, add_time(draw, action, tense) if negation == "pas" else action, tense, negation)
    if form == "statement" and tense != "future" and action.english not in STATES and draw.random() < 0.15:
        often = draw.choice(word_pairs(words.OFTEN))
        return clause(subject, Action(action.french, action.english, action.rest, action.pronoun, often), tense)
    return clause(subject, add_time(draw, action, tense), tense, "", form)


def question_form(draw: Random, subject: Subject) -> Form:
    """Form of a question; questions in the first person are rare, and je never follows its verb here."""
    if subject.person == 0:
        return "est-ce que" if draw.random() < 0.3 else "statement"
    return draw.choice(QUESTIONS)


def add_time(draw: Random, action: Action, tense: Tense) -> Action:
    """An action, perhaps with a time that suits the tense."""
    if action.english in STATES or draw.random() > 0.35:
        return action
    when = append_words(action.rest, *draw.choice(word_pairs(TIMES[tense])))
    return Action(action.french, action.english, when, action.pronoun)


def random_action(draw: Random, subject: Subject) -> Action:
    """A transitive, intransitive or reflexive action of a person."""
    if draw.random() < 0.3:
        verb, meaning, _ = draw.choice(verbs(words.INTRANSITIVE))
        return Action(verb, meaning)
    verb, meaning, (kinds,) = draw.choice(verbs(words.TRANSITIVE))
    return Action(verb, meaning, random_object(draw, expand_kinds(kinds), subject))


def transitive_sentence(draw: Random) -> Pair:
    """Nous ne mangeons pas de pommes vertes."""
    subject = random_person(draw)
    verb, meaning, (kinds,) = draw.choice(verbs(words.TRANSITIVE))
    return random_clause(draw, subject, Action(verb, meaning, random_object(draw, expand_kinds(kinds), subject)))


def liking_sentence(draw: Random) -> Pair:
    """J'aime les chats: what one likes in general has an article in French and none in English."""
    verb, meaning, _ = draw.choice(verbs(words.LIKING))
    noun = random_noun(draw, "afsmdrcv")
    many = noun.kind not in "md"
    adjective = random_adjective(draw, noun) if draw.random() < 0.4 else None
    known = noun_phrase(noun, "the", many, adjective)
    rest = Phrase(known.french, known.french, known.english.removeprefix("the "))
    return random_clause(draw, random_person(draw), Action(verb, meaning, rest), "present")


def intransitive_sentence(draw: Random) -> Pair:
    """Elle s'est levée."""
    verb, meaning, _ = draw.choice(verbs(words.INTRANSITIVE))
    return random_clause(draw, random_person(draw), Action(verb, meaning))


def adverb_sentence(draw: Random) -> Pair:
    """Il ne chante pas bien."""
    how, english_how, which = draw.choice(
        [("bien", "well", words.WELL), ("mal", "badly", words.WELL), ("vite", "fast", words.FAST)]
    )
    verb, meaning, _ = draw.choice([row for row in verbs(words.INTRANSITIVE) if row[0] in which.split()])
    negation: Negation = "pas" if how != "mal" and draw.random() < 0.3 else ""
    form: Form = "est-ce que" if not negation and draw.random() < 0.3 else "statement"
    return clause(random_person(draw), Action(verb, meaning, Phrase(how, how, english_how)), "present", negation, form)


def giving_sentence(draw: Random) -> Pair:
    """Je donne une pomme au boulanger."""
    subject = random_person(draw)
    verb, meaning, _ = draw.choice(verbs(words.GIVING))
    gift = random_object(draw, "trc" if verb == "prêter" else "trcfs", subject)
    receiver = random_object(draw, "kp", subject, sure=True, plain=True)
    rest = append_words(gift, join_words("à", receiver.french), f"to {receiver.english}")
    return random_clause(draw, subject, Action(verb, meaning, rest))


def motion_sentence(draw: Random) -> Pair:
    """Nous allons au marché."""
    subject = random_person(draw)
    verb, meaning, (preposition, to) = draw.choice(verbs(words.MOVING))
    noun = random_noun(draw, "i" if verb in INDOORS else "li")
    adjective = random_adjective(draw, noun) if draw.random() < 0.25 else None
    place = noun_phrase(noun, draw.choice(["the", "the", "the", "this"]), False, adjective)
    there = join_words(preposition, place.french)
    rest = Phrase(there, there, f"{to.replace('_', ' ')} {place.english}")
    return random_clause(draw, subject, Action(verb, meaning, rest))


def country_sentence(draw: Random) -> Pair:
    """J'habite en France."""
    preposition, name, *other = draw.choice(table_entries(words.COUNTRIES)).split()
    place = (other[0] if other else name).replace("_", " ")
    verb, meaning = draw.choice(
        word_pairs("habiter|live in;travailler|work in;aller|go to;voyager|travel to;rester|stay in")
    )
    tenses = {"habiter": "present future", "rester": "past future"}.get(verb, "present past future")
    base, to = meaning.split()
    there = f"{preposition} {name}"
    return random_clause(draw, random_person(draw), Action(verb, base, Phrase(there, there, f"{to} {place}")), tenses)


def modal_sentence(draw: Random) -> Pair:
    """Tu ne peux pas dormir."""
    subject = random_person(draw)
    action = random_action(draw, subject)
    helper, meaning, to = draw.choice(
        [("vouloir", "want", "to "), ("pouvoir", "can", ""), ("devoir", "must", ""), ("aimer", "like", "to ")]
    )
    verb = infinitive(action, subject.person)
    meant = f"{to}{action.english} {action.rest.english}".strip()
    rest = Phrase(join_words(verb, action.rest.french), join_words(verb, action.rest.negated), meant)
    negation: Negation = "pas" if draw.random() < 0.3 else ""
    form: Form = "statement"
    if not negation and draw.random() < 0.25:
        form = question_form(draw, subject)
    return clause(subject, Action(helper, meaning, rest), "present", negation, form)


def adjective_phrase(subject: Subject, adjective: Adjective) -> Phrase:
    """An adjective said of a subject."""
    form = french.agree(adjective.french, adjective.feminine, subject.gender, subject.many)
    return Phrase(form, form, adjective.english)


def feeling_sentence(draw: Random) -> Pair:
    """Mes sœurs sont heureuses."""
    subject = random_person(draw)
    adjective = draw.choice([adjective for adjective in ADJECTIVES if {"k", "p"} <= set(adjective.kinds)])
    feeling = Action("être", "be", adjective_phrase(subject, adjective))
    return random_clause(draw, subject, feeling, "present", "pas jamais plus")


def appearance_sentence(draw: Random) -> Pair:
    """La maison est petite."""
    noun = random_noun(draw, EVERYTHING + "md")
    phrase, many = random_noun_phrase(draw, noun, None, sure=True, plain=True)
    subject = Subject(phrase.french, phrase.english, 5 if many else 2, noun.gender)
    rest = adjective_phrase(subject, random_adjective(draw, noun))
    return random_clause(draw, subject, Action("être", "be", rest), "present", "pas plus")


def profession_sentence(draw: Random) -> Pair:
    """Je suis étudiant: French names a profession without an article."""
    subject = random_person(draw)
    forms, meaning = draw.choice(table_entries(words.PROFESSIONS)).split(" ", 1)
    masculine, female = forms.split("/")
    he, _, she = meaning.partition("/")
    meaning = she if she and subject.gender == "f" else he
    form = french.agree(masculine, female, subject.gender, subject.many)
    rest = Phrase(form, form, english.plural(meaning) if subject.many else english.with_article(meaning))
    return random_clause(draw, subject, Action("être", "be", rest), "present future", "pas plus")


def avoir_sentence(draw: Random) -> Pair:
    """J'ai faim; j'ai vingt ans."""
    subject = random_person(draw)
    if draw.random() < 0.4:
        need, meaning = draw.choice(word_pairs(words.FEELINGS))
        return random_clause(draw, subject, Action("avoir", "be", Phrase(need, need, meaning)), "present")
    if draw.random() < 0.4:
        years = draw.randint(1, 100)
        age = f"{french.number(years)} an{'s' if years > 1 else ''}"
        meaning = f"{english.number(years)} year{'s' if years > 1 else ''} old"
        negation: Negation = "pas" if draw.random() < 0.2 else ""
        return clause(subject, Action("avoir", "be", Phrase(age, age, meaning)), "present", negation)
    if draw.random() < 0.5:
        things = number_phrase(draw.randint(1, 60), random_noun(draw, "fstrcav"))
        return clause(subject, Action("avoir", "have", things))
    noun = random_noun(draw, "atvcr")
    adjective = random_adjective(draw, noun) if draw.random() < 0.5 else None
    some = noun_phrase(noun, "a", draw.random() < 0.4, adjective)
    return random_clause(draw, subject, Action("avoir", "have", some), "present")
