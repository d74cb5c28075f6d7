"""From one text to another: an encoder reads, a decoder writes.

Shapes: B pairs, S letters of a source, T letters of a target, V symbols, C the width. Sources and
targets are padded at their ends with the id 0; every source ends with the sign `END`; every target
begins with `START`, which is read and never written, and ends with `END`.
"""

import math
import string

import torch
from torch import Tensor, nn

from helpers.attention import MultiHeadAttention, attention
from helpers.gpt import Block, FeedForward
from helpers.positions import SinusoidalPosition
from helpers.text import CharTokenizer

PADDING, START, END = "·<>"
LETTERS = CharTokenizer(PADDING + START + END + string.ascii_letters + string.digits + " -")


def padded(texts: list[str]) -> Tensor:
    """Token ids (B, longest), padded with 0 at the end. Explained in: encoders_decoders."""
    rows = [torch.tensor(LETTERS.encode(text)) for text in texts]
    return nn.utils.rnn.pad_sequence(rows, batch_first=True)


class RNNSeq2Seq(nn.Module):
    """Recurrent encoder–decoder (two GRUs): source (B, S), decoder_input (B, T) → logits (B, T, V).

    Position t predicts what follows decoder_input[:, t]. score: None: the decoder gets only the
    last state of the encoder; "additive" (Bahdanau) or "dot" (Luong): it attends to all states,
    after its recurrent layer, as in Luong et al. 2015. Sutskever et al. 2014; Cho et al. 2014 (the
    GRU); Bahdanau et al. 2015. Taught in: encoders_decoders.
    """

    def __init__(self, n_embd: int, score: str | None = None):
        super().__init__()
        V, C = LETTERS.vocab_size, n_embd
        self.score = score
        self.token = nn.Embedding(V, C)
        self.encoder = nn.GRU(C, C, batch_first=True)
        self.decoder = nn.GRU(C, C, batch_first=True)
        self.lm_head = nn.Linear(C if score is None else 2 * C, V)
        if score is not None:
            self.query, self.key = nn.Linear(C, C, bias=False), nn.Linear(C, C, bias=False)
        if score == "additive":
            self.v = nn.Linear(C, 1, bias=False)

    def forward(self, source: Tensor, decoder_input: Tensor) -> Tensor:
        states, h = self.encode(source, decoder_input)  # (B, S, C), (B, T, C)
        if self.score is None:
            return self.lm_head(h)  # (B, T, V)
        context = self.align(h, states, source) @ states  # (B, T, C)
        return self.lm_head(torch.cat((h, context), -1))  # (B, T, V)

    def encode(self, source: Tensor, decoder_input: Tensor) -> tuple[Tensor, Tensor]:
        """The states of the encoder (B, S, C) and of the decoder (B, T, C)."""
        states = self.encoder(self.token(source))[0]  # (B, S, C)
        last = (source != 0).sum(1) - 1  # subtle: the state after the padding is another one
        vector = states[torch.arange(len(source)), last]  # (B, C)
        return states, self.decoder(self.token(decoder_input), vector[None])[0]

    def align(self, h: Tensor, states: Tensor, source: Tensor) -> Tensor:
        """The attention weights (B, T, S) of decoder states h over encoder states."""
        mask = (source != 0)[:, None]  # (B, 1, S)
        q, k = self.query(h), self.key(states)  # (B, T, C), (B, S, C)
        if self.score == "dot":
            return attention(q, k, states, mask)[1]
        scores = self.v((q[:, :, None] + k[:, None]).tanh())[..., 0]  # (B, T, S)
        return scores.masked_fill(~mask, -math.inf).softmax(-1)

    def weights(self, source: Tensor, decoder_input: Tensor) -> Tensor:
        """The attention weights (B, T, S) of a model with a score."""
        states, h = self.encode(source, decoder_input)
        return self.align(h, states, source)


class EncoderBlock(Block):
    """A `Block` that reads x (B, S, C) both ways; mask (B, 1, 1, S) is False at padding.

    Explained in: encoders_decoders.
    """

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:  # type: ignore[override]
        x = x + self.attention(self.attention_norm(x), mask=mask)
        return x + self.mlp(self.mlp_norm(x))


class CrossBlock(Block):
    """A `Block` with cross-attention to source (B, S, C); mask (B, 1, 1, S) is False at padding.

    Explained in: encoders_decoders.
    """

    def __init__(self, attention: MultiHeadAttention, cross: MultiHeadAttention, mlp: nn.Module):
        super().__init__(attention, mlp)
        self.cross_norm, self.cross = nn.LayerNorm(cross.query.in_features), cross

    def forward(self, x: Tensor, source: Tensor, mask: Tensor) -> Tensor:  # type: ignore[override]
        x = x + self.attention(self.attention_norm(x))
        x = x + self.cross(self.cross_norm(x), source, mask=mask)
        return x + self.mlp(self.mlp_norm(x))


class Transformer(nn.Module):
    """The encoder–decoder transformer: source (B, S), decoder_input (B, T) → logits (B, T, V).

    n_layer: blocks of the encoder, and of the decoder. Pre-norm, as in the chapter
    transformer_block, and not post-norm as in 2017. Vaswani et al. 2017, "Attention Is All You
    Need". Taught in: encoders_decoders.
    """

    def __init__(self, n_embd: int, n_head: int = 4, n_layer: int = 2):
        super().__init__()
        V, C = LETTERS.vocab_size, n_embd

        def heads(causal: bool) -> MultiHeadAttention:
            return MultiHeadAttention(C, n_head, causal=causal)

        self.token, self.position = nn.Embedding(V, C), SinusoidalPosition(C)
        self.encoder, self.decoder = nn.ModuleList(), nn.ModuleList()
        for _ in range(n_layer):
            self.encoder.append(EncoderBlock(heads(causal=False), FeedForward(C)))
        for _ in range(n_layer):
            own, mlp, cross = heads(causal=True), FeedForward(C), heads(causal=False)
            self.decoder.append(CrossBlock(own, cross, mlp))
        self.source_norm, self.norm = nn.LayerNorm(C), nn.LayerNorm(C)
        self.lm_head = nn.Linear(C, V, bias=False)

    def forward(self, source: Tensor, decoder_input: Tensor) -> Tensor:
        mask = (source != 0)[:, None, None]  # (B, 1, 1, S)
        states = self.position(self.token(source))  # (B, S, C)
        for block in self.encoder:
            states = block(states, mask)
        states = self.source_norm(states)
        x = self.position(self.token(decoder_input))  # (B, T, C)
        for block in self.decoder:
            x = block(x, states, mask)
        return self.lm_head(self.norm(x))  # (B, T, V)


@torch.no_grad()
def greedy_decode(model: nn.Module, sources: list[str], longest: int = 40) -> list[str]:
    """What the model writes for each source: always the most likely letter, until `END`.

    longest: letters after which it ends without `END`. Explained in: encoders_decoders.
    """
    device = next(model.parameters()).device
    source = padded([text + END for text in sources]).to(device)  # (B, S)
    decoder_input = padded([START] * len(sources)).to(device)  # (B, 1)
    for _ in range(longest):
        most_likely = model(source, decoder_input)[:, -1].argmax(-1, keepdim=True)  # (B, 1)
        decoder_input = torch.cat((decoder_input, most_likely), 1)
        if (decoder_input == LETTERS.encode(END)[0]).any(1).all():
            break
    return [LETTERS.decode(row).partition(END)[0] for row in decoder_input[:, 1:].tolist()]
