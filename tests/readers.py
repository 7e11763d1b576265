"""Data and settings of a tiny classifier, tagger and forecaster."""

READERS = {
    "critic": (
        "task.kind=classify", "data.kind=tsv", "data.train={}/reviews.tsv", "model.kind=recurrent", "model.width=16",
        "train.steps=40", "train.validate_every=40", "train.batch_tokens=256", "train.schedule.lr=0.02",
        "train.schedule.warmup=5",
    ),
    "tagger": (
        "task.kind=label", "task.scheme=bio", "task.crf=linear", "data.kind=conll", "data.train={}/names.conll",
        "data.valid_share=0.15",
        "model.kind=transformer", "model.layers=1", "model.width=16", "model.heads=2", "model.ffn_width=32",
        "train.steps=40", "train.validate_every=40", "train.batch_tokens=256", "train.schedule.lr=0.02",
        "train.schedule.warmup=5",
    ),
    "teller": (
        "task.kind=forecast", "task.horizon=4", "task.window=12", "data.kind=csv", "data.train={}/load.csv",
        "model.kind=recurrent", "model.width=8", "train.steps=10", "train.validate_every=10", "train.batch_tokens=96",
    ),
}  # fmt: skip
REVIEWS = "text\tlabel\n" + "".join(
    f"{plain} {word}\t{label}\n"
    for plain in ("this movie is", "the film was so", "it is", "a story , very")
    for label, words in (("positive", ("great", "lovely", "fine")), ("negative", ("bad", "awful", "dull")))
    for word in words
    for _ in range(8)
)
NAMES = "".join(
    f"{name} B-PER\nlives O\nin O\n{town} B-LOC\n. O\n\n"
    for name in ("Ada", "Alan", "Emmy", "Kurt")
    for town in ("Rome", "Oslo", "Lima")
    for _ in range(8)
)
LOAD = "date,load,price\n" + "".join(
    f"2024-{month:02}-{day:02},{20 + (month * 31 + day) % 7 + day / 10},{month * 3 - day % 5}\n"
    for month, days in ((1, 31), (2, 29), (3, 31), (4, 30))
    for day in range(1, days + 1)
)
