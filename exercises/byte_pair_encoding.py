"""The exercises of the chapter on byte-pair encoding."""

import math
from functools import cache

import torch

from exercises.check import call, checked, diagnose, diagnose_letters, exercise, expect, reported
from helpers import data
from helpers.formats.checkpoints import load_checkpoint

# --- two tokenizers -----------------------------------------------------------------------------


@exercise(
    inputs=lambda draw: [
        (40.0, 1000, 1300),
        (math.e**3, 100, 150),
        (18.7, 217_646, 283_287),
        (12.5, 60, 50),
        (205.0, 40, 200),
        (1.0, 7, 9),
        *((draw.uniform(5, 300), draw.randint(50, 5000), draw.randint(50, 5000)) for _ in range(3)),
    ],
    example=(math.e**3, 100, 150),
    on_success="The same negative log-likelihood of the text, divided among other tokens.",
)
def loss_to_beat(perplexity, n_words, n_tokens):
    """loss_to_beat(perplexity, n_words, n_tokens): the loss per token that is exactly as good."""
    return math.log(perplexity) * n_words / n_tokens


loss_to_beat.slips("""
    That is the loss per word. Your model makes one prediction per token: divide the negative
    log-likelihood of the whole text by the number of tokens.
        math.log(perplexity)
    The ratio is upside down: more tokens share the same negative log-likelihood, so each has a
    smaller part of it.
        n_words / n_tokens → n_tokens / n_words
    A perplexity is e to the loss, so it cannot be divided among tokens: take the logarithm first.
        perplexity * n_words / n_tokens
    Take the logarithm of the perplexity alone. Then convert from words to tokens.
        math.log(perplexity * n_words / n_tokens)
        math.log(perplexity * n_words) / n_tokens
    That is the perplexity per token. The loss is its logarithm.
        perplexity ** (n_words / n_tokens)
    These are bits. A loss in nats has the natural logarithm, `math.log`.
        math.log → math.log2
    That is the negative log-likelihood of the whole text. Divide it by the number of your tokens.
        math.log(perplexity) * n_words
""")


# --- run the experiment and decide --------------------------------------------------------------

# Characters per token on the held-out articles and plays, by the text that was learned from.
PER_TOKEN = {"articles": (2.328, 1.973), "plays": (2.056, 2.273), "both": (2.220, 2.199)}


@checked
def whose_text(answer):
    """whose_text: characters per token of three tokenizers, and which to take for both texts."""
    found, chosen = reported(
        answer,
        (PER_TOKEN, "both"),
        "Set whose_text to a pair: two numbers for each name, {name: (on articles, on plays), …}, "
        "and a name.",
    )

    def fits(change, tolerance=0.01):
        return all(
            abs(got - want) < tolerance
            for name, two in found.items()
            for got, want in zip(two, change(PER_TOKEN[name]), strict=True)
        )

    diagnose("""
        These are tokens per character. Divide the characters by the tokens.
            fits(lambda two: (1 / two[0], 1 / two[1]), 0.005)
        Articles and plays are swapped: the first number of each pair is that on the articles.
            fits(lambda two: two[::-1])
        These are numbers of tokens. Divide the characters, 100,000, by them.
            fits(lambda two: (100_000 / two[0], 100_000 / two[1]), 500)
        Nearly: give two decimals.
            fits(lambda two: (round(two[0], 1), round(two[1], 1)), 1e-6)
    """)
    wrong = [
        f"{name} on the {text}"
        for name, two in found.items()
        for text, got, want in zip(("articles", "plays"), two, PER_TOKEN[name], strict=True)
        if abs(got - want) >= 0.01
    ]
    expect(
        not wrong,
        f"Measure again: {', '.join(wrong)}. Learn V = 1024 from 200,000 characters "
        "(both: the first 100,000 of each), and encode 100,000 held-out ones of each text.",
    )
    diagnose("""
        The second of the pair should be one of the three names.
            chosen not in PER_TOKEN
        By your own numbers that one is best on its own kind of text, and about 0.3 behind on the
        other. Choose the one that needs the fewest tokens for the two texts together.
            chosen != "both"
    """)
    return "A tokenizer fits its text: train it on a sample of everything that it has to read."


# --- four tokenizers, four faults ---------------------------------------------------------------

FAULTS = {"A": "b", "B": "a", "C": "e", "D": "c"}


@checked
def wrong_tokens(answer):
    """wrong_tokens: what is wrong with the tokenizers A to D, a letter for each."""
    table = """
        None of the four gives the tokens of `encode`. Compare them, token by token.
            "f" in found.values()
        A tokenizer that loses bytes could not spell the whole text: join the tokens of each.
            "d" in found.values()
        Only a tokenizer that never split its text into words can have learned a token such as
        `of␣the␣`. Who has it?
            found["D"] != "c"
        Learned from plays, C has *Thou* in one piece, and ␣Algeria in five. The other two have
        pieces of articles.
            found["C"] != "e"
        The longest match never takes a short token where a longer one fits. A writes ␣th · e,
        although ␣the is a token; does B ever do that?
            found["A"] == "a" or found["B"] == "b"
    """
    diagnose_letters(answer, FAULTS, "f", table)
    return "None of the four would ever raise an error. You only find them by looking at tokens."


# --- ask the table ------------------------------------------------------------------------------


@cache
def pieces_and_vectors():
    """The words and parts of words in GPTMini's vocabulary, and their vectors, standardised."""
    saved = load_checkpoint(data.checkpoint("gptmini"))
    pieces = [saved.tokenizer.piece(i) for i in range(saved.tokenizer.vocab_size)]
    chosen = [i for i, p in enumerate(pieces) if len(p.strip()) > 1 and p.strip().isalpha()]
    x = saved.model.token.weight.detach()[chosen].float()
    return [pieces[i] for i in chosen], (x - x.mean(0)) / x.std(0)


def read_off(holds):
    """How often a linear reader tells a token with the property from one without, five draws."""
    x, right = pieces_and_vectors()[1], []
    for seed in range(5):
        order = torch.randperm(len(x), generator=torch.Generator().manual_seed(seed))
        y = torch.tensor([2.0 * holds[i] - 1 for i in order])
        a, b = x[order].split([1300, len(x) - 1300])
        w = torch.linalg.solve(a.T @ a + 300 * torch.eye(a.shape[1]), a.T @ (y[:1300] - y.mean()))
        right.append(((b @ w)[y[1300:] > 0][:, None] > (b @ w)[y[1300:] < 0]).float().mean())
    return sum(right).item() / 5


@checked
def my_question(answer):
    """my_question(piece): whether a token has a property that GPTMini's table knows."""
    pieces = pieces_and_vectors()[0]
    holds = [bool(call(answer, piece, name="my_question")) for piece in pieces]
    yes = sum(holds)
    diagnose("""
        That holds for too few tokens, or for nearly all: at least 50 should be on either side.
            not 50 <= yes <= len(holds) - 50
        That is whether a token begins with a capital letter, which the text has asked already.
            holds == [piece.strip()[:1].isupper() for piece in pieces]
    """)
    right = read_off(holds)
    expect(
        right >= 0.8,
        f"The table does not know this well enough: {right:.2f} of the pairs, and 0.80 are wanted. "
        "What must a model know of a token to guess the next one?",
    )
    return f"It holds for {yes} of {len(holds)} tokens. What helps to guess the next token is kept."
