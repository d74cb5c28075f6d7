"""formats.checkpoints: what is saved comes back, and what is broken is told and never executed."""

import json
import os
import pickle
import signal
from dataclasses import asdict

import pytest
import torch
from conftest import visible
from processes import CONTEXT, saved_until_killed

from helpers.formats.checkpoints import (
    load_checkpoint,
    load_weights,
    read_tensors,
    save_checkpoint,
    unique_state_dict,
    write_tensors,
)
from helpers.gpt import GPT, GPTConfig
from helpers.text import BPETokenizer, CharTokenizer


def seeded(seed=0, **settings):
    sizes = {"vocab_size": 5, "block_size": 6, "n_layer": 2, "n_head": 2, "n_embd": 8}
    return visible(lambda: GPT(GPTConfig(**{**sizes, **settings})), seed)


IDS = torch.tensor([[0, 1, 2, 3, 4, 0]])


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model"


@pytest.fixture
def saved(path):
    save_checkpoint(path, seeded(), CharTokenizer("abcde"), {"loss": 1.5})
    return path


def files(folder):
    return {file.name: file.read_bytes() for file in folder.iterdir()}


NAMES = {"config.json", "model.safetensors", "tokenizer.json"}


# --- there and back -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"tied": False, "bias": False, "norm": "RMSNorm", "mlp": "SwiGLU", "position": "Rotary"},
        {"n_kv_head": 1, "qk_norm": True, "position": None, "dropout": 0.5},
        {"position": "Rotary", "rotary_base": 50.0, "head_size": 6, "hidden": 12, "norm_eps": 0.1},
    ],
)
def test_a_model_comes_back_with_all_that_belongs_to_it(settings, path):
    model, tokenizer = seeded(**settings), CharTokenizer("ab\nü→")
    notes = {"loss": 1.5, "what": "ä test", "steps": [1, 2], "nested": {"a": None}}
    save_checkpoint(path, model, tokenizer, notes)
    loaded = load_checkpoint(str(path))
    assert torch.equal(loaded.model(IDS), model.eval()(IDS))
    assert not loaded.model.training and loaded.model.config == model.config
    assert loaded.tokenizer == tokenizer and loaded.notes == notes
    assert loaded.model.n_parameters() == model.n_parameters()


def test_tokenizer_and_notes_can_be_missing(saved):
    save_checkpoint(saved, seeded())  # where there were some
    loaded = load_checkpoint(saved)
    assert loaded.tokenizer is None and loaded.notes == {}


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float16, 1e-3), (torch.bfloat16, 8e-3)])
def test_half_the_size_comes_back_in_float32(dtype, tolerance, tmp_path):
    model = seeded(n_embd=32).eval()
    sizes = []
    for kind in (None, dtype):
        save_checkpoint(tmp_path / "a", model, dtype=kind)
        sizes.append((tmp_path / "a" / "model.safetensors").stat().st_size)
    assert sizes[1] < 0.6 * sizes[0]
    loaded = load_checkpoint(tmp_path / "a").model
    for (name, p), q in zip(loaded.named_parameters(), model.parameters(), strict=True):
        assert p.dtype == torch.float32 and p.requires_grad
        torch.testing.assert_close(p, q.to(dtype).float(), msg=name)
        torch.testing.assert_close(p, q, rtol=tolerance, atol=1e-6, msg=name)
    # Rounded once, it is not rounded any further.
    save_checkpoint(tmp_path / "b", loaded, dtype=dtype)
    assert files(tmp_path / "b") == files(tmp_path / "a")


def test_a_saved_model_is_replaced_and_what_lies_beside_it_stays(saved):
    (saved / "mine.txt").touch()
    save_checkpoint(saved, seeded(1), CharTokenizer("abcde"))
    assert torch.equal(load_checkpoint(saved).model(IDS), seeded(1).eval()(IDS))
    assert {*files(saved)} == NAMES | {"mine.txt"}


# --- broken files ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(NAMES))
@pytest.mark.parametrize("share", [0, 0.5])
def test_a_truncated_file_is_told(saved, name, share):
    file = saved / name
    whole = file.read_bytes()
    file.write_bytes(whole[: int(share * len(whole))])
    with pytest.raises(ValueError, match=r"not a whole|damaged|not a tokenizer") as error:
        load_checkpoint(saved)
    assert str(file) in str(error.value)


class Harm:
    """Unpickled, it would leave a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize("write", [pickle.dump, torch.save])
def test_a_pickle_is_never_executed(tmp_path, write):
    harm, path = tmp_path / "harm", tmp_path / "model.pt"
    with open(path, "wb") as file:
        write(Harm(harm), file)
    with pytest.raises(ValueError, match=r"a pickle \(.pt, .pth\), which this course never opens"):
        load_checkpoint(path)
    assert not harm.exists()
    pickle.loads(pickle.dumps(Harm(harm)))
    assert harm.exists(), "the trap works"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda w, a: a.update(depth=1), "does not describe .*argument 'depth'"),
        (lambda w, a: a.update(norm="os.system"), "does not describe .*os.system"),
        (lambda w, a: a.update(n_layer=10**9), "1000000000 blocks, but holds weights of 2"),
        (lambda w, a: a.update(tied=False), r"lacks 1 weights.*lm_head.weight"),
        (lambda w, a: w.update(more=torch.zeros(1)), r"1 weights too many.*more"),
        (lambda w, a: w.update({"norm.weight": torch.ones(8).int()}), "weight holds torch.int32"),
        (lambda w, a: a.update(block_size=7), r"has shape \(6, 8\), not \(7, 8\)"),
    ],
)
def test_a_file_that_does_not_fit_is_explained(saved, change, message):
    tensors, _ = read_tensors(saved / "model.safetensors")
    about = json.loads((saved / "config.json").read_text())
    change(tensors, about)
    write_tensors(saved / "model.safetensors", tensors, {})
    (saved / "config.json").write_text(json.dumps(about))
    with pytest.raises(ValueError, match=message) as error:
        load_checkpoint(saved)
    assert str(saved) in str(error.value)


def test_weights_of_which_one_does_not_fit_are_not_loaded():
    model, new = seeded(1).half(), unique_state_dict(seeded())
    before = model.token.weight.clone()
    with pytest.raises(ValueError, match=r"here: norm.weight holds 1e\+06: too large"):
        load_weights(model, {**new, "norm.weight": torch.full((8,), 1e6)}, "here")
    assert torch.equal(model.token.weight, before)


@pytest.mark.parametrize(
    ("tokenizer", "described"),
    [
        (CharTokenizer("abcde"), {"symbols": "abcde"}),
        (
            BPETokenizer([(b"l", b"o"), (b" ", b"lo")], ["<end>"]),
            {"merges": [["l", "o"], ["Ġ", "lo"]], "special": ["<end>"], "special_first": False},
        ),
    ],
)
def test_a_file_of_the_last_release_opens(tmp_path, tokenizer, described):
    """One safetensors file, with other names of weights and fewer settings."""
    model = seeded(vocab_size=tokenizer.vocab_size).eval()
    names = {"lm_head.": "head.", "position.": "position.table.", ".mlp.down.": ".mlp.output."}
    old = {}
    for name, tensor in unique_state_dict(model).items():
        for now, then in names.items():
            name = name.replace(now, then)
        old[name] = tensor
    assert {*old} >= {"position.table.weight", "blocks.1.mlp.output.bias"}
    config = asdict(model.config)
    for new in ("norm_eps", "hidden", "rotary_base", "head_size"):
        del config[new]
    write_tensors(tmp_path / "a", old, {"config": config, **described, "notes": {"loss": 1.5}})
    loaded = load_checkpoint(tmp_path / "a")
    assert loaded.tokenizer == tokenizer and loaded.notes == {"loss": 1.5}
    assert loaded.model.config == model.config and torch.equal(loaded.model(IDS), model(IDS))


def test_model_and_tokenizer_speak_of_the_same_tokens(path):
    with pytest.raises(ValueError, match="the tokenizer has 3 tokens, the model 5"):
        save_checkpoint(path, seeded(), CharTokenizer("abc"))
    assert not path.exists()


# --- writing that fails ---------------------------------------------------------------------------


@pytest.mark.parametrize("step", ["fsync", "replace"])
@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_write_that_fails_leaves_the_old_files_and_nothing_else(saved, monkeypatch, step, error):
    before = files(saved)

    def fails(*_):
        raise error

    monkeypatch.setattr(f"helpers.formats.files.os.{step}", fails)
    with pytest.raises(type(error)):
        save_checkpoint(saved, seeded(1))
    assert files(saved) == before


@pytest.mark.parametrize("call", range(1, 9))
def test_a_process_that_is_killed_while_it_saves_leaves_all_old_or_all_new(saved, call):
    """Killed at any of its calls that flush, move or rename a file."""
    child = CONTEXT.Process(target=saved_until_killed, args=(saved, call))
    child.start()
    child.join()
    assert child.exitcode == (-signal.SIGKILL if call < 8 else 0)
    loaded = load_checkpoint(saved)
    new = call > 4  # three files, then the step that counts, then three moves
    assert loaded.model.block_size == (9 if new else 6)
    assert "".join(loaded.tokenizer.symbols) == ("wxyz" if new else "abcde")
    assert loaded.notes == ({"new": True} if new else {"loss": 1.5})
    save_checkpoint(saved, seeded(1))  # what the dead process left does not disturb
    assert torch.equal(load_checkpoint(saved).model(IDS), seeded(1).eval()(IDS))
    assert {*files(saved)} == NAMES


@pytest.mark.parametrize("change", ["eps", "base"])
def test_a_number_that_was_changed_behind_the_config_is_not_lost(path, change):
    model = seeded(norm="RMSNorm", position="Rotary")
    save_checkpoint(path, model)
    before = files(path)
    setattr(model.norm if change == "eps" else model.blocks[1].attention.rotary, change, 0.1)
    with pytest.raises(ValueError, match="not as the model's config says"):
        save_checkpoint(path, model)
    assert files(path) == before
