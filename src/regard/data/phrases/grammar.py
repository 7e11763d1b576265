"""Phrases and clauses in French and English in parallel: agreement, negation, tenses and questions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from regard.data.phrases import english, french
from regard.data.phrases.french import join_words
from regard.data.phrases.lexicon import PARTS, Adjective, Noun

Tense = Literal["present", "past", "future"]
Negation = Literal["", "pas", "jamais", "plus"]
Form = Literal["statement", "est-ce que", "inversion"]
NEGATIONS = {"": "", "pas": "not", "jamais": "never", "plus": "no longer"}


@dataclass(frozen=True)
class Phrase:
    """A phrase in both languages; `negated` is the French after a negation (un, du and des become de)."""

    french: str
    negated: str
    english: str


@dataclass(frozen=True)
class Subject:
    """Subject of a clause: the words, the person (0 je, 1 tu, 2 il, 3 nous, 4 vous, 5 ils), the gender."""

    french: str
    english: str
    person: int
    gender: str

    @property
    def many(self) -> bool:
        """Whether it is more than one."""
        return self.person > 2

    @property
    def pronoun(self) -> str:
        """The pronoun that can follow the verb in a question."""
        he, they = ("elle", "elles") if self.gender == "f" else ("il", "ils")
        return ("je", "tu", he, "nous", "vous", they)[self.person]

    @property
    def possessive(self) -> str:
        """The English word for what belongs to the subject."""
        return "her" if (self.person, self.gender) == (2, "f") else english.POSSESSIVES[self.person]


@dataclass(frozen=True)
class Action:
    """A verb phrase: the French infinitive, the English base form, the rest, a pronoun, an adverb.

    The pronoun stands before the French verb, the adverb (French, English) after the French and before the English.
    """

    french: str
    english: str
    rest: Phrase = Phrase("", "", "")
    pronoun: str = ""
    adverb: tuple[str, str] = ("", "")


PRONOUNS = tuple(
    Subject(words, meaning, person, gender)
    for words, meaning, person in (
        ("je", "I", 0), ("tu", "you", 1), ("il", "he", 2), ("elle", "she", 2),
        ("nous", "we", 3), ("vous", "you", 4), ("ils", "they", 5), ("elles", "they", 5),
    )
    for gender in ("m", "f")
    if (words in ("il", "ils")) <= (gender == "m") and (words in ("elle", "elles")) <= (gender == "f")
)  # fmt: skip


def noun_phrase(noun: Noun, determiner: str, many: bool = False, adjective: Adjective | None = None) -> Phrase:
    """A noun with its determiner and an adjective, which agrees and stands where it should.

    Determiners: the, a, some (what is not counted), this, or the person who owns it, "0" to "5", "2f" for her.

    >>> from regard.data.phrases.lexicon import ADJECTIVES, NOUNS
    >>> words = {word.french: word for word in (*ADJECTIVES, *NOUNS)}
    >>> noun_phrase(words["oiseau"], "a", adjective=words["beau"]).french
    'un bel oiseau'
    >>> noun_phrase(words["maison"], "a", many=True, adjective=words["vieux"])
    Phrase(french='de vieilles maisons', negated='de vieilles maisons', english='old houses')
    >>> noun_phrase(words["école"], "0").french, noun_phrase(words["eau"], "some").french
    ('mon école', "de l'eau")
    """
    word = noun.french_plural if many else noun.french
    bare = [word]
    meaning = noun.english_plural if many else noun.english
    if adjective is not None:
        form = french.agree(adjective.french, adjective.feminine, noun.gender, many)
        if adjective.before and not many and noun.gender == "m" and french.starts_with_vowel(word):
            form = french.BEFORE_VOWEL.get(form, form)
        bare = [form, word] if adjective.before else [word, form]
        meaning = f"{adjective.english} {meaning}"
    text = " ".join(bare)
    preposed = adjective is not None and adjective.before
    whole = join_words(french_determiner(determiner, noun.gender, many, text, preposed), text)
    negated = join_words("de", text) if determiner in ("a", "some") else whole
    return Phrase(whole, negated, english_phrase(determiner, meaning, many))


def french_determiner(determiner: str, gender: str, many: bool, following: str, preposed: bool) -> str:
    """The French determiner before the words that follow."""
    smooth = french.starts_with_vowel(following)
    if determiner == "the":
        return "les" if many else "la" if gender == "f" else "le"
    if determiner == "some":
        return "de la" if gender == "f" else "de le"
    if determiner == "a":
        if many:
            return "de" if preposed else "des"
        return "une" if gender == "f" else "un"
    if determiner == "this":
        return "ces" if many else "cette" if gender == "f" else "cet" if smooth else "ce"
    forms = french.POSSESSIVES[int(determiner[0])]
    return forms[2] if many else forms[1] if gender == "f" and not smooth else forms[0]


def english_phrase(determiner: str, meaning: str, many: bool) -> str:
    """English words with their determiner."""
    if determiner == "the":
        return f"the {meaning}"
    if determiner == "some" or (determiner == "a" and many):
        return meaning
    if determiner == "a":
        return english.with_article(meaning)
    if determiner == "this":
        return ("these " if many else "this ") + meaning
    return ("her" if determiner == "2f" else english.POSSESSIVES[int(determiner[0])]) + f" {meaning}"


def number_phrase(n: int, noun: Noun) -> Phrase:
    """A number in words with a noun."""
    words = join_words(french.number(n, noun.gender), noun.french_plural if n > 1 else noun.french)
    return Phrase(words, words, f"{english.number(n)} {noun.english_plural if n > 1 else noun.english}")


def clause(
    subject: Subject, action: Action, tense: Tense = "present", negation: Negation = "", form: Form = "statement"
) -> tuple[str, str]:
    """A whole sentence in French and in English.

    >>> clause(PRONOUNS[0], Action("être", "be", Phrase("étudiant", "étudiant", "a student")))
    ('je suis étudiant', 'I am a student')
    >>> apples = Phrase("des pommes vertes", "de pommes vertes", "green apples")
    >>> nous, elle = PRONOUNS[6], PRONOUNS[5]
    >>> clause(nous, Action("manger", "eat", apples), negation="pas")
    ('nous ne mangeons pas de pommes vertes', 'we do not eat green apples')
    >>> clause(elle, Action("se lever", "get up"), "past", form="inversion")
    ("s'est-elle levée ?", 'did she get up?')
    """
    return french_clause(subject, action, tense, negation, form), english_clause(subject, action, tense, negation, form)


def infinitive(action: Action, person: int) -> str:
    """The French infinitive with the pronoun of the person who does it."""
    return join_words(reflexive(action, person) or action.pronoun, bare_verb(action))


def bare_verb(action: Action) -> str:
    """The French infinitive without se."""
    return action.french.removeprefix("se ").removeprefix("s'")


def reflexive(action: Action, person: int) -> str:
    """The reflexive pronoun, if the verb has one."""
    return french.REFLEXIVES[person] if action.french.startswith(("se ", "s'")) else ""


def french_clause(subject: Subject, action: Action, tense: Tense, negation: Negation, form: Form) -> str:
    """The French sentence: subject, ne, pronoun, verb, pas, the rest."""
    verb = bare_verb(action)
    before, after = reflexive(action, subject.person) or action.pronoun, ""
    finite = french.present(verb)[subject.person] if tense == "present" else ""
    if tense == "past":
        with_etre = verb in french.WITH_ETRE or bool(reflexive(action, subject.person))
        finite = french.present("être" if with_etre else "avoir")[subject.person]
        agreement = (subject.gender, subject.many) if with_etre else ("m", False)
        after = french.participle(verb, *agreement)
    elif tense == "future":
        before, after = "", infinitive(action, subject.person)
        finite = french.present("aller")[subject.person]
    rest = action.rest.negated if negation else action.rest.french
    ne, no = ("ne", negation) if negation else ("", action.adverb[0])
    if form == "inversion":
        link = "-t-" if finite[-1] not in "td" and subject.person == 2 else "-"
        noun = "" if subject.french == subject.pronoun else subject.french
        return join_words(noun, ne, before, f"{finite}{link}{subject.pronoun}", no, after, rest) + " ?"
    if form == "est-ce que":
        return join_words("est-ce que", subject.french, ne, before, finite, no, after, rest) + " ?"
    return join_words(subject.french, ne, before, finite, no, after, rest)


def english_clause(subject: Subject, action: Action, tense: Tense, negation: Negation, form: Form) -> str:
    """The English sentence: with do where a question or a negation asks for it."""
    helper, verb = conjugate(subject.person, action.english, tense, negation, form != "statement")
    no = NEGATIONS[negation] or action.adverb[1]
    if form != "statement":
        words = [helper, subject.english, no, verb, action.rest.english]
    else:
        words = [subject.english, helper, no, verb, action.rest.english]
    text = " ".join(word for word in words if word).replace("can not", "cannot")
    return text + ("?" if form != "statement" else "")


def conjugate(person: int, base: str, tense: Tense, negation: Negation, question: bool) -> tuple[str, str]:
    """The English auxiliary, if one is needed, and the verb."""
    head, _, rest = base.partition(" ")
    if tense == "future":
        return english.BE[person], f"going to {base}"
    if head in ("be", "can", "must"):
        form = head if head != "be" else (english.WAS if tense == "past" else english.BE)[person]
        return form, rest
    if tense == "past" and negation == "jamais":
        return "has" if person == 2 else "have", PARTS[base][1]
    if question or negation == "pas":
        return "did" if tense == "past" else "does" if person == 2 else "do", base
    if tense == "past":
        return "", PARTS[base][0]
    return "", english.third_person(base) if person == 2 else base
