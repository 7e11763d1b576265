"""One contract for all models: training, decoding, metrics and views never branch on the model class."""

import ast
from pathlib import Path
from typing import get_args

import pytest

from regard.models import EncoderOnlyConfig, ModelConfig

SOURCE = Path(__file__).parents[2] / "src/regard"
CONFIGS = {config.__name__ for union in (ModelConfig, EncoderOnlyConfig) for config in get_args(get_args(union)[0])}
SERVING = ("decode", "tasks", "train", "metrics", "look", "compare", "studio", "cli", "run.py")
FILES = sorted(
    path for part in SERVING for path in [SOURCE / part, *(SOURCE / part).rglob("*")] if path.suffix == ".py"
)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_no_code_branches_on_the_model_class(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("isinstance", "issubclass"):
            asked = {name.id for name in ast.walk(node.args[1]) if isinstance(name, ast.Name)}
            assert not asked & CONFIGS, f"line {node.lineno}: {ast.unparse(node)}; let the config say what is needed"
        if isinstance(node, ast.Compare):
            compared = [node.left, *node.comparators]
            kinds = [side for side in compared if isinstance(side, ast.Attribute) and side.attr == "kind"]
            models = [kind for kind in kinds if ast.unparse(kind.value).endswith("model")]
            assert not models, f"line {node.lineno}: {ast.unparse(node)}"


def test_a_branch_on_a_model_would_be_found(tmp_path):
    path = tmp_path / "a.py"
    for text in ("isinstance(m, (int, GPTConfig))", "recipe.model.kind == 'gpt'"):
        path.write_text(text)
        with pytest.raises(AssertionError):
            test_no_code_branches_on_the_model_class(path)
