"""Names can be searched for: a class name stands for one thing, and a function is not named by a bare participle."""

import ast
import re
from collections import Counter, defaultdict
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "regard"


def words(text: str) -> frozenset[str]:
    """The words of a text."""
    return frozenset(text.split())


MAX_BARE_PARTICIPLES = 5
"""How many functions and methods may be named by a participle or an adverb alone, such as `sorted`."""

VERBS_AND_NOUNS = words(
    """
    bed embed exceed feed heed need proceed seed shed speed succeed
    """
)
"""End like participles and are none."""

IRREGULAR = words(
    """
    arisen awoken became become been begun bent bitten born borne bought bred broken brought built burnt came
    caught chosen dealt done drawn driven eaten fallen fed felt flown foreseen foretold forgotten fought found
    frozen given gone grown heard held kept known laid lain learnt led lent lit lost made meant met mistaken
    overheard overwritten paid proven rebuilt redrawn remade rewritten ridden risen said sat seen sent shaken
    shown slept sold sought spelt spent spoken spun stolen stood stuck sung sunk swept sworn taken taught
    thought thrown told torn understood undone unknown unread unseen unsent went withheld woken won worn woven
    written
    """
)

ADVERBS = words(
    """
    above abroad across after afterwards again against ahead alike almost alone along already among anew apart
    around aside away back backwards before behind below beneath beside besides between beyond elsewhere
    enough even everywhere forth forwards further hence here hereby inside instead later nearby never nowhere
    once only onward otherwise outside over rather since so somewhere soon still then there thereby therefore
    through thus together twice under underneath until upon upto upwards when where whereby why within without
    yet
    """
)

GERUNDS = words(
    """
    acting arriving asking closing doing going having making moving saying speaking standing telling
    """
)
"""Gerunds that say no more than a participle; `padding` and `sampling` are terms."""


def is_bare(name: str) -> bool:
    """Whether a function's name is one participle or adverb and nothing else.

    >>> [is_bare(name) for name in ("told", "_padded", "alone", "read_rows", "embed", "log_probs")]
    [True, True, True, False, False, False]
    """
    word = name.strip("_")
    if not re.fullmatch("[a-z]+", word) or word in VERBS_AND_NOUNS:
        return False
    return word.endswith("ed") or word in IRREGULAR | ADVERBS | GERUNDS


def trees() -> dict[str, ast.Module]:
    """Every module of the package, parsed."""
    paths = sorted(SOURCE.rglob("*.py"))
    return {p.relative_to(SOURCE).as_posix(): ast.parse(p.read_text(encoding="utf-8")) for p in paths}


@pytest.fixture(scope="module")
def modules() -> dict[str, ast.Module]:
    return trees()


def class_places(modules: dict[str, ast.Module]) -> dict[str, list[str]]:
    """Where each public class name is defined: module-level classes and type aliases."""
    places = defaultdict(list)
    for place, tree in modules.items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(f"{place}:{node.lineno}")
    return places


def bare_functions(modules: dict[str, ast.Module]) -> list[str]:
    """Functions and methods that are named by a bare participle or adverb."""
    functions = (
        (place, node)
        for place, tree in modules.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )
    return [f"{place}:{node.lineno} {node.name}" for place, node in functions if is_bare(node.name)]


def test_a_public_class_name_stands_for_one_thing(modules):
    assert {name: where for name, where in class_places(modules).items() if len(where) > 1} == {}


def test_few_functions_are_named_by_a_bare_participle(modules):
    bare = bare_functions(modules)
    words = Counter(entry.split()[1].strip("_") for entry in bare)
    assert len(bare) <= MAX_BARE_PARTICIPLES, f"{len(bare)}: {dict(words.most_common())}"


@pytest.mark.parametrize("name", ["told", "said", "_kept", "counted", "beside", "together", "arriving", "__unseen"])
def test_a_participle_is_noticed(name):
    assert is_bare(name)


@pytest.mark.parametrize(
    "name", ["read", "embed", "feed", "write_rows", "told_by", "padding", "hidden", "log_probs", "__init__"]
)
def test_a_verb_or_a_noun_is_let_through(name):
    assert not is_bare(name)
