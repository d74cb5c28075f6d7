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


FAULTS = {"A": "c", "B": "d", "C": "b", "D": "a"}
PLAN = {"steps": 240, "rate": 0.01, "weight_decay": 1.0}


test_other_right_answers_are_right = accepted(
    (check.clip, clip_as_torch_does),
    (check.turned, [torch.tensor(0.5472), 0.7289]),
    (check.my_plan, (PLAN, {0: 2.52, 1: 2.52})),
    (check.my_plan, (PLAN | {"weight_decay": 0.0, "dropout": 0.3}, {0: 2.50, 1: 2.51})),
)


def shortened_in_place(gradients, longest):
    factor = min(1.0, longest / torch.cat([g.flatten() for g in gradients]).norm().item())
    for g in gradients:
        g *= factor
    return gradients


test_other_mistakes_are_told_by_what_differs = refused(
    (check.clip, lambda gs, c: check.clip.right(gs, c * 2), "entry 0 of clip([[6], [[8]]]"),
    (check.clip, shortened_in_place, "work on a new list and on new tensors"),
    (check.faults, FAULTS | {"B": "f"}, "such a run ends at 2.4"),
    (check.faults, FAULTS | {"B": "e"}, "no memory"),
    (check.faults, FAULTS | {"C": "c"}, "From where could it copy"),
    (check.faults, FAULTS | {"A": "b"}, "what did A learn"),
    (check.faults, FAULTS | {"B": "a", "D": "d"}, "every step is too long from"),
    (check.turned, (0.5, 0.5), "the numbers of the example"),
    (check.turned, (0.73, 0.55), "swapped"),
    (check.turned, (0.55, 0.03), "the valley as it was"),
    (check.turned, (0.77, 0.04), "You began at a = b = 1"),
    (check.turned, (0.55, 0.80), "betas (0.9, 0.999)"),
    (check.turned, (0.39, 0.50), "values of a, or of b"),
    (check.turned, (0.9, 0.73), "0.99 to the power of 60"),
    (check.turned, (0.55, 0.3), "AdamW is not yet"),
    (check.my_plan, (PLAN, {0: 2.55, 1: 2.57}), "which you should beat"),
    (check.my_plan, (PLAN, {0: 2.52}), "nothing for 1"),
    (check.my_plan, (PLAN, {0: 1.2, 1: 1.3}), "`few_ids` alone"),
    (check.my_plan, (PLAN, {0: 3.08, 1: 3.06}), "That is as bad as"),
    (check.my_plan, (PLAN, {0: 2.53, 1: 2.55}), "Which is luck?"),
    (check.my_plan, (PLAN, {0: 2.56, 1: 2.58}), "with either seed"),
)
