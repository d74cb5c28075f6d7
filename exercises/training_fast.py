"""The exercises of the chapter on fast training."""

import torch

from exercises.check import checked, diagnose, exercise, expect, normal, reported

# --- 11.1: model FLOPs utilisation ----------------------------------------------------------------


def timed(rng):
    """A run that reaches between 10% and 90% of the peak."""
    model = rng.randint(1, 12), 32 * rng.randint(1, 12), rng.randint(60, 5000)
    tokens, seconds = rng.randint(100, 5000), rng.uniform(0.01, 2)
    speed = mfu.right(*model, tokens, seconds, 1.0)
    return *model, tokens, seconds, speed / rng.uniform(0.1, 0.9)


@exercise(
    inputs=lambda draw: [
        (4, 128, 65, 1536, 0.1, 1.5e11),
        (12, 768, 50257, 524288, 0.9, 9.89e14),
        (6, 256, 2048, 4096, 0.35, 9.5e11),
        (1, 64, 5000, 100, 2.0, 1e9),
        (2, 32, 69, 512, 0.004, 2e11),
        *(timed(draw) for _ in range(3)),
    ],
    example=(1, 10, 30, 1000, 1.0, 18_000_000),
    on_success="That is the number by which large training runs are compared.",
    tolerance=1e-5,
)
def mfu(n_layer, n_embd, vocab_size, tokens, seconds, peak):
    """mfu(n_layer, n_embd, vocab_size, tokens, seconds, peak): achieved FLOPs per second / peak."""
    parameters = 12 * n_layer * n_embd**2 + vocab_size * n_embd
    return 6 * parameters * tokens / seconds / peak


mfu.slips("""
    You count only the forward pass, 2 FLOPs per parameter and token. Training takes 6: the backward
    pass costs twice as much again.
        6 → 2
    You count only the backward pass, 4 FLOPs per parameter and token. Add 2 for the forward pass.
        6 → 4
    The language-model head is missing: its matrix has vocab_size · n_embd parameters, and every
    token is multiplied by it.
        + vocab_size * n_embd →
    You also count the token table. Looking up a row multiplies nothing: count vocab_size · n_embd
    once, for the language-model head.
        + vocab_size → + 2 * vocab_size
    You count only one square matrix per block. Attention has 4 of n_embd², and the feed-forward
    network 8: together 12.
        12 → 1
    You count only attention or only the feed-forward network. A block has 4 + 8 = 12 times n_embd²
    parameters.
        12 → 4
        12 → 8
    This is the time that was taken, divided by the time at the peak. The utilisation is the other
    way round.
        1 / right(n_layer, n_embd, vocab_size, tokens, seconds, peak)
    You multiply by the seconds. The speed of the run is FLOPs *divided* by seconds.
        / seconds → * seconds
    This is the speed of the run in FLOPs per second. Divide it by the peak.
        seconds / peak → seconds
    These are percent. Return a fraction, such as 0.4 for 40%.
        6 → 100 * 6
""")


# --- 11.2: gradient accumulation with unequal parts -----------------------------------------------


def parts(n, seed, sizes, shape=(2, 3)):
    return [normal(*shape, seed=seed + i) for i in range(n)], sizes


@exercise(
    inputs=lambda draw: [
        parts(2, 1, [24, 8]),
        parts(3, 5, [10, 20, 70]),
        parts(4, 9, [16, 16, 16, 5]),
        parts(1, 13, [12], shape=(4,)),
        parts(2, 17, [1, 99], shape=(3, 1)),
        parts(3, 21, [4, 1, 3], shape=(2, 2)),
    ],
    example=([torch.tensor([1.0]), torch.tensor([5.0])], [3, 1]),
    on_success="Every token counts once, in whichever part it was.",
)
def accumulated(gradients, sizes):
    """accumulated(gradients, sizes): the gradient of the mean loss over all tokens of all parts."""
    return sum(g * size / sum(sizes) for g, size in zip(gradients, sizes, strict=True))


accumulated.slips("""
    You divide by the number of parts. That is right only if all parts have the same size: here, a
    token in a small part counts more than a token in a large one.
        size / sum(sizes) → 1 / len(sizes)
    You add the gradients without any weights, so the sum grows with the number of parts. Multiply
    each by the fraction of the tokens that its part holds.
        * size / sum(sizes) →
    You weight each part by its size, but you do not divide by the number of all tokens.
        / sum(sizes) →
    You *divide* by the size of the part. A part with more tokens should count more: multiply by its
    size, and divide by the number of all tokens.
        size / sum(sizes) → 1 / size
        size / sum(sizes) → 1 / size / len(sizes)
        size / sum(sizes) → sum(sizes) / size
    You add the gradients and divide by the number of all tokens. But each gradient belongs to the
    *mean* loss of its part: multiply it by the size of the part first.
        size / sum(sizes) → 1 / sum(sizes)
    You weight by the sizes, but then divide by the number of parts. Divide by the number of all
    tokens.
        sum(sizes) → len(sizes)
    This is the gradient of one part alone, as if the gradients were set to zero before each part.
        gradients[-1]
        gradients[0]
""")


# --- 11.3: not a number ---------------------------------------------------------------------------


@checked
def nan_hunt(answer):
    """nan_hunt: tensors with a gradient of zeros, matrices that are nan, and the cause."""
    zeros, broken, cause = reported(
        answer,
        (0, 0, "a"),
        'Set nan_hunt to two counts and a letter, (…, …, "a").',
    )
    diagnose("""
        The cause should be one of the letters a to e.
            cause not in set("abcde")
        You counted the tensors that have a gradient. Count the others.
            zeros == 1
        The gradients were taken after a step, or were added to older ones: build the model anew,
        with the seed, and call `backward` once.
            zeros in (0, 18)
        Muon steps the matrices of the blocks: attention has four in each block, the feed-forward
        network two, and what belongs to a convolution is no matrix.
            broken in (14, 24, 26, 25, 16)
        If none is nan, you still have the constant in the denominator.
            broken == 0
        A rate of 0 gives nan here as well. Try it.
            cause == "a"
        A softmax that overflows would make the first loss nan, and that one is 4.23.
            cause == "b"
        Characters that do not occur explain rows of the token table, which Muon does not step.
            cause == "d"
        No root is taken of anything but sums of squares.
            cause == "e"
    """)
    expect(zeros == 25, f"{zeros} tensors have a gradient of nothing but zeros? Count again.")
    expect(broken == 12, f"{broken} of Muon's matrices are nan after the step? Count again.")
    return "0/0, twelve times. In the second step, the head has numbers, and all would be well."


# --- 11.4: two parts taken out --------------------------------------------------------------------

ALONE = {"rotary": 0.01, "qk norm": 0.0, "squared relu": 0.02, "convolution": 0.18}
TOGETHER = {
    ("qk norm", "rotary"): 1.87,
    ("rotary", "squared relu"): 1.90,
    ("qk norm", "squared relu"): 1.89,
    ("convolution", "qk norm"): 2.04,
    ("convolution", "squared relu"): 2.08,
}


@checked
def taken_out(answer):
    """taken_out: two parts, the bet, and the losses with seeds 0 and 1."""
    parts, bet, losses = reported(
        answer,
        (["rotary", "QK norm"], 1.9, [1.93, 1.91]),
        'Set taken_out to two parts, your bet and two losses, (["…", "…"], 1.90, [1.93, 1.91]).',
    )
    pair = tuple(sorted(parts))
    mean = sum(losses) / len(losses)
    diagnose("""
        Section 6 has done this pair for you: its loss is 2.39. Take another.
            pair == ("convolution", "rotary")
        These are the losses of the example. Run the race.
            losses == [1.93, 1.91]
        Two seeds, two losses: the first cell of section 1 sets the seed before it builds a model.
            len(losses) != 2 or losses[0] == losses[1]
    """)
    known = " and ".join([", ".join([*ALONE][:-1]), [*ALONE][-1]])
    expect(pair in TOGETHER, f"Take out two of {known}; yours are {', '.join(parts)}.")
    expect(
        abs(mean - TOGETHER[pair]) < 0.04,
        f"Our three seeds without {pair[0]} and {pair[1]} are far from {mean:.2f}. Are the "
        "optimisers, the 72 steps and `held_out` those of section 1, and are only these two out?",
    )
    alone, together = sum(ALONE[part] for part in pair), mean - 1.86
    how = "as good as right" if abs(bet - mean) < 0.03 else f"{abs(bet - mean):.2f} away"
    return (
        f"One at a time, they cost {alone:.2f} nats in all; both at once, {together:.2f}: these "
        f"two do different work. Your bet was {how}."
    )
