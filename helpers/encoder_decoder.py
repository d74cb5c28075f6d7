"""From one text to another: an encoder reads, a decoder writes.

Two tasks whose right answer, and whose right order of looking, is known: words written backwards,
and dates put in another order. Three ways for the decoder to hear the encoder: one vector,
attention over all its states, blocks with cross-attention.

Shapes: B pairs, S letters of a source, T letters of a target, V symbols, C the width. Sources and
targets are padded at their ends with the id 0; every source ends with the sign `END`; every target
begins with `START`, which is read and never written, and ends with `END`.
"""

import math
import string
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from helpers.attention import MultiHeadAttention, attention
from helpers.gpt import Block, FeedForward
from helpers.positions import SinusoidalPosition
from helpers.text import CharTokenizer
from helpers.training import adamw, hold_then_fall

PADDING, START, END = "·<>"
MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July"),
    *("August", "September", "October", "November", "December"),
)
LETTERS = CharTokenizer(PADDING + START + END + string.ascii_letters + string.digits + " -")


def reversals(
    n: int, shortest: int, longest: int, generator: torch.Generator
) -> list[tuple[str, str]]:
    """n words of random letters with those words written backwards: ("abc", "cba").

    Their lengths are drawn evenly from shortest to longest. Explained in: encoders_decoders.
    """
    lengths = torch.randint(shortest, longest + 1, (n,), generator=generator).tolist()
    drawn = torch.randint(26, (n, longest), generator=generator).tolist()
    rows = zip(drawn, lengths, strict=True)
    words = ["".join(string.ascii_lowercase[i] for i in row[:size]) for row, size in rows]
    return [(word, word[::-1]) for word in words]


def dates(n: int, generator: torch.Generator) -> list[tuple[str, str]]:
    """n days of the years 1000 to 2999, in words and in ISO 8601: ("3 May 1979", "1979-05-03").

    Months have 28 days here. Explained in: encoders_decoders.
    """
    years = torch.randint(1000, 3000, (n,), generator=generator).tolist()
    months = torch.randint(12, (n,), generator=generator).tolist()
    days = torch.randint(1, 29, (n,), generator=generator).tolist()
    return [
        (f"{day} {MONTHS[month]} {year}", f"{year}-{month + 1:02}-{day:02}")
        for year, month, day in zip(years, months, days, strict=True)
    ]


def padded(texts: list[str]) -> Tensor:
    """Ids (B, longest), 0 after the end of the shorter ones. Explained in: encoders_decoders."""
    rows = [torch.tensor(LETTERS.encode(text)) for text in texts]
    return nn.utils.rnn.pad_sequence(rows, batch_first=True)


def pairs_to_ids(pairs: list[tuple[str, str]]) -> tuple[Tensor, Tensor, Tensor]:
    """What is read, what the decoder is given, and what it should write: (B, S), (B, T), (B, T).

    Explained in: encoders_decoders.
    """
    source = padded([text + END for text, _ in pairs])
    target = padded([START + text + END for _, text in pairs])
    return source, target[:, :-1], target[:, 1:]


class Recurrent(nn.Module):
    """A recurrent encoder–decoder: what was read is one vector, or a state for each letter.

    score: None, the decoder gets the last state and no more; "additive" or "dot", it looks at all
    states, with weights from vᵀ tanh(q + k) or from q · k / √C.

    Called with source (B, S) and given (B, T), gives logits (B, T, V): given[:, t] has been
    written, what follows? Raises ValueError for another score.

    Sutskever et al. 2014; Cho et al. 2014 (the GRU); Bahdanau et al. 2015; Luong et al. 2015, whose
    order this is: attention comes after the decoder's recurrent layer.
    Taught in: encoders_decoders.
    """

    def __init__(self, n_embd: int, score: str | None = None):
        super().__init__()
        if score not in (None, "additive", "dot"):
            raise ValueError(f"score should be None, 'additive' or 'dot', not {score!r}")
        V, C = LETTERS.vocab_size, n_embd
        self.score = score
        self.letter = nn.Embedding(V, C)
        self.encoder = nn.GRU(C, C, batch_first=True)
        self.decoder = nn.GRU(C, C, batch_first=True)
        self.head = nn.Linear(C if score is None else 2 * C, V)
        if score is not None:
            self.query, self.key = nn.Linear(C, C, bias=False), nn.Linear(C, C, bias=False)
        if score == "additive":
            self.bend = nn.Linear(C, 1, bias=False)

    def forward(self, source: Tensor, given: Tensor) -> Tensor:
        states, h = self.read(source, given)
        if self.score is None:
            return self.head(h)
        found = self.align(h, states, source) @ states  # (B, T, C)
        return self.head(torch.cat((h, found), -1))

    def read(self, source: Tensor, given: Tensor) -> tuple[Tensor, Tensor]:
        """The states of the encoder (B, S, C) and of the decoder (B, T, C)."""
        states = self.encoder(self.letter(source))[0]
        last = (source != 0).sum(1) - 1  # subtle: the state after the padding is another one
        vector = states[torch.arange(len(source)), last]  # (B, C)
        return states, self.decoder(self.letter(given), vector[None])[0]

    def align(self, h: Tensor, states: Tensor, source: Tensor) -> Tensor:
        """Which state each letter to write looks at: weights (B, T, S)."""
        mask = (source != 0)[:, None]  # (B, 1, S)
        q, k = self.query(h), self.key(states)
        if self.score == "dot":
            return attention(q, k, states, mask)[1]
        scores = self.bend((q[:, :, None] + k[:, None]).tanh())[..., 0]
        return scores.masked_fill(~mask, -math.inf).softmax(-1)

    def weights(self, source: Tensor, given: Tensor) -> Tensor:
        """The alignment (B, T, S) of a model with a score."""
        states, h = self.read(source, given)
        return self.align(h, states, source)


class Transformer(nn.Module):
    """The transformer of 2017: an encoder that looks everywhere, a decoder that looks back and at
    the source.

    Called with source (B, S) and given (B, T), gives logits (B, T, V). Its norms stand before the
    parts, as in chapter 08, and not after them as in 2017.

    Vaswani et al. 2017, "Attention Is All You Need". Taught in: encoders_decoders.
    """

    def __init__(self, n_embd: int, n_head: int = 4, n_layer: int = 2):
        super().__init__()
        V, C = LETTERS.vocab_size, n_embd

        def heads(causal: bool) -> MultiHeadAttention:
            return MultiHeadAttention(C, n_head, causal=causal)

        self.letter, self.position = nn.Embedding(V, C), SinusoidalPosition(C)
        self.encoder = nn.ModuleList(
            Block(heads(causal=False), FeedForward(C)) for _ in range(n_layer)
        )
        self.decoder = nn.ModuleList(
            Block(heads(causal=True), FeedForward(C), cross=heads(causal=False))
            for _ in range(n_layer)
        )
        self.source_norm, self.norm = nn.LayerNorm(C), nn.LayerNorm(C)
        self.head = nn.Linear(C, V, bias=False)

    def forward(self, source: Tensor, given: Tensor) -> Tensor:
        mask = (source != 0)[:, None, None]  # (B, 1, 1, S)
        read = self.position(self.letter(source))
        for block in self.encoder:
            read = block(read, mask=mask)
        read = self.source_norm(read)
        x = self.position(self.letter(given))
        for block in self.decoder:
            x = block(x, source=read, mask=mask)
        return self.head(self.norm(x))


def fit(
    model: nn.Module,
    draw: Callable[[int, torch.Generator], list[tuple[str, str]]],
    steps: int,
    generator: torch.Generator,
    rate: float = 0.006,
    batch_size: int = 64,
) -> list[float]:
    """Train on pairs that `draw(batch_size, generator)` makes; the losses of the steps, in nats.

    The decoder is given the right letters so far ("teacher forcing"); padding counts for nothing.
    Explained in: encoders_decoders.
    """
    optimiser, losses = adamw(model, rate, weight_decay=0.01), []
    for step in range(steps):
        for group in optimiser.param_groups:
            group["lr"] = rate * hold_then_fall(step, steps, warmup=50)
        source, given, wanted = pairs_to_ids(draw(batch_size, generator))
        logits = model(source, given)
        loss = F.cross_entropy(logits.flatten(0, 1), wanted.flatten(), ignore_index=0)
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        losses.append(loss.item())
    return losses


@torch.no_grad()
def answer(model: nn.Module, sources: list[str], longest: int = 40) -> list[str]:
    """What the model writes for each source: always the likeliest letter, until `END`.

    Taught in: encoders_decoders.
    """
    source = padded([text + END for text in sources])
    given = padded([START] * len(sources))
    for _ in range(longest):
        likeliest = model(source, given)[:, -1].argmax(-1, keepdim=True)
        given = torch.cat((given, likeliest), 1)
        if (given == LETTERS.encode(END)[0]).any(1).all():
            break
    return [LETTERS.decode(row).partition(END)[0] for row in given[:, 1:].tolist()]


def share_right(model: nn.Module, pairs: list[tuple[str, str]]) -> float:
    """How many answers are right to the last letter. Explained in: encoders_decoders."""
    found = answer(model, [source for source, _ in pairs])
    return sum(text == right for text, (_, right) in zip(found, pairs, strict=True)) / len(pairs)
