"""The exercises of the chapter on fast training."""

import torch

from exercises.check import exercise, normal

# --- 11.1: all singular values alike --------------------------------------------------------------


SQUARE = 3 * normal(4, 4, seed=1)  # another one might be nearly singular


@exercise(
    inputs=lambda draw: [
        (SQUARE,),
        (3 * normal(3, 6, seed=2),),
        (3 * normal(7, 2, seed=3),),
        (normal(1, 5, seed=4),),
        (torch.diag(torch.tensor([5.0, 0.1])),),
    ],
    example=(torch.diag(torch.tensor([5.0, 0.1])),),
    on_shape_error="Is `full_matrices=False` missing? Or did you transpose the third part? It is "
    "transposed already.",
    on_success="All singular values are 1, and the directions are kept.",
    tolerance=1e-3,
)
def equalised(matrix):
    """equalised(matrix): the matrix with all its singular values set to 1, for any shape."""
    U, S, Wt = torch.linalg.svd(matrix, full_matrices=False)
    return U @ Wt


equalised.slips("""
    This is the matrix itself: the singular values are still in it. Leave them out.
        matrix
    This is the matrix divided by its length: all singular values shrink alike. Leave them out:
    multiply the first part of the SVD by the third.
        matrix / matrix.norm()
    You scaled each row to length 1. The rows should also be perpendicular: leave the stretches out.
        matrix / matrix.norm(dim=1, keepdim=True)
    torch.linalg.svd returns the third part transposed already. You transposed it again.
        U @ Wt → U @ Wt.T
    This is one of the parts, or all three. Multiply the first by the third.
        U @ Wt → U, S, Wt
        U @ Wt → U
        U @ Wt → Wt
    QR gives perpendicular directions, too, but different ones, which depend on the order of the
    columns. Use torch.linalg.svd.
        torch.linalg.qr(matrix).Q
    Muon's five rounds only come near. Use torch.linalg.svd.
        newton_schulz.right(matrix, *MUON, 5)
""")


# --- 11.2: model FLOPs utilisation ----------------------------------------------------------------


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


# --- 11.3: gradient accumulation with unequal parts -----------------------------------------------


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
    on_success="Every text counts once, in whichever part it was.",
)
def accumulated(gradients, sizes):
    """accumulated(gradients, sizes): the gradient of the mean loss over all texts of all parts."""
    return sum(g * size / sum(sizes) for g, size in zip(gradients, sizes, strict=True))


accumulated.slips("""
    You divide by the number of parts. That is right only if all parts have the same size: here, a
    text in a small part counts more than a text in a large one.
        size / sum(sizes) → 1 / len(sizes)
    You add the gradients without any weights, so the sum grows with the number of parts. Multiply
    each by the fraction of the texts that its part holds.
        * size / sum(sizes) →
    You weight each part by its size, but you do not divide by the number of all texts.
        / sum(sizes) →
    You *divide* by the size of the part. A part with more texts should count more: multiply by its
    size, and divide by the number of all texts.
        size / sum(sizes) → 1 / size
        size / sum(sizes) → 1 / size / len(sizes)
        size / sum(sizes) → sum(sizes) / size
    You add the gradients and divide by the number of all texts. But each gradient belongs to the
    *mean* loss of its part: multiply it by the size of the part first.
        size / sum(sizes) → 1 / sum(sizes)
    You weight by the sizes, but then divide by the number of parts. Divide by the number of all
    texts.
        sum(sizes) → len(sizes)
    This is the gradient of one part alone, as if the gradients were set to zero before each part.
        gradients[-1]
        gradients[0]
""")


# --- 11.4: the batch size that is fastest ---------------------------------------------------------

STEPS = {4: 900, 16: 300, 64: 130, 256: 90, 1024: 80}
FEW = {1: 5000, 2: 2500, 8: 640, 32: 200}


@exercise(
    inputs=lambda draw: [
        (STEPS, 0.01, 0.004),
        (STEPS, 0.02, 0.00001),
        (STEPS, 0.02, 0.001),
        (FEW, 0.0, 0.002),
        (FEW, 0.1, 0.002),
        ({32: 100, 8: 400}, 0.5, 0.01),
        ({8: 10}, 1.0, 1.0),
        *[
            (
                {B: draw.randint(50, 2000) for B in draw.sample(range(1, 100), 5)},
                draw.uniform(0.01, 1),
                draw.uniform(0.001, 0.1),
            )
            for _ in range(3)
        ],
    ],
    example=({10: 100, 100: 50}, 1.0, 0.01),
    on_success="How large a batch should be depends on the model, on the text and on the machine.",
)
def fastest_batch(steps, fixed, per_text):
    """fastest_batch(steps, fixed, per_text): the batch size with the shortest run, its seconds."""
    seconds = {B: n * (fixed + per_text * B) for B, n in steps.items()}
    best = min(seconds, key=seconds.get)
    return best, seconds[best]


fastest_batch.slips("""
    You chose the batch size with the fewest steps. But a step with more texts takes longer: compare
    steps × seconds per step.
        seconds.get → steps.get
    You chose the batch size that needs the fewest texts. That leaves out the fixed time of each
    step: compare steps × (fixed + per_text · B).
        seconds.get → lambda B: steps[B] * B
    You chose the batch size whose *step* is shortest, which is always the smallest. Multiply by the
    number of steps.
        , key=seconds.get →
    You found the right batch size, but you return the seconds of one step. Return those of the
    whole run.
        seconds[best] → fixed + per_text * best
    You count the fixed time once per run. Every step takes it.
        n * (fixed + per_text * B) → fixed + n * per_text * B
    You left out the fixed time of each step.
        fixed + per_text * B → per_text * B
    You count per_text once per step, as if every step had one text. Multiply it by the batch size.
        per_text * B → per_text
    This is only one of the two values. Return the batch size and the seconds of its run.
        right(steps, fixed, per_text)[0]
        right(steps, fixed, per_text)[1]
    This is the longest run. Take the shortest.
        min( → max(
""")


# --- 11.5: stretches towards 1 by multiplying -----------------------------------------------------


MUON, CUBIC = (3.4445, -4.7750, 2.0315), (1.5, -0.5, 0.0)


@exercise(
    inputs=lambda draw: [
        (normal(3, 3, seed=1), *MUON, 5),
        (normal(2, 5, seed=2), *CUBIC, 12),
        (normal(6, 3, seed=3), *MUON, 3),
        (4 * normal(4, 4, seed=4), *CUBIC, 2),
        (0.1 * normal(3, 4, seed=5), *MUON, 1),
        (normal(5, 1, seed=6), *MUON, 2),
        (normal(2, 2, seed=7), 2.0, -1.5, 0.5, 0),
    ],
    example=(torch.diag(torch.tensor([4.0, 3.0])), *CUBIC, 1),
    on_success="With (1.5, −0.5, 0) and enough rounds this is `equalised`, by multiplying alone.",
    tolerance=1e-3,
)
def newton_schulz(matrix, a, b, c, rounds):
    """newton_schulz(matrix, a, b, c, rounds): all stretches driven towards 1 by multiplying."""
    tall = matrix.shape[0] > matrix.shape[1]
    x = matrix.T if tall else matrix
    x = x / x.norm()
    for _ in range(rounds):
        gram = x @ x.T
        x = a * x + (b * gram + c * gram @ gram) @ x
    return x.T if tall else x


newton_schulz.slips("""
    You did not divide the matrix by its length first. The polynomial works for stretches of at most
    1.
        / x.norm() →
    You took powers of the single entries. The third power of the stretches needs products of
    matrices: x @ x.T @ x.
        (b * gram + c * gram @ gram) @ x → b * x**3 + c * x**5
    Your last term is c · (x @ x.T) @ x. It needs the square of the matrix x @ x.T.
        gram @ gram → gram
    You squared the entries of x @ x.T. Multiply the matrix by itself.
        gram @ gram → gram**2
        gram @ gram → gram**2 ; matrix.shape[0] > matrix.shape[1] → False
    You made only one round. Repeat it `rounds` times, each time with the new x.
        right(matrix, a, b, c, 1)
    You compute x @ x.T before the loop. It changes with x: compute it anew in each round.
        gram = x @ x.T → pass ; x = x / x.norm() → x = x / x.norm(); gram = x @ x.T
    You divide by the length again in every round. Do that once, before the first.
        gram = x @ x.T → x = x / x.norm(); gram = x @ x.T
    You divided by the largest entry, or each row by its own length. Divide the whole matrix by
    `matrix.norm()`.
        x.norm() → x.abs().max()
        x.norm() → x.norm(dim=1, keepdim=True)
""")
