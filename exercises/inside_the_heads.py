"""The exercises on what heads do: five reports, a third witness, a patch, a direction."""

from collections.abc import Mapping

from exercises.check import checked, diagnose, diagnose_letters, expect, reported, same

SEEN = {"A": "d", "B": "a", "C": "e", "D": "c", "E": "f"}


@checked
def reports(answer):
    """reports: what the people A to E have seen, a letter for each."""
    table = """
        E chose on one list and measured on another, and so did nobody less careful: B, C and D
        don't say that they chose at all.
            "b" in found.values()
        In which report does one word in front change everything?
            found["A"] != "d"
        B measured "no ablation" twice. What could make the two numbers differ?
            found["B"] != "a"
        C's MLP wrote for another car, and the answer stayed. If it carried the colour, the answer
        would be the other car's.
            found["C"] == "f"
        In E the answer becomes the other car's. A part that only has to write something could not
        do that.
            found["E"] == "e"
    """
    diagnose_letters(answer, SEEN, "f", table, "Ask of each: what was put in its place?")
    return "Four of the five have seen something real. Only one has seen where the answer is."


# Worked out by the solutions in the chapter, whose checks fail if they no longer hold.
COSTS = {(0, 8): 0.0, (11, 1): 0.0, (26, 0): 4.77, (27, 8): 2.11}
MEANS = {(26, 0): 2.38, (27, 8): 1.13}
ZEROS = {(26, 0): 2.1, (27, 8): 0.6}
RISES = {26: 0.58, 27: 0.39}


def table_of(answer, keys, example, wanted):
    """The numbers of a dictionary, in the order of keys; None where a key is missing."""
    expect(isinstance(answer, Mapping) and len(answer) == len(keys), wanted)
    found = [*answer]
    numbers = reported([*answer.values()], [0.5] * len(found), wanted)
    found = dict(zip(reported(found, [example] * len(found), wanted), numbers, strict=True))
    return found, [found.get(key) for key in keys]


@checked
def swapped(answer):
    """swapped: what four heads cost if each gathers what it would for the other number, in nats."""
    wanted = "Set swapped to a dictionary of four heads, each with its cost: {(0, 8): 0.5, …}."
    found, costs = table_of(answer, COSTS, (0, 8), wanted)

    def near(those, by=0.06):
        return same([found.get(head) for head in those], [*those.values()], by)

    diagnose("""
        Layer first, then head: the four are (0, 8), (11, 1), (26, 0) and (27, 8).
            set(found) != set(COSTS)
        These are the costs by mean ablation. Give each opening what the head gathers in the same
        opening with the other number.
            near(MEANS)
        These are the costs by zero ablation. Give each opening what the head gathers in the same
        opening with the other number.
            near(ZEROS)
        Change the sign: a cost is positive if the mean logit difference falls.
            near({head: -cost for head, cost in COSTS.items()})
        This is the sum: divide by the twenty openings.
            near({head: 20 * cost for head, cost in COSTS.items()}, 0.3)
        These are the logit differences that are left. The cost is by how much they fell.
            near({head: 3.0 - cost for head, cost in COSTS.items()})
        (26, 0) costs too little. Does each opening get the same noun and phrase in the other
        number? Row 0 needs row 10, and row 10 needs row 0.
            costs[2] < COSTS[26, 0] - 0.06
        Not these. For each head: the mean of `whole`, minus the mean with this head exchanged.
            not near(COSTS)
    """)
    return "Twice the cost: the mean has no opinion, and the other number has the opposite one."


@checked
def number_moves(answer):
    """number_moves: the two layers in which the number moves to the last token, with its rise."""
    wanted = "Set number_moves to a dictionary of two layers, each with its rise: {4: 0.35, …}."
    found, rises = table_of(answer, RISES, 4, wanted)
    diagnose("""
        That is the layer in which the *country* moves. Does the number move there?
            23 in found
        One layer too late: before layer 27 means after layer 26.
            set(found) == {27, 28}
        Not these two layers. Print the scaled fall before each of the layers 20 to 29.
            set(found) != set(RISES)
        The right layers. These seem to be the values themselves: how much does each layer add?
            same(rises, [0.6, 0.99], 0.02)
        The right layers, but divide by *twice* the mean: reversed is 1, not 2.
            same(rises, [2 * rise for rise in RISES.values()], 0.03)
        The right layers; these are nats. Divide by twice the mean of `whole`.
            same(rises, [6 * rise for rise in RISES.values()], 0.1)
        The right layers, but not these rises. Exchange the stream at the last token only, with the
        row that is ten away.
            not same(rises, [*RISES.values()], 0.03)
    """)
    return "The layers of (26, 0) and (27, 8), found by a witness who has never heard of heads."


@checked
def dial(answer):
    """dial: four log-odds, without a push, with a vector, with its negative, with a random one."""
    wanted = "Set dial to four numbers: without a push, +, −, random, (0.5, 0.5, 0.5, 0.5)."
    plain, plus, minus, control = reported(answer, (0.5,) * 4, wanted)
    diagnose("""
        The push with the plus lowers the log-odds. Are the two lists, or the two groups of words,
        the wrong way round?
            plus < plain < minus
        Both pushes go the same way, so your words do not measure your direction. The lists should
        differ in nothing but what you mean.
            (plus - plain) * (minus - plain) >= 0
        From − to + it is less than a nat. Try another layer, a larger factor, or lists that differ
        more clearly.
            plus - minus < 1
        Your random vector does as much as half of yours, or more. Has it the same length? If so,
        your vector does nothing that noise would not.
            abs(control - plain) > (plus - minus) / 4
    """)
    return "Your own dial, and a control beside it. Show somebody what it writes."
