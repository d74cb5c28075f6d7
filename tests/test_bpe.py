"""Byte-pair encoding: there and back, the merges and ids of `tokenizers`, files, faults."""

import json
import random

import pytest
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import decoders, models, pre_tokenizers, trainers

from helpers import data
from helpers.formats.tokenizer_json import read_tokenizer, to_file, tokenizer_json
from helpers.text import BPETokenizer, split_words

END = "<|endoftext|>"
TEXT = "low low low lower lowest newest widest Löwe 低い 🦉\n\n\tdon't 1234 -- don't 99\r\n  x"
ODD = [
    "",
    " ",
    "\n\n \n",
    "  two  spaces   three",
    "It's, they'll, I'M, 'tis ''''",
    "def f(x):\n    return {x: [1, 2.5e-3]}  # done\n",
    "naïve café, Ångström, ½ ²",
    "中文分词没有空格。日本語も",
    "👩‍👩‍👧 🇨🇭 🦉🦉",
    "".join(map(chr, range(0x250))),
    "\u200b\u2028\xa0\x85\x1c\ufeff\uffff",
]
DIGITS = [
    *("12 345", "a1b2c3", "  7", "x   8 ", "\n\n9\n", "don't 1's", "½ and ²", "٣٤ 一二", "Ⅷ"),
    *("3.14159e-10", "日本語 2026年", "\t1\t", "a  1  b", "é1é", "  \n 5", "IV2", "0x1F", "१२३"),
]
texts = st.one_of(st.text(), st.text("abc \n'éß🦉", max_size=60))
small = BPETokenizer.train(TEXT, 290, [END])


@pytest.fixture(scope="module")
def wikipedia():
    """Characters to learn from, and others to cut."""
    text = "\n\n".join(text for _, text in data.wikipedia())
    return text[:300_000], text[300_000:400_000]


def rust(text, vocab_size, special=()):
    tokenizer = tokenizers.Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size, initial_alphabet=alphabet, special_tokens=list(special),
        show_progress=False,
    )  # fmt: skip
    tokenizer.train_from_iterator([text], trainer)
    return tokenizer


def rust_merges(tokenizer):
    return [tuple(merge) for merge in json.loads(tokenizer.to_str())["model"]["merges"]]


def written(tokenizer):
    return [(to_file(left), to_file(right)) for left, right in tokenizer.merges]


# --- learning -------------------------------------------------------------------------------------


def test_merges_are_those_of_tokenizers(wikipedia):
    tokenizer, other = BPETokenizer.train(wikipedia[0], 1024), rust(wikipedia[0], 1024)
    assert written(tokenizer) == rust_merges(other)
    for text in [*ODD, wikipedia[1]]:
        assert tokenizer.encode(text) == other.encode(text).ids


@settings(deadline=None)
@given(st.text("ab c", max_size=60), st.integers(256, 270))
def test_merges_of_small_texts_are_those_of_tokenizers(text, vocab_size):
    """Few letters make many ties and overlaps, such as aaaa."""
    assert written(BPETokenizer.train(text, vocab_size)) == rust_merges(rust(text, vocab_size))


def test_several_texts_are_learnt_as_one_count():
    parts = ["low lower", " lowest", "\nnewest"]
    assert BPETokenizer.train(parts, 270) == BPETokenizer.train(iter(parts), 270)
    assert BPETokenizer.train(["ab", "ab"], 257).merges == [(b"a", b"b")]


def test_learning_ends_when_nothing_is_left_to_merge():
    assert BPETokenizer.train("ab", 1000).vocab_size == 257
    assert BPETokenizer.train("", 1000, [END]).vocab_size == 257


# --- there and back -------------------------------------------------------------------------------


@given(texts)
def test_every_text_round_trips(text):
    text = text.encode("utf-8", "replace").decode()
    ids = small.encode(text)
    assert small.decode(ids) == text
    assert all(0 <= i < 289 for i in ids)


@given(st.binary())
def test_all_bytes_decode(content):
    ids = [next(i for i in range(256) if small.piece(i) == bytes([b])) for b in content]
    assert small.decode_bytes(ids) == content
    assert small.decode(ids) == content.decode(errors="replace")


@pytest.mark.parametrize("digits", [False, True])
def test_words_are_those_of_tokenizers(digits):
    theirs = pre_tokenizers.ByteLevel(add_prefix_space=False)
    if digits:  # each of them is a word
        alone = pre_tokenizers.Digits(individual_digits=True)
        theirs = pre_tokenizers.Sequence([alone, theirs])
    for text in [*ODD, *DIGITS]:
        words = split_words(text, single_digits=digits)
        assert [to_file(w.encode()) for w in words] == [w for w, _ in theirs.pre_tokenize_str(text)]
        assert "".join(words) == text


def test_merges_apply_in_the_order_of_learning():
    """The longest piece that fits is not what was learnt first."""
    tokenizer = BPETokenizer([(b"b", b"c"), (b"a", b"b"), (b"ab", b"c")])
    assert [tokenizer.piece(i) for i in tokenizer.encode("abc")] == [b"a", b"bc"]


def test_the_words_of_the_training_text_are_spelled_as_any_other(wikipedia):
    """Training remembers how it spelled them; a tokenizer made of its merges must find out."""
    text = wikipedia[0][:200_000]
    trained = BPETokenizer.train(text, 500)
    assert BPETokenizer(trained.merges).encode(text) == trained.encode(text)


def test_a_long_word_comes_to_its_end():
    """Looking at all pairs would take hours."""
    draw = random.Random(0)
    learned = TEXT + "".join(draw.choice("etaoinshrdlu") for _ in range(2_000))
    word = "".join(draw.choice("etaoinshrdlu") for _ in range(50_000))
    assert BPETokenizer.train(learned, 420).encode(word) == rust(learned, 420).encode(word).ids


# --- special tokens -------------------------------------------------------------------------------


def test_special_tokens_are_recognised_only_when_asked():
    ids = small.encode(f"low{END}low", special=[END])
    assert ids.count(small.special[END]) == 1 and small.decode(ids) == f"low{END}low"
    assert small.special[END] == small.vocab_size - 1
    plain = small.encode(f"low{END}low")
    assert small.special[END] not in plain and small.decode(plain) == f"low{END}low"


def test_the_longest_special_token_wins():
    tokenizer = BPETokenizer(special=["<a>", "<a><b>"])
    assert tokenizer.encode("<a><b><a>", special=["<a>", "<a><b>"]) == [257, 256]


# --- files ----------------------------------------------------------------------------------------


def test_a_file_comes_back_the_same_and_opens_in_tokenizers(tmp_path, wikipedia):
    tokenizer = BPETokenizer.train(wikipedia[0][:200_000], 600, [END, "<pad>"])
    (tmp_path / "tokenizer.json").write_bytes(tokenizer_json(tokenizer))
    assert read_tokenizer(tmp_path / "tokenizer.json") == tokenizer
    other = tokenizers.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    assert other.get_vocab_size() == tokenizer.vocab_size == 600
    for text in [*ODD, wikipedia[1]]:
        assert other.encode(text).ids == tokenizer.encode(text)
        assert other.decode(other.encode(text).ids) == text
    text = f"one{END}two<pad>"
    assert other.encode(text).ids == tokenizer.encode(text, special=[END, "<pad>"])


def test_a_file_with_merges_as_texts_opens_too(tmp_path):
    content = json.loads(tokenizer_json(small))
    content["model"]["merges"] = [" ".join(merge) for merge in content["model"]["merges"]]
    (tmp_path / "a.json").write_text(json.dumps(content), "utf-8")
    assert read_tokenizer(tmp_path / "a.json") == small


@pytest.mark.parametrize(
    ("where", "name", "value"),
    [
        ("pre_tokenizer", "add_prefix_space", True),
        ("", "normalizer", {"type": "Lowercase"}),
        ("", "post_processor", {"type": "TemplateProcessing"}),
        ("model", "unk_token", "<unk>"),
        ("model", "continuing_subword_prefix", "##"),
        ("added_tokens", "lstrip", True),
    ],
)
def test_what_a_tokenizer_does_not_do_is_refused_by_name(tmp_path, where, name, value):
    path = tmp_path / "tokenizer.json"
    content = json.loads(tokenizer_json(BPETokenizer.train(TEXT, 270, special=["<end>"])))
    part = content[where] if where else content
    (part[0] if isinstance(part, list) else part)[name] = value
    path.write_text(json.dumps(content))
    with pytest.raises(ValueError, match=name):
        read_tokenizer(path)


# --- tokenizers that others have published --------------------------------------------------------


@pytest.fixture(scope="module")
def other():
    """A tokenizer in another layout than ours: special tokens first, digits alone, few bytes."""
    learnt = BPETokenizer.train("the cat and the hat 12 12 <|end|>" * 9, 280)
    return BPETokenizer(
        learnt.merges,
        ["<|end|>", "<|pad|>"],
        alphabet=[bytes([b]) for b in range(32, 127)],
        special_first=True,
        single_digits=True,
    )


def test_another_layout_is_saved_and_is_that_of_the_library(other, tmp_path):
    (tmp_path / "tokenizer.json").write_bytes(tokenizer_json(other))
    assert read_tokenizer(tmp_path / "tokenizer.json") == other
    theirs = tokenizers.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    for text in ("the cat 12 345 hats<|end|>", "  7 the", "and"):
        ids = theirs.encode(text).ids
        assert other.encode(text, special=other.special) == ids
        assert other.decode(ids) == text
    assert other.special == {"<|end|>": 0, "<|pad|>": 1} and other.piece(2) == b" "


def test_a_byte_outside_the_alphabet_is_named(other):
    with pytest.raises(ValueError, match="no token for the byte 0xc3 in 'é'"):
        other.encode("é")
