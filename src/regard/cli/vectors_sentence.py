"""regard vectors sentence and regard vectors search: sentence vectors of a run, and search by their similarity."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from regard.cli.console import Console, StageProgress
from regard.cli.line_io import json_line, line_arguments, open_lines
from regard.cli.loading import load_model, open_run
from regard.cli.options import PATH, json_option, print_json
from regard.errors import ConfigError, DataError, LineError

if TYPE_CHECKING:
    import numpy as np

    from regard.tasks.sentence_vectors import SentenceEncoder

CHUNK = 256
"""texts that are encoded together"""
FORMATS = (".npy", ".tsv", ".jsonl")
SHOWN = 100
"""characters of a line on the screen"""
pool_option = click.option(
    "--pool",
    type=click.Choice(["mean", "first", "last"]),
    default="mean",
    show_default=True,
    help="How token states become a vector: their mean, the first (BERT's [CLS]), or the last.",
)


@click.command("sentence")
@line_arguments
@pool_option
@json_option
def sentence(
    run: Path, text: tuple[str, ...], source: Path | None, target: Path | None, pool: str, as_json: bool
) -> None:
    """Sentence vectors: texts in, one vector each out, in the same order.

    RUN is a run of any task that reads texts. The states of its encoder, or of a language model, are pooled over the
    real positions of a text. Without TEXT and -i, lines are read from stdin. The output has the numbers of a vector on
    a line, with tabs between them; with --json or in a .jsonl file, an object per line. A .npy file is an array of
    NumPy with a row per text. A text that is longer than the model reads is cut.

    \b
    Examples:
      regard vectors sentence runs/demo "je suis étudiant" "tu es étudiante"
      regard vectors sentence runs/sst2 -i reviews.txt -o reviews.npy
    """
    if target is not None and target.suffix not in FORMATS:
        raise ConfigError(f"-o {target}: expected a name that ends in {', '.join(FORMATS)}")
    if target is not None and target.suffix == ".npy":
        write_npy(run, text, source, target, pool)
        return
    as_json = as_json or (target is not None and target.suffix == ".jsonl")
    with open_lines("encoding", CHUNK, text, source, target) as job:
        encoder = sentence_encoder(run, pool)

        def answer(lines: list[str], first_line: int) -> Iterator[tuple[int, list[str]]]:
            for start, part, found in job.predict(encoder.encode, lines, first_line):
                for i, line in enumerate(part):
                    yield (
                        1,
                        [format_vector(start + i, line, found if isinstance(found, LineError) else found[i], as_json)],
                    )

        job.run(answer)


def sentence_encoder(run: Path, pool: Any) -> SentenceEncoder:
    """The encoder of a run's sentences."""
    open_run(run)
    from regard.tasks.sentence_vectors import SentenceEncoder

    return SentenceEncoder(load_model(run), pool)


def format_vector(number: int, text: str, found: np.ndarray | LineError, as_json: bool) -> str:
    """A vector as a line of text or of JSON; of a text without one, an empty line or the error."""
    if as_json:
        is_error = isinstance(found, LineError)
        row = {"error": str(found)} if is_error else {"vector": [float(f"{x:.7g}") for x in found.tolist()]}  # type: ignore[union-attr]
        return json_line({"line": number, "text": text, **row})
    return "" if isinstance(found, LineError) else "\t".join(f"{x:.7g}" for x in found.tolist())


def write_npy(run: Path, text: tuple[str, ...], source: Path | None, target: Path, pool: str) -> None:
    """All vectors as one NumPy array, written when it is complete; a text without a vector is an error."""
    import numpy as np

    from regard.files import write_bytes_atomically

    parts, done = list[np.ndarray](), 0
    with open_lines("encoding", CHUNK, text, source, None) as job:
        encoder = sentence_encoder(run, pool)
        for lines in job.chunks:
            parts.append(encoder.encode(lines, done + 1))
            job.progress.update(done := done + len(lines))
    if not done:
        raise DataError("there is no text to encode; give texts, or a file with -i")
    file = io.BytesIO()
    np.save(file, np.concatenate(parts))
    write_bytes_atomically(target, file.getvalue())
    click.echo(str(target))


@click.command("search")
@click.argument("run", type=PATH)
@click.argument("query")
@click.option("--corpus", type=PATH, required=True, help="File to search, one text per line.")
@click.option("-k", "--count", type=click.IntRange(1), default=5, show_default=True, help="Number of lines to show.")
@pool_option
@json_option
def search(run: Path, query: str, corpus: Path, count: int, pool: str, as_json: bool) -> None:
    """The lines of a file that are most similar to a query, by the cosine of their sentence vectors.

    RUN is a run of any task that reads texts. Every line is encoded, in batches; only the nearest are kept, so the file
    may be of any size. Blank lines are left out.

    \b
    Examples:
      regard vectors search runs/sst2 "a waste of time" --corpus reviews.txt -k 10
      regard vectors search runs/demo "je suis étudiant" --corpus phrases.fr --json
    """
    from regard.data.lines import printable, read_lines

    total = sum(1 for _ in read_lines(corpus)) if corpus.is_file() or not corpus.exists() else 0
    encoder = sentence_encoder(run, pool)
    from regard.tasks.sentence_vectors import search_sentences

    with StageProgress(Console.of_verb()) as stages:
        lines = read_lines(corpus)
        found, known = search_sentences(encoder, query, lines, count, lambda done: stages("encoding", done, total))
    if not known:
        raise DataError(f"{corpus}: there is no text to search; expected one per line")
    if as_json:
        print_json({"run": str(run), "query": query, "searched": known, "matches": [one._asdict() for one in found]})
        return
    for match in found:
        text = printable(match.text)
        shown = text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"
        click.echo(f"{match.cosine:7.4f}  {match.line:>6}  {shown}")
