"""The exercises on mixtures of experts: full experts, Mixtral counted, ill routers, who decides."""

import torch

from exercises.check import (
    checked,
    diagnose,
    diagnose_letters,
    exercise,
    generator,
    reported,
)

# --- 23.1: who is turned away? --------------------------------------------------------------------


def choices(n_tokens, n_experts, capacity, seed):
    return torch.randint(n_experts, (n_tokens,), generator=generator(seed)), n_experts, capacity


@exercise(
    inputs=lambda draw: [
        (torch.tensor([0, 2, 0, 0, 1, 0, 2]), 3, 2),
        (torch.tensor([1, 1, 1, 1]), 2, 1),
        *[choices(draw.randint(6, 30), n, c, draw.randint(0, 99)) for n, c in ((3, 2), (4, 3))],
        choices(40, 8, 5, 1),
        choices(9, 4, 9, 2),
    ],
    example=(torch.tensor([0, 0, 1]), 2, 1),
    on_success="First come, first served: what a token gets depends on those before it.",
)
def kept(chosen, n_experts, capacity):
    """kept(chosen, n_experts, capacity): (T,), True where a token finds room at its expert."""
    is_at = chosen[:, None] == torch.arange(n_experts)
    number = is_at.cumsum(0).gather(1, chosen[:, None]).squeeze(1)
    return number <= capacity


kept.slips("""
    One token too few finds room: as many as `capacity` do.
        <= → <
    One token too many finds room: exactly `capacity` do.
        number <= capacity → number <= capacity + 1
    You keep or drop an expert's tokens all together. The first `capacity` of them find room.
        cumsum(0) → sum(0, keepdim=True).expand(len(chosen), -1)
    Your answer is the opposite: True means that the token finds room.
        <= → >
    The order is reversed: the first tokens of the batch find room, and the last are dropped.
        right(chosen.flip(0), n_experts, capacity).flip(0)
    You count all tokens together. Each expert has room for `capacity` of its own.
        is_at.cumsum(0).gather(1, chosen[:, None]).squeeze(1) → torch.arange(1, len(chosen) + 1)
""")


# --- 23.2: eight times seven ----------------------------------------------------------------------

MIXTRAL = (46.7, 12.9)  # billions, all and those used for a token: Jiang et al. 2024


@checked
def mixtral(answer):
    """mixtral: billions of parameters, all of them and those that a token uses"""
    wanted = "Set mixtral to two numbers, in billions: (all, used)."
    found = reported(answer, (46.7, 12.9), wanted)

    def near(*those, by=0.15):
        return all(abs(a - b) < by for a, b in zip(found, those, strict=True))

    diagnose("""
        These are parameters; give billions, so divide by 10⁹.
            max(found) > 10_000
        The first number is that of all parameters, the second that of those used for a token.
            found[0] < found[1]
        56 is eight times the whole model. Only the feed-forward networks come eight times.
            found[0] > 55
        A SwiGLU has three matrices of 4,096 × 14,336; you count two.
            near(31.7, 9.1)
        Keys and values have 8 heads of 128, queries and output have 32.
            near(47.5, 13.7)
        The table of the tokens and the output head are missing, 32,000 × 4,096 each.
            near(46.44, 12.62, by=0.05)
            near(46.57, 12.75, by=0.05)
        That is one expert for each token. Mixtral uses two.
            abs(found[1] - 7.24) < 0.1
        One part is not right. In each layer there are 1.41 billion parameters in the eight experts,
        of which a token uses two, and 0.042 billion in attention.
            not near(*MIXTRAL, by=0.1)
    """)
    return "46.7 and 12.9, as Mistral says. 8 × 7 is 47, if seven share their attention."


# --- 23.3: four routers, four faults --------------------------------------------------------------

FAULTS = {"A": "a", "B": "b", "C": "d", "D": "c"}


@checked
def patients(answer):
    """patients: what is wrong with the routers A to D, a letter for each"""
    table = """
        If the outputs were not added, a model would know next to nothing. No run is that bad.
            "e" in found.values()
        A router with so high a rate would have moved much further than the sound one. None has.
            "f" in found.values()
        One expert of A gets a third of the choices, and another none. Which fault pushes on whoever
        is ahead?
            found["A"] != "a"
        B's router has not moved at all: no gradient has reached it. Which fault cuts the wire?
            found["B"] != "b"
        D hardly ever chooses as it did before, although its loads are even.
            found["D"] != "c"
        C moved a quarter of the way of the sound one. What else did its router have to care for?
            found["C"] != "d"
    """
    diagnose_letters(answer, FAULTS, "f", table)
    return "The loads alone would have shown you one of four. And the best of all was ill."


# --- 23.4: who decides? ---------------------------------------------------------------------------


@checked
def rules(answer):
    """rules: the fractions with two rules, your guess, and what a rule needs"""
    wanted = "Set rules to four things: two fractions, your guess, and your verdict."
    by_sum, by_dice, _, verdict = reported(answer, (0.1, 0.2, "dice", "meaning"), wanted)
    diagnose("""
        These are percentages. Give fractions between 0 and 1.
            max(by_sum, by_dice) > 1
        The first fraction is that of the sum. It is the larger one by far.
            by_sum < by_dice
        The sum should give a sixth at least. Does `rule` return a number from 0 to 7 for each
        question, and did you build the model with eight networks?
            by_sum < 0.15
        Dice should give less than a tenth. Are they thrown in `rule`, anew at each call?
            by_dice > 0.1
        Facts with the same remainder of a sum have no meaning in common, and the sum does as well
        as the first symbol.
            verdict == "meaning"
        Dice have eight drawers as well, and remember less than a single network, so the verdict
        isn't "nothing". It should be one of the three.
            verdict != "constancy"
    """)
    return "Any rule will do, as long as it is kept."
