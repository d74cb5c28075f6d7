"""The exercises on the transformer block beyond what their declaration says."""

import torch

from exercises import transformer_block as check
from tests.answers import accepted, refused

B_UP = torch.tensor([0.0, -1.0, -2.0])


test_another_right_answer_is_right = accepted(
    (check.three, (B_UP, torch.tensor([1.0, -2.0, 2.0]))),
    (check.three, [[-2, 0, -1], [2, 1, -2]]),
    (check.deeper, [torch.tensor(2.4), 2.15, " b "]),
    (check.my_switch, ("n_kv_head=1", [0.02, -0.01, 0.01], "cannot tell")),
    (check.my_switch, ("position=None", torch.tensor([0.3, 0.2, 0.25]), "higher")),
)


test_mistakes_are_told = refused(
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
    (check.deeper, (2.9, 2.25, "b"), "Too high"),
    (check.deeper, (2.4, 2.15, "a"), "were not 0"),
    (check.deeper, (2.4, 2.15, "c"), "times 0"),
    (check.verdict, check.FAULTS | {"B": "a"}, "returns zeros"),
    (check.verdict, check.FAULTS | {"A": "e"}, "where the leak is"),
    (check.verdict, check.FAULTS | {"D": "f"}, "among others"),
    (check.verdict, check.FAULTS | {"C": "f"}, "does not return x"),
    (check.verdict, check.FAULTS | {"B": "e"}, "without reason"),
    (check.my_switch, ("dropout=0.5", [0.0] * 3, "lower"), "example"),
    (check.my_switch, ("dropout=0.5", [0.1] * 3, "higher"), "manual_seed"),
    (check.my_switch, ("dropout=0.5", [0.1], "higher"), "one for each"),
    (check.my_switch, ("dropout=0.5", [2.3, 2.2, 2.4], "higher"), "instead of differences"),
    (check.my_switch, ("dropout=0.5", [0.3, 0.2, -0.1], "higher"), "agree on a sign"),
    (check.my_switch, ("dropout=0.5", [0.3, 0.2, 0.1], "lower"), "other way round"),
    (check.my_switch, ("dropout=0.5", [-0.001, -0.002, -0.003], "lower"), "can't tell"),
    (check.my_switch, ("dropout=0.5", [0.3, 0.2, 0.1], "cannot tell"), "not luck"),
    (check.my_switch, ("dropout=0.5", [0.3, 0.2, 0.1], "better"), "should be"),
)


def test_each_suspect_has_its_fault() -> None:
    x = torch.randn(4, 9, 48, generator=torch.Generator().manual_seed(0))
    changed = torch.cat([x[:, :5], -x[:, 5:]], 1)
    for name, block in check.suspects().items():
        out = block(x)
        assert torch.allclose(block(changed)[:, :5], out[:, :5], atol=1e-5) == (name != "A")
        assert torch.allclose(block(x[:1]), out[:1], atol=1e-5) == (name != "D")
        for p in (*block.attention.output.parameters(), *block.mlp.down.parameters()):
            torch.nn.init.zeros_(p)
        assert torch.equal(block(x), x) == (name != "C")
