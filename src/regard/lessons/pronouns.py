"""English sentences with "it" and their French translations: the antecedent decides between il and elle."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b

WALKERS = {
    "animal": "l'animal m", "dog": "le chien m", "cat": "le chat m", "horse": "le cheval m", "cow": "la vache f",
    "mouse": "la souris f", "turtle": "la tortue f", "hen": "la poule f", "truck": "le camion m", "car": "la voiture f",
    "bus": "le bus m", "goat": "la chèvre f",
}  # fmt: skip
PLACES = {
    "street": "la rue f", "road": "la route f", "river": "la rivière f", "bridge": "le pont m", "field": "le champ m",
    "path": "le chemin m", "square": "la place f", "garden": "le jardin m", "forest": "la forêt f", "lake": "le lac m",
}  # fmt: skip
OF_WALKERS = {
    "tired": "fatigué fatiguée", "slow": "lent lente", "small": "petit petite", "weak": "faible faible",
    "scared": "effrayé effrayée", "heavy": "lourd lourde",
}  # fmt: skip
OF_PLACES = {
    "wide": "large large", "long": "long longue", "dark": "sombre sombre", "deep": "profond profonde",
    "crowded": "bondé bondée", "busy": "encombré encombrée",
}  # fmt: skip
HELD_OUT = 10
"""one in this many sentences is held out from training"""


@dataclass(frozen=True)
class PronounSentence:
    """A sentence, and the antecedent of its "it".

    >>> one = PronounSentence("animal", "street", "wide")
    >>> one.english
    'the animal does not cross the street because it is too wide'
    >>> one.french, one.antecedent
    ("l'animal ne traverse pas la rue car elle est trop large", 'street')
    """

    walker: str
    place: str
    adjective: str

    @property
    def antecedent(self) -> str:
        """The noun that "it" refers to: animals can be tired, streets can be wide."""
        return self.walker if self.adjective in OF_WALKERS else self.place

    @property
    def other_noun(self) -> str:
        """The noun that "it" does not refer to."""
        return self.place if self.antecedent == self.walker else self.walker

    @property
    def pronoun(self) -> str:
        """il or elle, by the gender of the antecedent."""
        return "il" if self._gender == "m" else "elle"

    @property
    def english(self) -> str:
        return f"the {self.walker} does not cross the {self.place} because it is too {self.adjective}"

    @property
    def french(self) -> str:
        walker, place = WALKERS[self.walker][:-2], PLACES[self.place][:-2]
        forms = (OF_WALKERS | OF_PLACES)[self.adjective].split()
        adjective = forms[self._gender == "f"]
        return f"{walker} ne traverse pas {place} car {self.pronoun} est trop {adjective}"

    @property
    def held_out(self) -> bool:
        """Whether it is held out from training; the same sentences on every machine."""
        return int.from_bytes(blake2b(self.english.encode(), digest_size=4).digest()) % HELD_OUT == 0

    @property
    def _gender(self) -> str:
        return (WALKERS | PLACES)[self.antecedent][-1]


def sentences() -> Iterator[PronounSentence]:
    """All combinations.

    >>> len(list(sentences())), sum(sentence.held_out for sentence in sentences())
    (1440, 140)
    """
    for walker in WALKERS:
        for place in PLACES:
            for adjective in (*OF_WALKERS, *OF_PLACES):
                yield PronounSentence(walker, place, adjective)
