"""The exercises on rewards: advantages, pass@k, the tilted policy, DPO, and a reward to cheat."""

import math
import re

import torch
import torch.nn.functional as F

from exercises.check import (
    checked,
    diagnose,
    exercise,
    expect,
    expect_gradients,
    gradients,
    normal,
    tensor,
)

# --- 20.1: the advantages of GRPO -----------------------------------------------------------------


@exercise(
    inputs=lambda draw: [
        (torch.tensor([1.0, 0, 0, 1, 0, 0, 0, 1]), 4),
        (torch.tensor([4.0, 5, 5, 1, 1, 1, 5, 4, 4]), 3),
        (3 * normal(16, seed=1), 4),
        (5 + 2 * normal(12, seed=2), 6),
        (torch.tensor([0.0, 0, 1, 0, 1, 1, 0.5, 0.5]), 2),
        (torch.tensor([-1.0, 2, 0, 0, 7]), 5),
    ],
    example=(torch.tensor([1.0, 0, 0, 1, 5, 5, 5, 5]), 4),
    error_hints={
        "broadcast|must match the size": "Keep the dimension: `.mean(1, keepdim=True)` and "
        "`.std(1, keepdim=True, correction=0)`."
    },
    on_success="Each group is judged by itself, and all count alike.",
    tolerance=1e-3,  # people add numbers of many sizes to the standard deviation
)
def grpo_advantages(rewards, group):
    """grpo_advantages(rewards, group): rewards as distances from the mean of their group, in its
    standard deviations."""
    rows = rewards.view(-1, group)
    mean = rows.mean(1, keepdim=True)
    std = rows.std(1, keepdim=True, correction=0).clamp(min=1e-6)
    return ((rows - mean) / std).view(-1)


@grpo_advantages.also
def leaves_equal_rewards_at_0(answer):
    equal = torch.tensor([0.9, 0.7, 0.3]).repeat_interleave(3)
    expect(
        bool(tensor(answer(equal, 3), "the result").abs().max() < 0.1),
        "Three rewards of 0.9 are equal, but their mean as a float is not exactly 0.9. You divide "
        "this rounding error by one that is as small. Divide by 0.000001 at least.",
    )


grpo_advantages.slips("""
    You subtract the mean, as the chapter does. Divide by the standard deviation of the group, too.
        / std →
    You use the mean or the standard deviation of the whole batch. Each group has its own.
        rewards.view(-1, group) → rewards.view(1, -1)
        rewards.view(-1, group) → rewards.view(1, -1) ; 1, keepdim=True, correction=0 →
        rows.mean(1, keepdim=True) → rows.mean()
        1, keepdim=True, correction=0 → correction=0
        1, keepdim=True, correction=0 →
    Your groups are not the right ones. The completions of a prompt are neighbours:
    `rewards.view(-1, group)` has one row per prompt, and the mean is taken along the row.
        rewards.view(-1, group) → rewards.view(group, -1) ; mean(1 → mean(0 ; std(1 → std(0
        rewards.view(-1, group) → rewards.view(group, -1)
        mean(1 → mean(0 ; std(1 → std(0
    Your standard deviation divides by the size of the group minus 1. Divide by the size itself:
    `correction=0`.
        , correction=0 →
    You divide by the variance. The standard deviation is its square root.
        rows.std → rows.var
        rows.std → rows.var ; , correction=0 →
    A group of equal rewards gives 0 / 0, which is NaN. Its advantages should be 0.
        .clamp(min=1e-6) →
    The sign is wrong: a reward above the mean of its group has a positive advantage.
        rows - mean → mean - rows
    Subtract the mean of the group before you divide.
        rows - mean → rows
    The numbers are right, but they are in one row per prompt. Bring them back into the shape of
    the rewards: `.view(-1)`.
        .view(-1) →
""")


# --- 20.2: pass@k ---------------------------------------------------------------------------------


@exercise(
    inputs=lambda draw: [
        ([1, 0, 2], 4, 2),
        ([3, 0, 10, 5], 10, 4),
        ([2, 7, 1], 8, 3),
        ([4, 1, 1, 0, 9], 16, 5),
        ([0, 1, 6], 6, 6),
        ([3, 0], 12, 1),
        ([1, 5, 0, 40], 5000, 100),
        ([3, 2990, 0], 3000, 1500),
        *[
            ([draw.randint(0, n // 2) for _ in range(5)], n, draw.randint(2, 6))
            for n in (14, 20, 3000)
        ],
    ],
    example=([1, 0], 4, 2),
    error_hints={
        "too large|Result too large|out of range": "The binomial coefficients of a large n are "
        "larger than any float. Divide whole numbers by each other directly, `math.comb(…) / "
        "math.comb(…)`, or multiply fractions.",
        "non-negative|math domain error|noninteger or neg": "If fewer than k completions are "
        "wrong, one of the k is right for certain.",
        "division by zero": "If fewer than k completions are wrong, one of the k is right for "
        "certain.",
    },
    on_success="This is the number that papers report as pass@k.",
)
def mean_pass_at_k(correct, n, k):
    """mean_pass_at_k(correct, n, k): the mean probability that one of k completions is right."""
    values = [1 - math.comb(n - c, k) / math.comb(n, k) for c in correct]
    return sum(values) / len(values)


mean_pass_at_k.slips("""
    You estimate 1 − (1 − c/n)^k, as if each completion were drawn after putting the last one back.
    That is biased. Without putting back, it needs the binomial coefficients.
        1 - math.comb(n - c, k) / math.comb(n, k) → 1 - (1 - c / n) ** k
    You pool the problems first. Compute the value of each problem, and then take the mean.
        right([sum(correct)], n * len(correct), k)
        right([round(sum(correct) / len(correct))], n, k)
        right([sum(correct) // len(correct)], n, k)
        1 - (1 - sum(correct) / len(correct) / n) ** k
    This is the probability that all k completions are right. One of them is enough.
        1 - math.comb(n - c, k) → math.comb(c, k)
    This is the probability that all k completions are wrong. Subtract it from 1.
        1 - math.comb → math.comb
    This is the value for k = 1, the fraction of right completions. With more draws, it is larger.
        right(correct, n, 1)
    This is the value for k = n: whether any completion is right. With fewer draws, it is smaller.
        right(correct, n, n)
    This is the sum over the problems. Divide it by their number.
        / len(values) →
    This is the probability that exactly one of the k completions is right. More than one will do
    as well.
        1 - math.comb(n - c, k) → c * math.comb(n - c, k - 1)
    If fewer than k completions are wrong, the value is 1: one of the k is right for certain.
        for c in correct → if n - c >= k else 0 for c in correct
    These are the values of the problems. Return their mean.
        sum(values) / len(values) → values
""")


# --- 20.3: the tilted policy ----------------------------------------------------------------------


def policy(n, seed, zeros=()):
    probs = (2 * normal(n, seed=seed)).softmax(0)
    probs[list(zeros)] = 0.0
    return probs / probs.sum()


@exercise(
    inputs=lambda draw: [
        (policy(3, seed=1), torch.tensor([1.0, 0, 0]), 0.5),
        (policy(6, seed=2), normal(6, seed=3), 2.0),
        (policy(5, seed=4, zeros=[0, 3]), torch.tensor([3.0, 1, 2, 0, 2]), 0.8),
        (policy(2, seed=5), torch.tensor([-1.0, 0.5]), 0.25),
        (policy(4, seed=6), torch.tensor([100.0, 99.9, 100.1, 80]), 0.1),
        (policy(3, seed=7), torch.tensor([-500.0, -500.2, -501]), 0.5),
        (policy(8, seed=8), normal(8, seed=9) + 1, 5.0),
        (torch.tensor([0.0, 1.0]), torch.tensor([1000.0, 0.0]), 1.0),
    ],
    example=(torch.tensor([0.3, 0.7]), torch.tensor([1.0, 0.0]), 1.0),
    error_hints={
        "math domain error|expected a positive input": "A probability may be 0, and `math.log` "
        "refuses 0.",
        "math range error|too large": "e to such a number is too large for a float. Subtract the "
        "largest ln p + r/β from all of them first.",
        "division by zero": "All numerators are 0 as floats. Subtract the largest ln p + r/β from "
        "all of them first.",
    },
    on_success="The reference policy, tilted towards the reward.",
)
def tilted(probs, rewards, beta):
    """tilted(probs, rewards, beta): the best policy under a KL penalty of strength beta."""
    return (probs.log() + rewards / beta).softmax(0)


def divided(numerators):
    return numerators / numerators.sum()


tilted.slips("""
    You multiply the rewards by beta. Divide them by it: a strong penalty makes the tilt small.
        rewards / beta → rewards * beta
        divided(probs * (rewards * beta).exp())
    You leave out beta: the power is r / beta.
        / beta →
        divided(probs * rewards.exp())
    Your numbers do not add up to 1. Divide by Z, which is the sum of the products p · e^(r/β).
        probs * (rewards / beta).exp()
        probs * ((rewards - rewards.max()) / beta).exp()
        probs * (rewards / beta).softmax(0)
    This is a softmax of the rewards alone. Multiply by the probabilities of the reference policy,
    before you divide by Z.
        probs.log() + →
    `softmax` takes logits. Give it the logarithm of the probabilities, plus r / beta.
        probs.log() → probs
        probs.log() + → probs *
        probs.log() + rewards / beta → probs * (rewards / beta).exp()
    The sign is wrong: a completion with a larger reward becomes more probable.
        + → -
        divided(probs * (-rewards / beta).exp())
    The completion with the largest reward may have the probability 0. Once you have subtracted this
    reward, all other numerators are 0 as floats. Compute ln p + r/β first: it is −∞ where p is 0.
        divided(probs * ((rewards - rewards.max()) / beta).exp())
        divided(probs * (rewards / beta).softmax(0))
    With large or very negative rewards, e^(r/β) is too large or too small for a float. Add before
    you take the power: p · e^(r/β) is e^(ln p + r/β), and `softmax` takes such sums.
        divided(probs * (rewards / beta).exp())
    You add a small number to the probabilities, so a completion that has the probability 0 can win.
    ln 0 is −∞, which is what `softmax` needs here.
        probs.log() → (probs + 1e-8).log()
        probs.log() → probs.clamp(1e-9).log()
    You multiply by the reward. Multiply by a power of e: e^(r/β).
        divided(probs * rewards / beta)
        probs * rewards / beta
        divided(probs * rewards)
    Everything is on one completion. That is what comes out as beta goes to 0; for this beta, the
    others keep a part.
        F.one_hot(rewards.argmax(), len(rewards)).float()
""")


# --- 20.4: DPO from four log-probabilities --------------------------------------------------------


def pairs(n, beta, seed, size=2.0):
    return (*(-(size * normal(n, seed=seed + i)).abs() for i in range(4)), beta)


@exercise(
    inputs=lambda draw: [
        pairs(5, 0.5, seed=10),
        pairs(1, 0.3, seed=20, size=5.0),
        pairs(4, 2.0, seed=30),
        pairs(8, 0.1, seed=40, size=10.0),
        (
            torch.tensor([-1000.0, -2.0]),
            torch.tensor([-10.0, -3.0]),
            torch.tensor([-10.0, -2.5]),
            torch.tensor([-20.0, -1.0]),
            1.5,
        ),
        (
            torch.tensor([-5.0, -3.0, -1.0]),
            torch.tensor([-1.0, -900.0, -2.0]),
            torch.tensor([-4.0, -5.0, -2.0]),
            torch.tensor([-2000.0, -1.0, -2.0]),
            0.7,
        ),
    ],
    example=(
        torch.tensor([-1.0]),
        torch.tensor([-3.0]),
        torch.tensor([-2.0]),
        torch.tensor([-2.0]),
        0.5,
    ),
    error_hints={
        "math range error|too large|domain error|expected a positive": "For a very negative margin "
        "the sigmoid is 0 as a float. `F.logsigmoid` computes its logarithm directly."
    },
    in_words=lambda given: f"`preference_loss` (beta = {given[4]}, shapes {tuple(given[0].shape)})",
    on_success="The loss looks only at the difference: keep an eye on `right` itself.",
)
def preference_loss(right, wrong, ref_right, ref_wrong, beta):
    """preference_loss(right, wrong, ref_right, ref_wrong, beta): the loss of DPO, a number."""
    margin = (right - ref_right) - (wrong - ref_wrong)
    return -F.logsigmoid(beta * margin).mean()


@preference_loss.also
def passes_gradients(answer):
    """To the policy's log-probabilities; the reference policy's may be cut off."""
    for given in preference_loss.inputs:

        def gradients_of(function, given=given):
            leaves = [x.clone().requires_grad_() for x in given[:2]]
            refs = [x.clone() for x in given[2:4]]
            return gradients(torch.as_tensor(function(*leaves, *refs, given[4])), leaves)

        got, want = gradients_of(answer), gradients_of(preference_loss.right)
        expect_gradients(got, want, preference_loss.what(given))


preference_loss.slips("""
    The pair is the wrong way round. The margin is the difference for the preferred completion minus
    that for the rejected one.
        (right - ref_right) - (wrong - ref_wrong) → (wrong - ref_wrong) - (right - ref_right)
    The reference policy is missing: subtract its log-probabilities from those of the policy.
        (right - ref_right) - (wrong - ref_wrong) → right - wrong
    The reference policy's log-probabilities have the wrong sign. They are subtracted:
    (right − ref_right) − (wrong − ref_wrong).
        (right - ref_right) - (wrong - ref_wrong) → (right - wrong) + (ref_right - ref_wrong)
        (right - ref_right) - (wrong - ref_wrong) → right - ref_right - wrong - ref_wrong
    beta is missing: multiply the margin by it.
        beta * margin → margin
    You divide the margin by beta. Multiply it by beta.
        beta * margin → margin / beta
    You multiply the loss by beta. The factor belongs inside the sigmoid, with the margin.
        -F.logsigmoid(beta * margin) → -beta * F.logsigmoid(margin)
    Return the mean over the pairs. You return their sum, or the loss of each pair.
        .mean() → .sum()
        .mean() →
    For a very negative margin the sigmoid is 0 as a float, and its logarithm −∞. Use
    `F.logsigmoid`, which computes the logarithm directly.
        F.logsigmoid(beta * margin) → (beta * margin).sigmoid().log()
        -F.logsigmoid(beta * margin) → (1 + (-beta * margin).exp()).log()
    A minus sign is missing: the loss is −ln σ, which is never negative.
        -F → F
    You take the mean of the margins. Take the mean of the losses: each pair goes through the
    sigmoid by itself.
        margin).mean() → margin.mean())
""")


# --- 20.5: cheat the reward -----------------------------------------------------------------------

SUMS = range(20, 199)  # from 10 + 10 to 99 + 99
MOST = 1000


@checked
def cheat(answer):
    """cheat: one completion that gets the careless reward for every problem"""
    joined = ': join its parts, `" ".join(…)`' * isinstance(answer, (list, tuple, range))
    kind = f"{'an' if type(answer).__name__[0] in 'aeiou' else 'a'} {type(answer).__name__}"
    diagnose("""
        Set `cheat` to one text, not to a function. The policy writes the same text for every
        problem.
            callable(answer)
    """)
    expect(isinstance(answer, str), f"`cheat` should be a text, but is {kind}{joined}.")
    expect(bool(answer.strip()), "Your text is empty, so no number occurs in it.")
    expect(
        len(answer) <= MOST,
        f"Your text has {len(answer):,} characters, and at most 1,000 characters are allowed. "
        "Leave out the numbers that are no sum of two numbers from 10 to 99.",
    )
    missing = [n for n in SUMS if str(n) not in answer]
    diagnose("""
        Nearly: the largest sum, 99 + 99 = 198, is missing. `range` stops before its second number.
            missing == [198]
        The sums from 100 on are missing. The largest is 99 + 99.
            missing[:1] == [100] and len(missing) == 99
    """)
    expect(
        not missing,
        f"Your text wins only for {len(SUMS) - len(missing)} of the 179 possible sums. "
        f"For example, {missing[:1]} is missing.".replace("[", "").replace("]", ""),
    )
    shorter = " Can you do it with 400?" * (len(answer) > 400)
    return (
        f"With {len(answer)} characters, you get the full reward for all 8,100 problems, and you "
        f"have learned nothing about sums.{shorter}"
    )


# --- 20.6: a reward that holds --------------------------------------------------------------------

COMPLETIONS = [  # each with what to say if it is judged wrongly and no mistake explains it
    (37, 48, "85.", "The answer is right."),
    (99, 99, "198.", "The answer is right."),
    (10, 10, "20.20.", "What comes after the first dot does not count."),
    (37, 48, "85.90", "What comes after the first dot does not count."),
    (37, 48, "85..", "What comes after the first dot does not count."),
    (37, 48, "75.", "The answer is another number."),
    (37, 48, "75.85.", "The answer is before the first dot."),
    (37, 48, "85", "There is no dot."),
    (37, 48, "285.", "The answer is another number."),
    (37, 48, "850.", "The answer is another number."),
    (60, 60, "12.", "The answer is another number."),
    (37, 48, "85 86.", "The answer has more than one number."),
    (37, 48, "84 85.", "The answer has more than one number."),
    (37, 48, "37+48=85.", "The answer has more than the sum."),
    (37, 48, " 85.", "There is a space before the number."),
    (37, 48, "85 .", "There is a space after the number."),
    (37, 48, "085.", "There is a 0 in front."),
    (37, 48, "+85.", "There is a sign in front."),
    (37, 48, ".85.", "There is nothing before the first dot."),
    (37, 48, ".", "There is nothing before the first dot."),
    (37, 48, "", "The completion is empty."),
    (37, 48, "8.5.", "The answer is another number."),
    (37, 48, "８５.", "These are other characters, although `int` reads them."),
    (12, 13, " ".join(map(str, SUMS)) + ".", "This is a list of numbers."),
    (12, 13, ". ".join(map(str, SUMS)) + ".", "This is a list of numbers."),
]


def completed(rng):
    """Completions of a problem: the sum, with more after its dot, and others that are no answer."""
    a, b = rng.randint(10, 99), rng.randint(10, 99)
    good = f"{a + b}.", f"{a + b}.{rng.randint(1, 9)}"
    bad = f"{a + b}", f" {a + b}.", f"{a + b + rng.randint(1, 9)}.", f"{a}+{b}={a + b}."
    return [(a, b, completion) for completion in good + bad]


@exercise(
    inputs=lambda draw: [
        *((a, b, completion) for a, b, completion, _ in COMPLETIONS),
        *completed(draw),
    ],
    example=(37, 48, "85."),
    why=[why for *_, why in COMPLETIONS],
    error_hints={
        "invalid literal for int": "There may be no number before the dot: compare texts.",
        "index out of range|group": "There may be no number, or no dot, in the completion.",
    },
    on_success="Your cheat gets 0 from it, and so does every other text with more than the sum.",
)
def strict_reward(a, b, completion):
    """strict_reward(a, b, completion): 1.0 if the answer is the sum and nothing else, or 0.0."""
    answer, dot, _ = completion.partition(".")
    return 1.0 if dot and answer == str(a + b) else 0.0


digits = re.compile(r"\d+").findall


def number(text):
    """The whole number, as int reads it; None if it is none."""
    try:
        return int(text)
    except ValueError:
        return None


strict_reward.slips("""
    You split at the last dot. The answer is before the first dot, and what comes after the first
    dot does not count.
        partition → rpartition
    You compare the whole completion. What comes after the first dot does not count.
        float(completion == f"{a + b}.")
    You accept an answer without a dot. The completion was cut off before it ended.
        dot and →
    You remove a space before you compare. An answer with a space in it is not the sum alone.
        answer == → answer.strip() ==
        completion.partition → completion.strip().partition
    You compare numbers, and `int` also reads a space, a sign and a 0 in front. Compare texts.
        answer == str(a + b) → number(answer) == a + b
        dot and answer == str(a + b) → number(answer) == a + b
    You accept every text that begins with the sum, for example 850 for 85.
        float(completion.startswith(str(a + b)))
    You look only at the first number. There may be other characters before and after it.
        float(digits(completion)[:1] == [str(a + b)])
        float([int(n) for n in digits(completion)[:1]] == [a + b])
    You look only at the last number. A list that ends with the sum still wins.
        float(digits(completion)[-1:] == [str(a + b)])
        float([int(n) for n in digits(completion)[-1:]] == [a + b])
    You accept the sum anywhere before a dot, for example at the end of 285 or of a list. Nothing
    else may be before the first dot.
        float(f"{a + b}." in completion)
        dot and answer == str(a + b) → str(a + b) in answer
        dot and answer == str(a + b) → answer.endswith(str(a + b))
        dot and answer == str(a + b) → str(a + b) in digits(answer)
    This is the careless reward again: the sum may occur anywhere, and your cheat wins.
        float(str(a + b) in completion)
        float(str(a + b) in digits(completion))
""")
