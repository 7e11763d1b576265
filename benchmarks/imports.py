"""Imported SmolLM2-135M-Instruct and MiniLM against transformers on the same files; both are downloaded once.

python benchmarks/imports.py smollm2   logits, greedy text of 20 prompts, tokens per second; transformers reads the GGUF
python benchmarks/imports.py minilm    sentence vectors: mean of the last states, normalized
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

import torch

import regard
from regard.exchange.catalogue import MODELS
from regard.sequence import Tokens
from regard.tasks.generate.loader import empty_source

PROMPTS = [
    "The capital of France is", "Once upon a time", "The three primary colors are", "Water boils at", "In 1969,",
    "My favorite food is", "The best way to learn a language is", "def add(a, b):", "Two plus two is",
    "The sun rises in the", "A dog is a", "To make tea, first", "The largest planet is", "Dear Sir or Madam,",
    "He opened the door and", "Climate change is caused by", "The opposite of hot is", "Photosynthesis is",
    "She looked at him and said", "Computers are useful because",
]  # fmt: skip
SENTENCES = [
    "A man is eating food.", "A man is eating a piece of bread.", "The girl is carrying a baby.",
    "A man is riding a horse.", "A woman is playing violin.", "Two men pushed carts through the woods.",
    "A cheetah is running behind its prey.", "Où est le café?", "x",
]  # fmt: skip


@torch.no_grad()
def compare_smollm2(run: Path, file: Path, length: int, prompts: int) -> None:
    """Largest difference of logits over all prompts; of some, identical greedy texts, and tokens per second."""
    from transformers import LlamaConfig, LlamaForCausalLM
    from transformers.modeling_gguf_pytorch_utils import load_gguf_checkpoint

    model: Any = regard.load(run, "cpu")
    theirs = LlamaForCausalLM(LlamaConfig(**load_gguf_checkpoint(file)["config"])).eval()
    tensors = load_gguf_checkpoint(file, return_tensors=True, model_to_load=theirs)["tensors"]
    assert theirs.load_state_dict(tensors, strict=False).missing_keys == ["lm_head.weight"]  # which is the embedding
    words, generator = model.modality.tokenizer, model.generator(temperature=0)
    worst, same, seconds, made = 0.0, 0, {"regard": 0.0, "transformers": 0.0}, 0
    for number, prompt in enumerate(PROMPTS):
        ids = torch.tensor([words.encode(prompt).ids])
        logits = model.module.readout(model.module(empty_source(1), Tokens.full(ids)))
        worst = max(worst, float((logits - theirs(ids).logits).abs().max()))
        if number >= prompts:
            continue
        start = time.perf_counter()
        found = generator.generate(prompt, length)[0]
        middle = time.perf_counter()
        out = theirs.generate(ids, do_sample=False, max_new_tokens=length, eos_token_id=words.eos, pad_token_id=0)
        seconds["regard"] += middle - start
        seconds["transformers"] += time.perf_counter() - middle
        expected = [id for id in out[0, ids.shape[1] :].tolist() if id != words.eos]
        same, made = same + (list(found.tokens) == words.tokens(expected)), made + len(expected)
    print(f"logits of {len(PROMPTS)} prompts within {worst:.2e}")
    print(f"greedy text of at most {length} tokens identical for {same} of {prompts} prompts, {made} tokens")
    print(", ".join(f"{name} {made / spent:.1f} tokens/s" for name, spent in seconds.items()))


@torch.no_grad()
def compare_minilm(run: Path, folder: Path) -> None:
    """Largest difference of normalized sentence vectors."""
    from transformers import AutoModel, AutoTokenizer

    model: Any = regard.load(run, "cpu")
    theirs, their_words = AutoModel.from_pretrained(folder).eval(), AutoTokenizer.from_pretrained(folder)
    rows = [[model.tokenizer.sos, *model.tokenizer.encode(text).ids, model.tokenizer.eos] for text in SENTENCES]
    tokens = Tokens.pad(rows)
    found = mean_vectors(model.module.encoder(tokens).states.data, tokens.mask)
    batch = their_words(SENTENCES, padding=True, return_tensors="pt")
    expected = mean_vectors(theirs(**batch).last_hidden_state, batch["attention_mask"].bool())
    pairs = zip(batch["input_ids"], batch["attention_mask"], strict=True)
    assert [row[mask.bool()].tolist() for row, mask in pairs] == rows
    print(f"sentence vectors within {float((found - expected).abs().max()):.2e} over {len(SENTENCES)} sentences")


def mean_vectors(states_BSD: torch.Tensor, mask_BS: torch.Tensor) -> torch.Tensor:
    """Mean of the states of a sentence, of length 1."""
    total_BD = (states_BSD * mask_BS[..., None]).sum(1)
    return torch.nn.functional.normalize(total_BD / mask_BS.sum(1, keepdim=True), dim=-1)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", choices=["smollm2", "minilm"])
    parser.add_argument("--length", type=int, default=64)
    parser.add_argument("--prompts", type=int, default=len(PROMPTS), help="prompts that are continued")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    files = MODELS[options.model].fetch()
    with tempfile.TemporaryDirectory() as home:
        start = time.perf_counter()
        MODELS[options.model].import_to(Path(home) / "run")
        print(f"imported in {time.perf_counter() - start:.1f} s")
        if options.model == "smollm2":
            compare_smollm2(Path(home) / "run", files[0], options.length, options.prompts)
        else:
            compare_minilm(Path(home) / "run", files[0].parent)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
