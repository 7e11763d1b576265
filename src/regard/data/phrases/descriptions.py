"""More sentence patterns of the built-in phrases: places, comparisons, opinions, commands, questions."""

from __future__ import annotations

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
    noun_phrase,
    number_phrase,
)
from regard.data.phrases.lexicon import NOUNS, expand_kinds, table_entries, verbs, word_pairs
from regard.data.phrases.sentences import (
    EVERYTHING,
    Pair,
    avoir_sentence,
    feeling_sentence,
    profession_sentence,
    random_action,
    random_adjective,
    random_clause,
    random_noun,
    random_noun_phrase,
    random_noun_subject,
    random_object,
    random_person,
)  # fmt: skip

YOU = {one.person == 4: one for one in PRONOUNS if one.english == "you"}
NOT_COMPARED = (
    *("red", "green", "blue", "white", "black", "yellow", "grey", "pink", "brown", "empty", "ripe"),
    *("French", "Italian", "Spanish", "English", "American"),
)


def lone_noun_phrase(draw: Random) -> Pair:
    """Une petite maison blanche."""
    noun = random_noun(draw, EVERYTHING + "p")
    determiner, many = draw.choice(["the", "a", "this", "0", "1", "3"]), draw.random() < 0.4
    found = noun_phrase(noun, determiner, many, random_adjective(draw, noun))
    return found.french, found.english


def random_place(draw: Random) -> Phrase:
    """Where something is: sur la table, à côté du musée."""
    chance = draw.random()
    if chance < 0.6:
        names = (words.FURNITURE if chance < 0.3 else words.INSIDE).split("|")
        noun = draw.choice([noun for noun in NOUNS if noun.french in names])
        preposition, meaning = draw.choice([("sur", "on"), ("sous", "under")]) if chance < 0.3 else ("dans", "in")
        if noun.french in ("armoire", "étagère", "tapis") and preposition == "sous":
            preposition, meaning = "sur", "on"
    else:
        noun = random_noun(draw, "livu")
        preposition, meaning = draw.choice(word_pairs(words.WHERE))
    found = noun_phrase(noun, "the")
    there = join_words(preposition, found.french)
    return Phrase(there, there, f"{meaning} {found.english}")


def location_sentence(draw: Random) -> Pair:
    """Le chat est sous la table."""
    where = random_place(draw)
    subject = random_noun_subject(draw, "atrcvfsk")
    while subject.french.split(" ")[-1].split("'")[-1] in where.french:
        subject = random_noun_subject(draw, "atrcvfsk")
    return random_clause(draw, subject, Action("être", "be", where), "present", "pas plus")


def existence_sentence(draw: Random) -> Pair:
    """Il n'y a pas de lait dans la cuisine."""
    noun, where = random_noun(draw, "atrcvfsmd"), random_place(draw)
    if noun.french in where.french:
        return existence_sentence(draw)
    many = noun.kind not in "md" and draw.random() < 0.5
    if many and draw.random() < 0.6:
        what = number_phrase(draw.randint(2, 99), noun)
        return f"il y a {what.french} {where.french}", f"there are {what.english} {where.english}"
    adjective = random_adjective(draw, noun) if draw.random() < 0.3 else None
    what = noun_phrase(noun, "some" if noun.kind in "md" else "a", many, adjective)
    be = "are" if many else "is"
    form = draw.choice(["yes", "no", "est-ce qu'il y a", "y a-t-il"])
    if form == "yes":
        return f"il y a {what.french} {where.french}", f"there {be} {what.english} {where.english}"
    if form == "no":
        bare = what.english.removeprefix("an ").removeprefix("a ")
        return f"il n'y a pas {what.negated} {where.french}", f"there {be} no {bare} {where.english}"
    return f"{form} {what.french} {where.french} ?", f"{be} there {what.english} {where.english}?"


def possession_sentence(draw: Random) -> Pair:
    """La voiture de mon père est rouge."""
    names = [Subject("Marie", "Marie", 2, "f"), Subject("Anne", "Anne", 2, "f")]
    of = random_noun_subject(draw, "kp") if draw.random() < 0.8 else draw.choice(names)
    noun = random_noun(draw, "trcav")
    many = draw.random() < 0.4
    owned = noun_phrase(noun, "the", many)
    meaning = f"{english.possessive_noun(of.english)} {owned.english.removeprefix('the ')}"
    subject = Subject(join_words(owned.french, "de", of.french), meaning, 5 if many else 2, noun.gender)
    if draw.random() < 0.3:
        return subject.french, subject.english
    adjective = random_adjective(draw, noun)
    form = french.agree(adjective.french, adjective.feminine, noun.gender, many)
    return random_clause(draw, subject, Action("être", "be", Phrase(form, form, adjective.english)), "present", "pas")


def comparison_sentence(draw: Random) -> Pair:
    """Mon frère est plus grand que ma sœur."""
    one = random_noun(draw, EVERYTHING + "kp")
    other = random_noun(draw, one.kind)
    while other.french == one.french:
        other = random_noun(draw, one.kind)
    first, many = random_noun_phrase(draw, one, None, sure=True, plain=True)
    second = first
    while second == first or (first.english + second.english).count("your") > 1:  # ton and votre do not mix
        second, _ = random_noun_phrase(draw, other, None, sure=True, plain=True)
    adjective = random_adjective(draw, one)
    while adjective.english in NOT_COMPARED:
        adjective = random_adjective(draw, one)
    form = french.agree(adjective.french, adjective.feminine, one.gender, many)
    if draw.random() < 0.7:
        better = {"bon": ("meilleur", "meilleure"), "mauvais": ("pire", "pire")}.get(adjective.french)
        more = french.agree(*better, one.gender, many) if better else f"plus {form}"
        rest, english_rest = join_words(more, "que", second.french), f"{adjective.comparative} than {second.english}"
    else:
        rest = join_words("aussi", form, "que", second.french)
        english_rest = f"as {adjective.english} as {second.english}"
    subject = Subject(first.french, first.english, 5 if many else 2, one.gender)
    return clause(subject, Action("être", "be", Phrase(rest, rest, english_rest)))


def relative_sentence(draw: Random) -> Pair:
    """Les pommes que j'ai mangées sont rouges: the participle agrees with what stands before it."""
    verb, meaning, (kinds,) = draw.choice([row for row in verbs(words.TRANSITIVE) if row[0] != "connaître"])
    who = random_person(draw)
    noun = random_noun(draw, "".join(kind for kind in expand_kinds(kinds) if kind not in "kp") or "t")
    if not set(kinds) - set("kp"):
        verb, meaning = "acheter", "buy"
    many = noun.kind not in "md" and draw.random() < 0.4
    what = noun_phrase(noun, "the", many)
    done = french.participle(verb, noun.gender, many)
    adjective = random_adjective(draw, noun)
    said = join_words(what.french, "que", who.french, french.present("avoir")[who.person], done)
    meaning = f"{what.english} that {who.english} {words.PARTS[meaning][0]}"
    subject = Subject(said, meaning, 5 if many else 2, noun.gender)
    form = french.agree(adjective.french, adjective.feminine, noun.gender, many)
    negation: Negation = "pas" if draw.random() < 0.25 else ""
    return clause(subject, Action("être", "be", Phrase(form, form, adjective.english)), "present", negation)


def opinion_sentence(draw: Random) -> Pair:
    """Je pense qu'il est fatigué."""
    said, english_said = "?", ""
    while said.endswith("?"):
        said, english_said = draw.choice([feeling_sentence, avoir_sentence, profession_sentence])(draw)
    verb, meaning = draw.choice(word_pairs("penser|think;croire|believe;savoir|know;espérer|hope;dire|say"))
    rest = join_words("que", said)
    return clause(random_person(draw), Action(verb, meaning, Phrase(rest, rest, f"that {english_said}")))


def command_sentence(draw: Random) -> Pair:
    """N'achetez pas de pain."""
    involuntary = ("connaître", "recevoir", "voir", "trouver", "perdre", "oublier")
    verb, meaning, (kinds,) = draw.choice([row for row in verbs(words.TRANSITIVE) if row[0] not in involuntary])
    polite = draw.random() < 0.5
    what = random_object(draw, expand_kinds(kinds), YOU[polite])
    order = french.imperative(verb, polite)
    if draw.random() < 0.35:
        return join_words("ne", order, "pas", what.negated), f"do not {meaning} {what.english}"
    if draw.random() < 0.3:
        please = "s'il vous plaît" if polite else "s'il te plaît"
        return f"{join_words(order, what.french)}, {please}", f"{meaning} {what.english}, please"
    return join_words(order, what.french), f"{meaning} {what.english}"


def language_sentence(draw: Random) -> Pair:
    """Elle parle français; je m'appelle Marie."""
    subject = random_person(draw)
    if draw.random() < 0.3:
        subject = draw.choice([one for one in PRONOUNS if one.person not in (3, 4, 5)])
        names = [cell.split() for cell in table_entries(words.NAMES)]
        name = draw.choice([name for name, gender in names if subject.gender in gender])
        calling = clause(subject, Action("s'appeler", "be", Phrase(name, name, name)))[0]
        return calling, f"{subject.possessive} name is {name}"
    language, meaning = draw.choice(word_pairs(words.LANGUAGES))
    verb, english_verb = draw.choice(word_pairs("parler|speak;étudier|study;apprendre|learn"))
    rest = join_words("" if verb == "parler" else "le", language)
    return random_clause(draw, subject, Action(verb, english_verb, Phrase(rest, rest, meaning)), "present future")


def demonstrative_sentence(draw: Random) -> Pair:
    """C'est une belle maison; ce ne sont pas mes clés."""
    noun = random_noun(draw, EVERYTHING)
    many = draw.random() < 0.4
    determiner = draw.choice("a0134" if noun.kind in "trcavh" else "a")
    what = noun_phrase(noun, determiner, many, random_adjective(draw, noun) if draw.random() < 0.6 else None)
    form = draw.choice(["yes", "no", "question"])
    it, be, these, no = ("they", "are", "ce sont", "ce ne sont") if many else ("it", "is", "c'est", "ce n'est")
    if form == "yes":
        return f"{these} {what.french}", f"{it} {be} {what.english}"
    if form == "no":
        return f"{no} pas {what.french}", f"{it} {be} not {what.english}"
    return join_words("est-ce que", these, what.french) + " ?", f"{be} {it} {what.english}?"


def quantity_sentence(draw: Random) -> Pair:
    """Elle mange trop de chocolat."""
    able = ("manger", "boire", "acheter", "vendre")
    verb, meaning, (kinds,) = draw.choice([row for row in verbs(words.TRANSITIVE) if row[0] in able])
    noun = random_noun(draw, "".join(kind for kind in kinds if kind in "fsmdtrc"))
    many = noun.kind not in "md"
    amounts = f"beaucoup|a lot of;trop|too {'many' if many else 'much'};assez|enough;peu|{'few' if many else 'little'}"
    much, english_much = draw.choice(word_pairs(amounts))
    rest = join_words(much, "de", noun.french_plural if many else noun.french)
    meant = f"{english_much} {noun.english_plural if many else noun.english}"
    tense: Tense = draw.choice(["present", "past", "future"])
    form: Form = "est-ce que" if much != "peu" and draw.random() < 0.2 else "statement"
    return clause(random_person(draw), Action(verb, meaning, Phrase(rest, rest, meant)), tense, "", form)


def question_sentence(draw: Random) -> Pair:
    """Où habites-tu ? Combien de pommes a-t-elle achetées ? Pourquoi est-ce que tu pleures ?"""
    subject = random_person(draw)
    form: Form = draw.choice(["est-ce que", "inversion"]) if subject.person else "est-ce que"
    chance = draw.random()
    if chance < 0.25:
        verb, meaning = draw.choice(word_pairs("habiter|live;travailler|work;dormir|sleep;étudier|study"))
        asked, meant = clause(subject, Action(verb, meaning), form=form)
        return join_words("où", asked), f"where {meant}"
    if chance < 0.5:
        asked, meant = clause(subject, random_action(draw, subject), "future", form=form)
        return join_words("quand", asked), f"when {meant}"
    if chance < 0.7:
        asked, meant = clause(subject, random_action(draw, subject), draw.choice(["present", "past"]), form=form)
        return join_words("pourquoi", asked), f"why {meant}"
    verb, meaning, _ = draw.choice(verbs(words.TRANSITIVE)[:5])
    if chance < 0.85:
        asked, meant = clause(subject, Action(verb, meaning), draw.choice(["present", "future"]), form="est-ce que")
        return "qu'" + asked, f"what {meant}"
    noun = random_noun(draw, "fstrcav")
    asked, meant = clause(subject, Action("avoir", "have"), form="inversion" if subject.person else "est-ce que")
    return join_words("combien de", noun.french_plural, asked), f"how many {noun.english_plural} {meant}"


def object_pronoun_sentence(draw: Random) -> Pair:
    """Il me voit; ils vont nous inviter."""
    people = [*(random_person(draw) for _ in range(4)), PRONOUNS[4]]
    subject = draw.choice([one for one in people if one.person in (2, 5)])
    pronouns = [("me", "me"), ("te", "you"), ("nous", "us"), ("vous", "you")]
    pronoun, meaning = draw.choice(pronouns[::2] if "your" in subject.english else pronouns)
    able = ("voir", "regarder", "chercher", "attendre", "appeler", "connaître", "aider", "inviter", "écouter")
    verb, english_verb, _ = draw.choice([row for row in verbs(words.TRANSITIVE) if row[0] in able])
    return random_clause(draw, subject, Action(verb, english_verb, Phrase("", "", meaning), pronoun), "present future")


def weather_sentence(draw: Random) -> Pair:
    """Il fait froid à Paris."""
    said, meaning = draw.choice(word_pairs(words.WEATHER))
    preposition, name, *other = draw.choice(table_entries(words.COUNTRIES)).split()
    where = (other[0] if other else name).replace("_", " ")
    return f"{said} {preposition} {name}", f"{meaning} in {where}"
