"""SamplingExplorer on the Python side: answers, what cannot be read, its still picture."""

import time

import pytest
import torch
from torch import nn

from explorers.sampling import SamplingExplorer
from helpers.gpt import GPT, GPTConfig
from helpers.positions import Rotary
from helpers.sampling import next_token_probabilities
from helpers.text import CharTokenizer

TOKENIZER = CharTokenizer.from_text("abcdefghijklmnopqrstuvwxyz $\n<>")


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(0)
    made = GPT(GPTConfig(TOKENIZER.vocab_size, 16, 2, 2, 16, position=Rotary))
    for p in made.parameters():
        if p.dim() == 2:
            nn.init.normal_(p, std=0.3)
    return made.eval()


@pytest.fixture
def explorer(model):
    made = []

    def make(**kwargs):
        made.append(SamplingExplorer(model, TOKENIZER, **({"prompt": "to be"} | kwargs)))
        return made[-1]

    yield make
    for widget in made:
        widget.close()


def logits(widget):
    return torch.frombuffer(bytearray(widget.answer["logits"]), dtype=torch.float32)


@torch.no_grad()
def expected(model, text):
    return model(torch.tensor([TOKENIZER.encode(text)[-16:]]))[0, -1]


def test_every_prompt_is_answered_as_if_read_from_the_start(explorer, model):
    widget = explorer()
    for text in (
        *("to be", "to be ", "to be o", "to be", "to bo", "x", "xy", "x"),
        *("a" * 16, "a" * 17, "b" + "a" * 16, "to be or not to be that is", "to be or not"),
    ):
        widget.prompt = text
        assert widget.answer["prompt"] == text and not widget.answer["error"]
        assert torch.allclose(logits(widget), expected(model, text), atol=1e-4), text


def test_beyond_the_window_the_explorer_says_so(explorer):
    widget = explorer(prompt="a" * 16)
    assert widget.answer["note"] == ""
    widget.prompt = "a" * 17
    assert "last 16 tokens" in widget.answer["note"]


def test_what_cannot_be_read_is_said_and_forgotten_again(explorer, model):
    widget = explorer()
    for text, fragment in (("", "Type a prompt"), ("é", "é"), ("a" * 5000, "longer than 4000")):
        widget.prompt = text
        assert fragment in widget.answer["error"]
        assert repr(widget) and widget.picture().png()
    widget.prompt = "or"
    assert not widget.answer["error"]
    assert torch.allclose(logits(widget), expected(model, "or"), atol=1e-4)


def test_a_model_that_fails_or_gives_nan_is_no_silent_failure():
    class Fails(nn.Module):
        def forward(self, ids):
            raise RuntimeError("out of paper")

    class Nan(nn.Module):
        def forward(self, ids):
            return torch.full((*ids.shape, TOKENIZER.vocab_size), float("nan"))

    for broken, fragment in ((Fails(), "RuntimeError: out of paper"), (Nan(), "NaN")):
        widget = SamplingExplorer(broken, TOKENIZER, prompt="a")
        assert fragment in widget.answer["error"] and fragment in repr(widget)
        widget.close()


def test_any_model_from_ids_to_logits_will_do():
    table = nn.Embedding(TOKENIZER.vocab_size, TOKENIZER.vocab_size)
    widget = SamplingExplorer(table, TOKENIZER, prompt="ab")
    assert torch.equal(logits(widget), table.weight[TOKENIZER.encode("b")[0]])
    assert table.training  # it was in training mode, and still is
    widget.close()


def test_the_probabilities_are_those_of_the_sliders(explorer):
    widget = explorer(temperature=0.5, top_k=5, top_p=0.7)
    want = next_token_probabilities(logits(widget), temperature=0.5, top_k=5, top_p=0.7)
    assert torch.equal(widget.probabilities(), want)
    widget.temperature, widget.top_k, widget.top_p = 1.0, widget.most_k, 1.0  # all off
    assert torch.allclose(widget.probabilities(), logits(widget).softmax(-1))
    widget.temperature = 0.0
    assert widget.probabilities().max() == 1


def test_an_answer_takes_few_milliseconds(explorer):
    widget, took = explorer(), []
    for text in ("to be o", "to be or", "x", "xy", "xyz"):
        start = time.process_time()
        widget.prompt = text
        took.append(time.process_time() - start)
    assert sorted(took)[2] < 0.05  # of this process, the median: another one may be busy


def test_the_text_and_the_picture_are_stable(explorer):
    text = "SamplingExplorer(after “…to⏎$b”: temperature 0.80, top-k off, top-p 0.90)"
    settings = {"prompt": "to\n$b", "temperature": 0.8, "top_p": 0.9}
    first, second = explorer(**settings), explorer(**settings)
    assert repr(first) == repr(second) == text
    bundle, _ = first._repr_mimebundle_()
    assert bundle["text/plain"] == text and bundle["image/png"]
    assert first.picture().png() == second.picture().png()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"temperature": -1}, "temperature should be"),
        ({"temperature": 9}, "temperature should be"),
        ({"top_k": 0}, "top_k should be between 1 and"),
        ({"top_k": 1000}, "top_k should be between 1 and"),
        ({"top_p": 0}, "top_p is a probability"),
        ({"top_p": 1.5}, "top_p is a probability"),
    ],
)
def test_what_does_not_fit_is_refused(explorer, settings, message):
    with pytest.raises(ValueError, match=message):
        explorer(**settings)
