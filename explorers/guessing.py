"""Shannon's guessing game: a player guesses a play letter by letter, and a GPT the same letters.

The constants again: `python -c "from explorers import guessing; print(guessing.measure())"`.
"""

import gzip
import math
import re
from collections import Counter
from collections.abc import Sequence
from functools import cache
from typing import Any, ClassVar

import torch
import traitlets
from torch import Tensor

from explorers.base import Explorer, esm, in_range, read_only
from helpers import data
from helpers.formats.checkpoints import load_checkpoint
from helpers.plots import BLUE, RED, Picture, picture
from helpers.text import CharTokenizer, NGramModel

KEYS = "abcdefghijklmnopqrstuvwxyz "
# From data.shakespeare("validation"), which the GPT has not read: at "|" the guessing begins.
PASSAGES = (
    "OTHELLO:\nIt is the very error of the moon;\n"
    "|She comes more nearer earth than she was wont,\nAnd makes men mad.",
    "ROMEO:\nIs love a tender thing? |it is too rough,\n"
    "Too rude, too boisterous, and it pricks like thorn.",
    "First Bandit:\nLet us first see peace in Athens: "
    "|there is no time\nso miserable but a man may be true.",
    "DESDEMONA:\nUpon my knees, what doth your speech import?\n"
    "|I understand a fury in your words.\nBut not the words.",
    "BENVOLIO:\nAlas, that love, |so gentle in his view,\n"
    "Should be so tyrannous and rough in proof!",
    "Doctor:\nNot so sick, my lord,\n"
    "|As she is troubled with thick coming fancies,\nThat keep her from her rest.",
)
CODE = (
    0.7, 2.95, 3.91, 4.61, 5.13, 5.49, 5.99, 6.3, 6.53, 6.86, 6.95, 7.26, 7.52, 7.82, 7.87, 8.01,
    8.19, 8.63, 8.75, 9.18, 9.8, 10.31, 10.61, 10.98, 13.61, 13.61, 14.19,
)  # fmt: skip
COUNTED = [[2.47, 1.98], [2.54, 2.2], [2.18, 1.87], [2.13, 1.75], [2.52, 2.02], [2.17, 1.81]]
GZIP = 2.89


class GuessingGame(Explorer):
    """Guess the next letter until it is right; the GPT of chapter 12 plays, too.

    Only letters and the spaces after them are guessed, capital or not; the rest is given.
    number: of the passage; ranks: how many guesses each of its letters took so far.

    A letter that took r guesses costs CODE[r − 1] bits, the player and the model alike: −log2 of
    how often the model needs r guesses elsewhere in the plays. A code that is fixed beforehand
    flatters nobody, while the entropy of the ranks of 50 letters would be too low; made for the
    model's habits, it favours the model if anybody.

    Raises ValueError for a passage that is not there; TraitError when a trait is set to such.
    """

    _esm: ClassVar[str] = esm("guessing")

    number = traitlets.Int(0).tag(sync=True)
    ranks = traitlets.List(traitlets.Int(min=1, max=len(KEYS))).tag(sync=True)
    game = traitlets.Dict().tag(sync=True)
    bets = traitlets.Bytes().tag(sync=True)  # float32: a row of 27 for each letter

    _given = read_only("game", "bets")
    _number = in_range("a passage", "number", low=0, high=len(PASSAGES) - 1)

    def __init__(self, number: int = 0, ranks: Sequence[int] = ()):
        bets = [bets_on(passage) for passage in PASSAGES]
        passages = [
            {"text": text_of(one), "places": places(one), "ranks": scored(one, p)[0], "counted": n}
            for one, p, n in zip(PASSAGES, bets, COUNTED, strict=True)
        ]
        super().__init__(
            number=number,
            ranks=list(ranks),
            game={"keys": KEYS, "code": CODE, "gzip": GZIP, "passages": passages},
            bets=torch.cat(bets).numpy().astype("<f4").tobytes(),
        )

    def bits(self) -> list[float]:
        """What each letter cost so far: the player's bits, then the model's, in CODE."""
        model = self.game["passages"][self.number]["ranks"]
        n = len(self.ranks)
        return [sum(CODE[r - 1] for r in ranks[:n]) / max(1, n) for ranks in (self.ranks, model)]

    def describe(self) -> str:
        """Which passage, and how it stands."""
        you, model = self.bits()
        said = f"passage {self.number + 1}, {len(self.ranks)} letters guessed"
        return said + (f": {you:.2f} bits, the model {model:.2f}" if self.ranks else "")

    def picture(self) -> Picture:
        """What each letter cost the player, upwards, and costs the model, downwards."""
        one = self.game["passages"][self.number]
        fig, ax = picture(self.describe(), width=8.6, height=2.8)
        for ranks, sign, color in ((one["ranks"], -1, BLUE), (self.ranks, 1, RED)):
            ax.bar(range(len(ranks)), [sign * CODE[r - 1] for r in ranks], color=color)
        found = [one["text"][i] for i in one["places"][: len(self.ranks)]]
        ax.set_xticks(range(len(one["places"])), [*found, *"·" * (len(one["places"]) - len(found))])
        given = one["text"][: one["places"][0]].replace("\n", " / ")
        ax.grid(visible=False)
        ax.set(title=f"{given} …", ylabel="bits: you ↑, the model ↓", yticks=[])
        return fig


def text_of(passage: str) -> str:
    return passage.replace("|", "")


def places(passage: str) -> list[int]:
    """Where the letters to guess stand in the text: letters, and spaces between words."""
    text = text_of(passage)
    asked = (i for i in range(passage.index("|"), len(text)) if text[i] in KEYS + KEYS.upper())
    return [i for i in asked if text[i] != " " or text[i - 1].isalpha()]


def folded(p: Tensor, tokenizer: CharTokenizer) -> Tensor:
    """Probabilities (N, V) of symbols as those of the keys (N, 27): a letter's two cases added up,
    and divided by the sum, since the game says when neither a letter nor a space comes."""
    both = p[:, tokenizer.encode(KEYS)] + p[:, tokenizer.encode(KEYS.upper())]
    both[:, -1] /= 2  # the space has one case only
    return both / both.sum(1, keepdim=True)


def scored(passage: str, bets: Tensor) -> tuple[list[int], Tensor]:
    """Of each letter: how many guesses it takes by these bets, the likeliest first, and its p."""
    text = text_of(passage).lower()
    answers = torch.tensor([[KEYS.index(text[i])] for i in places(passage)])
    order = bets.sort(dim=1, descending=True, stable=True).indices
    return ((order == answers).int().argmax(1) + 1).tolist(), bets.gather(1, answers)[:, 0]


@torch.no_grad()
def bets_on(passage: str) -> Tensor:
    """The GPT's probabilities of the keys (letters, 27). It reads what the player reads."""
    saved = _model()
    ids = saved.tokenizer.encode("\n\n" + text_of(passage))
    p = saved.model(torch.tensor([ids]))[0].softmax(1)
    return folded(p[[i + 1 for i in places(passage)]], saved.tokenizer)  # before token i + 2


@cache
def _model() -> Any:
    return load_checkpoint(data.checkpoint("shakespeare-gpt"))


def measure_code() -> list[float]:
    """Bits of a first, second … guess, from how many the model needs in all longer speeches."""
    needed = Counter(range(1, len(KEYS) + 1))  # each once, so that no guess is impossible
    for speech in data.shakespeare("validation").split("\n\n"):
        if len(speech) > 120:
            passage = f"{speech[:40]}|{speech[40:120]}"
            needed.update(scored(passage, bets_on(passage))[0])
    bits = sorted(-math.log2(n / needed.total()) for n in needed.values())
    return [math.ceil(100 * b) / 100 for b in bits]  # rounded up, so that it stays a code


def measure_counts(code: list[float]) -> list[list[float]]:
    """Bits a letter of chapter 02's best smoothed counts in each passage, in the code and by p."""
    tokenizer, found = _model().tokenizer, []
    V = tokenizer.vocab_size
    counts = NGramModel(torch.tensor(tokenizer.encode(data.shakespeare("train"))), V, max_context=4)
    for passage in PASSAGES:
        ids = tokenizer.encode(text_of(passage))
        tried = [[*ids[i - 4 : i], s] for i in places(passage) for s in range(V)]
        p = (-counts.nll(torch.tensor(tried).flatten(), smoothing=0.1)[4, 4::5]).exp()
        ranks, right = scored(passage, folded(p.view(-1, V), tokenizer))
        bits = sum(code[r - 1] for r in ranks) / len(ranks)
        found.append([round(bits, 2), round(-right.log2().mean().item(), 2)])
    return found


def measure_gzip() -> float:
    """Bits of gzip for each of all new letters and spaces, after those of the training text."""
    texts = [data.shakespeare("train"), data.shakespeare("validation")]
    train, new = (" ".join(re.findall("[a-z]+", text.lower())).encode() for text in texts)
    return round(8 * (len(gzip.compress(train + new)) - len(gzip.compress(train))) / len(new), 2)


def measure() -> str:
    """CODE, COUNTED and GZIP, measured again."""
    code = measure_code()
    return f"CODE = {tuple(code)}\nCOUNTED = {measure_counts(code)}\nGZIP = {measure_gzip()}"
