"""From one text to another: an encoder reads, a decoder writes.

Two tasks whose right answer, and whose right order of looking, is known: words written backwards,
and dates put in another order. Three ways for the decoder to get at the source: one vector,
attention over all states of the encoder, blocks with cross-attention.

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
from helpers.checks import to_device_of
from helpers.gpt import Block, FeedForward
from helpers.optimizers import adamw
from helpers.positions import SinusoidalPosition
from helpers.text import CharTokenizer
from helpers.training import wsd_schedule

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
    """Token ids (B, longest), padded with 0 at the end. Explained in: encoders_decoders."""
    rows = [torch.tensor(LETTERS.encode(text)) for text in texts]
    return nn.utils.rnn.pad_sequence(rows, batch_first=True)


def pairs_to_ids(pairs: list[tuple[str, str]]) -> tuple[Tensor, Tensor, Tensor]:
    """What is read, what the decoder is given, and what it should write: (B, S), (B, T), (B, T).

    Explained in: encoders_decoders.
    """
    source = padded([text + END for text, _ in pairs])
    target = padded([START + text + END for _, text in pairs])
    return source, target[:, :-1], target[:, 1:]


class RNNSeq2Seq(nn.Module):
    """Recurrent encoder–decoder (two GRUs), with or without attention.

    Args:
        n_embd: width C.
        score: None: the decoder gets only the last state of the encoder; "additive" (Bahdanau) or
            "dot" (Luong): it attends to all states.

    Called with source (B, S) and decoder_input (B, T), gives logits (B, T, V), where position t
    predicts what follows decoder_input[:, t]. Raises ValueError for another score.

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
        self.token = nn.Embedding(V, C)
        self.encoder = nn.GRU(C, C, batch_first=True)
        self.decoder = nn.GRU(C, C, batch_first=True)
        self.head = nn.Linear(C if score is None else 2 * C, V)
        if score is not None:
            self.query, self.key = nn.Linear(C, C, bias=False), nn.Linear(C, C, bias=False)
        if score == "additive":
            self.v = nn.Linear(C, 1, bias=False)

    def forward(self, source: Tensor, decoder_input: Tensor) -> Tensor:
        states, h = self.encode(source, decoder_input)
        if self.score is None:
            return self.head(h)
        context = self.align(h, states, source) @ states  # (B, T, C)
        return self.head(torch.cat((h, context), -1))

    def encode(self, source: Tensor, decoder_input: Tensor) -> tuple[Tensor, Tensor]:
        """The states of the encoder (B, S, C) and of the decoder (B, T, C)."""
        states = self.encoder(self.token(source))[0]
        last = (source != 0).sum(1) - 1  # subtle: the state after the padding is another one
        vector = states[torch.arange(len(source)), last]  # (B, C)
        return states, self.decoder(self.token(decoder_input), vector[None])[0]

    def align(self, h: Tensor, states: Tensor, source: Tensor) -> Tensor:
        """The attention weights (B, T, S) of decoder states h over encoder states."""
        mask = (source != 0)[:, None]  # (B, 1, S)
        q, k = self.query(h), self.key(states)
        if self.score == "dot":
            return attention(q, k, states, mask)[1]
        scores = self.v((q[:, :, None] + k[:, None]).tanh())[..., 0]
        return scores.masked_fill(~mask, -math.inf).softmax(-1)

    def weights(self, source: Tensor, decoder_input: Tensor) -> Tensor:
        """The attention weights (B, T, S) of a model with a score."""
        states, h = self.encode(source, decoder_input)
        return self.align(h, states, source)


class EncoderBlock(Block):
    """A `Block` for padded texts: `mask` (B, 1, 1, S) is True where x (B, S, C) is not padding.

    Its attention is not causal. Explained in: encoders_decoders.
    """

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:  # type: ignore[override]
        x = x + self.attention(self.attention_norm(x), mask=mask)
        return x + self.mlp(self.mlp_norm(x))


class CrossBlock(Block):
    """A `Block` with cross-attention between its two parts.

    Args:
        cross: attention whose keys and values come from the source.
        attention, mlp, norm: as in `Block`.

    Called with x (B, T, C), source (B, S, C) and its mask (B, 1, 1, S), True where the source is
    not padding. Explained in: encoders_decoders.
    """

    def __init__(
        self,
        attention: MultiHeadAttention,
        cross: MultiHeadAttention,
        mlp: nn.Module,
        norm: Callable[[int], nn.Module] = nn.LayerNorm,
    ):
        super().__init__(attention, mlp, norm)
        self.cross_norm, self.cross = norm(cross.query.in_features), cross

    def forward(self, x: Tensor, source: Tensor, mask: Tensor) -> Tensor:  # type: ignore[override]
        x = x + self.attention(self.attention_norm(x))
        x = x + self.cross(self.cross_norm(x), source, mask=mask)
        return x + self.mlp(self.mlp_norm(x))


class Transformer(nn.Module):
    """The encoder–decoder transformer of 2017.

    Args:
        n_embd: width C.
        n_head: heads of each attention layer.
        n_layer: blocks of the encoder, and of the decoder.

    Called with source (B, S) and decoder_input (B, T), gives logits (B, T, V). It is pre-norm, as
    in the chapter transformer_block, and not post-norm as in 2017.

    Vaswani et al. 2017, "Attention Is All You Need". Taught in: encoders_decoders.
    """

    def __init__(self, n_embd: int, n_head: int = 4, n_layer: int = 2):
        super().__init__()
        V, C = LETTERS.vocab_size, n_embd

        def heads(causal: bool) -> MultiHeadAttention:
            return MultiHeadAttention(C, n_head, causal=causal)

        self.token, self.position = nn.Embedding(V, C), SinusoidalPosition(C)
        self.encoder = nn.ModuleList(
            EncoderBlock(heads(causal=False), FeedForward(C)) for _ in range(n_layer)
        )
        self.decoder = nn.ModuleList()
        for _ in range(n_layer):
            own, mlp, cross = heads(causal=True), FeedForward(C), heads(causal=False)
            self.decoder.append(CrossBlock(own, cross, mlp))
        self.source_norm, self.norm = nn.LayerNorm(C), nn.LayerNorm(C)
        self.head = nn.Linear(C, V, bias=False)

    def forward(self, source: Tensor, decoder_input: Tensor) -> Tensor:
        mask = (source != 0)[:, None, None]  # (B, 1, 1, S)
        states = self.position(self.token(source))
        for block in self.encoder:
            states = block(states, mask)
        states = self.source_norm(states)
        x = self.position(self.token(decoder_input))
        for block in self.decoder:
            x = block(x, states, mask)
        return self.head(self.norm(x))


def fit(
    model: nn.Module,
    draw: Callable[[int, torch.Generator], list[tuple[str, str]]],
    steps: int,
    generator: torch.Generator,
    learning_rate: float = 0.006,
    batch_size: int = 64,
) -> list[float]:
    """Train an encoder–decoder; returns the loss of each step in nats.

    Args:
        draw: draw(n, generator) makes n pairs of texts.
        steps, batch_size: as in `helpers.training.train`.
        generator: for the pairs.
        learning_rate: of AdamW, at its peak.

    The decoder gets the correct letters so far ("teacher forcing"). Padding does not count.
    Explained in: encoders_decoders.
    """
    optimizer, losses = adamw(model, learning_rate, weight_decay=0.01), []
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = learning_rate * wsd_schedule(step, steps, warmup=50)
        batch = pairs_to_ids(draw(batch_size, generator))
        source, decoder_input, target = (to_device_of(model, ids) for ids in batch)
        logits = model(source, decoder_input)
        loss = F.cross_entropy(logits.flatten(0, 1), target.flatten(), ignore_index=0)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    return losses


@torch.no_grad()
def greedy_decode(model: nn.Module, sources: list[str], longest: int = 40) -> list[str]:
    """What the model writes for each source: always the most likely letter, until `END`.

    longest: letters after which it ends without `END`. Explained in: encoders_decoders.
    """
    source = to_device_of(model, padded([text + END for text in sources]))
    decoder_input = to_device_of(model, padded([START] * len(sources)))
    for _ in range(longest):
        most_likely = model(source, decoder_input)[:, -1].argmax(-1, keepdim=True)
        decoder_input = torch.cat((decoder_input, most_likely), 1)
        if (decoder_input == LETTERS.encode(END)[0]).any(1).all():
            break
    return [LETTERS.decode(row).partition(END)[0] for row in decoder_input[:, 1:].tolist()]


def exact_match(model: nn.Module, pairs: list[tuple[str, str]]) -> float:
    """Accuracy: the fraction of outputs that are right to the last letter.

    Explained in: encoders_decoders.
    """
    found = greedy_decode(model, [source for source, _ in pairs])
    return sum(text == right for text, (_, right) in zip(found, pairs, strict=True)) / len(pairs)
