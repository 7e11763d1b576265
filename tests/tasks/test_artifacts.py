"""The artifacts of a run, such as its tokenizer, are kept when its data changes."""

import pytest

from regard.errors import InputError, ModelError
from regard.run import Run, load
from regard.tasks import Recipe

SETTINGS = [
    "model.kind=transformer", "model.layers=1", "model.width=16", "model.heads=2", "model.ffn_width=32",
    "text.vocab_size=120", "train.batch_tokens=256", "train.steps=4", "train.save_every=2",
    "train.validate_every=4", "task.bleu_sentences=2", "data.valid_share=0.1",
]  # fmt: skip


def write_data(folder, word):
    """A hundred pairs about one thing, and the settings that name them."""
    (folder / "a.fr").write_text("".join(f"le {word} numéro {i} dort\n" for i in range(120)), encoding="utf-8")
    (folder / "a.en").write_text("".join(f"{word} number {i} sleeps\n" for i in range(120)), encoding="utf-8")
    return ["data.kind=files", f'data.train=["{folder}/a.fr", "{folder}/a.en"]']


@pytest.fixture
def trained(tmp_path):
    recipe, run = Recipe.read(None, [*write_data(tmp_path, "chat"), *SETTINGS]), Run(tmp_path / "run")
    run.train(recipe)
    (run.path / "data" / "identity.json").unlink()  # as if prepared by another version
    return run, recipe, load(run.path).translate("le chat")


def test_preparing_again_gives_the_same_tokenizer(trained):
    run, recipe, translation = trained
    before = (run.path / "tokenizer.json").read_bytes()
    run.train(recipe)
    assert (run.path / "tokenizer.json").read_bytes() == before
    assert load(run.path).translate("le chat") == translation


def test_a_model_works_without_its_data(trained, tmp_path):
    run, recipe, translation = trained
    (tmp_path / "a.fr").unlink()
    with pytest.raises(InputError):
        run.train(recipe)
    assert load(run.path).translate("le chat") == translation


def test_data_that_gives_another_tokenizer_is_refused(trained, tmp_path):
    run, recipe, translation = trained
    write_data(tmp_path, "poisson rouge")
    with pytest.raises(ModelError) as caught:
        run.train(recipe)
    assert str(caught.value) == (
        f"{run.path}: preparing its data again gave another tokenizer.json than its checkpoints were trained with; "
        "use --out for a new run, or --fresh to start this one again"
    )
    assert load(run.path).translate("le chat") == translation
