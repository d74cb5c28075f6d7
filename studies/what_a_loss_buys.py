"""After how many steps does a small GPT reach n-gram counts, and what does a lower loss buy?

The sentences of the chapter judging that this tests: after how many steps a small GPT is as good
as a count-based bigram model; and that, as the loss falls, other measures improve: cloze
questions, subject–verb agreement, and the fraction of generated words that occur in the training
articles.

Two layers, width 64, windows of 64 tokens, 16 in a batch, trained on the training articles.

- bits per character: on the first 6,000 characters of each validation article.
- cloze: accuracy where one word of four of a kind fits best into a validation article. Each word is
  the right one equally often, so guessing gives 0.25. Some questions admit two answers.
- agreement: accuracy of is or are, was or were, has or have, where the verb follows its noun
  (plain), and where another noun stands between, of the other number (attractor) or of the same
  (same number). Guessing gives 0.5.
- known words: of the words that the model generates, the fraction that the training articles have.

Changed: both learning rates × 0.5, × 2.
"""

import random
import re
from functools import cache, partial

import torch
from torch import Tensor, nn

from helpers import data
from helpers.evaluation import bits_per_character, most_likely, token_nll
from helpers.gpt import fast_gpt
from helpers.optimizers import fast_optimizers
from helpers.sampling import generate
from helpers.text import BPETokenizer, encode_documents
from helpers.text.bpe import END
from helpers.training import train, wsd_schedule
from studies import Study

KINDS = (
    "of to in with", "he she it they", "his her its their", "who which that where",
    "north south east west", "have has had been", "years days months hours",
    "can could would will", "before after during since", "one two three four",
    "city country island state", "called known made used",
)  # fmt: skip
NOUNS = (  # one, several, and what stands between: one, several
    ("city", "cities", "near the river", "near the rivers"),
    ("king", "kings", "of the country", "of the countries"),
    ("book", "books", "by the writer", "by the writers"),
    ("island", "islands", "in the lake", "in the lakes"),
    ("army", "armies", "of the state", "of the states"),
    ("writer", "writers", "of the book", "of the books"),
    ("law", "laws", "for the school", "for the schools"),
    ("village", "villages", "on the hill", "on the hills"),
    ("player", "players", "in the team", "in the teams"),
    ("animal", "animals", "in the forest", "in the forests"),
)
VERBS = (("is", "are"), ("was", "were"), ("has", "have"))


@cache
def documents(split: str) -> list[str]:
    return [f"{title}\n\n{text}" for title, text in data.wikipedia(split)]


@cache
def text_to_learn() -> tuple[BPETokenizer, Tensor]:
    tokenizer = BPETokenizer.train(documents("train"), vocab_size=2048, special=[END])
    return tokenizer, torch.tensor(encode_documents(tokenizer, documents("train")))


def words(text: str) -> list[str]:
    return re.findall(r"[^\W\d_]+", text.lower())


@cache
def known_words() -> set[str]:
    return set(words("\n".join(documents("train"))))


@cache
def cloze_questions(each: int = 5) -> list[tuple[str, list[str], str, str]]:
    """(before, the four options, after, the right one): `each` for every word of every kind."""
    found = []
    for kind in KINDS:
        options = [f" {word}" for word in kind.split()]
        for right in options:
            places = [
                (text[m.start() - 100 : m.start()], text[m.end() : m.end() + 40])
                for text in documents("validation")
                for m in re.finditer(rf"(?<=\w){right}(?= \w)", text)
                if m.start() > 100
            ]
            for before, after in random.Random(0).sample(places, each):
                whole = before[before.index(" ") + 1 :], after[: after.rindex(" ")]
                found.append((whole[0], options, whole[1], right))
    return found


def agreement_questions(kind: str) -> list[tuple[str, list[str], str]]:
    """(before, the two options, the right one); kind: "plain", "attractor" or "same number"."""
    found = []
    for *nouns, of_one, of_several in NOUNS:
        parts = {"attractor": (of_several, of_one), "same number": (of_one, of_several)}.get(kind)
        for number, noun in enumerate(nouns):
            before = f"\n\nThe {noun} {parts[number]}" if parts else f"\n\nThe {noun}"
            for verbs in VERBS:
                options = [f" {verb}" for verb in verbs]
                found.append((before, options, options[number]))
    return found


def cloze(model: nn.Module, tokenizer: BPETokenizer) -> float:
    asked = cloze_questions()
    return sum(most_likely(model, tokenizer, b, o, a) == right for b, o, a, right in asked) / len(
        asked
    )


def agreement(model: nn.Module, tokenizer: BPETokenizer, kind: str) -> float:
    asked = agreement_questions(kind)
    return sum(most_likely(model, tokenizer, b, o) == right for b, o, right in asked) / len(asked)


def known(model: nn.Module, tokenizer: BPETokenizer, seed: int, texts: int = 20) -> float:
    """The fraction of the words generated after END that the training articles have."""
    prompts = torch.full((texts, 1), tokenizer.special[END])
    ids = generate(model, prompts, 60, generator=torch.Generator().manual_seed(seed))
    drawn = [word for row in ids.tolist() for word in words(tokenizer.decode(row[1:]))[:-1]]
    return sum(word in known_words() for word in drawn) / len(drawn)


def exam_bits(model: nn.Module, tokenizer: BPETokenizer) -> list[float]:
    """Bits per character of each validation article's first 6,000 characters."""
    found = []
    for document in documents("validation"):
        ids = torch.tensor(encode_documents(tokenizer, [document[:6000]]))
        found.append(bits_per_character(token_nll(model, ids), document[:6000]))
    return found


def run(arm: str, seed: int, *, rate_times: float) -> dict[str, float]:
    tokenizer, ids = text_to_learn()
    torch.manual_seed(seed)
    model = fast_gpt(tokenizer.vocab_size, 64, n_layer=2, n_head=4, n_embd=64)
    train(
        model, ids, steps=int(arm.split()[0]), block_size=64, batch_size=16,
        optimizer=fast_optimizers(model, 0.02 * rate_times, 0.02 * rate_times, momentum=0.9),
        schedule=partial(wsd_schedule, warmup=20),
        generator=torch.Generator().manual_seed(seed),
    )  # fmt: skip
    model.eval()
    each = exam_bits(model, tokenizer)
    return {
        "bits per character": sum(each) / len(each),
        "cloze": cloze(model, tokenizer),
        "agreement, plain": agreement(model, tokenizer, "plain"),
        "agreement, attractor": agreement(model, tokenizer, "attractor"),
        "agreement, same number": agreement(model, tokenizer, "same number"),
        "known words": known(model, tokenizer, seed),
    }


study = Study(
    arms=["50 steps", "150 steps", "450 steps", "1350 steps"],
    settings={"rate_times": 1.0},
    variations=[{"rate_times": 0.5}, {"rate_times": 2.0}],
)
