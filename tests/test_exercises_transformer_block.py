"""The exercises on the transformer block beyond what their declaration says."""

import torch
import torch.nn.functional as F

from exercises import transformer_block as check
from tests.answers import accepted, refused


def by_modules(x, W_qkv, W_o, W_up, W_out, n_head):
    normed = F.layer_norm(x, x.shape[-1:])
    q, k, v = (y.unflatten(-1, (n_head, -1)).transpose(1, 2) for y in (normed @ W_qkv).chunk(3, -1))
    attended = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    ff = F.gelu(normed @ W_up, approximate="tanh") @ W_out
    return x + attended.transpose(1, 2).flatten(2) @ W_o + ff


B_UP = torch.tensor([0.0, -1.0, -2.0])


test_another_right_answer_is_right = accepted(
    (check.three, (B_UP, torch.tensor([1.0, -2.0, 2.0]))),
    (check.three, [[-2, 0, -1], [2, 1, -2]]),
    (check.deeper, [torch.tensor(2.4), 2.15, " b "]),
    (check.parallel_block, by_modules),
)


test_mistakes_are_told = refused(
    (check.three, B_UP, "to a pair"),
    (check.three, (B_UP, [1.0, -2.0]), "lists of h numbers"),
    (check.three, ([0.0, -1.0], [1.0, -2.0]), "for three yours gives −1"),
    (check.three, (B_UP, [1.0, -1.0, 1.0]), "add to the *slope*"),
    (check.three, ([0.0, -1.0], [1.0, -1.0]), "Two capitals should give 0"),
    (check.three, ([1.0, -2.0, 2.0], B_UP), "wrong order"),
    (check.three, ([0.0, -1.0, -2.0, -5.0], [1.0, -2.0, 2.0, 7.0]), "3 are enough"),
    (check.three, (-B_UP, [1.0, -2.0, 2.0]), "*added*"),
    (check.deeper, (2.4, 2.15, "d"), "should be"),
    (check.deeper, (0.4, 2.15, "b"), "cannot have these losses"),
    (check.deeper, (2.15, 2.4, "b"), "seem to be swapped"),
    (check.deeper, (2.25, 3.26, "b"), "was the first one silenced"),
    (check.deeper, (3.787, 2.1414, "b"), "*after* the trained block"),
    (check.deeper, (2.15, 2.15, "b"), "measure the copy first"),
    (check.deeper, (2.4, 2.15, "a"), "were not 0"),
    (check.deeper, (2.4, 2.15, "c"), "times 0"),
    (check.parallel_block, lambda x, *rest: x - x.mean(-1), "keepdim=True"),
)
