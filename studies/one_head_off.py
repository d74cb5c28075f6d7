"""What each of SmolLM2's 270 heads is worth, and for what.

One head at a time adds nothing ("26.0": layer 26, head 0), and three things are measured, each on
texts that the seed chooses. text: nats a token on a validation article; repeated: the same on the
second copy of tokens drawn at random; verb: by how much the model prefers the verb that agrees
with its subject ("The keys to the cabinet": are, not is), in nats.
"""

from functools import cache

import torch
import torch.nn.functional as F
from torch import Tensor

from helpers.hooks import ablate_heads
from studies import Study
from studies._real import openings, smollm2

NOUNS = [
    *(("key", "keys"), ("road", "roads"), ("letter", "letters")),
    *(("book", "books"), ("dog", "dogs"), ("picture", "pictures")),
]
PHRASES = [("to the house", "to the houses"), ("near the box", "near the boxes")]
TOKENS = 400  # of the article; the drawn ones are 24, twice


@cache
def inputs(seed: int) -> dict[str, Tensor]:
    """What is read: an article's beginning (1, T), doubled tokens (1, T), 8 prompts (8, 5)."""
    _, tokenizer = smollm2()
    drawn = torch.Generator().manual_seed(seed)
    once = torch.randint(100, tokenizer.vocab_size, (24,), generator=drawn).tolist()
    phrase = PHRASES[seed % 2]
    prompts = [
        f"The {noun[many]} {phrase[others]}"
        for noun in NOUNS[2 * seed : 2 * seed + 2]
        for many in (0, 1)
        for others in (0, 1)
    ]
    return {
        "text": torch.tensor([[0, *tokenizer.encode(openings(3000)[seed])[:TOKENS]]]),
        "repeated": torch.tensor([[0, *once, *once]]),
        "verb": torch.tensor([tokenizer.encode(prompt) for prompt in prompts]),
    }


@cache
@torch.no_grad()
def before(seed: int) -> list[dict[str, Tensor]]:
    """What each layer is given: up to the head that is taken away nothing changes."""
    model, _ = smollm2()
    x = {name: model.token(ids) for name, ids in inputs(seed).items()}
    given = []
    for block in model.blocks:
        given.append(x)
        x = {name: block(one) for name, one in x.items()}
    return given


@torch.no_grad()
def run(arm: str, seed: int) -> dict[str, float]:
    model, tokenizer = smollm2()
    heads = [] if arm == "all heads" else [(int(arm.split(".")[0]), int(arm.split(".")[1]))]
    first = heads[0][0] if heads else 0
    logits = dict(before(seed)[first])
    with ablate_heads(model, heads):
        for name in logits:
            for block in model.blocks[first:]:
                logits[name] = block(logits[name])
            logits[name] = model.lm_head(model.norm(logits[name]))[
                :, : -1 if name != "verb" else None
            ]
    ids = inputs(seed)
    text, repeated = (
        F.cross_entropy(logits[name][0], ids[name][0, 1:], reduction="none")
        for name in ("text", "repeated")
    )
    one, many = (
        logits["verb"][:, -1, [tokenizer.encode(verb)[0] for verb in verbs]].logsumexp(-1)
        for verbs in ((" is", " was"), (" are", " were"))
    )
    plural = torch.tensor([False, False, True, True] * 2)
    return {
        "text": text.mean().item(),
        "repeated": repeated[-23:].mean().item(),  # of the second copy, but its first token
        "verb": torch.where(plural, many - one, one - many).mean().item(),
    }


study = Study(
    arms=["all heads", *(f"{layer}.{head}" for layer in range(30) for head in range(9))],
    settings={},
)
