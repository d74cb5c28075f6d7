"""SentenceExplorer on the Python side, and the weights in 8 bits that the browser computes with."""

import json
import struct

import pytest
import torch

from explorers.packed import file_of, name_of, packed, rounded
from explorers.sentence import LONGEST, MOST, SentenceExplorer
from helpers import data
from helpers.formats.checkpoints import load_checkpoint
from helpers.gpt import GPT, GPTConfig
from helpers.text import BPETokenizer, CharTokenizer

TOKENIZER = BPETokenizer.train("low low low lower lowest newest widest", 262, ["<|endoftext|>"])


def small(block_size=40, **changes):
    torch.manual_seed(0)
    settings = {"norm": "RMSNorm", "mlp": "SquaredReLU", "position": "Rotary", "qk_norm": True}
    settings |= {"bias": False, "tied": False} | changes
    return GPT(GPTConfig(TOKENIZER.vocab_size, block_size, 2, 2, 16, **settings)).eval()


MODEL = small()


def explorer(model=MODEL, tokenizer=TOKENIZER, text="low lower", **kwargs):
    return SentenceExplorer(model, tokenizer, text, **kwargs)


@pytest.fixture(scope="module")
def gptmini():
    return load_checkpoint(data.checkpoint("gptmini"))


def unpacked(file):
    (size,) = struct.unpack_from("<i", file)
    about, at, tensors = json.loads(file[4 : 4 + size]), 4 + size, {}
    for name, shape in about["tensors"].items():
        scale = torch.frombuffer(bytearray(file[at : at + 4 * shape[0]]), dtype=torch.float32)
        at += 4 * shape[0]
        tensors[name] = scale
        if len(shape) == 2:
            n = shape[0] * shape[1]
            rows = torch.frombuffer(bytearray(file[at : at + n]), dtype=torch.int8).view(shape)
            tensors[name], at = rows * scale[:, None], at + n
    assert at == len(file)
    return about, tensors


def test_the_file_holds_the_rounded_model_and_the_tokenizer():
    about, tensors = unpacked(packed(MODEL, TOKENIZER))
    for name, tensor in rounded(MODEL).state_dict().items():
        assert torch.equal(tensors[name], tensor)
    assert about["config"]["n_layer"] == 2 and about["tokenizer"]["special"] == ["<|endoftext|>"]


def test_eight_bits_cost_the_shipped_model_nearly_nothing(gptmini):
    """Measured on 17,920 tokens of the validation articles: 4.0925 and 4.0924 nats a token."""
    text = (data.sources.FOLDER / "README.md").read_text("utf-8")  # any text that is at hand
    ids = torch.tensor([gptmini.tokenizer.encode(text)[:257]])
    losses = []
    for model in (gptmini.model, rounded(gptmini.model)):
        with torch.no_grad():
            p = model(ids[:, :-1]).log_softmax(-1)
        losses.append(-p.gather(-1, ids[:, 1:, None]).mean().item())
    assert abs(losses[0] - losses[1]) < 0.01


def test_equal_models_have_equal_files_and_names(gptmini):
    assert file_of(MODEL, TOKENIZER) == name_of(packed(small(), TOKENIZER))
    assert file_of(MODEL, TOKENIZER) != file_of(small(tied=True), TOKENIZER)
    assert file_of(small(bias=True), TOKENIZER) == ""  # a page cannot compute it
    assert SentenceExplorer().file == file_of(gptmini.model, gptmini.tokenizer)


@pytest.mark.parametrize(
    ("model", "tokenizer", "reason"),
    [
        (small(norm="LayerNorm"), TOKENIZER, "norm is LayerNorm, not RMSNorm"),
        (small(position=None), TOKENIZER, "position is None, not Rotary"),
        (small(convolution=4), TOKENIZER, "convolution is 4"),
        (small(MOST - 1), TOKENIZER, f"{MOST} tokens are shown, but the model reads {MOST - 1}"),
        (MODEL, BPETokenizer(single_digits=True), "way of its own"),
        (MODEL, CharTokenizer("abc"), "should be a BPETokenizer, not a CharTokenizer"),
    ],
)
def test_what_a_page_cannot_compute_is_refused(model, tokenizer, reason):
    with pytest.raises(ValueError, match=reason):
        explorer(model, tokenizer)


def test_what_is_seen_is_what_the_rounded_model_computes():
    seen = explorer().activations()
    with torch.no_grad():
        wanted = rounded(MODEL)(torch.tensor([seen.ids]))[0]
    assert torch.allclose(seen.logits, wanted, atol=1e-5)
    assert torch.allclose(seen.weights.sum(-1), torch.ones(2, 2, len(seen.ids)))
    assert not seen.weights.triu(1).any()


def test_heads_and_mask_can_be_switched_off():
    widget = explorer()
    before = widget.activations()
    widget.off = [1]
    without = widget.activations()
    assert torch.equal(without.weights[0], before.weights[0])
    assert not torch.allclose(without.logits, before.logits)
    widget.off, widget.masked = [], False
    assert widget.activations().weights[0].triu(1).any()
    widget.off = [0, 1]
    assert torch.equal(widget.activations().residual_mid[0], widget.activations().residual[0])


def test_the_first_answer_is_sent_and_the_weights_only_when_asked_for():
    widget = explorer()
    logits = torch.frombuffer(bytearray(widget.first["logits"]), dtype=torch.float32)
    assert torch.allclose(logits, widget.activations().logits[-1])
    assert sum(len(v) for v in widget.get_state().values() if isinstance(v, bytes)) < 2000
    sent = []
    widget.send = lambda content, buffers: sent.append((content, buffers))
    widget._send_weights(widget, {"wanted": "something else"}, [])
    widget._send_weights(widget, {"wanted": "weights"}, [])
    assert sent == [({"sent": "weights"}, [packed(MODEL, TOKENIZER)])]


def test_a_long_text_is_read_from_its_last_tokens():
    widget = explorer(text="low newest " * 40)
    assert len(widget.text) == LONGEST and len(widget.activations().ids) == MOST == 32
