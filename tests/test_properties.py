"""Whatever comes in: a clear error or the right answer, never a crash, a hang or a warning.

Hypothesis makes the input. `make test` tries some hundred cases of each kind, the same ones each
time; `make soak` six thousand new ones.
"""

import json
import struct
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load
from tokenizers import Tokenizer

from helpers.attention import attention
from helpers.checkpoints import Checkpoint, load_checkpoint, save_checkpoint, write_tensors
from helpers.gpt import GPT, GPTConfig
from helpers.sampling import next_token_probabilities
from helpers.text import BPETokenizer, CharTokenizer
from helpers.training import train

TEXT = "the cat sat on the mat, and the rat ran; über 東京 тест 🦉 "
STEPS = dict(block_size=4, batch_size=2, learning_rate=1e-3)


@contextmanager
def clear(*errors: type[Exception]) -> Iterator[None]:
    """Let one of these errors end the test case if it says something; a warning is an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            yield
        except errors as error:
            assert len(str(error)) > 20, repr(error)


@cache
def folder() -> Path:
    return Path(mkdtemp())


@cache
def files() -> dict[str, bytes]:
    """A checkpoint with symbols, one with byte pairs, a run's state and a tokenizer, as bytes."""
    torch.manual_seed(0)
    save_checkpoint(folder() / "symbols", GPT(GPTConfig(5, 8, 2, 2, 8)), CharTokenizer("abcde"))
    pairs = BPETokenizer.train(TEXT, 270, special=["<end>"])
    small = GPTConfig(pairs.vocab_size, 4, 1, 1, 4, position=None, bias=False)
    save_checkpoint(folder() / "pairs", GPT(small), pairs, {"steps": 3})
    train(new(), stream(), steps=2, folder=folder() / "run", **STEPS)
    (folder() / "run" / "last.safetensors").rename(folder() / "run_state")
    pairs.save(folder() / "tokenizer")
    return {
        name: (folder() / name).read_bytes()
        for name in ("symbols", "pairs", "run_state", "tokenizer")
    }


def new() -> GPT:
    torch.manual_seed(0)
    return GPT(GPTConfig(5, 4, 1, 1, 4))


def stream() -> torch.Tensor:
    return torch.randint(5, (99,), generator=torch.Generator().manual_seed(0))


def written(name: str, content: bytes) -> Path:
    path = folder() / "case" / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)
    return path


# --- what is read from files ----------------------------------------------------------------------

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=True) | st.text(max_size=9)
    | st.sampled_from([0, -1, 1, 2**31, 2**63, 10**30, "0", "LayerNorm", "F32", [], {}, [0, 8]]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=5,
)  # fmt: skip


@st.composite
def garbled(draw: Callable[..., Any], whole: bytes) -> bytes:
    """A file with some bytes changed, cut off, put in or taken out."""
    content = bytearray(whole)
    for _ in range(draw(st.integers(1, 3))):
        # Half of the changes hit the first bytes, where a safetensors file describes itself.
        at = draw(st.integers(0, len(content)) | st.integers(0, min(len(content), 600)))
        how = draw(st.sampled_from(["flip", "cut", "insert", "delete"]))
        if how == "cut":
            del content[at:]
        elif how == "insert":
            content[at:at] = draw(st.binary(max_size=9))
        elif how == "delete":
            del content[at : at + draw(st.integers(1, 9))]
        elif at < len(content):
            content[at] ^= draw(st.integers(1, 255))
    return bytes(content)


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every (container, key) inside a JSON value."""
    keys = (
        value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    )
    for key in keys:
        yield value, key
        yield from places(value[key])


@st.composite
def replaced(draw: Callable[..., Any], value: dict[str, Any]) -> dict[str, Any]:
    """A JSON value in which one thing, at any depth, is another, or gone, or has a neighbour."""
    value = json.loads(json.dumps(value))
    inside, key = draw(st.sampled_from(list(places(value))))
    how = draw(st.sampled_from(["replace", "replace", "remove", "add"]))
    if how == "replace":
        inside[key] = draw(JSON)
    elif how == "remove":
        del inside[key]
    elif isinstance(inside, dict):
        inside[draw(st.text(max_size=5))] = draw(JSON)
    else:
        inside.insert(key, draw(JSON))
    return value


def header(content: bytes) -> tuple[dict[str, Any], bytes]:
    """What a safetensors file says of itself, and its numbers."""
    (length,) = struct.unpack("<Q", content[:8])
    return json.loads(content[8 : 8 + length]), content[8 + length :]


def with_header(about: dict[str, Any], numbers: bytes) -> bytes:
    text = json.dumps(about).encode()
    return struct.pack("<Q", len(text)) + text + numbers


@st.composite
def another_field(draw: Callable[..., Any], whole: bytes) -> bytes:
    """A safetensors file with another field in its header or in our description.

    The checksum fits, as somebody who means harm would see to, or is gone.
    """
    about, numbers = header(whole)
    ours = json.loads(about["__metadata__"]["about"])
    del ours["crc32"]
    if draw(st.booleans()):
        about["__metadata__"]["about"] = json.dumps(ours)
        return with_header(draw(replaced(about)), numbers)
    write_tensors(folder() / "crafted", load(whole), draw(replaced(ours)))
    return (folder() / "crafted").read_bytes()


def speaks(saved: Checkpoint) -> None:
    """A model that was loaded works, with its tokenizer."""
    V, T = saved.model.config.vocab_size, min(saved.model.config.block_size, 3)
    ids = torch.arange(T)[None] % V
    with torch.no_grad():
        assert saved.model(ids).shape == (1, T, V)
    if saved.tokenizer is not None:
        assert saved.tokenizer.vocab_size == V
        assert isinstance(saved.tokenizer.decode(ids[0].tolist()), str)


@given(st.data())
@pytest.mark.parametrize("name", ["symbols", "pairs"])
def test_any_damage_to_a_checkpoint_is_noticed(name, data):
    content = data.draw(garbled(files()[name]))
    with clear(ValueError):
        saved = load_checkpoint(written(name, content))
        speaks(saved)
        before = load_checkpoint(folder() / name)  # nothing that matters was hit
        assert saved.model.config == before.model.config and saved.notes == before.notes
        for p, q in zip(saved.model.parameters(), before.model.parameters(), strict=True):
            assert torch.equal(p, q)


@given(st.data())
@pytest.mark.parametrize("name", ["symbols", "pairs"])
def test_any_crafted_checkpoint(name, data):
    path = written(name, data.draw(another_field(files()[name])))
    with clear(ValueError):
        speaks(load_checkpoint(path))


@given(st.data())
@pytest.mark.parametrize("change", [garbled, another_field])
def test_any_state_of_a_run(change, data):
    path = written("last.safetensors", data.draw(change(files()["run_state"])))
    content = path.read_bytes()
    try:
        with clear(ValueError):
            train(new(), stream(), steps=2, folder=path.parent, resume=True, **STEPS)
            return
        assert path.read_bytes() == content  # what could not be used is not lost
    finally:
        for left in path.parent.glob("*.safetensors"):
            left.unlink()


@given(st.data())
def test_any_tokenizer_file(data):
    whole = files()["tokenizer"]
    if data.draw(st.booleans()):
        content = data.draw(garbled(whole))
    else:
        content = json.dumps(data.draw(replaced(json.loads(whole)))).encode()
    path = written("tokenizer.json", content)
    with clear(ValueError):
        ours = BPETokenizer.load(path)
        ids = ours.encode(TEXT)
        assert ours.decode(ids) == TEXT
        try:
            theirs = Tokenizer.from_file(str(path))
        except Exception:  # the library takes less: it raises nothing narrower
            return
        assert theirs.encode(TEXT, add_special_tokens=False).ids == ids


@given(st.text(max_size=60))
def test_any_text_comes_back(text):
    pairs = tokenizer()
    with clear(ValueError):  # half a surrogate pair is no text
        assert pairs.decode(pairs.encode(text)) == text


@cache
def tokenizer() -> BPETokenizer:
    files()
    return BPETokenizer.load(folder() / "tokenizer")


@given(st.lists(st.integers(-2, 300) | st.booleans() | st.floats() | st.text(max_size=2)))
def test_any_ids_become_text(ids):
    with clear(ValueError, TypeError):
        assert isinstance(tokenizer().decode(ids), str)


# --- numbers and shapes ---------------------------------------------------------------------------


@given(
    logits=st.lists(st.floats(width=32, allow_nan=False), min_size=1, max_size=9),
    temperature=st.floats(0, allow_infinity=False),
    top_k=st.none() | st.integers(1, 12),
    top_p=st.none() | st.floats(0, 1, exclude_min=True),
)
def test_any_setting_gives_probabilities(logits, temperature, top_k, top_p):
    row = torch.tensor(logits)
    with clear(ValueError):
        p = next_token_probabilities(row, temperature=temperature, top_k=top_k, top_p=top_p)
        assert p.shape == row.shape and (p >= 0).all() and torch.allclose(p.sum(), torch.ones(()))
        whole = next_token_probabilities(row, temperature=temperature)
        assert whole[p.argmax()] == whole.max()  # the best is never cut off
        assert top_k is None or (p > 0).sum() <= top_k


@given(
    value=st.floats() | st.integers() | st.none() | st.booleans(),
    name=st.sampled_from(["temperature", "top_k", "top_p"]),
)
def test_any_setting_is_used_or_refused(value, name):
    with clear(ValueError, TypeError):
        p = next_token_probabilities(torch.tensor([1.0, 0.0, 2.0]), **{name: value})
        assert torch.allclose(p.sum(), torch.ones(()))


SHAPE = st.lists(st.integers(0, 3), max_size=4)


@given(st.data())
def test_any_shapes_and_masks(data):
    """Ours, or PyTorch's own function where both take the shapes."""
    generator = torch.Generator().manual_seed(0)
    if data.draw(st.booleans()):  # shapes that fit
        batch, (T, S, hs, dv) = data.draw(SHAPE), (data.draw(st.integers(1, 4)) for _ in range(4))
        q, k, v = ((*batch, T, hs), (*batch, S, hs), (*batch, S, dv))
        shape = data.draw(st.sampled_from([(T, S), (1, S), (T, 1), (*(1 for _ in batch), T, S)]))
    else:
        q, k, v, shape = (tuple(data.draw(SHAPE)) for _ in range(4))
    tensors = [torch.randn(s, generator=generator) for s in (q, k, v)]
    mask = None
    if data.draw(st.booleans()):
        mask = torch.rand(shape, generator=generator) < data.draw(st.sampled_from([0.2, 0.8, 1.1]))
    with clear(ValueError):
        out, weights = attention(*tensors, mask)
        assert torch.allclose(weights.sum(-1), torch.ones(weights.shape[:-1]), atol=1e-5)
        assert mask is None or (weights.masked_select(~mask.expand_as(weights)) == 0).all()
        theirs = torch.nn.functional.scaled_dot_product_attention(*tensors, attn_mask=mask)
        assert torch.allclose(out, theirs.expand_as(out), atol=1e-5)


@given(
    sizes=st.tuples(*(st.integers(1, high) for high in (6, 6, 2, 4, 12))),
    n_kv_head=st.none() | st.integers(1, 4),
    head_size=st.none() | st.integers(1, 6),
    hidden=st.none() | st.integers(1, 9),
    qk_norm=st.booleans(),
    convolution=st.none() | st.integers(1, 5),
    bias=st.booleans(),
    tied=st.booleans(),
    cuts=st.lists(st.integers(1, 3), min_size=1, max_size=6),
)
def test_any_model_is_saved_and_loaded_and_cached(sizes, cuts, **settings):
    path = folder() / "any"
    with clear(ValueError):
        torch.manual_seed(0)
        model = GPT(GPTConfig(*sizes, **settings)).eval()
        ids = torch.arange(min(sum(cuts), model.config.block_size))[None] % sizes[0]
        with torch.no_grad():
            logits = model(ids)
            save_checkpoint(path, model)
            assert torch.equal(load_checkpoint(path).model(ids), logits)
            caches, read, parts = model.empty_cache(), 0, []
            for cut in cuts:
                if part := ids[:, read : read + cut].shape[1]:
                    parts.append(model(ids[:, read : read + part], caches))
                    read += part
        assert torch.allclose(torch.cat(parts, 1), logits, atol=1e-4)
