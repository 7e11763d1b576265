"""The recipe of the job of generating: what it goes by where nothing is said."""

import pytest

from regard.data.texts import Shakespeare, Texts
from regard.errors import ConfigError
from regard.jobs import Recipe

LEAST = ["task.kind=generate", "model.kind=rnnlm"]


def test_a_recipe_without_data_learns_from_shakespeare():
    assert Recipe.read(None, LEAST).data == Shakespeare()


def test_data_of_ones_own_has_nothing_of_shakespeares_in_it():
    given = [*LEAST, "data.kind=text", "data.train=book.txt", "data.held_out=0.2"]
    assert Recipe.read(None, given).data == Texts(train="book.txt", held_out=0.2)


@pytest.mark.parametrize("setting", ["data.train=book.txt", "data.held_out=0.2"])
def test_data_without_a_kind_is_told_the_kinds(setting):
    with pytest.raises(ConfigError, match=r"^data\.kind must be given: one of text, shakespeare, numbers$"):
        Recipe.read(None, [*LEAST, setting])
