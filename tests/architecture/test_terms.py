"""The usual term leads to the code: each stands in a docstring of the file or the name that implements it."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from regard.renamed import RENAMED, RENAMED_OF_KIND, RENAMED_VALUES

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "regard"


@dataclass(frozen=True)
class Term:
    """A term of the field, the file and the name that implement it, and other forms that a text search finds."""

    text: str
    file: str
    name: str
    """a class, a function or a type alias; `Class.member` for a method or a setting"""
    forms: tuple[str, ...] = ()


TERMS = [
    Term("KV cache", "nn/kv_cache.py", "KVCache", ("key-value cache",)),
    Term("causal mask", "nn/attention.py", "AttentionMask", ("causal attention mask",)),
    Term("label smoothing", "train/config.py", "TrainConfig.label_smoothing"),
    Term("beam search", "decode/beam.py", "Beam"),
    Term("length penalty", "decode/beam.py", "wu_penalty"),
    Term("BLEU", "metrics/translation.py", "bleu"),
    Term("bucketing", "data/loaders.py", "BucketLoader", ("length buckets", "bucketed by length")),
    Term("tokenizer training", "text/tokenizer.py", "Tokenizer.train", ("train a tokenizer", "trains a tokenizer")),
    Term("checkpoint writing", "train/checkpoint.py", "save", ("write a checkpoint", "writes a checkpoint")),
    Term("resume", "train/trainer.py", "Trainer", ("resuming", "resumed")),
    Term("gradient clipping", "train/config.py", "TrainConfig.clip_norm"),
    Term("learning-rate schedule", "train/schedule.py", "Schedule", ("learning rate schedule",)),
    Term("attention view", "look/attention.py", "AttentionView"),
    Term("HTTP routes", "studio/app.py", "build"),
    Term("CSV parsing", "data/tables.py", "csv_rows", ("parse csv", "parses csv", "parse a csv")),
    Term("fine-tuning", "tasks/init_weights.py", "init_weights"),
    Term("early stopping", "train/config.py", "TrainConfig.patience"),
    Term("data loader", "objective.py", "Loader"),
    Term("negative log-likelihood", "spaces.py", "Space.nll"),
    Term("character encoder", "nn/char_encoder.py", "CharEncoder"),
    Term("backtest", "tasks/forecast/backtest.py", "Backtest"),
    Term("perplexity", "metrics/perplexity.py", "perplexity"),
]


def definitions(body: list[ast.stmt], prefix: str = "") -> Iterator[tuple[str, str]]:
    """(name, docstring) of all that a module or a class defines; of an assignment, the string that follows it."""
    for statement, follower in zip(body, [*body[1:], ast.Pass()], strict=True):
        if isinstance(statement, ast.ClassDef | ast.FunctionDef):
            yield prefix + statement.name, ast.get_docstring(statement) or ""
        if isinstance(statement, ast.ClassDef):
            yield from definitions(statement.body, f"{prefix}{statement.name}.")
        if isinstance(statement, ast.Assign | ast.AnnAssign):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            documented = isinstance(follower, ast.Expr) and isinstance(follower.value, ast.Constant)
            for target in targets:
                yield prefix + ast.unparse(target), str(follower.value.value) if documented else ""


def fold(text: str) -> str:
    """Text without case, line ends and hyphens, as a forgiving search reads it."""
    return " ".join(text.lower().replace("-", " ").split())


def faults(term: Term, source: str) -> list[str]:
    """What keeps a reader who searches for a term from the code: [] if nothing does."""
    tree = ast.parse(source)
    defined = dict(definitions(tree.body))
    if term.name not in defined:
        return [f"{term.file} does not define {term.name}"]
    owner = defined.get(term.name.split(".")[0], "")
    read = fold("\n".join([ast.get_docstring(tree) or "", owner, defined[term.name]]))
    if not any(fold(form) in read for form in (term.text, *term.forms)):
        return [f"{term.file}: the docstrings of the file and of {term.name} do not say {term.text!r}"]
    return []


@pytest.mark.parametrize("term", TERMS, ids=lambda term: term.text.replace(" ", "-"))
def test_a_term_leads_to_its_code(term):
    path = SOURCE / term.file
    assert path.is_file(), f"{term.text}: {term.file} does not exist"
    assert faults(term, path.read_text(encoding="utf-8")) == []


def glossary() -> list[list[str]]:
    """Cells of all table rows of docs/glossary.md, without code marks: terms have four, renamed settings two."""
    page = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    rows = [row.strip("| ").replace("`", "").split(" | ") for row in page.splitlines() if row.startswith("| ")]
    return [row for row in rows if row[0] not in ("Term", "Old")]


def test_every_name_of_the_glossary_is_defined_in_its_file():
    missing = []
    for _, name, file, _ in (row for row in glossary() if len(row) == 4):
        path = SOURCE / file
        defined = dict(definitions(ast.parse(path.read_text(encoding="utf-8")).body)) if path.is_file() else {}
        missing += [] if name in defined else [f"{file}: {name}"]
    assert missing == []


def test_the_glossary_has_every_term_in_its_place():
    rows = [
        (term, name, file)
        for terms, name, file, _ in (r for r in glossary() if len(r) == 4)
        for term in terms.split(", ")
    ]
    assert [term.text for term in TERMS if (term.text, term.name, term.file) not in rows] == []


def test_the_glossary_lists_every_renamed_setting():
    expected = [[old, new] for old, new in RENAMED.items()]
    expected += [[f'{old} of kind = "{kind}"', new] for (old, kind), new in RENAMED_OF_KIND.items()]
    expected += [[f'{key} = "{old}"', f'{key} = "{new}"'] for (key, old), new in RENAMED_VALUES.items()]
    assert [row for row in glossary() if len(row) == 2] == expected


def test_each_term_stands_once():
    texts = [fold(term.text) for term in TERMS]
    assert len(texts) == len(set(texts))


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ('"""KV\n cache."""\nclass KVCache: ...', 0),
        ('class KVCache:\n    """The KV-cache of a layer."""', 0),
        ('KVCache = int\n"""KV cache, as a number."""', 0),
        ('"""KV cache."""\nclass Past: ...', 1),
        ('class KVCache:\n    """What is remembered."""', 1),
    ],
)
def test_a_missing_name_or_term_is_noticed(source, found):
    assert len(faults(Term("KV cache", "nn/kv_cache.py", "KVCache"), source)) == found
