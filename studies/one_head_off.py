"""What each of SmolLM2's 270 heads is worth for a verb, by two kinds of ablation.

One head at a time is ablated ("26.0": layer 26, head 0) at all tokens of twenty openings ("The keys
to the cabinet": are, not is). zero: what it has gathered is 0; mean: it is the mean over the
openings at the same position. Measured is by how much the mean logit difference (right verb − wrong
verb) falls, in nats; weight: what the head gives to the subject, from the last token. A seed is a
list of openings; list 0 is the chapter's.
"""

from functools import cache
from typing import Any

import torch
from torch import Tensor, nn

from studies import Study
from studies._real import smollm2

LISTS = [
    ("key picture road letter book", "to the cabinet"),
    ("dog window ship doctor garden", "behind the wall"),
    ("horse song teacher king chair", "beside the tree"),
]


@cache
@torch.no_grad()
def whole(seed: int) -> list[Tensor]:
    """The residual stream before each layer and after the last, each (20, 5, C)."""
    model, tokenizer = smollm2()
    nouns, phrase = LISTS[seed]
    subjects = [noun + number for noun in nouns.split() for number in ("", "s")]
    texts = [f"The {subject} {phrase}{others}" for subject in subjects for others in ("", "s")]
    states = [model.token(torch.tensor([tokenizer.encode(text) for text in texts]))]
    for block in model.blocks:
        states.append(block(states[-1]))
    return states


@torch.no_grad()
def difference(x: Tensor) -> float:
    """The mean logit difference of twenty openings, from their last stream (20, 5, C)."""
    model, tokenizer = smollm2()
    one, many = (model.lm_head.weight[tokenizer.encode(verb)[0]] for verb in (" is", " are"))
    signs = torch.tensor([-1.0, -1.0, 1.0, 1.0] * 5)
    return (model.norm(x[:, -1]) @ (many - one) * signs).mean().item()


@torch.no_grad()
def run(arm: str, seed: int) -> dict[str, float]:
    model, _ = smollm2()
    layer, head = map(int, arm.split("."))
    x = whole(seed)[layer]
    block: Any = model.blocks[layer]
    own = slice(64 * head, 64 * head + 64)

    def edit(module: nn.Module, inputs: tuple[Tensor]) -> Tensor:
        gathered = inputs[0].clone()  # (40, 5, H · hs)
        gathered[:20, :, own] = 0
        gathered[20:, :, own] = gathered[20:, :, own].mean(0)
        return gathered

    weight = block.attention.weights(block.attention_norm(x))[:, head, -1, 1].mean().item()
    hook = block.attention.output.register_forward_pre_hook(edit)
    x = x.repeat(2, 1, 1)
    for block in model.blocks[layer:]:
        x = block(x)
    hook.remove()
    with_all = difference(whole(seed)[-1])
    zero, mean = (with_all - difference(half) for half in x.chunk(2))
    return {"weight": weight, "zero": zero, "mean": mean}


study = Study(
    arms=[f"{layer}.{head}" for layer in range(30) for head in range(9)],
    settings={},
)
