"""The exercises on training beyond what their declarations say: right and wrong answers."""

import torch

from exercises import training as check
from tests.answers import accepted, refused


def clip_as_torch_does(gradients, longest):
    parameters = [torch.zeros_like(g) for g in gradients]
    for p, g in zip(parameters, gradients, strict=True):
        p.grad = g.clone()
    torch.nn.utils.clip_grad_norm_(parameters, longest)
    return [p.grad for p in parameters]


def as_torch_does(parameters, gradients, rate, warmup, longest, decay):
    ps = [torch.nn.Parameter(p.clone()) for p in parameters]
    groups = [
        {"params": [p for p in ps if (p.dim() >= 2) == decays], "weight_decay": decays * decay}
        for decays in (True, False)
    ]
    optimizer = torch.optim.AdamW([g for g in groups if g["params"]], rate, betas=(0.9, 0.95))
    for n, gs in enumerate(gradients, 1):
        for group in optimizer.param_groups:
            group["lr"] = rate * min(1.0, n / warmup)
        for p, g in zip(ps, gs, strict=True):
            p.grad = g.clone()
        torch.nn.utils.clip_grad_norm_(ps, longest)
        optimizer.step()
    return [p.detach() for p in ps]


def stop_by_minimum(losses, patience):
    for i in range(len(losses)):
        best = losses.index(min(losses[: i + 1]))
        if i - best >= patience:
            return [best, i]
    return [best, i]


GAINS = {0.003: -0.01, 0.01: -0.02, 0.02: 0.12, 0.06: 0.41}


test_other_right_answers_are_right = accepted(
    (check.clip, clip_as_torch_does),
    (check.early_stop, stop_by_minimum),
    (check.optimised, as_torch_does),
    (check.warm_up_pays, (GAINS, [0.06, 0.02])),
    (check.warm_up_pays, [{k: torch.tensor(v) for k, v in GAINS.items()}, (0.02, 0.06)]),
)


def shortened_in_place(gradients, longest):
    factor = min(1.0, longest / torch.cat([g.flatten() for g in gradients]).norm().item())
    for g in gradients:
        g *= factor
    return gradients


test_other_mistakes_are_told_by_what_differs = refused(
    (check.clip, lambda gs, c: check.clip.right(gs, c * 2), "entry 0 of clip([[6], [[8]]]"),
    (check.clip, shortened_in_place, "work on a new list and on new tensors"),
    (
        check.early_stop,
        lambda losses, patience: (0, 0),
        "early_stop([4, 3, 2, 2.5, 2.6, 2.7, 2.8], 2)",
    ),
    (
        check.optimised,
        lambda *a: [2 * p for p in check.optimised.right(*a)],
        "entry 0 of optimised(parameters, 6 gradients, 0.1, 3, 4.0, 0.5)",
    ),
    (check.warm_up_pays, GAINS, "to a pair"),
    (check.warm_up_pays, ({k: 2.4 + v for k, v in GAINS.items()}, []), "losses themselves"),
    (check.warm_up_pays, (dict.fromkeys(GAINS, 0.1), []), "All your gains are equal"),
    (check.warm_up_pays, ({k: -v for k, v in GAINS.items()}, []), "seems to be reversed"),
    (check.warm_up_pays, (GAINS | {0.003: 0.1}, [0.06]), "These are not the gains"),
    (check.warm_up_pays, (GAINS | {0.003: -0.051}, [0.02, 0.06]), "final=1.0 in both"),
    (check.warm_up_pays, (GAINS, [0.06]), "worth more than 0.05 at 0.02, 0.06"),
)
