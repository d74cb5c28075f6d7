"""Fine-tuning: dialogues as ids with a completion mask, the masked loss, and LoRA adapters."""

import math
from collections import Counter
from collections.abc import Collection, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from helpers.checks import is_whole, to_device_of
from helpers.text import BPETokenizer

ROLES = ("system", "user", "assistant")
Messages = Sequence[tuple[str, str]]  # (role, text), in order
Row = tuple[list[int], list[bool]]  # ids and completion mask, of the same length


# --- a dialogue as a row of a batch ---------------------------------------------------------------


def chat_text(messages: Messages) -> str:
    """Write a dialogue in SmolLM2's chat template (ChatML).

    messages: (role, text) pairs; a role is "system", "user" or "assistant". Unless the assistant
    has the last word, the text ends with the header of its reply.
    Raises ValueError for no messages and for another role. Taught in: fine_tuning.
    """
    return "".join(text for text, _, _ in _segments(messages))


def encode_chat(tokenizer: BPETokenizer, messages: Messages) -> Row:
    """Encode a dialogue (see `chat_text`): return its ids and its completion mask.

    The mask is True on what a model has to learn to write: the tokens of the assistant's messages,
    each with the end token after it. Headers and messages are encoded one by one, as they are when
    the model generates a reply; special tokens that a message spells are ordinary text.

    Raises ValueError for a tokenizer without <|im_start|> and <|im_end|>, and what `chat_text`
    raises. Taught in: fine_tuning.
    """
    names = ["<|im_start|>", "<|im_end|>"]
    if missing := [name for name in names if name not in tokenizer.special]:
        raise ValueError(f"the tokenizer has no {missing}; special: {sorted(tokenizer.special)}")
    ids: list[int] = []
    mask: list[bool] = []
    for text, is_template, is_completion in _segments(messages):
        new = tokenizer.encode(text, special=names if is_template else [])
        ids += new
        mask += [is_completion] * len(new)
    return ids, mask


def _segments(messages: Messages) -> list[tuple[str, bool, bool]]:
    """The texts of the template in order: is each part of the template, and of a completion?"""
    if not messages:
        raise ValueError("there are no messages")
    found = []
    for role, text in messages:
        if role not in ROLES:
            raise ValueError(f"the role of a message is one of {ROLES}, not {role!r}")
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
    token attends to these ends, and the loss ignores them.
    Raises ValueError for no rows, and for a row whose mask has another length than its ids.
    Explained in: fine_tuning.
    """
    if not rows:
        raise ValueError("there are no rows to pad")
    for i, (ids, mask) in enumerate(rows):
        if len(ids) != len(mask):
            raise ValueError(f"row {i} has {len(ids)} ids, but a mask of {len(mask)}")
    T = max(len(ids) for ids, _ in rows)
    padded = [[*ids, *[pad] * (T - len(ids))] for ids, _ in rows]
    masks = [[*mask, *[False] * (T - len(mask))] for _, mask in rows]
    return torch.tensor(padded), torch.tensor(masks)


def completion_loss(model: nn.Module, ids: Tensor, mask: Tensor) -> Tensor:
    """Return the mean cross-entropy of the tokens of ids (B, T) at which mask (B, T) is True.

    The token at position t is predicted from those before it, so by the logits at t − 1: mask[:, t]
    belongs to the target at t. Position 0 has no prediction and must not be masked True.
    Raises ValueError for a mask of another shape or type, for one that is True at position 0, and
    for one that is True nowhere. Taught in: fine_tuning.
    """
    if mask.shape != ids.shape or mask.dtype != torch.bool:
        raise ValueError(
            f"mask should be bool {tuple(ids.shape)}, as ids, not {mask.dtype} {tuple(mask.shape)}"
        )
    if mask[:, 0].any():
        raise ValueError("mask is True at position 0, which nothing precedes: no logits predict it")
    if not mask.any():
        raise ValueError("mask is True nowhere: there is no token to learn")
    ids, mask = to_device_of(model, ids), to_device_of(model, mask)
    targets, is_target = ids[:, 1:], mask[:, 1:]
    return F.cross_entropy(model(ids[:, :-1])[is_target], targets[is_target])


# --- LoRA -----------------------------------------------------------------------------------------


class LoRA(nn.Module):
    """A frozen linear layer with a trainable adapter of low rank beside it: x (…, in) → (…, out).

    Computes linear(x) + alpha / rank · B A x. A (rank, in) begins with random numbers and B
    (out, rank) with zeros, so that at first the adapter adds nothing. The weights of linear no
    longer get a gradient.

    Args:
        linear: the layer.
        rank: r, of the matrix B A that is learned.
        alpha: what the adapter is multiplied by, times rank; None: rank, so that the factor is 1.

    Raises TypeError for a layer that is not an nn.Linear; ValueError for a rank that is not a whole
    number of at least 1 and an alpha that is not above 0. Hu et al. 2021. Taught in: fine_tuning.
    """

    def __init__(self, linear: nn.Linear, rank: int, alpha: float | None = None):
        super().__init__()
        if not isinstance(linear, nn.Linear):
            raise TypeError(f"LoRA wraps an nn.Linear, not a {type(linear).__name__}")
        if not (is_whole(rank) and rank >= 1):
            raise ValueError(f"rank is a whole number of at least 1, not {rank!r}")
        if alpha is not None and not 0 < alpha < math.inf:
            raise ValueError(f"alpha is a number above 0, or None, not {alpha!r}")
        self.linear = linear.requires_grad_(False)
        n_out, n_in = linear.weight.shape
        self.in_features, self.out_features = n_in, n_out  # as nn.Linear has them
        drawn = torch.empty(rank, n_in, dtype=linear.weight.dtype, device="cpu")
        drawn.normal_(std=1 / math.sqrt(n_in))
        self.A = nn.Parameter(drawn.to(linear.weight.device))
        self.B = nn.Parameter(linear.weight.new_zeros(n_out, rank))
        self.scale = 1.0 if alpha is None else alpha / rank

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.linear(x)
        return out + self.scale * (x @ self.A.T) @ self.B.T

    @torch.no_grad()
    def merged(self) -> nn.Linear:
        """The linear layer, with the adapter added to its weights: W + alpha / rank · B A."""
        self.linear.weight += self.scale * self.B @ self.A
        return self.linear


def add_lora(
    model: nn.Module,
    rank: int,
    alpha: float | None = None,
    names: Collection[str] | None = None,
) -> list[nn.Parameter]:
    """Freeze a model, and put a `LoRA` in the place of its linear layers; return the parameters
    that are to be trained.

    Args:
        model: is changed in place.
        rank, alpha: see `LoRA`.
        names: which layers get an adapter: the last parts of their names, such as "query" and
            "value"; None: all except "lm_head".

    Give the returned parameters to an optimizer that is made after this call.
    Raises ValueError for a model that has adapters already, a name that no linear layer has, a
    layer whose weights another one shares, and where no layer is left; and what `LoRA` raises. Then
    the model is as it was. Taught in: fine_tuning.
    """
    if any(isinstance(part, LoRA) for part in model.modules()):
        raise ValueError("the model has adapters already: merge_lora(model) first")
    layers = {name: m for name, m in model.named_modules() if isinstance(m, nn.Linear) and name}
    known = {name.rpartition(".")[2] for name in layers}
    wanted = known - {"lm_head"} if names is None else set(names)
    if unknown := wanted - known:
        raise ValueError(f"no linear layer is called {sorted(unknown)}; there are {sorted(known)}")
    layers = {name: m for name, m in layers.items() if name.rpartition(".")[2] in wanted}
    if not layers:
        raise ValueError(
            f"no nn.Linear is left that could get an adapter; there are {sorted(known)}"
        )
    places = [m for part in model.modules() for m in part._modules.values() if m is not None]
    uses = Counter(id(p) for m in places for p in m._parameters.values())
    if shared := [name for name, m in layers.items() if uses[id(m.weight)] > 1]:
        raise ValueError(
            f"{shared[0]} shares its weights with another layer, as a tied head does with the "
            "token table, and merging an adapter would change both: make the model with "
            "tied=False, or leave this layer out of names"
        )
    adapters = {name: LoRA(linear, rank, alpha) for name, linear in layers.items()}
    model.requires_grad_(False)
    for name, adapter in adapters.items():
        parent, _, last = name.rpartition(".")
        setattr(model.get_submodule(parent), last, adapter)
    return [p for adapter in adapters.values() for p in (adapter.A, adapter.B)]


def merge_lora(model: nn.Module) -> nn.Module:
    """Add each adapter of a model to the weights beside it, and return the model, which has the
    layers and the names that it had before `add_lora`.

    Its weights stay frozen: requires_grad_(True) to train all of them.
    Raises ValueError for a model without adapters. Taught in: fine_tuning.
    """
    adapters = {name: m for name, m in model.named_modules() if isinstance(m, LoRA)}
    if not adapters:
        raise ValueError("the model has no adapters: add_lora(model, rank) adds them")
    for name, adapter in adapters.items():
        parent, _, last = name.rpartition(".")
        setattr(model.get_submodule(parent), last, adapter.merged())
    return model
