"""Back-translation: synthetic sentence pairs from monolingual text of the target language (Sennrich et al. 2016).

A model of the other direction translates the text; each translation becomes the source of a pair, whose target is the
text itself. Pairs are streamed to OUTPUT.part, a record beside it says after each chunk of lines what is done, and one
that was killed goes on from there: chunks are always the same lines, so that the file is the same to the byte.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

from regard.data.lines import read_lines
from regard.data.splits import normalize_sentence
from regard.errors import ConfigError, DataError, InputError, OutputError
from regard.files import cannot_write, file_sha256, fsync_folder
from regard.tasks.init_weights import ModelOrigin
from regard.tasks.translate.filters import FilterConfig
from regard.tasks.translate.predict import Translation, Translator
from regard.tasks.translate.sources import Pair
from regard.tasks.translate.synthetic_record import BackTranslationConfig, SyntheticRecord
from regard.tasks.translate.tags import check_tag

CHUNK = 256
"""lines that are translated between two records"""
MAX_NGRAM = 8
"""tokens of the longest n-gram whose repetition is looked for"""
REPEATS = 4
"""how often an n-gram stands in a row in a text that repeats itself; of two tokens or more, one time less"""
REASONS = (
    *("empty", "too long", "tags in the text"),
    *("unfinished", "unknown tokens", "copies", "length ratio", "repeated n-grams"),
)
"""why a line gives no pair, in the order of the tests"""


@dataclass(frozen=True)
class BackTranslator:
    """Makes synthetic pairs of lines, and counts those that it drops."""

    translator: Translator
    rules: FilterConfig
    mark: str | None = None
    """tag before each synthetic source"""

    @classmethod
    def build(cls, translator: Translator, rules: FilterConfig, config: BackTranslationConfig) -> BackTranslator:
        """A back-translator by these settings; when sampling, each line has a random stream of its own."""
        if config.mark is not None:
            check_tag(config.mark)
        if translator.tag is None and not translator.tags.optional:
            raise ConfigError(f"--tag must be given: {translator.tags.describe()}")
        drawn: dict[str, Any] = {"temperature": config.temperature, "seed": config.seed} if config.sample else {}
        search = replace(translator.config, sample=config.sample, **drawn)
        return cls(replace(translator, config=search, line_streams=config.sample), rules, config.mark)

    def pairs(self, lines: Sequence[str], first_line: int, counts: Counter[str]) -> list[Pair]:
        """The pairs of lines, in order; `counts` is updated."""
        texts = [" ".join(line.split()) for line in lines]
        reasons = self._reasons_before(texts)
        asked = ["" if reason else text for text, reason in zip(texts, reasons, strict=True)]
        found = self.translator.translate(asked, first_line=first_line)
        pairs = []
        for text, reason, best in zip(texts, reasons, found, strict=True):
            reason = reason or self._reason(best[0], text)
            if reason is None:
                pairs.append((f"{self.mark} {best[0].text}" if self.mark else best[0].text, text))
            else:
                counts[reason] += 1
        counts["read"] += len(lines)
        return pairs

    def _reasons_before(self, texts: Sequence[str]) -> list[str | None]:
        """Why lines are not translated at all."""
        rows = self.translator.vocabularies.source.encode_batch(
            [text if len(text) <= self.rules.max_characters else "" for text in texts]
        )
        found: list[str | None] = []
        for text, row in zip(texts, rows, strict=True):
            tagged = "tags in the text" if self.translator.tags.split(text)[0] else None
            long = bool(text) and (not row or len(row) >= self.rules.max_tokens)
            found.append("empty" if not text else "too long" if long else tagged)
        return found

    def _reason(self, found: Translation, text: str) -> str | None:
        """Why a translation gives no pair; None: it does."""
        if not found.text.strip():
            return "empty"
        if not found.complete:
            return "unfinished"
        vocabulary = self.translator.vocabularies.target
        if vocabulary.unk >= 0 and vocabulary.token(vocabulary.unk) in found.tokens:
            return "unknown tokens"
        if normalize_sentence(found.text) == normalize_sentence(text):
            return "copies"
        reason = self.rules.reason(found.text, text)
        if reason is None and repeats(found.tokens):
            own = self.translator.vocabularies.source.encode(text).tokens
            reason = None if repeats(own) else "repeated n-grams"
        return reason


def repeats(tokens: Sequence[str]) -> bool:
    """Whether an n-gram follows itself: a token four times in a row, or two to eight tokens three times.

    >>> repeats("a man and a man and a man and".split()), repeats("a man and a woman".split())
    (True, False)
    """
    for n in range(1, MAX_NGRAM + 1):
        wanted = n * (REPEATS - 1 if n == 1 else REPEATS - 2)
        run = 0
        for i in range(n, len(tokens)):
            run = run + 1 if tokens[i] == tokens[i - n] else 0
            if run >= wanted:
                return True
    return False


@dataclass
class BackTranslation:
    """A back-translation whose output is open: `run` goes on where it stopped."""

    maker: BackTranslator
    output: Path
    record: SyntheticRecord
    """what is done"""
    file: BinaryIO | None
    """OUTPUT.part; None: all is done"""

    def run(self) -> Iterator[SyntheticRecord]:
        """Translate chunk after chunk; the record after each, which is saved. The output appears at the end."""
        lines = islice(read_lines(self.record.input), self.record.done, None)
        while self.file is not None and (chunk := list(islice(lines, CHUNK))):
            counts = Counter(self.record.counts)
            pairs = self.maker.pairs(chunk, self.record.done + 1, counts)
            self._append("".join(f"{source}\t{target}\n" for source, target in pairs).encode(), counts, len(chunk))
            yield self.record
        if self.file is not None:
            self._finish()

    def _append(self, data: bytes, counts: Counter[str], lines: int) -> None:
        assert self.file is not None
        try:
            self.file.write(data)
            self.file.flush()
            os.fsync(self.file.fileno())
        except OSError as error:
            raise cannot_write(part_path(self.output), len(data), error) from error
        self._digest.update(data)
        ordered = {reason: counts[reason] for reason in ("read", *REASONS)}
        done, size = self.record.done + lines, self.record.size + len(data)
        self.record = replace(self.record, done=done, size=size, sha256=self._digest.hexdigest(), counts=ordered)
        self.record.save(self.output)

    @cached_property
    def _digest(self) -> hashlib._Hash:
        """Running SHA-256 of the output, which must begin with what the record says."""
        digest, part = hashlib.sha256(), part_path(self.output)
        with part.open("rb") as file:
            left = self.record.size
            while block := file.read(min(left, 1 << 20)):
                digest.update(block)
                left -= len(block)
        if left or (self.record.size and digest.hexdigest() != self.record.sha256):
            raise DataError(f"{part} is not what its record says; remove both, and start again")
        return digest

    def _finish(self) -> None:
        """Put the complete output in its place."""
        if not self.record.size:
            for path in (part_path(self.output), SyntheticRecord.path(self.output)):
                path.unlink(missing_ok=True)
            raise DataError(f"{self.record.input} gave no pair: {self.record.summary()}; check the text and the model")
        part_path(self.output).replace(self.output)
        fsync_folder(self.output.parent)
        self.record = replace(self.record, complete=True)
        self.record.save(self.output)


def part_path(output: Path) -> Path:
    """The file of an unfinished output."""
    return output.with_name(output.name + ".part")


def count_lines(path: Path) -> int:
    """Lines of a monolingual file; one that cannot be read at every line is refused before any work."""
    if path.exists() and not path.is_file():
        raise InputError(f"{path}: expected a file, which can be read again where it stopped")
    count = sum(1 for _ in read_lines(path))
    if not count:
        raise DataError(f"{path} is empty; expected one sentence per line")
    return count


@contextmanager
def open_back_translation(
    maker: BackTranslator, origin: ModelOrigin, monolingual: Path, output: Path, config: BackTranslationConfig
) -> Iterator[BackTranslation]:
    """Open the output of a back-translation: a new one, or one that was interrupted, by the same settings only."""
    total, digest = count_lines(monolingual), file_sha256(monolingual)
    record = check_output(output, SyntheticRecord(origin, str(monolingual), digest, total, config, maker.rules))
    if record.complete:
        yield BackTranslation(maker, output, record, None)
        return
    with _open_part(output, record) as file:
        yield BackTranslation(maker, output, record, file)


def check_output(output: Path, wanted: SyntheticRecord) -> SyntheticRecord:
    """The record to go on from; an output of other settings, or of something else, is refused and left as it is."""
    part, place = part_path(output), SyntheticRecord.path(output)
    record = SyntheticRecord.find(output)
    advice = f"write to another file with -o, or remove {output} and {place}"
    if record is None:
        for path in (output, part, place):
            if path.exists():
                raise ConfigError(f"{path} exists, and no record says that it is of this back-translation; {advice}")
        return wanted
    if not record.done and not output.exists():  # it failed before its first chunk
        return wanted
    if changed := record.changes(wanted):
        held = output if output.exists() else place
        raise ConfigError(f"{held} is of other settings: {'; '.join(changed)}; {advice}")
    if not output.exists():
        moved = replace(record, origin=wanted.origin, input=wanted.input)
        return moved if not record.complete and part.exists() else wanted
    if output.stat().st_size != record.size or file_sha256(output) != record.sha256:
        raise ConfigError(f"{output} was changed after it had been made; {advice}")
    return replace(record, complete=True)


@contextmanager
def _open_part(output: Path, record: SyntheticRecord) -> Iterator[BinaryIO]:
    """OUTPUT.part for its only writer, without what was written after the record."""
    part = part_path(output)
    try:
        descriptor = os.open(part, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        raise cannot_write(part, 0, error) from error
    with os.fdopen(descriptor, "r+b") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise OutputError(f"{part}: another process is writing it; wait for it, or stop it") from None
        if not record.done:
            record.save(output)
        file.truncate(record.size)
        file.seek(record.size)
        yield file
