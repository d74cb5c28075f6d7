"""The exercises on generation: a strange text, forbidding repetitions, prompts of any length."""

import math
from functools import partial

import torch
from torch import nn

from exercises.check import checked, exercise, expect, normal, reported, same

TAUS = (1.0, 1.5, 2.0, 3.0, 5.0)
RIGHT = (4.773, 3.734, 3.382, 3.277, 3.462)
WRONG = {
    "These are the losses on the plays as they are. Take them in capitals: `.upper()`.": (
        (1.349, 1.363, 1.492, 1.857, 2.497)
    ),
    'These are the losses on the plays that the model was trained on. Take "validation".': (
        (4.528, 3.543, 3.217, 3.146, 3.376)
    ),
    "These are the entropies. `entropy_and_loss` gives the loss second.": (
        (1.298, 2.006, 2.625, 3.413, 3.940)
    ),
}


@checked
def capitals(answer):
    """capitals: the losses at five temperatures on plays in capitals, and the one you would take"""
    losses, chosen = reported(
        answer,
        (dict.fromkeys(TAUS, 2.5), 1.0),
        "Set capitals to a pair: the losses, temperature → loss, and the temperature you take, "
        "({1.0: 2.5, …}, 1.0).",
    )
    found = [*losses.values()]
    for says, wrong in WRONG.items():
        expect(not same(found, wrong, 0.02), says)
    expect(
        same(found, RIGHT, 0.02),
        "These are not the losses in capitals: mean losses, as `entropy_and_loss` gives them, for "
        'what `read_stretches` makes of `data.shakespeare("validation").upper()`.',
    )
    expect(chosen in TAUS, "The second of the pair should be one of the five temperatures.")
    best = min(TAUS, key=losses.__getitem__)
    expect(chosen == best, "By your own numbers another temperature is better.")
    return "Sure and wrong: at τ = 1 it does worse here than a die with 69 faces (ln 69 = 4.23)."


def to_forbid(length, symbols, n, seed):
    g = torch.Generator().manual_seed(seed)
    text = torch.randint(symbols, (length,), generator=g).tolist()
    return normal(symbols, seed=seed), text, n


@exercise(
    inputs=[
        (normal(5, seed=1), [1, 2, 3, 1, 2], 3),
        (normal(4, seed=2), [0, 1, 2, 0, 3, 0], 2),
        to_forbid(40, 4, 3, seed=3),
        to_forbid(30, 4, 2, seed=4),
        to_forbid(60, 3, 4, seed=5),
        to_forbid(6, 8, 1, seed=6),
        to_forbid(3, 4, 5, seed=7),
        to_forbid(50, 5, 3, seed=8),
        (normal(4, seed=30), [2, 2, 2], 2),
        (normal(4, seed=31), [1, 1, 1, 1], 3),
        (normal(13, seed=32), [12, 3, 1, 2], 3),
        (normal(13, seed=33), [11, 2, 3, 1, 2], 3),
    ],
    example=(normal(5, seed=1), [1, 2, 3, 1, 2], 3),
    on_success="No piece of n tokens occurs twice.",
)
def no_repeat(logits, ids, n):
    """no_repeat(logits, ids, n): logits (V,) with −∞ where a piece of n tokens would come again."""
    return forbidding(completing)(logits, ids, n)


def completing(ids, n, less=0):
    """The tokens that followed earlier on what the last n − 1 tokens are now."""
    start = len(ids) - n + 1
    return [ids[i + n - 1] for i in range(start - less) if ids[i : i + n - 1] == ids[start:]]


def forbidding(which, value=-math.inf):
    """Logits with `value` at the tokens that `which` names; a mistake is another of them."""

    def no_repeat(logits, ids, n):
        out = logits.clone()
        out[which(ids, n)] = value
        return out

    return no_repeat


no_repeat.mistake(
    "You forbid every token that has occurred. Forbid only those that would complete a piece of n "
    "tokens for a second time.",
    forbidding(lambda ids, n: ids),
)
no_repeat.mistake(
    "For n = 1 all that has occurred is forbidden. The last n − 1 tokens are none then, but "
    "`ids[-0:]` is the whole list: count from the front, `ids[len(ids) - (n - 1):]`.",
    forbidding(lambda ids, n: completing(ids, n) if n > 1 else []),
)
no_repeat.mistake(
    "Zero is a logit like any other. Set forbidden logits to −∞: `-math.inf`.",
    forbidding(completing, value=0.0),
)
no_repeat.mistake(
    "A large negative number is not −∞: `-math.inf`.",
    forbidding(completing, value=-1e9),
    forbidding(completing, value=-1e4),
)
no_repeat.mistake(
    "Your pieces are one token too long: n − 1 tokens, and the one that follows.",
    forbidding(lambda ids, n: completing(ids, n + 1)),
)
no_repeat.mistake(
    "You used only one earlier occurrence. The last n − 1 tokens may have occurred several times, "
    "each time followed by another token.",
    forbidding(lambda ids, n: completing(ids, n)[:1]),
    forbidding(lambda ids, n: completing(ids, n)[-1:]),
)
no_repeat.mistake(
    "You missed the piece that ends where `ids` ends: the last one begins at len(ids) − n, and the "
    "end of a range does not belong to it.",
    forbidding(partial(completing, less=1)),
)
no_repeat.mistake(
    "These are the forbidden tokens. Return the logits, with −∞ at those tokens.",
    lambda logits, ids, n: completing(ids, n),
)


class Reader(nn.Module):
    """A fixed model of 11 symbols whose next token depends on all that it reads, and on the order.

    It can read `most` tokens: a longer text is an error, as in a GPT.
    """

    __name__ = "model"  # in what a check says

    def __init__(self, most, seed):
        super().__init__()
        self.most = most
        self.table = normal(11, 11, seed=seed + 100)

    def forward(self, ids):
        if ids.dim() != 2:
            raise ValueError(
                f"you gave the model ids of shape {tuple(ids.shape)}, and it reads (B, T): one "
                "text is (1, T)"
            )
        T = ids.shape[1]
        if T > self.most:
            raise ValueError(
                f"you gave the model {T} tokens, and it reads {self.most} at most. Crop to the "
                "last block_size, in each step"
            )
        # Early tokens count, too: a weight for each place, counted from the left.
        places = torch.arange(1, T + 1, dtype=torch.float32)
        return (self.table[ids] * (places.sin() + 1.5)[:, None]).cumsum(1)


def to_write(lengths, n, window, stop, seed):
    g = torch.Generator().manual_seed(seed)
    prompts = [torch.randint(11, (length,), generator=g).tolist() for length in lengths]
    return Reader(window, seed), prompts, n, window, stop


@exercise(
    inputs=[
        to_write((3, 5), 9, 6, 4, seed=1),
        to_write((9, 2, 9), 4, 5, 0, seed=2),
        to_write((1,), 5, 8, 7, seed=3),
        to_write((4, 4), 6, 4, 2, seed=4),
        to_write((3, 1), 0, 8, 1, seed=5),
        to_write((2, 6), 3, 1, 10, seed=6),
        to_write((5, 1, 3), 12, 5, 3, seed=7),
        to_write((2, 7, 4, 2), 12, 7, 6, seed=8),
    ],
    example=to_write((3, 5), 0, 6, 4, seed=1),
    on_success="Each text is exactly what its prompt would give alone.",
    error_hints={
        "expected sequence of length": "Prompts of different lengths make no tensor: write "
        "each alone, or those of one length together."
    },
)
def write_all(model, prompts, n_tokens, block_size, stop):
    """write_all(model, prompts, n_tokens, block_size, stop): lists of ids, each continued."""
    return write(model, prompts, n_tokens, block_size, stop)


def write(
    model,
    prompts,
    n_tokens,
    block_size,
    stop,
    crop=lambda ids, block_size: ids[-block_size:],
    choose=lambda logits: int(logits[-1].argmax()),
    stops=True,
    keep_stop=True,
):
    """Write greedily, text by text; a mistake is another part of it."""
    texts = []
    for prompt in prompts:
        ids = list(prompt)
        for _ in range(n_tokens):
            ids.append(choose(model(torch.tensor([crop(ids, block_size)]))[0]))
            if stops and ids[-1] == stop:
                ids = ids if keep_stop else ids[:-1]
                break
        texts.append(ids)
    return texts


def changed(change):
    """What is returned, changed text by text: change(text, prompt, block_size)."""

    def wrong(model, prompts, n_tokens, block_size, stop):
        texts = write(model, prompts, n_tokens, block_size, stop)
        return [change(*pair, block_size) for pair in zip(texts, prompts, strict=True)]

    return wrong


def padded(pad):
    """All prompts in one tensor, padded with the token 0."""

    def wrong(model, prompts, n_tokens, block_size, stop):
        longest = max(map(len, prompts))
        batch = [pad(prompt, [0] * (longest - len(prompt))) for prompt in prompts]
        texts = write(model, batch, n_tokens, block_size, stop)
        return [p + text[longest:] for p, text in zip(prompts, texts, strict=True)]

    return wrong


def until_one_stops(model, prompts, n_tokens, block_size, stop):
    texts = write(model, prompts, n_tokens, block_size, stop)
    n = min(len(text) - len(prompt) for text, prompt in zip(texts, prompts, strict=True))
    return [text[: len(prompt) + n] for text, prompt in zip(texts, prompts, strict=True)]


write_all.mistake(
    "You return the new tokens without the prompts.",
    changed(lambda ids, prompt, block_size: ids[len(prompt) :]),
)
write_all.mistake(
    "You cropped the text itself, so its beginning is lost. Crop what the model reads, and keep "
    "the text whole.",
    changed(lambda ids, prompt, block_size: ids[-block_size:]),
    changed(lambda ids, prompt, block_size: ids[-block_size - 1 :]),
    changed(lambda ids, prompt, block_size: prompt[-block_size:] + ids[len(prompt) :]),
)
write_all.mistake(
    "You padded the short prompts on the right, and the model continued the padding.",
    padded(lambda prompt, padding: prompt + padding),
)
write_all.mistake(
    "You padded the short prompts on the left, and the model took the padding for text.",
    padded(lambda prompt, padding: padding + prompt),
)
write_all.mistake("Texts go on after `stop`: each ends with it.", partial(write, stops=False))
write_all.mistake(
    "All texts end when the first one has written `stop`. The others go on.", until_one_stops
)
write_all.mistake(
    "`stop` belongs to the text that it ends: append it before you leave the loop.",
    partial(write, keep_stop=False),
)
write_all.mistake(
    "You cropped the wrong end: the model always reads the first tokens. Take the last, "
    "`ids[-block_size:]`.",
    partial(write, crop=lambda ids, block_size: ids[:block_size]),
)
write_all.mistake(
    "You gave the model only the last token. There is no cache here, so it needs the tokens before "
    "it, too.",
    partial(write, crop=lambda ids, block_size: ids[-1:]),
)
