"""Folders that cannot be imported: what was expected, what was found, and nothing is left behind."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

import foreign_models
from helpers import refusal
from regard.cli import invoke
from regard.errors import InputError, ModelError, OutputError, RegardError
from regard.exchange.huggingface import import_folder


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return foreign_models.gpt2(tmp_path_factory.mktemp("whole") / "gpt2")[1]


@pytest.fixture
def folder(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "gpt2"))


def change_config(**settings: Any) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        content = json.loads((folder / "config.json").read_text()) | settings
        (folder / "config.json").write_text(json.dumps(content))

    return change


def change_weights(change: Callable[[dict[str, torch.Tensor]], object]) -> Callable[[Path], None]:
    def apply(folder: Path) -> None:
        tensors = load_file(folder / "model.safetensors")
        change(tensors)
        save_file(tensors, folder / "model.safetensors", {"format": "pt"})

    return apply


def write(name: str, content: bytes) -> Callable[[Path], object]:
    return lambda folder: (folder / name).write_bytes(content)


def header(table: dict[str, Any], data: bytes = b"") -> bytes:
    text = json.dumps(table).encode()
    return len(text).to_bytes(8, "little") + text + data


def tensor(start: int, end: int, shape: list[int]) -> dict[str, Any]:
    return {"dtype": "F32", "shape": shape, "data_offsets": [start, end]}


def pickle_instead(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(b"")


def index_that_leads_out(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    content = {"weight_map": {"transformer.wte.weight": "../secret.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(content))


def larger_tokenizer(folder: Path) -> None:
    words = foreign_models.byte_bpe()
    words.add_tokens(["more", "and more"])
    words.save(str(folder / "tokenizer.json"))


def sentencepiece_instead(folder: Path) -> None:
    (folder / "tokenizer.json").unlink()
    (folder / "spiece.model").write_bytes(b"")


FAULTS: dict[str, tuple[Callable[[Path], object], type[RegardError], str]] = {
    "no config": (
        lambda folder: (folder / "config.json").unlink(),
        InputError,
        "there is no config.json; expected a folder that transformers could load",
    ),
    "a config that is no JSON": (write("config.json", b"{"), ModelError, "expected a JSON object"),
    "an unknown architecture": (
        change_config(model_type="mamba"),
        ModelError,
        "model_type = 'mamba' is not among the models that can be imported: gpt2, openai-gpt, llama, mistral, qwen2, "
        "bert, distilbert",
    ),
    "another activation": (
        change_config(activation_function="relu"),
        ModelError,
        "activation_function = 'relu', and the model here computes as with 'gelu_new' or 'gelu_pytorch_tanh' or 'gelu'",
    ),
    "layers that are no number": (
        change_config(n_layer="many"),
        ModelError,
        "n_layer = 'many', expected a whole number",
    ),
    "more layers than tensors": (
        change_config(n_layer=2_000_000),
        ModelError,
        "it describes 2,000,000 layers, and",
    ),
    "one layer more": (
        change_config(n_layer=4),
        ModelError,
        "12 missing ('transformer.h.3.ln_1.weight', 'transformer.h.3.ln_1.bias', 'transformer.h.3.attn.c_attn.weight'",
    ),
    "one layer less": (change_config(n_layer=2), ModelError, "12 that the model does not have ('transformer.h.2."),
    "another shape": (
        change_config(n_positions=95),
        ModelError,
        "1 of another shape ('transformer.wpe.weight' is [96, 24], expected [95, 24])",
    ),
    "a transposed shape": (
        change_weights(lambda w: w.update({"transformer.h.0.mlp.c_fc.weight": torch.zeros(96, 24)})),
        ModelError,
        "'transformer.h.0.mlp.c_fc.weight' is [96, 24], expected [24, 96]",
    ),
    "a missing tensor": (
        change_weights(lambda w: w.pop("transformer.ln_f.bias")),
        ModelError,
        "1 missing ('transformer.ln_f.bias')",
    ),
    "a tensor more": (
        change_weights(lambda w: w.update({"transformer.extra": torch.zeros(1)})),
        ModelError,
        "1 that the model does not have ('transformer.extra')",
    ),
    "no embedding": (
        change_weights(lambda w: w.pop("transformer.wte.weight")),
        ModelError,
        "expected the embedding 'transformer.wte.weight' with two axes; there is none",
    ),
    "cut off": (
        lambda folder: (folder / "model.safetensors").write_bytes((folder / "model.safetensors").read_bytes()[:-9]),
        ModelError,
        "it is damaged or was cut off",
    ),
    "a header of 8 GB": (
        write("model.safetensors", (8 << 30).to_bytes(8, "little") + b"{"),
        ModelError,
        "cannot be read as safetensors (its header has 8,589,934,592 bytes)",
    ),
    "overlapping tensors": (
        write(
            "model.safetensors",
            header({"transformer.a": tensor(0, 8, [2]), "transformer.b": tensor(4, 12, [2])}, bytes(12)),
        ),
        ModelError,
        "cannot be read as safetensors",
    ),
    "a tensor beyond the end": (
        write("model.safetensors", header({"transformer.a": tensor(0, 1 << 40, [1 << 38])}, bytes(8))),
        ModelError,
        "cannot be read as safetensors",
    ),
    "a shape that is not its size": (
        write("model.safetensors", header({"transformer.a": tensor(0, 8, [1 << 40, 1 << 40])}, bytes(8))),
        ModelError,
        "cannot be read as safetensors",
    ),
    "a pickle": (pickle_instead, InputError, "pytorch_model.bin may run code when it is read, so it is not"),
    "no weights": (
        lambda folder: (folder / "model.safetensors").unlink(),
        InputError,
        "expected the weights in model.safetensors, or in several files with model.safetensors.index.json",
    ),
    "an index that leads out": (
        index_that_leads_out,
        ModelError,
        "'../secret.safetensors' is not the name of a safetensors file in this folder",
    ),
    "no tokenizer": (
        lambda folder: (folder / "tokenizer.json").unlink(),
        InputError,
        "expected a tokenizer.json, vocab.json and merges.txt, vocab.txt or tokenizer.model; found none",
    ),
    "a SentencePiece model": (
        sentencepiece_instead,
        InputError,
        "the ids of spiece.model may not be those of the model; write it as a tokenizer.json beside it",
    ),
    "a tokenizer that is no JSON": (write("tokenizer.json", b"?"), ModelError, "expected the JSON of a tokenizer"),
    "a larger tokenizer": (
        larger_tokenizer,
        ModelError,
        "the tokenizer has 302 tokens, and the embedding 300 rows; they are not of one model",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_folder_that_is_not_whole_is_refused_and_nothing_is_left(fault: str, folder: Path, tmp_path: Path) -> None:
    break_it, kind, expected = FAULTS[fault]
    break_it(folder)
    message = refusal(kind, lambda: import_folder(folder, tmp_path / "run"))
    assert expected in message, message
    assert str(folder) in message
    assert [path.name for path in tmp_path.iterdir()] == ["gpt2"]


def test_an_interrupted_import_leaves_nothing(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*arguments: object, **options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("regard.train.checkpoint.save", stop)
    with pytest.raises(KeyboardInterrupt):
        import_folder(folder, tmp_path / "run")
    assert [path.name for path in tmp_path.iterdir()] == ["gpt2"]


def test_an_existing_run_stays_as_it_is(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    message = refusal(OutputError, lambda: import_folder(folder, tmp_path / "run"))
    assert message == f"{tmp_path / 'run'} exists already; name another with -o"
    assert not list((tmp_path / "run").iterdir())


def test_the_command_prints_the_run_and_how_to_use_it(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "README.md").write_text("---\nlanguage: en\nlicense: mit\n---\n# A model\n")
    assert invoke(["import", str(folder), "-o", str(tmp_path / "run")]) == 0
    found = capsys.readouterr()
    assert found.out == f"{tmp_path / 'run'}\n"
    assert "gpt 3 layers, 4 heads, width 24; use it: regard generate" in found.err
    card = (tmp_path / "run" / "MODEL_CARD.md").read_text()
    assert "A gpt model, imported with regard" in card
    assert "trained by others, imported from gpt2. License of the model: mit" in card
    assert invoke(["import", str(tmp_path / "nowhere")]) == 66
    assert "there is no such folder or file, and no model of this name" in capsys.readouterr().err


def test_weights_in_several_files_and_in_half_precision_are_read(whole: Path, tmp_path: Path) -> None:
    from transformers import GPT2LMHeadModel

    model = GPT2LMHeadModel.from_pretrained(whole).half()
    model.save_pretrained(tmp_path / "parts", max_shard_size="20KB")
    shutil.copy(whole / "tokenizer.json", tmp_path / "parts")
    assert len(list((tmp_path / "parts").glob("*.safetensors"))) > 1
    import_folder(tmp_path / "parts", tmp_path / "run")
    import regard

    found = regard.load(tmp_path / "run").module.decoder.embed.weight
    assert found.dtype == torch.float32
    assert torch.equal(found, model.transformer.wte.weight.float())


def test_the_two_files_of_gpt2s_tokenizer_are_read(folder: Path, tmp_path: Path) -> None:
    words = foreign_models.byte_bpe()
    words.model.save(str(folder))
    (folder / "tokenizer.json").unlink()
    import_folder(folder, tmp_path / "run")
    import regard

    found = regard.load(tmp_path / "run").modality.tokenizer  # type: ignore[attr-defined]
    assert found.encode("The quick fox").ids == words.encode("The quick fox").ids
