"""BERT against Hugging Face with the same random weights: the encoder, its pooler and its heads, and gradients."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import nn
from transformers import BertConfig as TheirConfig
from transformers import (
    BertForMaskedLM,
    BertForNextSentencePrediction,
    BertForPreTraining,
    BertForSequenceClassification,
    BertModel,
)

from regard.models import PRESETS
from regard.models.base import Classifier, parameters
from regard.models.bert import BertConfig, BertPooler, BertPretraining, MaskedLMHead
from regard.sequence import Tokens
from regard.spaces import Classes, Words
from regard.trace import record

V, SHAPE = 41, BertConfig(layers=3, width=24, ffn_width=56, heads=4, dropout=0.0, max_positions=16)
CLOSE = {"atol": 1e-5, "rtol": 1e-5}
"""the aim is 1e-4; rounding stays a tenth of it"""
ROWS = [[2, 7, 8, 3, 9, 10, 11, 3], [2, 30, 31, 32, 3], [2, 3]]
SEGMENTS = [[0, 0, 0, 0, 1, 1, 1, 1], [0, 0, 0, 0, 0, 0, 0, 0], [0, 1, 0, 0, 0, 0, 0, 0]]
PADDED = replace(Tokens.pad(ROWS), segments=torch.tensor(SEGMENTS))
FULL = replace(Tokens.full(PADDED.data[:1]), segments=PADDED.segments[:1])
PARTS = {
    "encoder.embed.": "bert.embeddings.word_embeddings.",
    "encoder.positions.table.": "bert.embeddings.position_embeddings.",
    "encoder.segments.": "bert.embeddings.token_type_embeddings.",
    "encoder.norm.": "bert.embeddings.LayerNorm.",
    "encoder.layers.": "bert.encoder.layer.",
    ".attention.out.": ".attention.output.dense.",
    ".attention_norm.": ".attention.output.LayerNorm.",
    ".ffn.up.": ".intermediate.dense.",
    ".ffn.down.": ".output.dense.",
    ".ffn_norm.": ".output.LayerNorm.",
    "pooler.": "bert.pooler.",
    "pool.": "bert.pooler.",
    "readout.dense.": "cls.predictions.transform.dense.",
    "readout.norm.": "cls.predictions.transform.LayerNorm.",
    "readout.decoder.": "cls.predictions.decoder.",
    "next_sentence.": "cls.seq_relationship.",
}


def to_hugging_face(tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Our tensors (weights or gradients) under Hugging Face's names; query, key and value are three matrices there."""
    found = {}
    for name, tensor in tensors.items():
        for ours, theirs in PARTS.items():
            if name.startswith(ours) or (ours.startswith(".") and ours in name):
                name = name.replace(ours, theirs)
        if ".attention.qkv." in name:
            for part, chunk in zip(("query", "key", "value"), tensor.chunk(3), strict=True):
                found[name.replace(".qkv.", f".self.{part}.")] = chunk
        else:
            found[name] = tensor
        if name == "cls.predictions.decoder.bias":
            found["cls.predictions.bias"] = tensor
    return found


def shaken(model: nn.Module) -> nn.Module:
    """Every number drawn, biases and norms too: a wrong mapping must not hide behind zeros and ones."""
    torch.manual_seed(5)
    for p in model.parameters():
        p.data += torch.randn_like(p) * 0.1
    return model.eval()


def make(*parts: str) -> BertPretraining:
    words = Words(V)
    torch.manual_seed(4)
    encoder = SHAPE.build_encoder(words)
    return shaken(
        BertPretraining(
            encoder,
            BertPooler(SHAPE.width) if "pooler" in parts else None,
            MaskedLMHead(SHAPE.width, words, encoder.embed) if "masked" in parts else None,
            nn.Linear(SHAPE.width, 2) if "next" in parts else None,
        )
    )


def load(theirs_class: type, weights: dict[str, torch.Tensor], prefix: str = "", **settings):
    config = TheirConfig(
        vocab_size=V,
        hidden_size=SHAPE.width,
        num_hidden_layers=SHAPE.layers,
        num_attention_heads=SHAPE.heads,
        intermediate_size=SHAPE.ffn_width,
        max_position_embeddings=SHAPE.max_positions,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        **settings,
    )
    theirs = theirs_class(config)
    weights = {name.removeprefix(prefix): t for name, t in to_hugging_face(weights).items()}
    missing = theirs.load_state_dict(weights, strict=False)
    assert not missing.unexpected_keys and set(missing.missing_keys) <= {"embeddings.position_ids"}, missing
    return theirs.eval()


def inputs(tokens: Tokens) -> dict[str, torch.Tensor]:
    return {"input_ids": tokens.data, "attention_mask": tokens.mask.long(), "token_type_ids": tokens.segments}


@pytest.mark.parametrize("tokens", [PADDED, FULL], ids=["padded", "full"])
def test_the_states_of_all_layers_and_the_pooled_vector_are_those_of_bert_model(tokens):
    model = make("pooler")
    theirs = load(BertModel, model.state_dict(), "bert.")(**inputs(tokens), output_hidden_states=True)
    memory = model.encoder(tokens)
    assert len(memory.layers) == len(theirs.hidden_states) == SHAPE.layers + 1
    for found, expected in zip(memory.layers, theirs.hidden_states, strict=True):
        torch.testing.assert_close(found[tokens.mask], expected[tokens.mask], **CLOSE)
    torch.testing.assert_close(memory.states.data[tokens.mask], theirs.last_hidden_state[tokens.mask], **CLOSE)
    torch.testing.assert_close(model.pooler(memory), theirs.pooler_output, **CLOSE)


def test_without_segments_every_token_is_of_the_first():
    model, plain = make(), replace(PADDED, segments=None)
    zeros = replace(plain, segments=torch.zeros_like(plain.data))
    assert torch.equal(model(plain), model(zeros))
    assert not torch.allclose(model(plain), model(PADDED), atol=1e-3)


@torch.no_grad()
def test_recorded_parts_add_up_to_the_residual_stream_and_every_layer_records_its_attention():
    model = make()
    with record(model) as trace:
        model(PADDED)
    values = {r.name: r.data for r in trace.records}
    embedded = values["encoder.embedding"] + values["encoder.position"] + values["encoder.segment"]
    torch.testing.assert_close(model.encoder.norm(embedded), values["encoder.residual"])
    for i in range(SHAPE.layers):
        layer = f"encoder.layers.{i}."
        assert values[f"{layer}attention.weights"].shape == (3, SHAPE.heads, 8, 8)
        assert values[f"{layer}ffn.activations"].shape == (3, 8, SHAPE.ffn_width)
        summed = values[f"{layer}attention_norm.normalized"] + values[f"{layer}ffn.output"]
        torch.testing.assert_close(summed, values[f"{layer}ffn_residual"])
        assert torch.equal(values[f"{layer}residual"], values[f"{layer}ffn_norm.normalized"])


@pytest.mark.parametrize("tokens", [PADDED, FULL], ids=["padded", "full"])
def test_masked_lm_logits_and_gradients_are_those_of_bert_for_masked_lm(tokens):
    model = make("masked")
    theirs = load(BertForMaskedLM, model.state_dict())
    expected, found = theirs(**inputs(tokens)).logits[tokens.mask], model.readout(model(tokens))[tokens.mask]
    torch.testing.assert_close(found, expected, **CLOSE)
    for logits in (found, expected):
        (logits * torch.linspace(-1, 1, logits.numel()).view(logits.shape)).mean().backward()
    ours = to_hugging_face({n: p.grad for n, p in model.named_parameters()})
    compared = 0
    for name, p in theirs.named_parameters():
        torch.testing.assert_close(ours[name], p.grad, **CLOSE, msg=lambda text, name=name: f"{name}: {text}")
        compared += p.grad.abs().max() > 1e-5
    assert compared > 40


@pytest.mark.parametrize("tokens", [PADDED, FULL], ids=["padded", "full"])
def test_next_sentence_logits_are_those_of_bert_for_next_sentence_prediction(tokens):
    model = make("pooler", "next")
    theirs = load(BertForNextSentencePrediction, model.state_dict())
    found = model.next_sentence(model.pooler(model.encoder(tokens)))
    torch.testing.assert_close(found, theirs(**inputs(tokens)).logits, **CLOSE)


def test_both_heads_are_those_of_bert_for_pre_training():
    model = make("pooler", "masked", "next")
    theirs = load(BertForPreTraining, model.state_dict())(**inputs(PADDED))
    memory = model.encoder(PADDED)
    masked = model.readout(memory.states.data)
    torch.testing.assert_close(masked[PADDED.mask], theirs.prediction_logits[PADDED.mask], **CLOSE)
    torch.testing.assert_close(model.next_sentence(model.pooler(memory)), theirs.seq_relationship_logits, **CLOSE)


def test_a_classifier_on_the_pooler_is_bert_for_sequence_classification():
    torch.manual_seed(4)
    model = shaken(Classifier(SHAPE.build_encoder(Words(V)), BertPooler(SHAPE.width), Classes(3), SHAPE.width))
    weights = {name.replace("readout.", "classifier."): t for name, t in model.state_dict().items()}
    expected = load(BertForSequenceClassification, weights, num_labels=3)(**inputs(PADDED)).logits
    torch.testing.assert_close(model.readout(model(PADDED)), expected, **CLOSE)


@pytest.mark.parametrize(
    ("name", "count", "pretraining"),
    [
        ("bert-base", 109_482_240, 110_106_428),
        ("bert-large", 335_141_888, 336_226_108),
        ("bert-mini", 11_170_560, 11_267_900),
        ("bert-small", 28_763_648, 29_058_876),
    ],
)
def test_a_preset_has_as_many_parameters_as_bert_model_and_with_its_heads_as_bert_for_pre_training(
    name, count, pretraining
):
    config, words = PRESETS[name].config, Words(30_522)
    with torch.device("meta"):
        theirs = TheirConfig(
            hidden_size=config.width,
            num_hidden_layers=config.layers,
            num_attention_heads=config.heads,
            intermediate_size=config.ffn_width,
        )
        encoder = config.build_encoder(words)
        heads = MaskedLMHead(config.width, words, encoder.embed), nn.Linear(config.width, 2)
        full = BertPretraining(encoder, BertPooler(config.width), *heads)
        assert PRESETS[name].parameters == parameters(BertModel(theirs)) == count
        assert parameters(full) == parameters(BertForPreTraining(theirs)) == pretraining
