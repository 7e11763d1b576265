"""More patterns of the built-in phrases: places, comparisons, opinions, commands, questions."""

from __future__ import annotations

from random import Random

from regard.data.phrases import english, french
from regard.data.phrases import lexicon as words
from regard.data.phrases.french import spell
from regard.data.phrases.grammar import (
    PRONOUNS,
    Action,
    Form,
    Negation,
    Phrase,
    Subject,
    Tense,
    clause,
    counted,
    noun_phrase,
)
from regard.data.phrases.lexicon import NOUNS, cells, couples, everywhere, verbs
from regard.data.phrases.sentences import (
    EVERYTHING,
    Pair,
    adjective_for,
    described,
    doing,
    feeling,
    having,
    noun_of,
    noun_subject,
    person,
    profession,
    say,
    thing,
)  # fmt: skip

YOU = {one.person == 4: one for one in PRONOUNS if one.english == "you"}
NOT_COMPARED = (
    *("red", "green", "blue", "white", "black", "yellow", "grey", "pink", "brown", "empty", "ripe"),
    *("French", "Italian", "Spanish", "English", "American"),
)


def naming(draw: Random) -> Pair:
    """Une petite maison blanche."""
    noun = noun_of(draw, EVERYTHING + "p")
    found = noun_phrase(
        noun, draw.choice(["the", "a", "this", "0", "1", "3"]), draw.random() < 0.4, adjective_for(draw, noun)
    )
    return found.french, found.english


def place(draw: Random) -> Phrase:
    """Where something is: sur la table, à côté du musée."""
    chance = draw.random()
    if chance < 0.6:
        names = (words.FURNITURE if chance < 0.3 else words.INSIDE).split("|")
        noun = draw.choice([noun for noun in NOUNS if noun.french in names])
        preposition, meaning = draw.choice([("sur", "on"), ("sous", "under")]) if chance < 0.3 else ("dans", "in")
        if noun.french in ("armoire", "étagère", "tapis") and preposition == "sous":
            preposition, meaning = "sur", "on"
    else:
        noun = noun_of(draw, "livu")
        preposition, meaning = draw.choice(couples(words.WHERE))
    found = noun_phrase(noun, "the")
    there = spell(preposition, found.french)
    return Phrase(there, there, f"{meaning} {found.english}")


def being_there(draw: Random) -> Pair:
    """Le chat est sous la table."""
    where = place(draw)
    subject = noun_subject(draw, "atrcvfsk")
    while subject.french.split(" ")[-1].split("'")[-1] in where.french:
        subject = noun_subject(draw, "atrcvfsk")
    return say(draw, subject, Action("être", "be", where), "present", "pas plus")


def there_is(draw: Random) -> Pair:
    """Il n'y a pas de lait dans la cuisine."""
    noun, where = noun_of(draw, "atrcvfsmd"), place(draw)
    if noun.french in where.french:
        return there_is(draw)
    many = noun.kind not in "md" and draw.random() < 0.5
    if many and draw.random() < 0.6:
        what = counted(draw.randint(2, 99), noun)
        return f"il y a {what.french} {where.french}", f"there are {what.english} {where.english}"
    adjective = adjective_for(draw, noun) if draw.random() < 0.3 else None
    what = noun_phrase(noun, "some" if noun.kind in "md" else "a", many, adjective)
    be = "are" if many else "is"
    form = draw.choice(["yes", "no", "est-ce qu'il y a", "y a-t-il"])
    if form == "yes":
        return f"il y a {what.french} {where.french}", f"there {be} {what.english} {where.english}"
    if form == "no":
        bare = what.english.removeprefix("an ").removeprefix("a ")
        return f"il n'y a pas {what.negated} {where.french}", f"there {be} no {bare} {where.english}"
    return f"{form} {what.french} {where.french} ?", f"{be} there {what.english} {where.english}?"


def possession(draw: Random) -> Pair:
    """La voiture de mon père est rouge."""
    of = (
        noun_subject(draw, "kp")
        if draw.random() < 0.8
        else draw.choice([Subject("Marie", "Marie", 2, "f"), Subject("Anne", "Anne", 2, "f")])
    )
    noun = noun_of(draw, "trcav")
    many = draw.random() < 0.4
    owned = noun_phrase(noun, "the", many)
    subject = Subject(
        spell(owned.french, "de", of.french),
        f"{english.owned(of.english)} {owned.english.removeprefix('the ')}",
        5 if many else 2,
        noun.gender,
    )
    if draw.random() < 0.3:
        return subject.french, subject.english
    adjective = adjective_for(draw, noun)
    form = french.agree(adjective.french, adjective.feminine, noun.gender, many)
    return say(draw, subject, Action("être", "be", Phrase(form, form, adjective.english)), "present", "pas")


def comparison(draw: Random) -> Pair:
    """Mon frère est plus grand que ma sœur."""
    one = noun_of(draw, EVERYTHING + "kp")
    other = noun_of(draw, one.kind)
    while other.french == one.french:
        other = noun_of(draw, one.kind)
    first, many = described(draw, one, None, sure=True, plain=True)
    second = first
    while second == first or (first.english + second.english).count("your") > 1:  # ton and votre do not mix
        second, _ = described(draw, other, None, sure=True, plain=True)
    adjective = adjective_for(draw, one)
    while adjective.english in NOT_COMPARED:
        adjective = adjective_for(draw, one)
    form = french.agree(adjective.french, adjective.feminine, one.gender, many)
    if draw.random() < 0.7:
        better = {"bon": ("meilleur", "meilleure"), "mauvais": ("pire", "pire")}.get(adjective.french)
        more = french.agree(*better, one.gender, many) if better else f"plus {form}"
        rest, english_rest = spell(more, "que", second.french), f"{adjective.comparative} than {second.english}"
    else:
        rest = spell("aussi", form, "que", second.french)
        english_rest = f"as {adjective.english} as {second.english}"
    subject = Subject(first.french, first.english, 5 if many else 2, one.gender)
    return clause(subject, Action("être", "be", Phrase(rest, rest, english_rest)))


def relative(draw: Random) -> Pair:
    """Les pommes que j'ai mangées sont rouges: the participle agrees with what stands before it."""
    verb, meaning, (kinds,) = draw.choice([row for row in verbs(words.TRANSITIVE) if row[0] != "connaître"])
    who = person(draw)
    noun = noun_of(draw, "".join(kind for kind in everywhere(kinds) if kind not in "kp") or "t")
    if not set(kinds) - set("kp"):
        verb, meaning = "acheter", "buy"
    many = noun.kind not in "md" and draw.random() < 0.4
    what = noun_phrase(noun, "the", many)
    done = french.participle(verb, noun.gender, many)
    adjective = adjective_for(draw, noun)
    subject = Subject(
        spell(what.french, "que", who.french, french.present("avoir")[who.person], done),
        f"{what.english} that {who.english} {words.PARTS[meaning][0]}",
        5 if many else 2,
        noun.gender,
    )
    form = french.agree(adjective.french, adjective.feminine, noun.gender, many)
    negation: Negation = "pas" if draw.random() < 0.25 else ""
    return clause(subject, Action("être", "be", Phrase(form, form, adjective.english)), "present", negation)


def opinion(draw: Random) -> Pair:
    """Je pense qu'il est fatigué."""
    said, english_said = "?", ""
    while said.endswith("?"):
        said, english_said = draw.choice([feeling, having, profession])(draw)
    verb, meaning = draw.choice(
        [("penser", "think"), ("croire", "believe"), ("savoir", "know"), ("espérer", "hope"), ("dire", "say")]
    )
    rest = spell("que", said)
    return clause(person(draw), Action(verb, meaning, Phrase(rest, rest, f"that {english_said}")))


def command(draw: Random) -> Pair:
    """N'achetez pas de pain."""
    verb, meaning, (kinds,) = draw.choice(
        [
            row
            for row in verbs(words.TRANSITIVE)
            if row[0] not in ("connaître", "recevoir", "voir", "trouver", "perdre", "oublier")
        ]
    )
    polite = draw.random() < 0.5
    what = thing(draw, everywhere(kinds), YOU[polite])
    order = french.command(verb, polite)
    if draw.random() < 0.35:
        return spell("ne", order, "pas", what.negated), f"do not {meaning} {what.english}"
    if draw.random() < 0.3:
        please = "s'il vous plaît" if polite else "s'il te plaît"
        return f"{spell(order, what.french)}, {please}", f"{meaning} {what.english}, please"
    return spell(order, what.french), f"{meaning} {what.english}"


def speaking(draw: Random) -> Pair:
    """Elle parle français; je m'appelle Marie."""
    subject = person(draw)
    if draw.random() < 0.3:
        subject = draw.choice([one for one in PRONOUNS if one.person not in (3, 4, 5)])
        name = draw.choice([cell.split()[0] for cell in cells(words.NAMES) if subject.gender in cell.split()[1]])
        called = Action("s'appeler", "be", Phrase(name, name, name))
        calling = clause(subject, called)[0]
        return calling, f"{subject.possessive} name is {name}"
    language, meaning = draw.choice(couples(words.LANGUAGES))
    verb, english_verb, article = draw.choice(
        [("parler", "speak", ""), ("étudier", "study", "le"), ("apprendre", "learn", "le")]
    )
    rest = spell(article, language)
    return say(draw, subject, Action(verb, english_verb, Phrase(rest, rest, meaning)), "present future")


def pointing(draw: Random) -> Pair:
    """C'est une belle maison; ce ne sont pas mes clés."""
    noun = noun_of(draw, EVERYTHING)
    many = draw.random() < 0.4
    what = noun_phrase(
        noun,
        draw.choice("a0134" if noun.kind in "trcavh" else "a"),
        many,
        adjective_for(draw, noun) if draw.random() < 0.6 else None,
    )
    form = draw.choice(["yes", "no", "question"])
    it, be, these = ("they", "are", "ce sont") if many else ("it", "is", "c'est")
    if form == "yes":
        return f"{these} {what.french}", f"{it} {be} {what.english}"
    if form == "no":
        return (
            f"{'ce ne sont' if many else 'ce n' + chr(39) + 'est'} pas {what.french}",
            f"{it} {be} not {what.english}",
        )
    return spell("est-ce que", these, what.french) + " ?", f"{be} {it} {what.english}?"


def quantity(draw: Random) -> Pair:
    """Elle mange trop de chocolat."""
    verb, meaning, (kinds,) = draw.choice(
        [row for row in verbs(words.TRANSITIVE) if row[0] in ("manger", "boire", "acheter", "vendre")]
    )
    noun = noun_of(draw, "".join(kind for kind in kinds if kind in "fsmdtrc"))
    many = noun.kind not in "md"
    much, english_much = draw.choice(
        [
            ("beaucoup", "a lot of"),
            ("trop", "too many" if many else "too much"),
            ("assez", "enough"),
            ("peu", "few" if many else "little"),
        ]
    )
    name = noun.french_plural if many else noun.french
    rest = spell(much, "de", name)
    meant = f"{english_much} {noun.english_plural if many else noun.english}"
    tense: Tense = draw.choice(["present", "past", "future"])
    form: Form = "est-ce que" if much != "peu" and draw.random() < 0.2 else "statement"
    return clause(person(draw), Action(verb, meaning, Phrase(rest, rest, meant)), tense, "", form)


def asking(draw: Random) -> Pair:
    """Où habites-tu ? Combien de pommes a-t-elle achetées ? Pourquoi est-ce que tu pleures ?"""
    subject = person(draw)
    form: Form = draw.choice(["est-ce que", "inversion"]) if subject.person else "est-ce que"
    chance = draw.random()
    if chance < 0.25:
        verb, meaning = draw.choice(
            [("habiter", "live"), ("travailler", "work"), ("dormir", "sleep"), ("étudier", "study")]
        )
        asked, english_asked = clause(subject, Action(verb, meaning), form=form)
        return spell("où", asked), f"where {english_asked}"
    if chance < 0.5:
        asked, english_asked = clause(subject, doing(draw, subject), "future", form=form)
        return spell("quand", asked), f"when {english_asked}"
    if chance < 0.7:
        asked, english_asked = clause(subject, doing(draw, subject), draw.choice(["present", "past"]), form=form)
        return spell("pourquoi", asked), f"why {english_asked}"
    verb, meaning, _ = draw.choice(verbs(words.TRANSITIVE)[:5])
    if chance < 0.85:
        asked, english_asked = clause(
            subject, Action(verb, meaning), draw.choice(["present", "future"]), form="est-ce que"
        )
        return "qu'" + asked, f"what {english_asked}"
    noun = noun_of(draw, "fstrcav")
    asked, english_asked = clause(
        subject, Action("avoir", "have"), form="inversion" if subject.person else "est-ce que"
    )
    return spell("combien de", noun.french_plural, asked), f"how many {noun.english_plural} {english_asked}"


def meeting(draw: Random) -> Pair:
    """Il me voit; ils vont nous inviter."""
    subject = draw.choice([one for one in [person(draw) for _ in range(4)] + [PRONOUNS[4]] if one.person in (2, 5)])
    pronouns = [("me", "me"), ("te", "you"), ("nous", "us"), ("vous", "you")]
    pronoun, meaning = draw.choice(pronouns[::2] if "your" in subject.english else pronouns)
    able = ("voir", "regarder", "chercher", "attendre", "appeler", "connaître", "aider", "inviter", "écouter")
    verb, english_verb, _ = draw.choice([row for row in verbs(words.TRANSITIVE) if row[0] in able])
    return say(draw, subject, Action(verb, english_verb, Phrase("", "", meaning), pronoun), "present future")


def weather(draw: Random) -> Pair:
    """Il fait froid à Paris."""
    said, meaning = draw.choice(couples(words.WEATHER))
    preposition, name, *other = draw.choice(cells(words.COUNTRIES)).split()
    where = (other[0] if other else name).replace("_", " ")
    return f"{said} {preposition} {name}", f"{meaning} in {where}"
