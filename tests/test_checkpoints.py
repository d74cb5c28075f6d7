"""formats.checkpoints: what is saved comes back, and what is broken is told and never executed."""

import json
import os
import pickle
import signal
import subprocess
import sys
import textwrap

import pytest
import torch
from conftest import ROOT
from safetensors.torch import save_file
from torch import nn

from helpers.formats.checkpoints import (
    load_checkpoint,
    load_weights,
    read_tensors,
    save_checkpoint,
    unique_state_dict,
    write_tensors,
)
from helpers.gpt import GPT, GPTConfig
from helpers.runs.trainer import Trainer
from helpers.text import BPETokenizer, CharTokenizer


def seeded(seed=0, **settings):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        sizes = {"vocab_size": 5, "block_size": 6, "n_layer": 2, "n_head": 2, "n_embd": 8}
        return GPT(GPTConfig(**{**sizes, **settings}))


IDS = torch.tensor([[0, 1, 2, 3, 4, 0]])


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.safetensors"


@pytest.fixture
def saved(path):
    save_checkpoint(path, seeded())
    return path


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
    loaded = load_checkpoint(saved)
    assert loaded.tokenizer is None and loaded.notes == {}


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float16, 1e-3), (torch.bfloat16, 8e-3)])
def test_half_the_size_comes_back_in_float32(dtype, tolerance, tmp_path):
    model = seeded(n_embd=32).eval()
    sizes = []
    for kind in (torch.float32, dtype):
        save_checkpoint(tmp_path / "a.safetensors", model, dtype=kind)
        sizes.append((tmp_path / "a.safetensors").stat().st_size)
    assert sizes[1] < 0.6 * sizes[0]
    loaded = load_checkpoint(tmp_path / "a.safetensors").model
    for (name, p), q in zip(loaded.named_parameters(), model.parameters(), strict=True):
        assert p.dtype == torch.float32 and p.requires_grad
        torch.testing.assert_close(p, q.to(dtype).float(), msg=name)
        torch.testing.assert_close(p, q, rtol=tolerance, atol=1e-6, msg=name)
    # Rounded once, it is not rounded any further.
    save_checkpoint(tmp_path / "b.safetensors", loaded, dtype=dtype)
    assert (tmp_path / "b.safetensors").read_bytes() == (tmp_path / "a.safetensors").read_bytes()


def test_saving_leaves_the_model_as_it_was(path):
    model = seeded().train()
    before = [p.detach().clone() for p in model.parameters()]
    save_checkpoint(path, model, dtype=torch.float16)
    assert model.training
    assert all(torch.equal(p, q) for p, q in zip(model.parameters(), before, strict=True))


def test_folders_are_made_and_files_can_be_read_by_others(tmp_path):
    path = tmp_path / "a" / "b" / "model.safetensors"
    save_checkpoint(path, seeded())
    assert path.stat().st_mode & 0o777 == 0o644
    assert os.listdir(path.parent) == ["model.safetensors"]


def test_a_saved_file_is_replaced(saved):
    save_checkpoint(saved, seeded(1))
    assert torch.equal(load_checkpoint(saved).model(IDS), seeded(1).eval()(IDS))
    assert os.listdir(saved.parent) == [saved.name]


def test_buffers_are_saved_as_well(path):
    """No GPT has any, but models of one's own may: a running mean, a counter."""
    norm = nn.BatchNorm1d(3)
    norm(torch.randn(10, 3))
    save_checkpoint(path, norm, dtype=torch.float16)
    tensors, about = read_tensors(path)
    assert set(tensors) == set(norm.state_dict()) and about["config"] is None
    assert tensors["num_batches_tracked"].dtype == torch.int64


def test_notes_that_json_cannot_hold_are_refused_and_nothing_is_written(saved):
    before = saved.read_bytes()
    with pytest.raises(TypeError, match="JSON"):
        save_checkpoint(saved, seeded(1), notes={"model": object()})
    assert saved.read_bytes() == before


# --- broken files ---------------------------------------------------------------------------------


def test_a_missing_file_and_a_folder(tmp_path):
    for path in (tmp_path / "none.safetensors", tmp_path):
        with pytest.raises(FileNotFoundError, match="no checkpoint at") as error:
            load_checkpoint(path)
        assert str(path) in str(error.value)


@pytest.mark.parametrize("share", [0, 0.5, 0.999])
def test_a_truncated_file_is_told(saved, share):
    whole = saved.read_bytes()
    saved.write_bytes(whole[: int(share * len(whole))])
    with pytest.raises(ValueError, match=r"not a whole safetensors file.*truncated") as error:
        load_checkpoint(saved)
    assert str(saved) in str(error.value)


@pytest.mark.parametrize("content", [b"\0" * 100, b"text, not numbers" * 20])
def test_a_file_of_another_kind_is_told(path, content):
    path.write_bytes(content)
    with pytest.raises(ValueError, match="not a whole safetensors file"):
        load_checkpoint(path)


def test_a_pointer_of_git_lfs_is_told(path):
    size = "size 1234567"
    path.write_text(f"version https://git-lfs.github.com/spec/v1\noid sha256:{'0' * 64}\n{size}\n")
    with pytest.raises(ValueError, match=r"model.safetensors is a Git LFS pointer.*git lfs pull"):
        load_checkpoint(path)


def test_the_state_of_a_run_is_told_from_a_model(tmp_path):
    data, model = torch.arange(50) % 5, seeded()
    Trainer(model, data, steps=1, block_size=6, batch_size=2, folder=tmp_path,
            optimizer=torch.optim.Adam(model.parameters())).fit()  # fmt: skip
    with pytest.raises(ValueError, match=r"state of a training run.*resume=True.*best.safetensors"):
        load_checkpoint(tmp_path / "last.safetensors")


@pytest.mark.parametrize(
    "dtype",
    [torch.int8, torch.float8_e4m3fn, "float16"],
)
def test_a_type_without_fractions_is_refused(saved, dtype):
    before = saved.read_bytes()
    with pytest.raises(ValueError, match=r"dtype should be one of torch.float64, .* not "):
        save_checkpoint(saved, seeded(1), dtype=dtype)
    assert saved.read_bytes() == before


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


def rewritten(path, change):
    """The file with another description or other weights."""
    tensors, about = read_tensors(path)
    change(tensors, about)
    write_tensors(path, tensors, about)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda w, a: a.pop("config"), "no settings of a GPT"),
        (lambda w, a: a["config"].pop("n_head"), "does not describe a GPT .*n_head"),
        (lambda w, a: a["config"].update(n_head=3), "does not describe .*evenly over 3 heads"),
        (lambda w, a: a["config"].update(depth=1), "does not describe .*argument 'depth'"),
        (lambda w, a: a["config"].update(norm="os.system"), "norm should be one of .*os.system"),
        (lambda w, a: a.update(symbols="aa"), "does not describe .*symbol 'a' stands"),
        (lambda w, a: a.update(merges=[["l", "日"]]), "does not describe .* stands for no byte"),
        (
            lambda w, a: a["config"].update(n_layer=10**9),
            "1000000000 blocks, but holds weights of 2",
        ),
        (lambda w, a: a["config"].update(n_layer=1), "says 1 blocks, but holds weights of 2"),
        (lambda w, a: a["config"].update(tied=False), "lacks 1 weights.*lm_head.weight"),
        (lambda w, a: w.pop("norm.weight"), "lacks 1 weights.*norm.weight"),
        (lambda w, a: w.update(more=torch.zeros(1)), "1 weights too many.*more"),
        *(
            (lambda w, a, d=d: w.update({"norm.weight": torch.ones(8).to(d)}), f"weight holds {d}")
            for d in (torch.int32, torch.bool, torch.complex64, torch.float8_e4m3fn)
        ),
        (
            lambda w, a: a["config"].update(vocab_size=7),
            r"token.weight has shape \(5, 8\), but the model's has \(7, 8\): was it trained",
        ),
    ],
)
def test_a_file_that_does_not_fit_is_explained(saved, change, message):
    rewritten(saved, change)
    with pytest.raises(ValueError, match=message) as error:
        load_checkpoint(saved)
    assert str(saved) in str(error.value)


def test_weights_of_which_one_does_not_fit_are_not_loaded():
    model, new = seeded(1).half(), unique_state_dict(seeded())
    before = model.token.weight.clone()
    with pytest.raises(ValueError, match=r"here: norm.weight holds 1e\+06: too large"):
        load_weights(model, {**new, "norm.weight": torch.full((8,), 1e6)}, "here")
    assert torch.equal(model.token.weight, before)


@pytest.mark.parametrize("about", ["[1]", "{"])
def test_a_damaged_description_is_explained(path, about):
    save_file({"a": torch.zeros(1)}, path, metadata={"about": about})
    with pytest.raises(ValueError, match=r"the description in .* is damaged"):
        load_checkpoint(path)


def test_weights_of_others_are_explained(path):
    save_file({"wte.weight": torch.zeros(3, 4)}, path, metadata={"format": "pt"})
    with pytest.raises(ValueError, match="weights but no settings of a GPT"):
        load_checkpoint(path)
    save_checkpoint(path, nn.Linear(2, 2))
    with pytest.raises(ValueError, match="weights but no settings of a GPT"):
        load_checkpoint(path)


def test_a_byte_pair_tokenizer_comes_back(path):
    tokenizer = BPETokenizer.train("low lower lowest", 262, ["<|endoftext|>"])
    model = GPT(GPTConfig(tokenizer.vocab_size, 8, 1, 2, 8))
    save_checkpoint(path, model, tokenizer)
    assert load_checkpoint(path).tokenizer == tokenizer


# --- writing that fails ---------------------------------------------------------------------------


@pytest.mark.parametrize("step", ["fsync", "replace"])
@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(saved, monkeypatch, step, error):
    before = saved.read_bytes()

    def fails(*_):
        raise error

    monkeypatch.setattr(f"helpers.formats.files.os.{step}", fails)
    with pytest.raises(type(error)):
        save_checkpoint(saved, seeded(1))
    assert saved.read_bytes() == before
    assert os.listdir(saved.parent) == [saved.name]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
def test_a_full_disk_leaves_the_old_file(saved, monkeypatch):
    before = saved.read_bytes()
    full = []

    def always_full(path, mode):
        full.append(path)
        return open("/dev/full", "wb")

    with monkeypatch.context() as patched, pytest.raises(OSError, match="No space left"):
        patched.setattr("helpers.formats.files.Path.open", always_full)
        save_checkpoint(saved, seeded(1))
    assert full and saved.read_bytes() == before
    assert os.listdir(saved.parent) == [saved.name]


def test_a_process_that_is_killed_while_it_writes_leaves_the_old_file_whole(saved):
    before = saved.read_bytes()
    script = """
        import os, signal, sys
        import torch
        import helpers.formats.checkpoints as checkpoints

        os.fsync = lambda _: os.kill(os.getpid(), signal.SIGKILL)
        checkpoints.write_tensors(sys.argv[1], {"a": torch.zeros(1000)}, {})
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script), saved], cwd=ROOT)
    assert done.returncode == -signal.SIGKILL
    assert saved.read_bytes() == before
    load_checkpoint(saved)
    save_checkpoint(saved, seeded(1))  # what the dead process left does not disturb
    assert torch.equal(load_checkpoint(saved).model(IDS), seeded(1).eval()(IDS))


def test_the_file_holds_numbers_and_text_only(saved):
    """The header is JSON, and behind it come the numbers of the weights, no byte more."""
    content = saved.read_bytes()
    size = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + size])
    assert json.loads(header.pop("__metadata__")["about"])["config"]["n_layer"] == 2
    ends = [tensor["data_offsets"][1] for tensor in header.values()]
    assert 8 + size + max(ends) == len(content)
    assert max(ends) == 4 * seeded().n_parameters()


# --- what a checkpoint could not give back --------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda model: setattr(model.blocks[1], "mlp", nn.Linear(8, 8)),
            r"blocks.1.mlp is torch.*Linear\(",
        ),
        (lambda model: setattr(model.norm, "eps", 0.1), "norm is .*eps=0.1.*eps=1e-05"),
        (lambda model: setattr(model.blocks[0].attention, "causal", False), "causal=False"),
        (lambda model: setattr(model, "__class__", type("GPT", (GPT,), {})), r"test.*GPT.*gpt.GPT"),
    ],
)
def test_what_the_config_does_not_describe_is_not_saved(path, change, message):
    model = seeded()
    change(model)
    with pytest.raises(ValueError, match=message):
        save_checkpoint(path, model)
    assert not path.exists()


def test_files_from_before_a_setting_was_there_open_as_they_were(saved, path):
    tensors, about = read_tensors(path)
    for new in ("norm_eps", "hidden", "rotary_base", "head_size"):
        del about["config"][new]
    write_tensors(path, tensors, about)
    assert load_checkpoint(path).model.config == seeded().config
