"""Tiny trained language models, one of them with a short context, and a BERT that classifies."""

import regard
from readers import REVIEWS

PROMPT = "The wind blew"
BOOK = "".join(f"The wind blew {word}, and the sea said nothing.\n" for word in ("north", "south", "east", "west") * 60)
BASE = (
    "task.kind=generate", "data.kind=text", "train.steps=40", "train.validate_every=40", "train.batch_tokens=512",
    "task.samples=0", "train.schedule.lr=0.01", "train.schedule.warmup=5", "task.length=20", "task.window=48",
)  # fmt: skip
MODELS = {
    "gpt": ("model.kind=gpt", "model.layers=2", "model.width=16", "model.heads=2", "model.max_positions=48"),
    "llama": (
        "model.kind=llama", "model.layers=2", "model.width=16", "model.heads=4", "model.kv_heads=2",
        "model.ffn_width=32", "model.max_positions=48",
    ),
    "long": (
        "model.kind=gpt", "model.layers=1", "model.width=16", "model.heads=2", "model.max_positions=24",
        "task.window=24", "task.length=60",
    ),
    "rnnlm": ("model.kind=rnnlm", "model.cell=lstm", "model.layers=2", "model.width=16"),
}  # fmt: skip
FOODS = {"cat": "fish", "dog": "meat", "horse": "hay", "bird": "seeds"}
MEALS = "".join(
    f"the {animal} eats {food} {day} . the {animal} likes {food} .\n"
    for animal, food in FOODS.items()
    for day in ("today", "again")
)
FILL = (
    "task.kind=fill", "task.next_sentence=true", "task.length=24", "task.mask_share=0.3", "data.kind=text",
    "data.unit=line", "text.vocab_size=80",
    "model.kind=bert", "model.layers=2", "model.width=16", "model.heads=2", "model.ffn_width=32",
    "model.max_positions=40", "model.dropout=0.0", "train.steps=60", "train.validate_every=60",
    "train.batch_tokens=256", "train.schedule.lr=0.005", "train.schedule.warmup=10",
)  # fmt: skip
BERT = (
    "task.kind=classify", "task.max_length=30", "data.kind=tsv", "model.kind=bert", "model.layers=2", "model.width=16",
    "model.heads=2", "model.ffn_width=32", "model.max_positions=32", "train.steps=30", "train.validate_every=30",
    "train.batch_tokens=256", "train.schedule.lr=0.01", "train.schedule.warmup=5",
)  # fmt: skip


def train_runs(root):
    """A folder with a run of each model."""
    (root / "book.txt").write_text(BOOK, encoding="utf-8")
    (root / "reviews.tsv").write_text(REVIEWS, encoding="utf-8")
    regard.Run(root / "runs" / "bert").train(
        regard.Recipe.read(None, [*BERT, f"data.train={root.as_posix()}/reviews.tsv"])
    )
    (root / "meals.txt").write_text(MEALS * 60, encoding="utf-8")
    regard.Run(root / "runs" / "fill").train(
        regard.Recipe.read(None, [*FILL, f"data.train={root.as_posix()}/meals.txt"])
    )
    for name, settings in MODELS.items():
        recipe = regard.Recipe.read(None, [*BASE, f"data.train={root.as_posix()}/book.txt", *settings])
        regard.Run(root / "runs" / name).train(recipe)
    return root / "runs"
