"""GGUF files of Llama models against transformers reading the same file; chat; damaged files."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
import tokenizers
import torch
from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM

import regard
from foreign_models import CHAT, TEXT, byte_bpe, randomized, read_gguf, smollm
from helpers import refusal
from regard.cli import invoke
from regard.errors import ConfigError, InputError, ModelError, RegardError
from regard.exchange.catalogue import MODELS, import_any
from regard.exchange.gguf import TENSORS
from regard.exchange.huggingface import import_folder, import_gguf
from regard.sequence import Tokens
from regard.tasks.generate.loader import empty_source

HEADS, KV_HEADS, WIDTH, LAYERS = 4, 2, 64, 2
SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")


def neighbors_first(weight: np.ndarray, heads: int) -> np.ndarray:
    """The rows of a projection as llama.cpp stores them: the two numbers of a rotated pair beside each other."""
    halves = weight.reshape(heads, 2, weight.shape[0] // heads // 2, *weight.shape[1:])
    return halves.swapaxes(1, 2).reshape(weight.shape)


def write_tokenizer(writer: gguf.GGUFWriter, words: tokenizers.Tokenizer, kind: str) -> None:
    """The metadata of a byte-level BPE and of its chat format."""
    vocabulary = sorted(words.get_vocab(), key=words.get_vocab().__getitem__)
    merges = json.loads(words.to_str())["model"]["merges"]
    writer.add_tokenizer_model(kind)
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list(vocabulary)
    writer.add_token_types([3 if token in SPECIAL else 1 for token in vocabulary])
    writer.add_token_merges([" ".join(pair) for pair in merges])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_add_bos_token(False)
    writer.add_chat_template(CHAT)


def write_gguf(path: Path, quantization: gguf.GGMLQuantizationType, **changes: Any) -> Path:
    """A small Llama with random weights and its tokenizer as a GGUF file."""
    words = byte_bpe(special=SPECIAL)
    config = LlamaConfig(
        hidden_size=WIDTH, intermediate_size=96, num_hidden_layers=LAYERS, num_attention_heads=HEADS,
        num_key_value_heads=KV_HEADS, vocab_size=words.get_vocab_size(), tie_word_embeddings=True,
    )  # fmt: skip
    tensors = randomized(LlamaForCausalLM(config)).state_dict()
    writer = gguf.GGUFWriter(path, changes.get("architecture", "llama"))
    writer.add_block_count(changes.get("layers", LAYERS))
    writer.add_context_length(64)
    writer.add_embedding_length(WIDTH)
    writer.add_feed_forward_length(96)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_rope_freq_base(100_000.0)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(words.get_vocab_size())
    writer.add_license("apache-2.0")
    write_tokenizer(writer, words, changes.get("tokenizer", "gpt2"))
    short = {theirs: own for own, theirs in TENSORS.items()}
    for name, tensor in tensors.items():
        if name == "lm_head.weight":
            continue
        layer = name.split(".")[2] if name.startswith("model.layers.") else None
        stem = name.removesuffix(".weight").removeprefix(f"model.layers.{layer}.")
        values = tensor.numpy()
        if "q_proj" in name or "k_proj" in name:
            values = neighbors_first(values, HEADS if "q_proj" in name else KV_HEADS)
        own = f"{'' if layer is None else f'blk.{layer}.'}{short[stem]}.weight"
        if values.ndim == 2 and quantization != gguf.GGMLQuantizationType.F32:
            writer.add_tensor(own, gguf.quants.quantize(values, quantization), raw_dtype=quantization)
        else:
            writer.add_tensor(own, values.astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


@pytest.fixture(params=["F32", "F16", "Q8_0", "Q4_1"], scope="module")
def file(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp(request.param)
    path = write_gguf(folder / "model.gguf", gguf.GGMLQuantizationType[request.param])
    import_gguf(path, folder / "run")
    return path


@torch.no_grad()
def test_logits_and_greedy_text_are_theirs(file: Path) -> None:
    theirs = read_gguf(file)
    model: Any = regard.load(file.parent / "run")
    words = model.modality.tokenizer
    expected_words = byte_bpe(special=SPECIAL)
    for text in TEXT:
        ids = words.encode(text).ids
        assert ids == expected_words.encode(text).ids
        logits = model.module.readout(model.module(empty_source(1), Tokens.full(torch.tensor([ids]))))
        expected = theirs(torch.tensor([ids])).logits
        assert expected.std() > 0.3
        torch.testing.assert_close(logits, expected, atol=1e-3, rtol=0)
        start = torch.tensor([ids[:5]])
        out = theirs.generate(start, do_sample=False, max_new_tokens=12, eos_token_id=2, pad_token_id=0)
        found = model.generator(temperature=0).generate(words.decode(ids[:5]), 12)[0]
        assert list(found.tokens) == words.tokens([id for id in out[0, 5:].tolist() if id != 2])


def test_a_message_is_put_into_the_chat_format_of_the_model(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, saved = smollm(tmp_path / "saved")
    import_folder(saved, tmp_path / "run")
    template = AutoTokenizer.from_pretrained(saved)
    message = [{"role": "user", "content": "Where is the café?"}]
    expected = template.apply_chat_template(message, add_generation_prompt=True, return_dict=False)
    for run in (file.parent / "run", tmp_path / "run"):
        model: Any = regard.load(run)
        assert model.recipe.data.system == "You are kind."
        assert model.generator(chat=True).prompt_ids("Where is the café?") == expected
        assert invoke(["generate", str(run), "Where?", "--chat", "--length", "3", "--temperature", "0"]) == 0
        assert "Where?" not in capsys.readouterr().out


def test_a_model_without_conversations_has_no_chat(tmp_path: Path) -> None:
    from foreign_models import llama

    import_folder(llama(tmp_path / "saved")[1], tmp_path / "run")
    model: Any = regard.load(tmp_path / "run")
    message = "this model was not trained on conversations, so it has no chat format; leave --chat out"
    assert refusal(ConfigError, lambda: model.generator(chat=True)) == message


F32 = gguf.GGMLQuantizationType.F32
FAULTS: dict[str, tuple[Callable[[Path], object], str]] = {
    "cut off": (lambda path: path.write_bytes(path.read_bytes()[:-5000]), "it is damaged or was cut off"),
    "cut off in its metadata": (lambda path: path.write_bytes(path.read_bytes()[:300]), "it is damaged or was cut off"),
    "empty": (lambda path: path.write_bytes(b""), "expected a GGUF file; its first bytes are not those of one"),
    "no GGUF": (lambda path: path.write_bytes(b"x" * 99), "expected a GGUF file; its first bytes are not those of one"),
    "2**60 tensors": (
        lambda path: path.write_bytes(b"GGUF" + (3).to_bytes(4, "little") + (1 << 60).to_bytes(8, "little") * 2),
        "expected a GGUF file; its first bytes are not those of one",
    ),
    "another architecture": (
        lambda path: write_gguf(path, F32, architecture="mamba"),
        "general.architecture = 'mamba' is not among the GGUF models that can be imported: llama, qwen2",
    ),
    "another tokenizer": (
        lambda path: write_gguf(path, F32, tokenizer="llama"),
        "its tokenizer is 'llama' with 'smollm'; byte-level BPE (gpt2) with default, gpt-2, smollm, qwen2 can be read",
    ),
    "a layer more": (
        lambda path: write_gguf(path, F32, layers=3),
        "9 missing ('model.layers.2.self_attn.q_proj.weight', ",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_damaged_file_is_refused_and_nothing_is_left(fault: str, file: Path, tmp_path: Path) -> None:
    break_it, expected = FAULTS[fault]
    bad = tmp_path / "bad.gguf"
    bad.write_bytes(file.read_bytes())
    break_it(bad)
    message = refusal(ModelError, lambda: import_gguf(bad, tmp_path / "run"))
    assert expected in message, message
    assert [path.name for path in tmp_path.iterdir()] == ["bad.gguf"]


def test_without_the_package_the_error_says_what_to_install(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "gguf", None)
    message = refusal(ConfigError, lambda: import_gguf(file, tmp_path / "run"))
    assert message.endswith('install it with: pip install "regard[gguf]", or pip install gguf')


def test_a_name_that_is_neither_a_path_nor_a_model_is_refused(tmp_path: Path) -> None:
    error: type[RegardError] = InputError
    message = refusal(error, lambda: import_any("smollm3", tmp_path / "run"))
    assert message == "smollm3: there is no such folder or file, and no model of this name; there are: minilm, smollm2"


def test_the_catalogue_names_files_of_one_folder_each(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked: list[tuple[str, str]] = []

    def fetch(dataset: Any, progress: Any = None) -> Path:
        asked.append((dataset.name, dataset.file))
        return tmp_path / dataset.name / dataset.file

    monkeypatch.setattr("regard.exchange.catalogue.fetch_dataset", fetch)
    assert len({path.parent for model in MODELS.values() for path in model.fetch()}) == len(MODELS)
    assert ("model-smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf") in asked
