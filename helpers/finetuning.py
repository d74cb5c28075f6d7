"""Fine-tuning: dialogues as ids with a completion mask, the masked loss, and LoRA adapters."""

import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from helpers.quantization import QuantizedLinear
from helpers.text import BPETokenizer
from helpers.training import to_device_of

Messages = Sequence[tuple[str, str]]  # (role, text), in order
Row = tuple[list[int], list[bool]]  # ids and completion mask, of the same length


# --- a dialogue as a row of a batch ---------------------------------------------------------------


def chat_text(messages: Messages) -> str:
    """Write a dialogue in SmolLM2's chat template (ChatML).

    messages: (role, text) pairs; a role is "system", "user" or "assistant". Unless the assistant
    has the last word, the text ends with the header of its reply. Taught in: fine_tuning.
    """
    return "".join(text for text, _, _ in _segments(messages))


def encode_chat(tokenizer: BPETokenizer, messages: Messages) -> Row:
    """Encode a dialogue (see `chat_text`): return its ids and its completion mask.

    The mask is True on what a model has to learn to write: the tokens of the assistant's messages,
    each with the end token after it. Headers and messages are encoded one by one, as they are when
    the model generates a reply; special tokens that a message spells are ordinary text.
    Taught in: fine_tuning.
    """
    ids: list[int] = []
    mask: list[bool] = []
    for text, is_template, is_completion in _segments(messages):
        special = ["<|im_start|>", "<|im_end|>"] if is_template else []
        new = tokenizer.encode(text, special=special)
        ids += new
        mask += [is_completion] * len(new)
    return ids, mask


def _segments(messages: Messages) -> list[tuple[str, bool, bool]]:
    """The texts of the template in order: is each part of the template, and of a completion?"""
    found = []
    for role, text in messages:
        is_completion = role == "assistant"
        found.append((f"<|im_start|>{role}\n", True, False))
        found.append((text, False, is_completion))
        found.append(("<|im_end|>", True, is_completion))
        found.append(("\n", True, False))
    if messages[-1][0] != "assistant":
        found.append(("<|im_start|>assistant\n", True, False))
    return found


def pad_rows(rows: Sequence[Row], pad: int) -> tuple[Tensor, Tensor]:
    """Return rows of unlike lengths as a batch: ids (B, T), int64, and mask (B, T), bool.

    pad: the id that fills the ends of shorter rows, where the mask is False. In a causal model no
    token attends to these ends, and the loss ignores them. Explained in: fine_tuning.
    """
    T = max(len(ids) for ids, _ in rows)
    padded = [[*ids, *[pad] * (T - len(ids))] for ids, _ in rows]
    masks = [[*mask, *[False] * (T - len(ids))] for ids, mask in rows]
    return torch.tensor(padded), torch.tensor(masks)


def completion_loss(model: nn.Module, ids: Tensor, mask: Tensor) -> Tensor:
    """Return the mean cross-entropy of the tokens of ids (B, T) at which mask (B, T) is True.

    The token at position t is predicted from those before it, so by the logits at t − 1: mask[:, t]
    belongs to the target at t. Raises ValueError for a mask that is True at position 0, which has
    no prediction. Taught in: fine_tuning.
    """
    if mask[:, 0].any():
        raise ValueError("mask is True at position 0, which nothing precedes: no logits predict it")
    ids, mask = to_device_of(model, ids), to_device_of(model, mask)
    targets, is_target = ids[:, 1:], mask[:, 1:]  # (B, T − 1)
    return F.cross_entropy(model(ids[:, :-1])[is_target], targets[is_target])


# --- LoRA -----------------------------------------------------------------------------------------


class LoRA(nn.Module):
    """A frozen linear layer with a trainable adapter of low rank beside it: x (…, in) → (…, out).

    Computes linear(x) + α/r · B A x. A (rank, in) begins with random numbers and B (out, rank) with
    zeros, so that at first the adapter adds nothing. Hu et al. 2021. Taught in: fine_tuning.
    """

    def __init__(self, linear: nn.Linear | QuantizedLinear, rank: int, alpha: float):
        super().__init__()
        self.linear = linear.requires_grad_(False)  # frozen: it gets no gradient
        n_in, n_out = linear.in_features, linear.out_features
        self.in_features, self.out_features = n_in, n_out  # as nn.Linear has them
        like = next(linear.parameters(), torch.empty(0))  # 4-bit weights are no parameters
        drawn = torch.empty(rank, n_in, device="cpu").normal_(std=1 / math.sqrt(n_in))
        self.A = nn.Parameter(drawn.to(like))
        self.B = nn.Parameter(like.new_zeros(n_out, rank))
        self.scale = alpha / rank

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.linear(x)  # (…, out)
        return out + self.scale * (x @ self.A.T) @ self.B.T  # (…, in) → (…, rank) → (…, out)

    @torch.no_grad()
    def merged(self) -> nn.Linear:
        """The linear layer, with the adapter added to its weights: W + α/r · B A."""
        if not isinstance(self.linear, nn.Linear):
            raise TypeError("4-bit weights stay as they are: an adapter cannot be merged into them")
        self.linear.weight += self.scale * self.B @ self.A
        return self.linear


def add_lora(model: nn.Module, rank: int, alpha: float) -> list[nn.Parameter]:
    """Freeze a model, put a `LoRA` in the place of its linear layers, return what is to be trained.

    The head gets no adapter: a tied one shares its weights with the token table, which merging
    would change, too. Give the parameters to an optimizer that is made after this call.
    Taught in: fine_tuning.
    """
    model.requires_grad_(False)
    trained = []
    for name, layer in list(model.named_modules()):
        if isinstance(layer, nn.Linear | QuantizedLinear) and not name.endswith("head"):
            parent, _, last = name.rpartition(".")  # "blocks.0.mlp" and "up"
            adapter = LoRA(layer, rank, alpha)
            setattr(model.get_submodule(parent), last, adapter)
            trained += [adapter.A, adapter.B]
    return trained


def merge_lora(model: nn.Module) -> nn.Module:
    """Add each adapter of a model to the weights beside it, and return the model, which has the
    layers and the names that it had before `add_lora`.

    Its weights stay frozen: requires_grad_(True) to train all of them. Taught in: fine_tuning.
    """
    for name, adapter in list(model.named_modules()):
        if isinstance(adapter, LoRA):
            parent, _, last = name.rpartition(".")
            setattr(model.get_submodule(parent), last, adapter.merged())
    return model
