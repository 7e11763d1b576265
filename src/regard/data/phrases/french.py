"""French morphology: elision, contraction, plural and feminine forms, verbs, numbers."""

from __future__ import annotations

import re
import unicodedata

ASPIRATED = ("haricot", "hamster", "hibou", "haut", "héros", "huit", "onze", "oui", "homard", "hors", "Hollande")
ELIDED = re.compile(r"(?<![\w'-])(je|me|te|se|le|la|ne|de|que|ce|Je|Le|La|Que|Ce) (?=(\S+))")
CONTRACTED = {"de les ": "des ", "de le ": "du ", "à les ": "aux ", "à le ": "au "}
CONTRACTIBLE = re.compile(r"\b(de|à) les? ")
POSSESSIVES = (
    *(("mon", "ma", "mes"), ("ton", "ta", "tes"), ("son", "sa", "ses")),
    *(("notre", "notre", "nos"), ("votre", "votre", "vos"), ("leur", "leur", "leurs")),
)
REFLEXIVES = ("me", "te", "se", "nous", "vous", "se")

PRESENT = {
    "être": "suis es est sommes êtes sont",
    "avoir": "ai as a avons avez ont",
    "aller": "vais vas va allons allez vont",
    "faire": "fais fais fait faisons faites font",
    "prendre": "prends prends prend prenons prenez prennent",
    "apprendre": "apprends apprends apprend apprenons apprenez apprennent",
    "boire": "bois bois boit buvons buvez boivent",
    "lire": "lis lis lit lisons lisez lisent",
    "voir": "vois vois voit voyons voyez voient",
    "croire": "crois crois croit croyons croyez croient",
    "dire": "dis dis dit disons dites disent",
    "vouloir": "veux veux veut voulons voulez veulent",
    "pouvoir": "peux peux peut pouvons pouvez peuvent",
    "devoir": "dois dois doit devons devez doivent",
    "savoir": "sais sais sait savons savez savent",
    "recevoir": "reçois reçois reçoit recevons recevez reçoivent",
    "connaître": "connais connais connaît connaissons connaissez connaissent",
    "venir": "viens viens vient venons venez viennent",
    "partir": "pars pars part partons partez partent",
    "sortir": "sors sors sort sortons sortez sortent",
    "dormir": "dors dors dort dormons dormez dorment",
    "ouvrir": "ouvre ouvres ouvre ouvrons ouvrez ouvrent",
    "offrir": "offre offres offre offrons offrez offrent",
    "courir": "cours cours court courons courez courent",
    "conduire": "conduis conduis conduit conduisons conduisez conduisent",
}
PARTICIPLES = {
    "être": "été", "avoir": "eu", "faire": "fait", "prendre": "pris", "apprendre": "appris", "boire": "bu",
    "lire": "lu", "voir": "vu", "croire": "cru", "dire": "dit", "vouloir": "voulu", "pouvoir": "pu", "savoir": "su",
    "recevoir": "reçu", "connaître": "connu", "venir": "venu", "ouvrir": "ouvert", "offrir": "offert",
    "courir": "couru", "conduire": "conduit", "naître": "né",
}  # fmt: skip
# The stem where the ending is silent: je, tu, il, ils.
STRESSED = {
    "acheter": "achèt", "lever": "lèv", "promener": "promèn", "préférer": "préfèr", "espérer": "espèr",
    "appeler": "appell", "nettoyer": "nettoi", "envoyer": "envoi",
}  # fmt: skip
WITH_ETRE = {"aller", "venir", "partir", "arriver", "rester", "entrer", "rentrer", "sortir", "tomber", "naître"}
BEFORE_VOWEL = {"beau": "bel", "nouveau": "nouvel", "vieux": "vieil"}
FEMININE = (("eux", "euse"), ("eau", "elle"), ("er", "ère"), ("if", "ive"), ("en", "enne"), ("on", "onne"))

UNITS = (
    *("zéro", "un", "deux", "trois", "quatre", "cinq", "six", "sept", "huit", "neuf"),
    *("dix", "onze", "douze", "treize", "quatorze", "quinze", "seize", "dix-sept", "dix-huit", "dix-neuf"),
)
TENS = {20: "vingt", 30: "trente", 40: "quarante", 50: "cinquante", 60: "soixante", 80: "quatre-vingt"}


def starts_with_vowel(word: str) -> bool:
    """Whether a word begins with the sound of a vowel, so that the word before it changes."""
    if word == "y":
        return True
    first = unicodedata.normalize("NFD", word)[:1].lower().replace("œ", "o")
    return first in tuple("aeiouh") and not word.startswith(ASPIRATED)


def join_words(*words: str) -> str:
    """Join words to a phrase, with elision and contraction.

    >>> join_words("je", "ne", "ai", "pas", "de", "amis"), join_words("à", "les", "enfants")
    ("je n'ai pas d'amis", 'aux enfants')
    """
    text = " ".join(word for word in words if word)
    text = ELIDED.sub(lambda found: found[1][:-1] + "'" if starts_with_vowel(found[2]) else found[0], text)
    return CONTRACTIBLE.sub(lambda found: CONTRACTED[found[0]], text)


def plural(noun: str) -> str:
    """The plural of a noun or of a masculine adjective."""
    if noun.endswith(("s", "x", "z")):
        return noun
    if noun.endswith(("eau", "eu")) and noun != "bleu":
        return noun + "x"
    return noun[:-2] + "aux" if noun.endswith("al") else noun + "s"


def feminine(adjective: str) -> str:
    """The feminine of an adjective or of a participle that follows a rule."""
    if adjective == "vieux":
        return "vieille"
    for ending, other in FEMININE:
        if adjective.endswith(ending):
            return adjective.removesuffix(ending) + other
    return adjective if adjective.endswith("e") else adjective + "e"


def agree(masculine: str, female: str, gender: str, many: bool) -> str:
    """The form of an adjective or a participle for a gender and a number."""
    form = female if gender == "f" else masculine
    return plural(form) if many else form


def present(verb: str) -> tuple[str, ...]:
    """The six forms of the present: je, tu, il, nous, vous, ils."""
    if verb in PRESENT:
        return tuple(PRESENT[verb].split())
    stem = verb[:-2]
    if verb.endswith("er"):
        stressed = STRESSED.get(verb, stem)
        soft = stem[:-1] + "ç" if stem.endswith("c") else stem + "e" if stem.endswith("g") else stem
        return (stressed + "e", stressed + "es", stressed + "e", soft + "ons", stem + "ez", stressed + "ent")
    if verb.endswith("ir"):
        return tuple(stem + ending for ending in ("is", "is", "it", "issons", "issez", "issent"))
    return tuple(stem + ending for ending in ("s", "s", "", "ons", "ez", "ent"))


def participle(verb: str, gender: str = "m", many: bool = False) -> str:
    """The past participle, in agreement."""
    endings = {"er": "é", "ir": "i", "re": "u"}
    form = PARTICIPLES.get(verb) or verb[:-2] + endings[verb[-2:]]
    return agree(form, form + "e", gender, many)


def imperative(verb: str, polite: bool) -> str:
    """The imperative, to one friend or to others."""
    if polite:
        return present(verb)[4]
    form = present(verb)[1]
    return form[:-1] if form.endswith("es") or form == "vas" else form


def number(n: int, gender: str = "m") -> str:
    """A number from 0 to 999 in words; before a feminine noun a final un is une."""
    hundreds, rest = divmod(n, 100)
    words = [] if hundreds == 0 else ["cent"] if hundreds == 1 else [UNITS[hundreds], "cent" if rest else "cents"]
    if rest or not words:
        words.append(_below_hundred(rest))
    text = " ".join(words)
    return text + "e" if gender == "f" and re.search(r"\bun$", text) else text


def _below_hundred(n: int) -> str:
    if n < 20:
        return UNITS[n]
    ten = n - n % 10 if n < 60 else 60 if n < 80 else 80
    rest = n - ten
    if rest == 0:
        return TENS[ten] + ("s" if ten == 80 else "")
    if rest in (1, 11) and ten != 80:
        return f"{TENS[ten]} et {UNITS[rest]}"
    return f"{TENS[ten]}-{UNITS[rest]}"
