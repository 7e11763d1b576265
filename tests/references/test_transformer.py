"""The Transformer and GPT against torch.nn and Hugging Face with the same weights: outputs and gradients."""

from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from transformers import GPT2Config, GPT2LMHeadModel

from marian import marian_config, to_marian, to_marian_names
from regard.errors import ConfigError
from regard.models.gpt import GPTConfig
from regard.models.transformer import TransformerConfig
from regard.sequence import EOS, SOS, Tokens
from regard.spaces import Words

V, SHAPE = 23, TransformerConfig(layers=2, width=16, ffn_width=40, heads=4, dropout=0.0, max_positions=32)
SOURCE = Tokens.pad([[5, 6, 7, 8, 9, 10, EOS], [11, 12, EOS], [13, EOS]])
TARGET = Tokens.pad([[SOS, 14, 15, EOS], [SOS, 16, 17, 18, 19, 20], [SOS, 21]])
CLOSE = {"atol": 1e-5, "rtol": 1e-5}


def shaken(model):
    """Every number drawn, biases and norms too: a wrong mapping must not hide behind zeros and ones."""
    torch.manual_seed(5)
    for p in model.parameters():
        p.data += torch.randn_like(p) * 0.1
    return model.eval()


def transformer(**changes):
    config = replace(SHAPE, **changes)
    torch.manual_seed(4)
    return shaken(config.build(Words(V), Words(V))), config


PARTS = {
    "attention.qkv.": "self_attn.in_proj_",
    "attention.out.": "self_attn.out_proj.",
    "cross.out.": "multihead_attn.out_proj.",
    "ffn.up.": "linear1.",
    "ffn.down.": "linear2.",
    "attention_norm.norm.": "norm1.",
}
NORMS = {
    "encoder": {"ffn_norm.norm.": "norm2."},
    "decoder": {"cross_norm.norm.": "norm2.", "ffn_norm.norm.": "norm3."},
}


def torch_names(parameters, side):
    """Our tensors (weights or gradients) of one stack under torch.nn's names."""
    found = {}
    for name, tensor in parameters.items():
        for ours, theirs in {**PARTS, **NORMS[side]}.items():
            if f".{ours}" in name:
                found[name.replace(ours, theirs)] = tensor
        if name.startswith("norm."):
            found[name] = tensor
        if ".cross.query." in name:
            packed = torch.cat([tensor, parameters[name.replace("query", "kv")]])
            found[name.replace("cross.query.", "multihead_attn.in_proj_")] = packed
    return found


def stack(model, config, side):
    """torch.nn.TransformerEncoder or Decoder with the weights of our encoder's or decoder's layers."""
    shape = {"dropout": 0.0, "batch_first": True, "norm_first": config.norm == "pre"}
    norm = nn.LayerNorm(config.width) if config.norm == "pre" else None
    if side == "encoder":
        layer = nn.TransformerEncoderLayer(config.width, config.heads, config.ffn_width, **shape)
        theirs = nn.TransformerEncoder(layer, config.layers, norm, enable_nested_tensor=False)
    else:
        layer = nn.TransformerDecoderLayer(config.width, config.heads, config.ffn_width, **shape)
        theirs = nn.TransformerDecoder(layer, config.layers, norm)
    theirs.load_state_dict(torch_names(model.get_submodule(side).state_dict(), side), strict=True)
    return theirs.eval()


def gradients(module):
    return {name: p.grad for name, p in module.named_parameters(remove_duplicate=False) if p.grad is not None}


def same_gradients(found, expected):
    assert set(found) == set(expected) and len(found) > 10
    for name, grad in expected.items():
        torch.testing.assert_close(found[name], grad, **CLOSE, msg=lambda text, name=name: f"{name}: {text}")
        assert "k_proj.bias" in name or grad.abs().max() > 1e-4, f"{name} has no gradient: the test would prove nothing"


def weighted_sum(features, tokens):
    """A number that depends on every feature at real positions, and not on padding."""
    real = features[tokens.mask]
    return (real * torch.linspace(-1, 1, real.numel()).reshape(real.shape)).sum() / len(real)


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize(
    "source", [SOURCE, Tokens.full(torch.tensor([[5, 6, 7], [8, 9, EOS]]))], ids=["padded", "full"]
)
def test_the_encoder_is_torchs_in_outputs_and_gradients(norm, source):
    model, config = transformer(norm=norm)
    theirs = stack(model, config, "encoder")
    entered = model.encoder.input_embedding(model.encoder.embed(source.data), torch.arange(source.data.shape[1])[None])
    expected = theirs(entered.detach(), src_key_padding_mask=~source.mask)
    found = model.encoder(source).states.data
    torch.testing.assert_close(found[source.mask], expected[source.mask], **CLOSE)
    weighted_sum(found, source).backward()
    weighted_sum(expected, source).backward()
    same_gradients(torch_names(gradients(model.encoder), "encoder"), gradients(theirs))


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_the_decoder_is_torchs_in_outputs_and_gradients(norm):
    model, config = transformer(norm=norm)
    theirs = stack(model, config, "decoder")
    memory = model.encoder(SOURCE)
    length = TARGET.data.shape[1]
    entered = model.decoder.input_embedding(model.decoder.embed(TARGET.data), torch.arange(length)[None])
    expected = theirs(
        entered.detach(),
        memory.states.data.detach(),
        tgt_mask=torch.ones(length, length, dtype=torch.bool).triu(1),
        tgt_key_padding_mask=~TARGET.mask,
        memory_key_padding_mask=~SOURCE.mask,
    )
    found, _ = model.decoder(TARGET, model.decoder.start(memory, max_tokens=0))
    torch.testing.assert_close(found[TARGET.mask], expected[TARGET.mask], **CLOSE)
    weighted_sum(found, TARGET).backward()
    weighted_sum(expected, TARGET).backward()
    same_gradients(torch_names(gradients(model.decoder), "decoder"), gradients(theirs))


def test_marian_with_our_weights_gives_our_logits_and_gradients():
    model, config = transformer()
    marian = to_marian(model, config)
    read, targets, real = TARGET.shift()
    found = model.readout(model(SOURCE, read))
    theirs = marian(
        input_ids=SOURCE.data,
        attention_mask=SOURCE.mask.long(),
        decoder_input_ids=read.data,
        decoder_attention_mask=read.mask.long(),
        use_cache=False,
    ).logits
    torch.testing.assert_close(found[real], theirs[real], **CLOSE)
    F.cross_entropy(found[real], targets[real]).backward()
    F.cross_entropy(theirs[real], targets[real]).backward()
    ours = to_marian_names(gradients(model))
    same_gradients(ours, {name: grad for name, grad in gradients(marian).items() if "positions" not in name})


@torch.no_grad()
def test_marians_kv_cache_equals_ours_step_by_step():
    model, config = transformer()
    marian, ids = to_marian(model, config), TARGET.data[1:2]
    source = Tokens.full(SOURCE.data[:1])
    state, past = model.start(source, max_tokens=6), None
    encoded = marian.model.encoder(input_ids=source.data)
    for t in range(ids.shape[1]):
        features, state = model.decoder(Tokens.full(ids[:, t : t + 1]), state)
        theirs_out = marian(
            encoder_outputs=encoded, decoder_input_ids=ids[:, t : t + 1], past_key_values=past, use_cache=True
        )
        past = theirs_out.past_key_values
        torch.testing.assert_close(model.readout(features), theirs_out.logits, **CLOSE)


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({"norm": "pre"}, '"pre", "sinusoidal", "all"'),
        ({"positions": "learned"}, '"post", "learned", "all"'),
        ({"tie": "none"}, '"post", "sinusoidal", "none"'),
    ],
)
def test_a_config_that_marian_lacks_is_refused(changes, found):
    with pytest.raises(ConfigError) as caught:
        marian_config(replace(SHAPE, **changes), vocabulary=V)
    assert str(caught.value) == (f'Marian has norm = "post", positions = "sinusoidal" and tie = "all"; found {found}')


GPT_PARTS = {
    "embed.": "wte.",
    "positions.table.": "wpe.",
    "layers.": "h.",
    ".norm1.": ".ln_1.",
    ".norm2.": ".ln_2.",
    ".attention.qkv.": ".attn.c_attn.",
    ".attention.out.": ".attn.c_proj.",
    ".ffn.up.": ".mlp.c_fc.",
    ".ffn.down.": ".mlp.c_proj.",
}


def gpt2_names(parameters):
    """Our tensors under GPT-2's names; its linear maps are stored the other way round."""
    found = {}
    for name, tensor in parameters.items():
        if name == "readout.weight":
            found["lm_head.weight"] = tensor
            continue
        theirs = "ln_f." + name.removeprefix("norm.") if name.startswith("norm.") else name
        for ours, other in GPT_PARTS.items():
            theirs = theirs.replace(ours, other)
        turned = ".c_" in theirs and theirs.endswith("weight")
        found[f"transformer.{theirs}"] = tensor.T if turned else tensor
    return found


def test_gpt2_with_our_weights_gives_our_logits_and_gradients():
    config = GPTConfig(layers=2, width=16, heads=4, dropout=0.0, max_positions=32)
    torch.manual_seed(4)
    model = shaken(config.build(Words(V), Words(V)))
    settings = GPT2Config(
        vocab_size=V, n_positions=32, n_embd=16, n_layer=2, n_head=4, bos_token_id=SOS, eos_token_id=EOS
    )
    theirs = GPT2LMHeadModel(settings).eval()
    theirs.load_state_dict(gpt2_names(dict(model.decoder.named_parameters(remove_duplicate=False))), strict=True)
    read, targets, real = TARGET.shift()
    found = model.readout(model(Tokens.pad([[], [], []]), read))
    theirs_out = theirs(input_ids=read.data, attention_mask=read.mask.long(), use_cache=False).logits
    torch.testing.assert_close(found[real], theirs_out[real], atol=1e-4, rtol=1e-4)
    F.cross_entropy(found[real], targets[real]).backward()
    F.cross_entropy(theirs_out[real], targets[real]).backward()
    same_gradients(gpt2_names(gradients(model.decoder)), gradients(theirs))
