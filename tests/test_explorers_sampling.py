"""SamplingExplorer on the Python side: answers, what cannot be read, its still picture."""

import pytest
import torch
from torch import nn

from explorers.sampling import SamplingExplorer
from helpers.gpt import GPT, GPTConfig
from helpers.sampling import next_token_probabilities
from helpers.text import CharTokenizer

TOKENIZER = CharTokenizer.from_text("abcdefghijklmnopqrstuvwxyz $\n<>")


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(0)
    made = GPT(GPTConfig(TOKENIZER.vocab_size, 16, 2, 2, 16, position="Rotary"))
    for p in made.parameters():
        if p.dim() == 2:
            nn.init.normal_(p, std=0.3)
    return made.eval()


@pytest.fixture
def explorer(model):
    return lambda **kwargs: SamplingExplorer(model, TOKENIZER, **({"prompt": "to be"} | kwargs))


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
        assert ("last 16 tokens" in widget.answer["note"]) == (len(text) > 16)
        assert torch.allclose(logits(widget), expected(model, text), atol=1e-4), text


def test_what_cannot_be_read_is_said_and_forgotten_again(explorer, model):
    widget = explorer()
    for text, fragment in (("", "Type a prompt"), ("é", "é"), ("a" * 5000, "longer than 4000")):
        widget.prompt = text
        assert fragment in widget.answer["error"] and widget.picture().png()
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
        assert fragment in widget.answer["error"] and widget.picture().png()
    widget = SamplingExplorer(nn.Embedding(5, 5), Names("a", "b"), prompt="a")
    assert "5 logits, but the tokenizer has 2 tokens" in widget.answer["error"]


def test_the_probabilities_are_those_of_the_sliders(explorer):
    widget = explorer(temperature=0.5, top_k=5, top_p=0.7)
    want = next_token_probabilities(logits(widget), temperature=0.5, top_k=5, top_p=0.7)
    assert torch.equal(widget.probabilities(), want)
    widget.temperature, widget.top_k, widget.top_p = 1.0, widget.most_k, 1.0  # all off
    assert torch.allclose(widget.probabilities(), logits(widget).softmax(-1))
    widget.temperature = 0.0
    assert widget.probabilities().max() == 1


class Names:
    """A tokenizer of such tokens; it reads every character as one of them."""

    def __init__(self, *names):
        self.names, self.vocab_size = names, len(names)

    def decode(self, ids):
        return "".join(self.names[i] for i in ids)

    def encode(self, text):
        return [ord(c) % self.vocab_size for c in text]


def test_top_k_is_off_where_it_keeps_everything_and_refused_where_it_cannot_be_shown():
    widget = SamplingExplorer(nn.Embedding(2, 2), Names("a", "b"), prompt="x", top_k=40)
    assert widget.top_k == 2 and "top-k off" in repr(widget) and widget.picture().png()
    table, names = nn.Embedding(200, 200), Names(*map(chr, range(300, 500)))
    with pytest.raises(ValueError, match=r"top_k should be between 1 and 101 \(off\), not 150"):
        SamplingExplorer(table, names, prompt="x", top_k=150)


def test_odd_tokens_have_names_in_the_picture():
    odd = ("a" * 10_000, "\x00\x1b[31m", "\u202eabc", "", "$x$ $y_{", "<b>", "\n")
    widget = SamplingExplorer(nn.Embedding(7, 7), Names(*odd), prompt="a")
    labels = [label.get_text() for label in widget.picture().axes[0].get_yticklabels()]
    assert {"‹00›‹1B›[31m", "‹202E›abc", "(empty)", "⏎"} < set(labels)
    assert max(map(len, labels)) <= 16
