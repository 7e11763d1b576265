"""Texts and pairs as a BERT classifier reads them, against transformers; and its pooler in fine-tuning."""

from __future__ import annotations

from pathlib import Path

from transformers import BertTokenizerFast

from regard.distributed import ProcessGroup
from regard.run import Run
from regard.tasks import Recipe

ENTRIES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "lamb", "##s", "sleep", ",", "a"]


def settings(folder: Path, labels: tuple[str, str], *more: str) -> list[str]:
    (folder / "vocab.txt").write_text("\n".join(ENTRIES), encoding="utf-8")
    rows = [f"the lambs {'sleep ' * (i % 9 + 1)}\ta lamb{', a' * (i % 7)}\t{labels[i % 2]}" for i in range(200)]
    (folder / "a.tsv").write_text("text\tother\tlabel\n" + "\n".join(rows) + "\n", encoding="utf-8")
    data = f"data={{kind='tsv', train='{folder}/a.tsv', valid='{folder}/a.tsv'}}"
    return [data, "task={kind='classify', pool='first', max_length=20}", "train.steps=1", *more]


def bert(folder: Path) -> list[str]:
    text = f"text={{kind='wordpiece', lowercase=true, tokenizer='{folder}/vocab.txt'}}"
    return [text, "model={kind='bert', layers=1, width=8, ffn_width=16, heads=2, max_positions=32}"]


def test_ids_segments_and_mask_are_those_of_transformers_for_texts_and_pairs(tmp_path: Path) -> None:
    for second in (False, True):
        more = ["data.second=other"] if second else []
        recipe = Recipe.read(None, settings(tmp_path, ("x", "y"), *bert(tmp_path), *more))
        recipe.preparation().run(tmp_path / str(second), lambda *_, **__: None)
        encoder = recipe.preparation().load_encoder(tmp_path / str(second))
        theirs = BertTokenizerFast(vocab=str(tmp_path / "vocab.txt"))
        pairs = [("The lambs sleep", "a lamb, the"), ("lamb", "a"), ("sleep " * 30, "lambs " * 4)]
        lines = ["\t".join(pair) if second else pair[0] for pair in pairs]
        found = encoder.collate([one.row for one in encoder.encode(lines)])
        special = 3 if second else 2
        texts = ([a for a, _ in pairs], [b for _, b in pairs]) if second else ([a for a, _ in pairs],)
        expected = theirs(*texts, padding=True, truncation=True, max_length=20 + special, return_tensors="pt")
        assert found.data.tolist() == expected["input_ids"].tolist()
        assert found.mask.long().tolist() == expected["attention_mask"].tolist()
        if second:
            assert found.segments is not None
            assert found.segments.tolist() == expected["token_type_ids"].tolist()


def test_the_pooler_is_taken_over_whatever_the_labels_are(tmp_path: Path) -> None:
    Run(tmp_path / "first").train(Recipe.read(None, settings(tmp_path, ("x", "y"), *bert(tmp_path))))
    recipe = Recipe.read(None, settings(tmp_path, ("good", "bad"), f"model.init={tmp_path}/first"))
    run = Run(tmp_path / "second")
    run.begin(recipe)
    run.prepare(recipe)
    report = run.init_model(recipe.training_parts(tmp_path / "second", ProcessGroup())[0].model, recipe)
    assert report is not None
    assert {"pool.pool.dense.weight", "pool.pool.dense.bias"} <= set(report.loaded)
    assert all(name.startswith("readout.") for name in report.fresh)
