"""Mistakes that end in a clear error, and long input."""

import json
import os
import random
import time

import pytest
import torch
from tokenizers import Tokenizer

from helpers.formats.checkpoints import save_checkpoint
from helpers.formats.files import write_whole
from helpers.formats.tokenizer_json import read_tokenizer, write_tokenizer
from helpers.gpt import GPT, GPTConfig
from helpers.text import BPETokenizer, CharTokenizer

CONFIG = GPTConfig(5, 8, n_layer=2, n_head=2, n_embd=8)
TEXT = "the cat sat on the mat, and the rat ran; über 東京 тест 🦉 "


@pytest.fixture
def model():
    torch.manual_seed(0)
    return GPT(CONFIG)


def test_model_and_tokenizer_speak_of_the_same_tokens(tmp_path, model):
    with pytest.raises(ValueError, match="the tokenizer has 3 tokens, the model 5"):
        save_checkpoint(tmp_path / "other", model, CharTokenizer("abc"))
    assert not (tmp_path / "other").exists()


def test_numbers_too_large_for_a_type_are_refused(tmp_path, model):
    with torch.no_grad():
        model.norm.weight[0] = 1e6
    with pytest.raises(ValueError, match=r"norm.weight holds 1e\+06: too large for torch.float16"):
        save_checkpoint(tmp_path / "half", model, dtype=torch.float16)


def test_what_a_killed_process_left_is_swept(tmp_path):
    path = tmp_path / "a.bin"
    old, young, own = (tmp_path / f".a.bin.{name}.part" for name in ("0" * 32, "1" * 32, "own"))
    for left in (old, young, own):
        left.write_bytes(b"half")
        if left != young:
            os.utime(left, (time.time() - 7200,) * 2)
    write_whole(path, b"whole")
    assert path.read_bytes() == b"whole"
    assert not old.exists() and young.exists() and own.exists()


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
    write_tokenizer(path, BPETokenizer.train(TEXT, 270, special=["<end>"]))
    content = json.loads(path.read_text())
    part = content[where] if where else content
    (part[0] if isinstance(part, list) else part)[name] = value
    path.write_text(json.dumps(content))
    with pytest.raises(ValueError, match=name):
        read_tokenizer(path)


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """The course's tokenizer and the library's, from the same file."""
    path = tmp_path_factory.mktemp("bpe") / "tokenizer.json"
    ours = BPETokenizer.train(TEXT * 3 + "aaaa abab " * 5 + "ののの ชชช", 420)
    write_tokenizer(path, ours)
    return ours, Tokenizer.from_file(str(path))


SCRIPTS = ["abn th", "aàßü", "абвст ", "東京の", "กขช ", "🦉👍🏽\u200d", "ab12, \n", "aaaab"]


def test_long_words_get_the_ids_of_the_library(both):
    ours, theirs = both
    draw = random.Random(0)
    for number in range(300):
        letters = SCRIPTS[number % len(SCRIPTS)] if number % 3 else "".join(SCRIPTS)
        text = "".join(draw.choice(letters) for _ in range(draw.choice([3, 40, 250, 700])))
        assert ours.encode(text) == theirs.encode(text).ids, text


def test_a_long_word_comes_to_its_end(both):
    """Looking at all pairs would take hours."""
    ours, theirs = both
    draw = random.Random(0)
    text = "".join(draw.choice("etaoinshrdlu") for _ in range(50_000))
    assert ours.encode(text) == theirs.encode(text).ids
