"""The exercises of chapter 11: other right answers, and mistakes that no table names."""

import math

import torch

from exercises import generation as check
from tests.answers import accepted, refused


def no_repeat_by_sets(logits, ids, n):
    pieces = {tuple(ids[i : i + n]) for i in range(len(ids) - n + 1)}
    end = ids[len(ids) - n + 1 :] if len(ids) >= n else None
    bad = [end is not None and (*end, t) in pieces for t in range(len(logits))]
    return logits.masked_fill(torch.tensor(bad), -math.inf).numpy()


def write_by_length(model, prompts, n_tokens, block_size, stop):
    """Those of one length together."""
    texts = {}
    for length in {len(prompt) for prompt in prompts}:
        rows = [i for i, prompt in enumerate(prompts) if len(prompt) == length]
        ids = torch.tensor([prompts[i] for i in rows])
        for _ in range(n_tokens):
            new = model(ids[:, -block_size:])[:, -1].argmax(-1, keepdim=True)
            ids = torch.cat((ids, new), 1)
        for i, whole in zip(rows, ids.tolist(), strict=True):
            new = whole[length:]
            texts[i] = whole[: length + new.index(stop) + 1] if stop in new else whole
    return [texts[i] for i in range(len(prompts))]


LOSSES = dict(zip(check.TAUS, check.RIGHT, strict=True))


test_other_right_answers_are_right = accepted(
    (check.capitals, [LOSSES, 3]),
    (check.capitals, ({t: torch.tensor(x + 0.004) for t, x in LOSSES.items()}, 3.0)),
    (check.no_repeat, no_repeat_by_sets),
    (check.write_all, write_by_length),
)


def sampled(*given):
    return check.write(*given, choose=lambda logits: int(logits[-1].softmax(-1).multinomial(1)))


def uncropped(*given):
    return check.write(*given, crop=lambda ids, block_size: ids)


test_other_mistakes_are_told_by_what_differs = refused(
    (check.capitals, LOSSES, "to a pair"),
    (check.capitals, (dict.fromkeys(check.TAUS, 4.773), 3.0), "not the losses in capitals"),
    (check.capitals, (LOSSES, 3.277), "one of the five temperatures"),
    (check.capitals, (LOSSES, 1.0), "another temperature is better"),
    *(
        (check.capitals, (dict(zip(check.TAUS, wrong, strict=True)), 3.0), says)
        for says, wrong in check.WRONG.items()
    ),
    (check.write_all, sampled, "two different results"),
    (check.write_all, lambda model, prompts, *_: model(torch.tensor(prompts[0])), "(B, T)"),
    (check.write_all, lambda model, prompts, *_: torch.tensor(prompts), "make no tensor"),
    (check.write_all, uncropped, "and it reads 6 at most"),
)
