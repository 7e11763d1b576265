"""Language models in CTranslate2: exported folders and the engine give the greedy text of regard."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ctranslate2
import pytest

import regard
from foreign_models import LANGUAGE_MODELS
from helpers import refusal
from regard.cli import invoke
from regard.errors import ConfigError
from regard.exchange.export import export_ctranslate2
from regard.exchange.huggingface import import_folder

PROMPTS = ["The quick brown", "She sells sea", "a"]
LENGTH = 24


@pytest.fixture(params=LANGUAGE_MODELS, scope="module")
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp(request.param)
    LANGUAGE_MODELS[request.param](home / "saved")
    import_folder(home / "saved", home / "run")
    return home / "run"


def test_the_engine_and_an_exported_folder_give_the_same_greedy_text(run: Path, tmp_path: Path) -> None:
    own: Any = regard.load(run, "cpu")
    expected = [own.generator(temperature=0).generate(prompt, LENGTH)[0] for prompt in PROMPTS]
    seen: list[tuple[str, int, int]] = []
    other: Any = regard.load(run, "cpu", engine="ctranslate2", progress=lambda *state: seen.append(state))
    assert seen[-1] == ("converting for ctranslate2", 3, 3)
    generator = other.generator(temperature=0)
    found = [generator.generate(prompt, LENGTH)[0] for prompt in PROMPTS]
    assert [one.tokens for one in found] == [one.tokens for one in expected]
    assert [one.text for one in found] == [one.text for one in expected]
    if not own.modality.excluded_ids:  # there, probabilities are those among the tokens that may be generated
        assert [one.score for one in found] == pytest.approx([one.score for one in expected], abs=1e-3)
    assert [one.complete for one in found] == [one.complete for one in expected]
    batch = [samples[0].text for samples in generator.generate_batch(PROMPTS, LENGTH)]
    assert batch == [one.text for one in expected] == ["".join(generator.stream(text, LENGTH)) for text in PROMPTS]
    export_ctranslate2(run, tmp_path / "out", "float32")
    names, modality = own.modality.tokenizer.vocabulary, own.modality
    plain = ctranslate2.Generator(str(tmp_path / "out"))
    for prompt, one in zip(PROMPTS, expected, strict=True):
        result = plain.generate_batch(
            [[names[id] for id in own.generator().prompt_ids(prompt)]], max_length=LENGTH, sampling_topk=1,
            include_prompt_in_result=False, suppress_sequences=[[names[id]] for id in modality.excluded_ids] or None,
        )  # fmt: skip
        ids = result[0].sequences_ids[0][: len(one.tokens)]
        assert tuple(own.modality.tokenizer.tokens(ids)) == one.tokens
    assert {"tokenizer.json", "README.md"} <= {file.name for file in (tmp_path / "out").iterdir()}


def test_the_command_has_the_engine_and_refuses_what_it_does_not_have(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    LANGUAGE_MODELS["smollm2"](tmp_path / "saved")
    import_folder(tmp_path / "saved", tmp_path / "run")
    answers = []
    for engine in ("regard", "ctranslate2"):
        command = ["generate", str(tmp_path / "run"), "The quick", "--length", "9", "--temperature", "0"]
        assert invoke([*command, "--engine", engine]) == 0
        answers.append(capsys.readouterr().out)
    assert answers[0] == answers[1]
    model: Any = regard.load(tmp_path / "run", engine="ctranslate2", precision="int8")
    assert model.generate("The quick", 4, temperature=0)
    for settings, expected in (
        ({"temperature": 1.0}, "does not sample; give --temperature 0"),
        ({"beam": 3}, "decode.beam = 3 is not in the engine ctranslate2"),
        ({"temperature": 0, "no_repeat_ngram": 3}, "decode.no_repeat_ngram = 3 is not in the engine"),
    ):
        assert expected in refusal(ConfigError, lambda settings=settings: model.generate("x", **settings))
    with pytest.raises(ConfigError, match="nothing inside the engine ctranslate2"), regard.record(model):
        pass
