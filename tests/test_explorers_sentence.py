"""SentenceExplorer on the Python side, and the weights in 8 bits that the browser computes with."""

import json
import struct
import warnings
from dataclasses import replace

import pytest
import torch
import traitlets
from torch import nn

from explorers.packed import file_of, name_of, packed, reason_against, rounded
from explorers.sentence import LONGEST, MOST, SentenceExplorer
from explorers.token import readable
from helpers import data
from helpers.formats.checkpoints import load_checkpoint
from helpers.gpt import GPT, GPTConfig
from helpers.text import BPETokenizer, CharTokenizer

TOKENIZER = BPETokenizer.train("low low low lower lowest newest widest", 262, ["<|endoftext|>"])


def small(**changes):
    torch.manual_seed(0)
    settings = {"norm": "RMSNorm", "mlp": "SquaredReLU", "position": "Rotary", "qk_norm": True}
    settings |= {"bias": False, "tied": False} | changes
    return GPT(GPTConfig(TOKENIZER.vocab_size, 40, 2, 2, 16, **settings)).eval()


MODEL = small()


def explorer(model=MODEL, tokenizer=TOKENIZER, text="low lower", **kwargs):
    return SentenceExplorer(model, tokenizer, text, **kwargs)


@pytest.fixture(scope="module")
def gptmini():
    return load_checkpoint(data.checkpoint("gptmini"))


# --- the file -------------------------------------------------------------------------------------


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
    twin = rounded(MODEL)
    for name, tensor in twin.state_dict().items():
        assert torch.equal(tensors[name], tensor)
    assert about["config"]["n_layer"] == 2 and about["tokenizer"]["special"] == ["<|endoftext|>"]
    assert not torch.equal(twin.lm_head.weight, MODEL.lm_head.weight)


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
    assert name_of(packed(MODEL, TOKENIZER)) == name_of(packed(small(), TOKENIZER))
    assert name_of(packed(MODEL, TOKENIZER)) != name_of(packed(small(tied=True), TOKENIZER))
    assert file_of(MODEL, TOKENIZER) == name_of(packed(MODEL, TOKENIZER))
    assert file_of(small(bias=True), TOKENIZER) == ""
    assert len(packed(gptmini.model, gptmini.tokenizer)) < 6e6


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"norm": "LayerNorm"}, "norm is LayerNorm, not RMSNorm"),
        ({"position": None}, "position is None, not Rotary"),
        ({"qk_norm": False}, "qk_norm is False"),
        ({"bias": True}, "bias is True"),
        ({"convolution": 4}, "convolution is 4"),
    ],
)
def test_a_model_of_other_parts_is_refused(changes, reason):
    assert reason in reason_against(small(**changes), TOKENIZER)
    with pytest.raises(ValueError, match=f"a page cannot compute this: .*{reason}"):
        explorer(small(**changes))


def test_a_model_that_reads_less_than_is_shown_is_refused():
    torch.manual_seed(0)
    config = replace(small().config, block_size=MOST - 1)
    with pytest.raises(
        ValueError, match=f"{MOST} tokens are shown, but the model reads {MOST - 1}"
    ):
        explorer(GPT(config))


def test_without_a_text_there_are_no_activations():
    widget = explorer()
    widget.text = ""
    assert widget.describe() == "no text"
    for compute in (widget.activations, widget.probabilities):
        with pytest.raises(ValueError, match="there is no text"):
            compute()


def test_other_tokenizers_are_refused():
    assert "no GPT" in reason_against(nn.Linear(2, 2), TOKENIZER).replace("not a", "no")
    assert "way of its own" in reason_against(MODEL, BPETokenizer(single_digits=True))
    assert "3 tokens" in reason_against(MODEL, CharTokenizer("abc"))
    with pytest.raises(ValueError, match="should be a BPETokenizer, not a CharTokenizer"):
        explorer(MODEL, CharTokenizer("abc"))


# --- the explorer ---------------------------------------------------------------------------------


def test_what_is_seen_is_what_the_rounded_model_computes():
    widget = explorer()
    seen = widget.activations()
    with torch.no_grad():
        wanted = rounded(MODEL)(torch.tensor([seen.ids]))[0]
    assert torch.allclose(seen.logits, wanted, atol=1e-5)
    assert torch.allclose(seen.weights.sum(-1), torch.ones(2, 2, len(seen.ids)))
    assert not seen.weights.triu(1).any()


def test_without_a_model_it_is_gptmini(gptmini):
    widget = SentenceExplorer(text="Apollo 11 landed on the Moon. Apollo")
    assert widget.file == file_of(gptmini.model, gptmini.tokenizer)
    assert widget.describe().endswith("then most likely ␣8")


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
    assert widget.file == name_of(packed(MODEL, TOKENIZER))


def test_a_long_text_is_read_from_its_last_tokens():
    widget = explorer(text="low newest " * 40)
    assert len(widget.text) == LONGEST and len(widget.activations().ids) == MOST == 32
    assert widget.tokens()[-1] == readable(TOKENIZER.piece(widget.activations().ids[-1]))


@pytest.mark.parametrize("text", ["", "a", "$x$ <b>_^{", "\x00\r\t\u202e 中文🦉\ud800"])
def test_every_text_has_a_still_picture(text):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        widget = explorer(text=text)
        assert widget.picture().png().startswith(b"\x89PNG")
    assert text or widget.describe() == "no text"


def test_it_says_what_it_shows():
    widget = explorer(layer=1, head=1)
    assert "low lower" in repr(widget) and "layer 1, head 1" in repr(widget)
    widget.off, widget.masked, widget.temperature = [0], False, 2
    assert "temperature 2.00, 1 heads off, no mask" in repr(widget)
    assert "Seven stages" in widget.picture().alt


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("layer", 2, "layer is a layer from 0 to 1, not 2"),
        ("temperature", 0, "temperature is a number from 0.1 to 3, not 0"),
        ("off", [4], "heads are numbers from 0 to 3"),
        ("stage", "queries", "stage"),
    ],
)
def test_what_does_not_fit_is_refused(name, value, message):
    widget = explorer()
    with pytest.raises(traitlets.TraitError, match=message):
        setattr(widget, name, value)
