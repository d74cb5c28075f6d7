"""Is one vector too small for six letters, or only slow to train?

A recurrent encoder–decoder (GRU) learns to write words of 1 to 6 random letters, as they are
("copy") or backwards ("reverse"). Every 250 steps, its loss is measured on 1,000 validation words.
If the lowest loss has not fallen by 5% in `patience` measurements, the learning rate is divided by
3, and at the third time the training ends. It also ends when 990 validation words are right, or
after `most` steps. Without attention, the decoder gets only the encoder's last state; with
attention, it also attends to all states, by dot products.

`letters N`: the fraction of 1,000 fresh words of N letters that are right to the last letter, at
the end. `early N`: the same after 500 steps. `loss`: on the validation words, when it last fell by
5%. `steps`: of the whole training. `ended`: 1 if it ended before `most` steps. `width`: of
embeddings and states.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from helpers.seq2seq import END, LETTERS, START, RNNSeq2Seq
from studies import Study

LONGEST, CHECK, RATE, SOLVED = 6, 250, 0.006, 0.99
Words = tuple[Tensor, Tensor, Tensor]  # what is read, what is given, what should be written


def draw(task: str, n: int, shortest: int, longest: int, generator: torch.Generator) -> Words:
    """The tensors that pairs_to_ids makes of n pairs of words."""
    a, start, end = LETTERS.encode("a" + START + END)
    size = torch.randint(shortest, longest + 1, (n, 1), generator=generator)
    letters = a + torch.randint(26, (n, longest + 1), generator=generator)
    position = torch.arange(longest + 1)
    tail = torch.where(position == size, end, 0)  # the end, and padding after it
    source = torch.where(position < size, letters, tail)
    target = source
    if task == "reverse":
        backwards = letters.gather(1, (size - 1 - position).clamp(min=0))
        target = torch.where(position < size, backwards, tail)
    given = torch.cat((torch.full((n, 1), start), target[:, :-1]), 1)
    return source, given, target


def word_loss(model: nn.Module, words: Words) -> Tensor:
    source, given, target = words
    logits = model(source, given)
    return F.cross_entropy(logits.flatten(0, 1), target.flatten(), ignore_index=0)


@torch.no_grad()
def accuracy(model: nn.Module, words: Words) -> float:
    """A word that is right at each position, given its right beginning, is also written right."""
    source, given, target = words
    right = (model(source, given).argmax(-1) == target) | (target == 0)
    return right.all(1).float().mean().item()


def by_length(model: nn.Module, task: str, name: str, seed: int) -> dict[str, float]:
    generator = torch.Generator().manual_seed(1000 + seed)
    return {
        f"{name} {n}": accuracy(model, draw(task, 1000, n, n, generator))
        for n in range(1, LONGEST + 1)
    }


def run(
    arm: str, seed: int, *, attention: bool, width: int, patience: int, most: int
) -> dict[str, float]:
    torch.manual_seed(seed)
    model = RNNSeq2Seq(width, "dot" if attention else None)
    generator = torch.Generator().manual_seed(seed)
    validation = draw(arm, 1000, 1, LONGEST, torch.Generator().manual_seed(2000 + seed))
    optimizer = torch.optim.Adam(model.parameters(), lr=RATE)
    lowest, waited, divided, early = float("inf"), 0, 0, {}
    for step in range(1, most + 1):
        loss = word_loss(model, draw(arm, 64, 1, LONGEST, generator))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step == 500:
            early = by_length(model, arm, "early", seed)
        if step % CHECK:
            continue
        with torch.no_grad():
            now = word_loss(model, validation).item()
        waited = 0 if now < 0.95 * lowest else waited + 1
        lowest = now if waited == 0 else lowest
        if step >= 500 and accuracy(model, validation) >= SOLVED:
            break
        if waited == patience:
            waited, divided = 0, divided + 1
            if divided == 3:
                break
            optimizer.param_groups[0]["lr"] /= 3
    numbers = by_length(model, arm, "letters", seed) | early
    return numbers | {"loss": lowest, "steps": step, "ended": step < most}


study = Study(
    arms=["copy", "reverse"],
    settings={"attention": False, "width": 16, "patience": 2, "most": 12000},
    variations=[{"width": 64}, {"attention": True}, {"patience": 5}],
)
