"""Settings and values that were renamed: an old name in a recipe is answered with the present one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from regard.compare import Comparison
from regard.config import Setting, settings
from regard.errors import ConfigError
from regard.renamed import RENAMED, RENAMED_VALUES, renamed_key
from regard.tasks import Recipe


def refusal(table: dict[str, Any]) -> str:
    with pytest.raises(ConfigError) as caught:
        Recipe.parse(table)
    return str(caught.value)


def recipes_with(key: str) -> Iterator[tuple[type[Recipe], Setting]]:
    """Recipe classes that have a setting or a table of this name, once per kind of the table that it is in."""
    for cls in Recipe.classes():
        yield from ((cls, setting) for setting in settings(cls) if setting.key == key)
        if any(setting.key.startswith(f"{key}.") for setting in settings(cls)):
            yield cls, Setting(key, "a table", None, "")


def table_with(cls: type[Recipe], key: str, kind: str, value: Any) -> dict[str, Any]:
    """The tables of a recipe in which only one setting of one section is given."""
    *parents, name = key.split(".")
    table: dict[str, Any] = {}
    section = table
    for parent in parents:
        section = section.setdefault(parent, {})
    section |= {name: value} | ({"kind": kind} if kind and name != "kind" else {})
    for required in ("data", "model", "task"):
        table.setdefault(required, {})
    table["task"]["kind"] = cls.kind()
    return {name: item for name, item in table.items() if name in cls.__dataclass_fields__}


@pytest.mark.parametrize(("old", "new"), RENAMED.items())
def test_an_old_setting_is_answered_with_the_present_one(old, new):
    found = [(cls, setting.of) for cls, setting in recipes_with(new) if old not in {s.key for s in settings(cls)}]
    assert found, f"no recipe has {new}"
    for cls, kind in found:
        present = renamed_key(old, kind)
        assert present in (new, "data.test_share")
        assert refusal(table_with(cls, old, kind, 1)) == f'unknown setting "{old}"; {old} is now {present}'


def test_some_settings_have_another_present_name_in_tables_of_one_kind():
    shares = [renamed_key(f"data.{old}", "movie-reviews") for old in ("held_out", "watched")]
    assert shares == ["data.test_share", "data.valid_share"]
    old = {"task": {"kind": "caption", "scored": 5}, "data": {"kind": "shapes"}, "model": {"kind": "encoder-decoder"}}
    assert refusal(old) == 'unknown setting "task.scored"; task.scored is now task.bleu_images'


@pytest.mark.parametrize(("key", "old", "new"), [(*key, new) for key, new in RENAMED_VALUES.items()])
def test_an_old_value_is_answered_with_the_present_one(key, old, new):
    found = [(cls, setting.of) for cls, setting in recipes_with(key) if new in setting.choices]
    assert found, f"no recipe has {key} = {new!r}"
    for cls, kind in found:
        table = table_with(cls, key, kind, old)
        if key.startswith("data."):
            table["data"]["train"] = "table.csv"
        message = refusal(table)
        assert message.startswith(f"{key}: expected one of ")
        assert message.endswith(f', got {old!r}; "{old}" is now "{new}"')


@pytest.mark.parametrize("half", ["encoder", "decoder"])
def test_the_halves_of_an_encoder_decoder_are_renamed_like_models(half):
    assert renamed_key(f"model.{half}.inner") == f"model.{half}.ffn_width"
    parts = {side: {"kind": "transformer"} for side in ("encoder", "decoder")}
    parts[half]["inner"] = 32  # type: ignore[assignment]
    message = refusal({"model": {"kind": "encoder-decoder", **parts}, "data": {"kind": "phrases"}})
    assert message == f'unknown setting "model.{half}.inner"; model.{half}.inner is now model.{half}.ffn_width'


def test_the_message_names_the_file_or_the_command_line(tmp_path: Path) -> None:
    file = tmp_path / "old.toml"
    file.write_text('[train]\nevery = 5\n[data]\nkind = "phrases"\n[model]\nkind = "seq2seq"\n', encoding="utf-8")
    old_settings = ["train.every=5", "data.kind=phrases", "model.kind=seq2seq"]
    for arguments, place in (((file,), f"in {file}"), ((None, old_settings), "given on the command line")):
        with pytest.raises(ConfigError) as caught:
            Recipe.read(*arguments)
        assert str(caught.value) == f'unknown setting "train.every", {place}; train.every is now train.validate_every'


def test_a_member_of_a_compare_recipe_is_answered_in_the_same_way() -> None:
    old = "family.b={kind = 'transformer', inner = 32}"
    with pytest.raises(ConfigError) as caught:
        Comparison.read(None, ["data.kind=phrases", "family.a={kind = 'seq2seq'}", old])
    assert str(caught.value) == 'family.b: unknown setting "inner"; inner is now ffn_width'


def test_no_present_name_is_an_old_one() -> None:
    assert not set(RENAMED.values()) & RENAMED.keys()
    assert not {key for key, _ in RENAMED_VALUES} & RENAMED.keys()
