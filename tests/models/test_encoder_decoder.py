"""Any encoder works with any decoder, and no decoder ignores its source."""

from dataclasses import dataclass, replace

import pytest
import torch

from regard import config
from regard.errors import ConfigError
from regard.models import ModelConfig
from regard.models.base import EmptyEncoder
from regard.models.convolution import ConvolutionConfig
from regard.models.encoder_decoder import EncoderDecoderConfig
from regard.models.gnmt import GNMTConfig
from regard.models.luong import LuongConfig
from regard.models.recurrent import RecurrentConfig
from regard.models.rnnsearch import RNNsearchConfig
from regard.models.seq2seq import Seq2SeqConfig
from regard.models.transformer import TransformerConfig
from regard.nn.bridge import CopyState, LinearBridge, ZeroState
from regard.sequence import SOS, Tokens
from regard.spaces import Words

TRANSFORMER = TransformerConfig(layers=1, width=8, ffn_width=16, heads=2, tie="target")
ENCODERS = {
    "gated convolution": ConvolutionConfig(layers=2, width=6),
    "relu convolution": ConvolutionConfig(layers=1, width=6, kernel=5, units="relu"),
    "transformer": TRANSFORMER,
    "tanh": Seq2SeqConfig(layers=1, width=6, cell="tanh"),
    "lstm": Seq2SeqConfig(layers=2, width=6),
    "both lstm": Seq2SeqConfig(layers=2, width=6, bidirectional=True),
    "rnnsearch": RNNsearchConfig(embedding=6, width=6, alignment=6, maxout=4),
    "luong": LuongConfig(layers=1, width=6),
    "gnmt": GNMTConfig(layers=3, width=6),
    "recurrent": RecurrentConfig(layers=2, width=6, cell="gru"),
    "recurrent, onward": RecurrentConfig(width=6, bidirectional=False),
}
DECODERS = {
    "transformer": TRANSFORMER,
    "lstm": Seq2SeqConfig(layers=2, width=6),
    "gru, every": Seq2SeqConfig(layers=1, width=4, cell="gru", context="every"),
    "relu": Seq2SeqConfig(layers=3, width=4, cell="relu"),
    "rnnsearch": RNNsearchConfig(embedding=6, width=4, alignment=6, maxout=4),
    "luong": LuongConfig(layers=2, width=4),
    "gnmt": GNMTConfig(layers=2, width=4),
}


@pytest.mark.parametrize("decoder", DECODERS)
@pytest.mark.parametrize("encoder", ENCODERS)
def test_every_encoder_reaches_every_decoder(encoder, decoder):
    torch.manual_seed(1)
    model = EncoderDecoderConfig(encoder=ENCODERS[encoder], decoder=DECODERS[decoder]).build(Words(9), Words(7)).eval()
    source, target = Tokens.pad([[4, 5, 6], [7]]), Tokens.pad([[SOS, 4, 5], [SOS, 6]])
    features = model(source, target)
    features[target.mask].square().sum().backward()
    nonzero = [p.grad for p in model.encoder.parameters() if p.grad is not None and p.grad.any()]
    assert nonzero, "no gradient reaches the encoder"
    other = model(Tokens.pad([[8, 8, 6], [7]]), target)
    assert not torch.allclose(features[0], other[0], atol=1e-7)
    torch.testing.assert_close(features[1, :2], other[1, :2], atol=1e-6, rtol=1e-5)
    assert model.encoder(source).states.data.shape[-1] == model.encoder.width
    assert tuple(tuple(t.shape[-1] for t in layer) for layer in model.encoder(source).final) == model.encoder.final


@pytest.mark.parametrize(
    ("encoder", "decoder", "kind"),
    [
        ("lstm", "lstm", CopyState),
        ("both lstm", "lstm", LinearBridge),  # twice as wide
        ("tanh", "lstm", LinearBridge),  # one layer, and no cell
        ("luong", "lstm", LinearBridge),  # one layer for two
        ("transformer", "lstm", LinearBridge),  # nothing is handed on
    ],
)
def test_states_are_copied_where_they_match_and_projected_where_not(encoder, decoder, kind):
    model = EncoderDecoderConfig(encoder=ENCODERS[encoder], decoder=DECODERS[decoder]).build(Words(9), Words(7))
    assert type(model.decoder.bridge) is kind


def test_without_a_source_a_recurrent_decoder_starts_from_zeros_and_attention_is_refused():
    decoder = DECODERS["lstm"].build_decoder(Words(7), EmptyEncoder())
    assert type(decoder.bridge) is ZeroState
    state = decoder.start(EmptyEncoder()(Tokens.pad([[], []])), 0)
    assert [[t.tolist() for t in layer] for layer in state.hypothesis.layers] == [[[[0.0] * 6] * 2] * 2] * 2
    for name in ("rnnsearch", "luong", "gnmt"):
        with pytest.raises(ConfigError, match="this encoder reads none; use an encoder that does"):
            DECODERS[name].build_decoder(Words(7), EmptyEncoder())


def test_a_recipe_can_combine_an_encoder_and_a_decoder():
    table = {
        "kind": "encoder-decoder",
        "encoder": {"kind": "convolution", "layers": 3, "width": 32},
        "decoder": {"kind": "luong", "width": 48, "layers": 1},
    }
    found = config.parse(ModelHolder, {"model": table}).model
    assert found == EncoderDecoderConfig(
        encoder=ConvolutionConfig(layers=3, width=32), decoder=LuongConfig(width=48, layers=1)
    )
    assert config.parse(ModelHolder, {"model": config.plain(found)}).model == found
    assert found.summary == (
        "encoder-decoder: encoder of convolution 3 layers, kernel 3, width 32; "
        "decoder of luong 1+1 layers, width 48, score general"
    )


@pytest.mark.parametrize(("score", "needs"), [("dot", "a dot product"), ("cosine", "a cosine")])
def test_a_score_that_needs_equal_widths_is_refused_before_any_data(score, needs):
    table = {"encoder": {"kind": "recurrent", "width": 6}, "decoder": {"kind": "luong", "width": 6, "score": score}}
    with pytest.raises(ConfigError) as error:
        config.parse(ModelHolder, {"model": {"kind": "encoder-decoder", **table}})
    assert str(error.value) == (
        f"model: encoder and decoder do not go together: {needs} needs vectors of one width; the query has 6, the "
        'source 12: use score = "general"'
    )
    table["decoder"]["width"] = 12
    assert config.parse(ModelHolder, {"model": {"kind": "encoder-decoder", **table}}).model.decoder.score == score


def test_an_encoder_as_decoder_is_refused_by_name():
    with pytest.raises(ConfigError) as error:
        config.parse(ModelHolder, {"model": {"kind": "encoder-decoder", "decoder": {"kind": "convolution"}}})
    assert str(error.value) == (
        "model.decoder.kind: expected one of luong, transformer, seq2seq, rnnsearch, gnmt, got 'convolution'"
    )


def test_an_error_in_the_encoder_or_decoder_config_says_where_it_is():
    with pytest.raises(ConfigError) as error:
        config.parse(
            ModelHolder, {"model": {"kind": "encoder-decoder", "encoder": {"kind": "convolution", "kernel": 4}}}
        )
    assert str(error.value) == ("model.encoder: kernel = 4 must be odd, so that a window is centered; try 3 or 5")


def test_the_position_limit_is_that_of_the_shorter_half():
    learned = replace(TRANSFORMER, positions="learned", max_positions=64)
    assert EncoderDecoderConfig(encoder=learned, decoder=replace(learned, max_positions=32)).position_limit == 32
    assert EncoderDecoderConfig(encoder=learned).position_limit == 64
    assert EncoderDecoderConfig().position_limit is None


@dataclass(frozen=True)
class ModelHolder:
    model: ModelConfig
