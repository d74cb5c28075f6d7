"""Shannon's guessing game: a player guesses a play letter by letter, and a GPT the same letters.

The constants again: `python -c "from explorers import guessing; print(guessing.measure())"`.
"""

import gzip
import math
import re
from collections import Counter
from functools import cache
from typing import Any, ClassVar

import torch
import traitlets
from torch import Tensor

from explorers.base import Explorer, esm, read_only
from explorers.labels import short
from helpers import data
from helpers.formats.checkpoints import load_checkpoint
from helpers.plots import BLUE, RED, Picture, picture
from helpers.text import NGramModel

KEYS = "abcdefghijklmnopqrstuvwxyz "
# From data.shakespeare("validation"), new to the GPT: what is given, and what is guessed.
PASSAGES = (
    ("OTHELLO:\nIt is the very error of the moon;\n",
     "She comes more nearer earth than she was wont,\nAnd makes men mad."),
    ("ROMEO:\nIs love a tender thing? ",
     "it is too rough,\nToo rude, too boisterous, and it pricks like thorn."),
    ("First Bandit:\nLet us first see peace in Athens: ",
     "there is no time\nso miserable but a man may be true."),
    ("DESDEMONA:\nUpon my knees, what doth your speech import?\n",
     "I understand a fury in your words.\nBut not the words."),
    ("BENVOLIO:\nAlas, that love, ",
     "so gentle in his view,\nShould be so tyrannous and rough in proof!"),
)  # fmt: skip
CODE = (
    0.7, 2.95, 3.91, 4.61, 5.13, 5.49, 5.99, 6.3, 6.53, 6.86, 6.95, 7.26, 7.52, 7.82, 7.87, 8.01,
    8.19, 8.63, 8.75, 9.18, 9.8, 10.31, 10.61, 10.98, 13.61, 13.61, 14.19,
)  # fmt: skip
_gpt: Any = cache(lambda: load_checkpoint(data.checkpoint("shakespeare-gpt")))
GZIP = 2.89  # bits of gzip for each of all new letters and spaces, after the training text


class GuessingGame(Explorer):
    """Guess letters, and the spaces after them, until right; the GPT of chapter 12 plays, too.

    counts: of chapter 02, which play with four characters of context; number: of the passage;
    ranks: how many guesses each of its letters took so far.

    A letter that took r guesses costs CODE[r − 1] bits, the player and the model alike: −log2 of
    how often the model needs r guesses elsewhere. The entropy of 50 ranks would be too low; a code
    fixed beforehand flatters nobody, except the model a little, for whose habits it is made.
    """

    _esm: ClassVar[str] = esm("guessing")

    number = traitlets.Int(0, min=0, max=len(PASSAGES) - 1).tag(sync=True)
    ranks = traitlets.List(traitlets.Int(min=1, max=len(KEYS))).tag(sync=True)
    game = traitlets.Dict().tag(sync=True)

    _given = read_only("game")

    def __init__(self, counts: NGramModel | None = None, **traits: Any):
        passages = [prepared(passage, counts) for passage in PASSAGES]
        game = {"keys": KEYS, "code": CODE, "gzip": GZIP, "passages": passages}
        super().__init__(game=game, **traits)

    def describe(self) -> str:
        """The passage, and what its letters cost the player and the model so far."""
        n, (_, its, _) = len(self.ranks), self.game["passages"][self.number]["players"][0]
        given = short(PASSAGES[self.number][0].strip().replace("\n", " "), 60)
        yours, model = ([CODE[r - 1] for r in ranks[: n or None]] for ranks in (self.ranks, its))
        cost = f"cost the model {sum(model) / len(model):.2f} bits each"
        said = f"passage {self.number + 1}, “{given}”: {n or len(its)} letters"
        return said + (
            f" {cost}, the player {sum(yours) / n:.2f}" if n else f" to guess, which {cost}"
        )

    def picture(self) -> Picture:
        """What each letter cost the player, upwards, and costs the model, downwards."""
        one = self.game["passages"][self.number]
        fig, ax = picture(self.describe(), width=8.6, height=2.8)
        for ranks, sign, color in ((one["players"][0][1], -1, BLUE), (self.ranks, 1, RED)):
            ax.bar(range(len(ranks)), [sign * CODE[r - 1] for r in ranks], color=color)
        ax.set(title=PASSAGES[self.number][0].strip().replace("\n", " "), xlabel="letters")
        ax.set(ylabel="bits: you ↑, the model ↓", yticks=[])
        return fig


def places(passage: tuple[str, str]) -> list[int]:
    """Where the letters to guess stand in the text: letters, and spaces between words."""
    text = "".join(passage)
    asked = (i for i in range(len(passage[0]), len(text)) if text[i] in KEYS + KEYS.upper())
    return [i for i in asked if text[i] != " " or text[i - 1].isalpha()]


def prepared(passage: tuple[str, str], counts: NGramModel | None) -> dict[str, Any]:
    """A passage for the browser, with the model's bets and, of each player, what `scored` gives."""
    players = {"the model": bets_on(passage)}
    if counts is not None:
        players["counts of five letters"] = counted_bets(passage, counts)
    best = [sorted(zip(row, KEYS, strict=True))[:-6:-1] for row in players["the model"].tolist()]
    return {
        "text": "".join(passage),
        "places": places(passage),
        "bets": [[(key, round(p, 4)) for p, key in row] for row in best],
        "players": [(name, *scored(passage, p)) for name, p in players.items()],
    }


def scored(passage: tuple[str, str], bets: Tensor) -> tuple[list[int], list[float]]:
    """How many guesses each letter takes, the likeliest first, and its −log2 p."""
    text = "".join(passage).lower()
    answers = torch.tensor([[KEYS.index(text[i])] for i in places(passage)])
    order = bets.sort(dim=1, descending=True, stable=True).indices
    bits = -bets.gather(1, answers)[:, 0].log2()
    return ((order == answers).int().argmax(1) + 1).tolist(), [round(b, 3) for b in bits.tolist()]


def bets_on(passage: tuple[str, str]) -> Tensor:
    """The GPT's probabilities of the keys (letters, 27). It reads what the player reads."""
    ids = _gpt().tokenizer.encode("\n\n" + "".join(passage))
    p = _gpt().model(torch.tensor([ids]))[0].softmax(1).detach()
    return folded(p[[i + 1 for i in places(passage)]])  # what comes before token i + 2


def counted_bets(passage: tuple[str, str], counts: NGramModel, context: int = 4) -> Tensor:
    """The same of chapter 02's best smoothed counts."""
    ids, V = _gpt().tokenizer.encode("".join(passage)), counts.vocab_size
    tried = [[*ids[i - context : i], s] for i in places(passage) for s in range(V)]
    nll = counts.nll(torch.tensor(tried).flatten(), smoothing=0.1)[context]
    return folded((-nll[context :: context + 1]).exp().view(-1, V))


def folded(p: Tensor) -> Tensor:
    """Probabilities (N, V) of symbols as those of the keys (N, 27): a letter's two cases added up,
    and divided by the sum, since the game says when neither a letter nor a space comes."""
    small, large = (p[:, _gpt().tokenizer.encode(keys)] for keys in (KEYS, KEYS.upper()))
    small[:, :-1] += large[:, :-1]  # the space has one case only
    return small / small.sum(1, keepdim=True)


def measure() -> tuple[list[float], float]:
    """CODE, from how many guesses the model needs in all longer speeches, and GZIP."""
    needed = Counter(range(1, len(KEYS) + 1))  # each once, so that no guess is impossible
    for speech in data.shakespeare("validation").split("\n\n"):
        if len(speech) > 120:
            needed.update(scored(cut := (speech[:40], speech[40:120]), bets_on(cut))[0])
    bits = sorted(-math.log2(n / needed.total()) for n in needed.values())
    texts = (data.shakespeare(split).lower() for split in ("train", "validation"))
    train, new = (" ".join(re.findall("[a-z]+", text)).encode() for text in texts)
    more = len(gzip.compress(train + new)) - len(gzip.compress(train))
    return [math.ceil(100 * b) / 100 for b in bits], round(8 * more / len(new), 2)  # still a code
