"""Hostile input: a clear error or the right answer, at once, and nothing good is lost."""

import json
import os
import random
import time
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer

from helpers.checkpoints import (
    load_checkpoint,
    read_tensors,
    save_checkpoint,
    write_tensors,
)
from helpers.files import json_object, write_whole
from helpers.gpt import GPT, GPTConfig
from helpers.published import gpt2
from helpers.sampling import next_token_probabilities
from helpers.text import BPETokenizer, CharTokenizer, encode_documents
from helpers.training import Watch, adamw, train

CONFIG = GPTConfig(5, 8, n_layer=2, n_head=2, n_embd=8)
TEXT = "the cat sat on the mat, and the rat ran; über 東京 тест 🦉 "


@pytest.fixture
def model():
    torch.manual_seed(0)
    return GPT(CONFIG)


@pytest.fixture
def saved(tmp_path, model):
    save_checkpoint(tmp_path / "model.safetensors", model, CharTokenizer("abcde"))
    return tmp_path / "model.safetensors"


def described(path, change):
    """The same file with another description."""
    tensors, about = read_tensors(path)
    change(about)
    write_tensors(path, tensors, about)
    return path


# --- files ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("vocab_size", 10**8),
        ("vocab_size", 10**18),
        ("n_embd", 20_000),
        ("n_embd", 2**40),
        ("n_layer", 10**9),
        ("n_layer", 3),
        ("block_size", 10**12),
        ("n_head", 0),
        ("n_head", -2),
        ("n_head", True),
        ("n_embd", "8"),
        ("n_embd", 8.0),
        ("n_layer", None),
        ("head_size", [4]),
        ("hidden", 10**15),
        ("norm_eps", "small"),
        ("dropout", 7),
        ("dropout", float("nan")),
        ("norm_eps", -1e-5),
        ("rotary_base", float("inf")),
        ("dropout", "much"),
        ("rotary_base", {}),
        ("tied", False),
        ("mlp", ["FeedForward"]),
    ],
)
def test_a_description_is_judged_before_anything_is_built(saved, name, value):
    described(saved, lambda about: about["config"].update({name: value}))
    start = time.perf_counter()
    with pytest.raises(ValueError, match=r"model\.safetensors"):
        load_checkpoint(saved)
    assert time.perf_counter() - start < 5


def test_special_tokens_are_texts(tmp_path):
    tokenizer = BPETokenizer.train(TEXT, 270, special=["<end>"])
    path = tmp_path / "pairs.safetensors"
    save_checkpoint(path, GPT(GPTConfig(270, 4, 1, 1, 4)), tokenizer)
    described(path, lambda about: about.update(special=[True]))
    with pytest.raises(ValueError, match="the special token True should be a text"):
        load_checkpoint(path)


def test_deep_json_is_a_value_error(saved, tmp_path):
    deep = "[" * 100_000
    save_file(load_file(saved), saved, metadata={"about": deep})
    with pytest.raises(ValueError, match="too deeply"):
        load_checkpoint(saved)
    (tmp_path / "tokenizer.json").write_text(deep)
    with pytest.raises(ValueError, match="too deeply"):
        BPETokenizer.load(tmp_path / "tokenizer.json")
    for text in ("3", "[]", "null", '"a"'):
        with pytest.raises(ValueError, match="it holds a"):
            json_object(text)


def test_model_and_tokenizer_speak_of_the_same_tokens(tmp_path, model, saved):
    with pytest.raises(ValueError, match="the tokenizer has 3 tokens, the model 5"):
        save_checkpoint(tmp_path / "other.safetensors", model, CharTokenizer("abc"))
    assert not (tmp_path / "other.safetensors").exists()
    described(saved, lambda about: about.update(symbols="abc"))
    with pytest.raises(ValueError, match="the tokenizer has 3 tokens, the model 5"):
        load_checkpoint(saved)


def test_numbers_too_large_for_a_type_are_refused(tmp_path, model):
    with torch.no_grad():
        model.norm.weight[0] = 1e6
    with pytest.raises(ValueError, match=r"norm.weight holds 1e\+06: too large for torch.float16"):
        save_checkpoint(tmp_path / "half.safetensors", model, dtype=torch.float16)


def test_what_a_killed_process_left_is_swept_and_links_stay(tmp_path):
    path, link = tmp_path / "a.bin", tmp_path / "link.bin"
    old, young, own = (tmp_path / f".a.bin.{name}.part" for name in ("0" * 32, "1" * 32, "own"))
    for left in (old, young, own):
        left.write_bytes(b"half")
        if left != young:
            os.utime(left, (time.time() - 7200,) * 2)
    link.symlink_to(path)
    write_whole(link, b"whole")
    assert link.is_symlink() and path.read_bytes() == b"whole"
    assert not old.exists() and young.exists() and own.exists()


@pytest.mark.skipif(os.name != "posix", reason="pipes with names are a Unix thing")
def test_a_pipe_is_not_replaced(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("pipe")
    with pytest.raises(OSError, match="a pipe or a device"):
        write_whole(tmp_path / "link", b"whole")
    assert (tmp_path / "pipe").is_fifo()


def test_the_umask_is_heeded(tmp_path):
    before = os.umask(0o077)
    try:
        write_whole(tmp_path / "own", b"")
    finally:
        os.umask(before)
    assert (tmp_path / "own").stat().st_mode & 0o777 == 0o600


def test_heads_that_are_not_told_are_twelve(tmp_path):
    with pytest.raises(ValueError, match="n_head"):
        (tmp_path / "config.json").write_text('{"n_head": "two"}')
        gpt2(tmp_path)


@pytest.mark.parametrize(
    ("where", "name", "value"),
    [
        ("pre_tokenizer", "add_prefix_space", True),
        ("pre_tokenizer", "use_regex", False),
        ("", "normalizer", {"type": "Lowercase"}),
        ("", "truncation", {"max_length": 3}),
        ("", "padding", {"length": 3}),
        ("", "post_processor", {"type": "TemplateProcessing"}),
        ("model", "dropout", 0.1),
        ("model", "unk_token", "<unk>"),
        ("model", "end_of_word_suffix", "</w>"),
        ("model", "continuing_subword_prefix", "##"),
        ("model", "byte_fallback", True),
        ("model", "ignore_merges", True),
        ("added_tokens", "lstrip", True),
        ("added_tokens", "single_word", True),
    ],
)
def test_what_a_tokenizer_does_not_do_is_refused_by_name(tmp_path, where, name, value):
    path = tmp_path / "tokenizer.json"
    BPETokenizer.train(TEXT, 270, special=["<end>"]).save(path)
    content = json.loads(path.read_text())
    part = content[where] if where else content
    (part[0] if isinstance(part, list) else part)[name] = value
    path.write_text(json.dumps(content))
    with pytest.raises(ValueError, match=name):
        BPETokenizer.load(path)


# --- state ----------------------------------------------------------------------------------------


def test_a_ruined_validation_loss_stops_before_anything_is_overwritten(tmp_path, model):
    data = torch.randint(5, (200,), generator=torch.Generator().manual_seed(0))
    sizes = dict(block_size=8, batch_size=4)

    def wild(step, steps):  # the step before the evaluation at 6
        return float("inf") if step == 5 else 1.0

    with pytest.raises(FloatingPointError, match=r"the validation loss is nan.*resume=True"):
        train(model, data, steps=20, learning_rate=1e-3, schedule=wild, folder=tmp_path,
              watch=Watch(data, every=3), **sizes)  # fmt: skip
    kept = load_file(tmp_path / "last.safetensors")
    assert all(t.isfinite().all() for t in kept.values() if t.is_floating_point())
    run = train(GPT(CONFIG), data, steps=9, learning_rate=1e-3, folder=tmp_path, resume=True,
                watch=Watch(data, every=3), **sizes)  # fmt: skip
    assert run.step == 9 and run.best < 10


def test_an_optimisers_state_of_another_shape_is_refused(tmp_path, model):
    data = torch.randint(5, (200,))
    how = dict(block_size=8, batch_size=4, learning_rate=1e-3, folder=tmp_path)
    train(model, data, steps=2, **how)
    last = tmp_path / "last.safetensors"
    tensors, about = read_tensors(last)
    name = next(n for n in tensors if n.endswith("exp_avg"))
    write_tensors(last, {**tensors, name: tensors[name].flatten()[:1]}, about)
    with pytest.raises(ValueError, match="fits nothing that it steps"):
        train(model, data, steps=4, resume=True, **how)


@pytest.mark.parametrize(
    "how",
    [
        {"clip": -1.0},
        {"clip": 0.0},
        {"clip": float("nan")},
        {"watch": Watch(torch.zeros(99, dtype=torch.int64), every=-1)},
        {"watch": Watch(torch.zeros(99, dtype=torch.int64), every=0)},
        {"watch": Watch(torch.zeros(99, dtype=torch.int64), batches=0)},
    ],
)
def test_settings_that_mean_nothing_are_refused(model, how):
    data = torch.zeros(99, dtype=torch.int64)
    with pytest.raises(ValueError, match="should be above 0"):
        train(model, data, steps=1, block_size=8, batch_size=2, learning_rate=0.1, **how)
    with pytest.raises(ValueError, match="weight_decay should be 0 or more"):
        adamw(model, 0.1, weight_decay=-1)


def test_a_cache_knows_its_model(model):
    ids = torch.zeros(1, 3, dtype=torch.int64)
    for other in (dict(n_kv_head=1), dict(n_head=4), dict(head_size=6)):
        cache = model.empty_cache()
        model(ids, cache)
        stranger = GPT(GPTConfig(5, 8, 2, **{"n_head": 2, "n_embd": 8} | other))
        with pytest.raises(ValueError, match="empty_cache"):
            stranger(ids, cache)
        assert [*map(len, cache)] == [3, 3]


def test_an_interrupt_in_a_forward_pass_leaves_the_cache_as_it_was(model):
    ids = torch.tensor([[0, 1, 2, 3]])
    model.eval()
    whole = model(ids)
    cache = model.empty_cache()
    model(ids[:, :3], cache)

    def interrupt(*_):
        raise KeyboardInterrupt

    hook = model.blocks[1].mlp.register_forward_pre_hook(interrupt)
    with pytest.raises(KeyboardInterrupt):
        model(ids[:, 3:], cache)
    hook.remove()
    assert [*map(len, cache)] == [3, 3]
    assert torch.allclose(model(ids[:, 3:], cache), whole[:, 3:], atol=1e-5)
    cache[0].crop(2)
    with pytest.raises(ValueError, match=r"the caches hold \[2, 4\] tokens"):
        model(ids[:, 3:], cache)


@pytest.mark.parametrize(
    "how", [dict(top_p=1e-46), dict(temperature=1e39), dict(temperature=10**99), dict(top_p=5e-324)]
)
def test_extreme_settings_give_probabilities(how):
    for logits in (torch.tensor([1.0, 3.0, -torch.inf]), torch.tensor([[0.0, 0.0], [5.0, -9.0]])):
        p = next_token_probabilities(logits, **how)
        assert p.isfinite().all() and torch.allclose(p.sum(-1), torch.ones(()))


# --- work that explodes ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """The course's tokenizer and the library's, from the same file."""
    path = tmp_path_factory.mktemp("bpe") / "tokenizer.json"
    ours = BPETokenizer.train(TEXT * 3 + "aaaa abab " * 5 + "ののの ชชช", 420)
    ours.save(path)
    return ours, Tokenizer.from_file(str(path))


SCRIPTS = ["abn th", "aàßü", "абвст ", "東京の", "กขช ", "🦉👍🏽\u200d", "ab12, \n", "aaaab"]


def test_long_words_get_the_ids_of_the_library(both):
    ours, theirs = both
    draw = random.Random(0)
    for number in range(2000):
        letters = SCRIPTS[number % len(SCRIPTS)] if number % 3 else "".join(SCRIPTS)
        text = "".join(draw.choice(letters) for _ in range(draw.choice([3, 40, 250, 700])))
        assert ours.encode(text) == theirs.encode(text).ids, text


def test_a_long_word_takes_no_longer_than_its_length(both):
    ours, theirs = both
    draw = random.Random(0)
    text = "".join(draw.choice("etaoinshrdlu") for _ in range(50_000))
    start = time.process_time()
    ids = ours.encode(text)
    assert time.process_time() - start < 3  # seconds; looking at all pairs takes minutes
    assert ids == theirs.encode(text).ids


def test_one_text_is_not_many_documents():
    tokenizer = BPETokenizer.train(TEXT, 270, special=["<|endoftext|>"])
    with pytest.raises(TypeError, match=r"for one: \[text\]"):
        encode_documents(tokenizer, "the cat")


def test_a_file_that_another_process_moves_meanwhile_is_no_error(tmp_path, monkeypatch):
    def vanishing(self, pattern):
        yield self / f".own.{'0' * 32}.part"  # seen a moment ago

    monkeypatch.setattr(Path, "glob", vanishing)
    write_whole(tmp_path / "own", b"whole")
    assert (tmp_path / "own").read_bytes() == b"whole"
