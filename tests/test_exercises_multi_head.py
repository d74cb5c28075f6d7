"""The exercises on many heads beyond what their declarations say: right and wrong answers."""

import torch
import torch.nn.functional as F
from torch import nn

from exercises import multi_head as check
from helpers.attention import attention
from tests.answers import accepted, refused

RIGHT = check.fused_multi_head.right


def with_helpers(x, W_qkv, W_o, n_head):
    attention(x, x, x)
    return RIGHT(x, W_qkv, W_o, n_head)


class Reciter(nn.Module):
    """Three heads vote for the letter one back, and five for the letter before it."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Module()
        heads = ({"value": nn.Linear(1, 1)} for _ in range(8))
        self.layer.heads = nn.ModuleList(map(nn.ModuleDict, heads))

    def forward(self, ids):
        votes = torch.cat([head.value.weight for head in self.layer.heads]).abs()
        letters = F.one_hot(ids.unfold(1, 2, 1)[:, :-1].flip(-1), 20)
        return letters * torch.stack([votes[:3].sum(), votes[3:].sum()])[:, None]


VERDICTS, MODEL, IDLE = check.VERDICTS, Reciter(), Reciter()
LOW = check.worst(MODEL, 3)
for head in IDLE.layer.heads:
    nn.init.zeros_(head.value.weight)


test_other_ways_are_right_too = accepted(
    (check.spare_heads, [MODEL, (torch.tensor(1.0), 1.0, LOW)]),
    (check.twins, [torch.tensor(0.999), " b "]),
)


def test_a_placeholder_in_a_branch_is_not_attempted():
    def half(x, W_qkv, W_o, H):
        return ... if x.shape[-1] % H else RIGHT(x, W_qkv, W_o, H)

    assert check.fused_multi_head(half).outcome == "not attempted"


def refusing(error):
    """A layer that returns this, or raises it, where H does not divide C."""

    def wrong(x, W_qkv, W_o, H):
        if x.shape[-1] % H == 0:
            return RIGHT(x, W_qkv, W_o, H)
        if error is ValueError:
            raise error
        return error

    return wrong


test_other_mistakes_are_told_by_what_differs = refused(
    (check.five_ways_to_cut, VERDICTS | {"A": "fine"}, "One token is not enough"),
    (check.five_ways_to_cut, VERDICTS | {"B": "fine"}, "Replace token 0"),
    (check.five_ways_to_cut, VERDICTS | {"B": "leaks"}, "both mistakes"),
    (check.five_ways_to_cut, VERDICTS | {"C": "blind"}, "for training to use"),
    (check.five_ways_to_cut, VERDICTS | {"E": "fine"}, "the last token"),
    (check.spare_heads, (MODEL, [1.0, 1.0, 0.9]), "the *worst*"),
    (check.spare_heads, (MODEL, [0.61, 0.61, LOW]), "Without 1 of"),
    (check.spare_heads, (IDLE, [0.61, 0.61, 0.05]), "ablate copies"),
    (check.twins, (0.21, "b"), "*before* the training"),
    (check.twins, (1.0, "a"), "the same blend"),
    (check.twins, (1.0, "c"), "after 50 steps"),
    (check.fused_multi_head, refusing(ValueError("no")), "`raise` in place"),
    (check.fused_multi_head, refusing(None), "returns without an error"),
    (check.fused_multi_head, refusing(ValueError), "both numbers, 6 and 4"),
    (check.fused_multi_head, torch.no_grad()(RIGHT), "no gradient"),
    (check.fused_multi_head, with_helpers, "`helpers` computes"),
)
