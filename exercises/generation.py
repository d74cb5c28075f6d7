"""The exercises on generation: a strange text, forbidding repetitions, prompts of any length."""

import math
from functools import partial

import torch
from torch import nn

from exercises.check import (
    checked,
    exercise,
    expect,
    normal,
    reported,
    same,
)

TAUS = (1.0, 1.5, 2.0, 3.0, 5.0)
RIGHT = (4.773, 3.734, 3.382, 3.277, 3.462)
WRONG = {
    (1.349, 1.363, 1.492, 1.857, 2.497):
        "These are the losses on the plays as they are. Take them in capitals: `.upper()`.",
    (1.559, 1.518, 1.621, 1.956, 2.561): "These are the losses in lower case: `.upper()`.",
    (4.528, 3.543, 3.217, 3.146, 3.376):
        "These are the losses on the plays that the model was trained on. Take \"validation\".",
    (1.298, 2.006, 2.625, 3.413, 3.940):
        "These are the entropies. `entropy_and_loss` gives the loss second.",
    (6.886, 5.387, 4.879, 4.728, 4.995):
        "These are bits. Leave the loss in nats, as `entropy_and_loss` gives it.",
}  # fmt: skip


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
    for wrong, says in WRONG.items():
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
        (normal(5, seed=1), [1, 2, 3, 1, 2], 3), (normal(4, seed=2), [0, 1, 2, 0, 3, 0], 2),
        *(to_forbid(*sizes, seed) for seed, sizes in enumerate(
            [(40, 4, 3), (30, 4, 2), (60, 3, 4), (6, 8, 1), (3, 4, 5), (50, 5, 3)], 3)),
        (normal(4, seed=30), [2, 2, 2], 2), (normal(4, seed=31), [1, 1, 1, 1], 3),
        (normal(13, seed=32), [12, 3, 1, 2], 3), (normal(13, seed=33), [11, 2, 3, 1, 2], 3),
    ],
    praise="No piece of n tokens occurs twice.",
)  # fmt: skip
def no_repeat(logits, ids, n):
    """no_repeat(logits, ids, n): logits (V,) with −∞ where a piece of n tokens would come again."""
    return forbidding()(logits, ids, n)


def ends_a_piece(ids, n, less=0):
    """The tokens that followed earlier on what the last n − 1 tokens are now."""
    start = len(ids) - n + 1
    return [ids[i + n - 1] for i in range(start - less) if ids[i : i + n - 1] == ids[start:]]


def forbidding(which=ends_a_piece, fill=-math.inf):
    """Logits with `fill` at the tokens that `which` names; a mistake is another of them."""

    def no_repeat(logits, ids, n):
        out = logits.clone()
        out[which(ids, n)] = fill
        return out

    return no_repeat


def sized(change):
    return lambda ids, n: ends_a_piece(ids, max(1, n + change))


def whole_pieces(ids, n):
    start = len(ids) - n + 1
    return [t for i in range(start) if ids[i : i + n - 1] == ids[start:] for t in ids[i : i + n]]


def as_text(ids, n, between):
    """Looks for pieces in the ids written as text, where 1, 2 may be found inside 11, 2 or 12."""
    text = between.join(map(str, ids))
    ends = (between.join(map(str, [*ids[len(ids) - n + 1 :], t])) for t in range(max(ids) + 1))
    return [t for t, end in enumerate(ends) if len(ids) >= n and end in text]


def any_order(ids, n):
    start = len(ids) - n + 1
    end = sorted(ids[max(start, 0) :])
    return [ids[i + n - 1] for i in range(start) if sorted(ids[i : i + n - 1]) == end]


no_repeat.mistakes = {
    "You forbid nothing. Set each forbidden logit to −∞.": lambda logits, ids, n: logits.clone(),
    "You forbid every token that has occurred. Forbid only those that would complete a piece of n "
    "tokens for a second time.": forbidding(lambda ids, n: ids),
    "For n = 1 all that has occurred is forbidden. The last n − 1 tokens are none then, but "
    "`ids[-0:]` is the whole list: count from the front, `ids[len(ids) - (n - 1):]`.":
        forbidding(lambda ids, n: ends_a_piece(ids, n) if n > 1 else []),
    "Zero is a logit like any other. Set forbidden logits to −∞: `-math.inf`.":
        forbidding(fill=0.0),
    "A large negative number is not −∞: `-math.inf`.":
        (forbidding(fill=-1e9), forbidding(fill=-1e4), forbidding(fill=-100.0)),
    "Your pieces are one token too long: n − 1 tokens, and the one that follows.":
        forbidding(sized(1)),
    "Your pieces are one token too short: n − 1 tokens, and the one that follows.":
        forbidding(sized(-1)),
    "Your pieces have three tokens, as in the example. Take n.":
        forbidding(lambda ids, n: ends_a_piece(ids, 3)),
    "You forbid all tokens of the piece. Forbid only the one that would complete it.":
        forbidding(whole_pieces),
    "You ignore the order. The last n − 1 tokens must have occurred in the same order.":
        forbidding(any_order),
    "You used only one earlier occurrence. The last n − 1 tokens may have occurred several times, "
    "each time followed by another token.":
        (forbidding(lambda ids, n: ends_a_piece(ids, n)[:1]),
         forbidding(lambda ids, n: ends_a_piece(ids, n)[-1:])),
    "You missed the piece that ends where `ids` ends: the last one begins at len(ids) − n, and the "
    "end of a range does not belong to it.": forbidding(partial(ends_a_piece, less=1)),
    "Written as text, tokens run together: 1, 2 is found in 12 and in 11, 2. Compare lists or "
    "tuples of numbers.": tuple(forbidding(partial(as_text, between=sign)) for sign in ("", " ")),
    "It is the wrong way round: you forbid the tokens that are allowed.":
        forbidding(lambda ids, n: list(set(ids) - set(ends_a_piece(ids, n)))),
    "These are probabilities. Return logits: the softmax comes later.":
        lambda logits, ids, n: no_repeat.right(logits, ids, n).softmax(-1),
    "These are the forbidden tokens. Return the logits, with −∞ at those tokens.":
        lambda logits, ids, n: ends_a_piece(ids, n),
}  # fmt: skip


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
    inputs=[to_write(*sizes, seed) for seed, sizes in enumerate(
        [((3, 5), 9, 6, 4), ((9, 2, 9), 4, 5, 0), ((1,), 5, 8, 7), ((4, 4), 6, 4, 2),
         ((3, 1), 0, 8, 1), ((2, 6), 3, 1, 10), ((5, 1, 3), 12, 5, 3),
         ((2, 7, 4, 2), 12, 7, 6)], 1)],
    praise="Each text is exactly what its prompt would give alone.",
    meaning={"expected sequence of length": "Prompts of different lengths make no tensor: write "
             "each alone, or those of one length together."},
)  # fmt: skip
def write_all(model, prompts, n_tokens, block_size, stop):
    """write_all(model, prompts, n_tokens, block_size, stop): lists of ids, each continued."""
    return writing()(model, prompts, n_tokens, block_size, stop)


def last(ids, window):
    return ids[-window:]


def writing(read=last, choose=lambda rows: int(rows[-1].argmax()), more=0, ends=True, keep=True):
    """Write greedily, text by text; a mistake is another part of it."""

    def write_all(model, prompts, n_tokens, block_size, stop):
        texts = []
        for prompt in prompts:
            ids = list(prompt)
            for _ in range(n_tokens + more):
                new = choose(model(torch.tensor([read(ids, block_size)]))[0])
                if ends and new == stop and not keep:
                    break
                ids.append(new)
                if ends and new == stop:
                    break
            texts.append(ids)
        return texts

    return write_all


def changed(change):
    """What is returned, changed text by text: change(text, prompt, window)."""

    def wrong(model, prompts, n_tokens, block_size, stop):
        texts = write_all.right(model, prompts, n_tokens, block_size, stop)
        return [change(*pair, block_size) for pair in zip(texts, prompts, strict=True)]

    return wrong


def padded(right):
    """All prompts in one tensor, filled up with the token 0."""

    def wrong(model, prompts, n_tokens, block_size, stop):
        longest = max(map(len, prompts))
        fill = [[0] * (longest - len(prompt)) for prompt in prompts]
        same = [p + f if right else f + p for p, f in zip(prompts, fill, strict=True)]
        texts = write_all.right(model, same, n_tokens, block_size, stop)
        both = zip(prompts, texts, strict=True)
        return [prompt + text[longest:] for prompt, text in both]

    return wrong


def padded_each_time(model, prompts, n_tokens, block_size, stop):
    """As `padded(right=True)`, but the texts that go on are filled up anew for each token."""
    texts, going = list(map(list, prompts)), [True] * len(prompts)
    for _ in range(n_tokens):
        views = [text[-block_size:] for text in texts]
        longest = max(map(len, views))
        rows = model(torch.tensor([v + [0] * (longest - len(v)) for v in views]))[:, -1].argmax(-1)
        for i, new in enumerate(rows.tolist()):
            texts[i] += [new] * going[i]
            going[i] &= new != stop
    return texts


def ended_by_the_first(model, prompts, n_tokens, block_size, stop):
    """One prompt after the other, until one has stopped: the others are not continued."""
    texts = write_all.right(model, prompts, n_tokens, block_size, stop)
    stopped = [stop in text[len(p) :] for text, p in zip(texts, prompts, strict=True)]
    n = stopped.index(True) + 1 if any(stopped) else len(texts)
    return texts[:n] + prompts[n:]


def filled_with_stop(model, prompts, n_tokens, block_size, stop):
    texts = write_all.right(model, prompts, n_tokens, block_size, stop)
    n = [len(prompt) + n_tokens for prompt in prompts]
    return [t + [stop] * (whole - len(t)) for t, whole in zip(texts, n, strict=True)]


def until_all_stop(model, prompts, n_tokens, block_size, stop):
    """No text ends before all have."""
    long = writing(ends=False)(model, prompts, n_tokens, block_size, stop)
    ended = write_all.right(model, prompts, n_tokens, block_size, stop)
    n = max(len(text) - len(prompt) for text, prompt in zip(ended, prompts, strict=True))
    return [text[: len(prompt) + n] for text, prompt in zip(long, prompts, strict=True)]


def until_one_stops(model, prompts, n_tokens, block_size, stop):
    ended = write_all.right(model, prompts, n_tokens, block_size, stop)
    n = min(len(text) - len(prompt) for text, prompt in zip(ended, prompts, strict=True))
    return [text[: len(prompt) + n] for text, prompt in zip(ended, prompts, strict=True)]


write_all.mistakes = {
    "You return the new tokens without the prompts.": changed(lambda ids, p, W: ids[len(p):]),
    "You cropped the text itself, so its beginning is lost. Crop what the model reads, and keep "
    "the text whole.":
        (changed(lambda ids, p, W: ids[-W:]), changed(lambda ids, p, W: p[-W:] + ids[len(p):]),
         changed(lambda ids, p, W: ids[-W - 1 :])),
    "You padded the short prompts on the right, and the model continued the padding.":
        (padded(right=True), padded_each_time),
    "You padded the short prompts on the left, and the model took the padding for text.":
        padded(right=False),
    "Texts go on after `stop`: each ends with it.": (writing(ends=False), filled_with_stop),
    "You wait until all texts have stopped. A text ends when it writes `stop`, whatever the others "
    "do.": until_all_stop,
    "All texts end when the first one has written `stop`. The others go on.":
        (until_one_stops, ended_by_the_first),
    "`stop` belongs to the text that it ends: append it before you leave the loop.":
        writing(keep=False),
    "A `stop` in the prompt ends nothing: only one that is written does.": tuple(
        lambda *given, n=n: [p if given[4] in p[-n:] else t for p, t in zip(
            given[1], write_all.right(*given), strict=True)] for n in (99, 1)),
    "You used the logits of the first position. The last position predicts the next token.":
        writing(choose=lambda rows: int(rows[0].argmax())),
    "You take the least probable token: argmax, not argmin.":
        writing(choose=lambda rows: int(rows[-1].argmin())),
    "You cropped the wrong end: the model always reads the first tokens. Take the last, "
    "`ids[-block_size:]`.": writing(lambda ids, window: ids[:window]),
    "You gave the model only the last token. There is no cache here, so it needs the tokens before "
    "it, too.": writing(lambda ids, window: ids[-1:]),
    "You read one token fewer than fits. A text of block_size tokens can be read whole.":
        writing(lambda ids, window: ids[-max(window - 1, 1):]),
    "You wrote one token too many: n_tokens at most.": writing(more=1),
    "You wrote one token too few: n_tokens, unless `stop` comes.": writing(more=-1),
    "You write until a text has n_tokens in all. Write n_tokens more.":
        lambda model, prompts, n, W, stop: [
            write_all.right(model, [p], max(0, n - len(p)), W, stop)[0] for p in prompts],
    "You returned the prompts: nothing was written.": changed(lambda ids, p, W: list(p)),
    "The prompts are lists, and so are the texts: one list for each, not one for all.":
        lambda *given: [t for text in write_all.right(*given) for t in text],
}  # fmt: skip
