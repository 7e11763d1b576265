"""Hugging Face folders with random weights: small models of each family, saved by transformers with a tokenizer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import tokenizers
import torch
from tokenizers import AddedToken, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import (
    BertConfig,
    BertForMaskedLM,
    DistilBertConfig,
    DistilBertForMaskedLM,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    MarianConfig,
    MarianMTModel,
    MistralConfig,
    MistralForCausalLM,
    OpenAIGPTConfig,
    OpenAIGPTLMHeadModel,
    PreTrainedModel,
    Qwen2Config,
    Qwen2ForCausalLM,
)
from transformers.modeling_gguf_pytorch_utils import load_gguf_checkpoint

TEXT = [
    "The quick brown fox jumps over the lazy dog, and the dog sleeps on.",
    "She sells sea shells by the sea shore; où est le café?",
    "Many hands make light work, and too many cooks spoil the broth.",
]
LLAMA = {
    "hidden_size": 24, "intermediate_size": 40, "num_hidden_layers": 3, "num_attention_heads": 4,
    "max_position_embeddings": 96, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": None,
}  # fmt: skip
GPT = {"n_embd": 24, "n_layer": 3, "n_head": 4, "n_positions": 96}


def byte_bpe(size: int = 300, special: tuple[str, ...] = ("<|endoftext|>",)) -> tokenizers.Tokenizer:
    """A byte-level BPE as GPT-2's."""
    found = tokenizers.Tokenizer(models.BPE())
    found.pre_tokenizer, found.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size, special_tokens=list(special), initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )  # fmt: skip
    found.train_from_iterator(TEXT, trainer)
    found.post_processor = processors.ByteLevel(trim_offsets=True)
    return found


def sentencepiece_bpe() -> tokenizers.Tokenizer:
    """A BPE with bytes as a last resort, as Llama 2's: <unk>, <s>, </s>, 256 bytes, pieces; texts begin with <s>."""
    letters = sorted({letter for line in TEXT for letter in line.replace(" ", "▁")} | {"▁"})
    merges = [("▁", "t"), ("h", "e"), ("▁t", "he"), ("a", "n"), ("an", "d"), ("▁", "and")]
    pieces = ["<unk>", "<s>", "</s>", *(f"<0x{i:02X}>" for i in range(256)), *letters, *("".join(m) for m in merges)]
    vocabulary = {piece: i for i, piece in enumerate(dict.fromkeys(pieces))}
    found = tokenizers.Tokenizer(models.BPE(vocabulary, merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    found.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    found.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    found.post_processor = processors.TemplateProcessing("<s> $A", "<s> $A <s> $B", [("<s>", 1)])
    found.add_special_tokens([AddedToken(name, special=True, normalized=False) for name in ("<unk>", "<s>", "</s>")])
    return found


def gpt1_bpe() -> tokenizers.Tokenizer:
    """A BPE of lower-case words with ends of words, as the first GPT's; it has no token that ends a text."""
    found = tokenizers.Tokenizer(models.BPE(unk_token="<unk>", end_of_word_suffix="</w>"))
    found.normalizer = normalizers.BertNormalizer(lowercase=True)
    found.pre_tokenizer, found.decoder = pre_tokenizers.BertPreTokenizer(), decoders.BPEDecoder("</w>")
    trainer = trainers.BpeTrainer(
        vocab_size=150, special_tokens=["<unk>"], end_of_word_suffix="</w>", show_progress=False
    )
    found.train_from_iterator(TEXT, trainer)
    return found


def randomized(model: PreTrainedModel, scale: float = 0.15) -> PreTrainedModel:
    """Random numbers on all weights, biases and norms too: a wrong mapping must not hide behind zeros and ones."""
    torch.manual_seed(5)
    with torch.no_grad():
        for p in (p for p in model.parameters() if p.requires_grad):  # others are tables
            p += torch.randn_like(p) * scale
    return model.eval()


def save(model: PreTrainedModel, tokenizer: tokenizers.Tokenizer, folder: Path, **settings: Any) -> Path:
    """Save a model and its tokenizer as transformers does."""
    model.save_pretrained(folder)
    tokenizer.save(str(folder / "tokenizer.json"))
    content = {"tokenizer_class": "PreTrainedTokenizerFast"} | settings
    (folder / "tokenizer_config.json").write_text(json.dumps(content), encoding="utf-8")
    return folder


def gpt2(folder: Path, **settings: Any) -> tuple[PreTrainedModel, Path]:
    words = byte_bpe()
    config = GPT2Config(**GPT, vocab_size=words.get_vocab_size(), bos_token_id=0, eos_token_id=0, **settings)
    model = randomized(GPT2LMHeadModel(config))
    return model, save(model, words, folder, bos_token="<|endoftext|>", eos_token="<|endoftext|>")


def openai_gpt(folder: Path) -> tuple[PreTrainedModel, Path]:
    words = gpt1_bpe()
    model = randomized(OpenAIGPTLMHeadModel(OpenAIGPTConfig(**GPT, vocab_size=words.get_vocab_size())))
    return model, save(model, words, folder)


def llama(folder: Path, **settings: Any) -> tuple[PreTrainedModel, Path]:
    words = sentencepiece_bpe()
    model = randomized(LlamaForCausalLM(LlamaConfig(**LLAMA | settings, vocab_size=words.get_vocab_size())))
    return model, save(model, words, folder, bos_token="<s>", eos_token="</s>")


CHAT = (
    "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}"
    "{{ '<|im_start|>system\nYou are kind.<|im_end|>\n' }}{% endif %}"
    "{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
"""a chat template in ChatML, with a default system message"""


def smollm(folder: Path) -> tuple[PreTrainedModel, Path]:
    """Grouped queries, tied weights, a chat vocabulary whose end is not its first special token."""
    words = byte_bpe(special=("<|endoftext|>", "<|im_start|>", "<|im_end|>"))
    settings = LLAMA | {"num_key_value_heads": 2, "tie_word_embeddings": True, "rope_theta": 100_000.0}
    model = randomized(LlamaForCausalLM(LlamaConfig(**settings, vocab_size=words.get_vocab_size() + 7)))
    return model, save(model, words, folder, bos_token="<|im_start|>", eos_token="<|im_end|>", chat_template=CHAT)


def qwen2(folder: Path) -> tuple[PreTrainedModel, Path]:
    words = byte_bpe(special=("<|endoftext|>", "<|im_start|>", "<|im_end|>"))
    settings = LLAMA | {"num_key_value_heads": 2, "bos_token_id": None, "eos_token_id": 0}
    model = randomized(Qwen2ForCausalLM(Qwen2Config(**settings, vocab_size=words.get_vocab_size())))
    return model, save(model, words, folder, eos_token="<|endoftext|>", pad_token="<|endoftext|>")


FRENCH = ["le chat noir dort sur la table", "la petite fille mange une pomme rouge", "où est le café de la gare?"]
ENGLISH = ["the black cat sleeps on the table", "the little girl eats a red apple", "where is the station café?"]
MARIAN = {
    "d_model": 24, "encoder_layers": 2, "decoder_layers": 1, "encoder_ffn_dim": 40, "decoder_ffn_dim": 40,
    "encoder_attention_heads": 4, "decoder_attention_heads": 4, "activation_function": "swish",
    "scale_embedding": True, "max_position_embeddings": 96, "eos_token_id": 0,
}  # fmt: skip


def sentencepiece_pair(folder: Path) -> int:
    """source.spm, target.spm and vocab.json as Marian's: </s> and <unk> first, <pad> last; returns their tokens."""
    import sentencepiece

    folder.mkdir(parents=True, exist_ok=True)
    pieces: set[str] = set()
    for side, lines in (("source", FRENCH), ("target", ENGLISH)):
        (folder / "text").write_text("\n".join(lines * 4), encoding="utf-8")
        sentencepiece.SentencePieceTrainer.train(
            input=str(folder / "text"),
            model_prefix=str(folder / side),
            vocab_size=60,
            minloglevel=2,
            num_threads=1,
            hard_vocab_limit=False,
        )
        (folder / f"{side}.model").rename(folder / f"{side}.spm")
        (folder / f"{side}.vocab").unlink()
        model = sentencepiece.SentencePieceProcessor(str(folder / f"{side}.spm"))
        pieces |= {model.id_to_piece(id) for id in range(model.get_piece_size())}
    (folder / "text").unlink()
    tokens = ["</s>", "<unk>", *sorted(pieces - {"</s>", "<unk>", "<s>"}), "<pad>"]
    (folder / "vocab.json").write_text(json.dumps({token: id for id, token in enumerate(tokens)}), encoding="utf-8")
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "MarianTokenizer"}))
    return len(tokens)


def marian(folder: Path, scale: float = 0.15, **settings: Any) -> tuple[MarianMTModel, Path]:
    """A Marian with a random output bias, whose outputs begin with padding."""
    size = sentencepiece_pair(folder)
    ids = {"vocab_size": size, "pad_token_id": size - 1, "decoder_start_token_id": size - 1}
    model = randomized(MarianMTModel(MarianConfig(**MARIAN | ids | settings)), scale)
    model.final_logits_bias += torch.randn_like(model.final_logits_bias)
    model.generation_config.bad_words_ids = [[size - 1]]
    model.generation_config.num_beams = 3
    model.save_pretrained(folder)
    return model, folder


def mistral(folder: Path) -> tuple[PreTrainedModel, Path]:
    words = sentencepiece_bpe()
    settings = LLAMA | {"num_key_value_heads": 2, "sliding_window": None, "head_dim": 10}
    model = randomized(MistralForCausalLM(MistralConfig(**settings, vocab_size=words.get_vocab_size())))
    return model, save(model, words, folder, bos_token="<s>", eos_token="</s>")


LANGUAGE_MODELS = {
    "gpt2": gpt2, "openai-gpt": openai_gpt, "llama": llama, "smollm2": smollm, "qwen2": qwen2, "mistral": mistral,
}  # fmt: skip


def read_gguf(path: Path) -> PreTrainedModel:
    """The Llama of a GGUF file, read by transformers (whose from_pretrained would need accelerate for it)."""
    model = LlamaForCausalLM(LlamaConfig(**load_gguf_checkpoint(path)["config"]))
    found = load_gguf_checkpoint(path, return_tensors=True, model_to_load=model)["tensors"]
    missing, unexpected = model.load_state_dict(found, strict=False)
    assert missing == ["lm_head.weight"] and unexpected == []  # which is the embedding
    return model.eval()


def wordpiece() -> tokenizers.Tokenizer:
    """A WordPiece vocabulary as BERT's."""
    found = tokenizers.Tokenizer(models.WordPiece(unk_token="[UNK]"))
    found.normalizer, found.pre_tokenizer = (
        normalizers.BertNormalizer(lowercase=True),
        pre_tokenizers.BertPreTokenizer(),
    )
    found.decoder = decoders.WordPiece()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    found.train_from_iterator(
        TEXT, trainers.WordPieceTrainer(vocab_size=200, special_tokens=special, show_progress=False)
    )
    found.post_processor = processors.TemplateProcessing(
        "[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1", [("[CLS]", 2), ("[SEP]", 3)]
    )
    return found


BERT = {
    "hidden_size": 24, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 56,
    "max_position_embeddings": 40,
}  # fmt: skip
DISTILBERT = {"dim": 24, "n_layers": 3, "n_heads": 4, "hidden_dim": 56, "max_position_embeddings": 40}


def bert(folder: Path, kind: type[PreTrainedModel] = BertForMaskedLM) -> tuple[PreTrainedModel, Path]:
    words = wordpiece()
    config = BertConfig(**BERT, vocab_size=words.get_vocab_size())
    model = randomized(kind(config))
    return model, save(model, words, folder, tokenizer_class="BertTokenizerFast")


def distilbert(folder: Path) -> tuple[PreTrainedModel, Path]:
    words = wordpiece()
    model = randomized(DistilBertForMaskedLM(DistilBertConfig(**DISTILBERT, vocab_size=words.get_vocab_size())))
    return model, save(model, words, folder)
