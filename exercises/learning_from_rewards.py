"""The exercises on rewards: advantages, pass@k, the tilted policy, DPO, and a reward to cheat."""

import math
from functools import partial

import torch
import torch.nn.functional as F

from exercises.check import (
    checked,
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
    return advantages(rewards, group)


def std(rows, dim=1):
    return rows.std(dim, keepdim=True, correction=0)


def advantages(
    rewards,
    group,
    rows=lambda rewards, group: rewards.view(-1, group),
    scale=std,
    center=lambda rows, dim: rows - rows.mean(dim, keepdim=True),
    dim=1,
    least=1e-6,
    flat=True,
):
    """The right answer, or with one part of it changed."""
    by_prompt = rows(rewards, group)
    found = center(by_prompt, dim) / scale(by_prompt, dim).clamp(min=least)
    return found.view(-1) if flat else found


@grpo_advantages.also
def leaves_equal_rewards_at_0(answer):
    equal = torch.tensor([0.9, 0.7, 0.3]).repeat_interleave(3)
    expect(
        bool(tensor(answer(equal, 3), "the result").abs().max() < 0.1),
        "Three rewards of 0.9 are equal, but their mean as a float is not exactly 0.9. You divide "
        "this rounding error by one that is as small. Divide by 0.000001 at least.",
    )


def in_columns(rewards, group):
    return rewards.view(group, -1)


def in_one_row(rewards, group):
    return rewards.view(1, -1)


def no_scale(rows, dim):
    return torch.ones(())


grpo_advantages.mistake(
    "You subtract the mean, as the chapter does. Divide by the standard deviation of the group, "
    "too.",
    partial(advantages, scale=no_scale),
)
grpo_advantages.mistake(
    "You use the mean or the standard deviation of the whole batch. Each group has its own.",
    partial(advantages, rows=in_one_row),
    partial(advantages, rows=in_one_row, scale=lambda rows, dim: rows.std()),
    partial(advantages, center=lambda rows, dim: rows - rows.mean()),
    partial(advantages, scale=lambda rows, dim: rows.std(correction=0)),
    partial(advantages, scale=lambda rows, dim: rows.std()),
)
grpo_advantages.mistake(
    "Your groups are not the right ones. The completions of a prompt are neighbours: "
    "`rewards.view(-1, group)` has one row per prompt, and the mean is taken along the row.",
    partial(advantages, rows=in_columns, dim=0),
    partial(advantages, rows=in_columns),
    partial(advantages, dim=0),
)
grpo_advantages.mistake(
    "Your standard deviation divides by the size of the group minus 1. Divide by the size itself: "
    "`correction=0`.",
    partial(advantages, scale=lambda rows, dim: rows.std(dim, keepdim=True)),
)
grpo_advantages.mistake(
    "You divide by the variance. The standard deviation is its square root.",
    partial(advantages, scale=lambda rows, dim: rows.var(dim, keepdim=True, correction=0)),
    partial(advantages, scale=lambda rows, dim: rows.var(dim, keepdim=True)),
)
grpo_advantages.mistake(
    "A group of equal rewards gives 0 / 0, which is NaN. Its advantages should be 0.",
    partial(advantages, least=0),
)
grpo_advantages.mistake(
    "The sign is wrong: a reward above the mean of its group has a positive advantage.",
    partial(advantages, center=lambda rows, dim: rows.mean(dim, keepdim=True) - rows),
)
grpo_advantages.mistake(
    "Subtract the mean of the group before you divide.",
    partial(advantages, center=lambda rows, dim: rows),
)
grpo_advantages.mistake(
    "The numbers are right, but they are in one row per prompt. Bring them back into the shape of "
    "the rewards: `.view(-1)`.",
    partial(advantages, flat=False),
)


# --- 20.2: pass@k ---------------------------------------------------------------------------------


def value(n, c, k):
    return 1 - math.comb(n - c, k) / math.comb(n, k)


def mean_of(each):
    """The mean over the problems of each(n, c, k)."""
    return lambda correct, n, k: sum(each(n, c, k) for c in correct) / len(correct)


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
    return mean_of(value)(correct, n, k)


mean_pass_at_k.mistake(
    "You estimate 1 − (1 − c/n)^k, as if each completion were drawn after putting the last one "
    "back. That is biased. Without putting back, it needs the binomial coefficients.",
    mean_of(lambda n, c, k: 1 - (1 - c / n) ** k),
)
mean_pass_at_k.mistake(
    "You pool the problems first. Compute the value of each problem, and then take the mean.",
    lambda correct, n, k: value(n * len(correct), sum(correct), k),
    lambda correct, n, k: value(n, round(sum(correct) / len(correct)), k),
    lambda correct, n, k: value(n, sum(correct) // len(correct), k),
    lambda correct, n, k: 1 - (1 - sum(correct) / len(correct) / n) ** k,
)
mean_pass_at_k.mistake(
    "This is the probability that all k completions are right. One of them is enough.",
    mean_of(lambda n, c, k: math.comb(c, k) / math.comb(n, k)),
)
mean_pass_at_k.mistake(
    "This is the probability that all k completions are wrong. Subtract it from 1.",
    mean_of(lambda n, c, k: math.comb(n - c, k) / math.comb(n, k)),
)
mean_pass_at_k.mistake(
    "This is the value for k = 1, the fraction of right completions. With more draws, it is "
    "larger.",
    mean_of(lambda n, c, k: c / n),
)
mean_pass_at_k.mistake(
    "This is the value for k = n: whether any completion is right. With fewer draws, it is "
    "smaller.",
    mean_of(lambda n, c, k: float(c > 0)),
)
mean_pass_at_k.mistake(
    "This is the sum over the problems. Divide it by their number.",
    lambda correct, n, k: sum(value(n, c, k) for c in correct),
)
mean_pass_at_k.mistake(
    "This is the probability that exactly one of the k completions is right. More than one will "
    "do as well.",
    mean_of(lambda n, c, k: c * math.comb(n - c, k - 1) / math.comb(n, k)),
)
mean_pass_at_k.mistake(
    "If fewer than k completions are wrong, the value is 1: one of the k is right for certain.",
    mean_of(lambda n, c, k: 0.0 if n - c < k else value(n, c, k)),
)
mean_pass_at_k.mistake(
    "These are the values of the problems. Return their mean.",
    lambda correct, n, k: [value(n, c, k) for c in correct],
)


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
    return tilt(probs, rewards, beta)


def tilt(probs, rewards, beta, logits=lambda probs, rewards, beta: probs.log() + rewards / beta):
    return logits(probs, rewards, beta).softmax(0)


def divided(numerators):
    return numerators / numerators.sum()


tilted.mistake(
    "You multiply the rewards by beta. Divide them by it: a strong penalty makes the tilt small.",
    partial(tilt, logits=lambda probs, rewards, beta: probs.log() + rewards * beta),
    lambda probs, rewards, beta: divided(probs * (rewards * beta).exp()),
)
tilted.mistake(
    "You leave out beta: the power is r / beta.",
    partial(tilt, logits=lambda probs, rewards, beta: probs.log() + rewards),
    lambda probs, rewards, beta: divided(probs * rewards.exp()),
)
tilted.mistake(
    "Your numbers do not add up to 1. Divide by Z, which is the sum of the products p · e^(r/β).",
    lambda probs, rewards, beta: probs * (rewards / beta).exp(),
    lambda probs, rewards, beta: probs * ((rewards - rewards.max()) / beta).exp(),
    lambda probs, rewards, beta: probs * (rewards / beta).softmax(0),
)
tilted.mistake(
    "This is a softmax of the rewards alone. Multiply by the probabilities of the reference "
    "policy, before you divide by Z.",
    partial(tilt, logits=lambda probs, rewards, beta: rewards / beta),
)
tilted.mistake(
    "`softmax` takes logits. Give it the logarithm of the probabilities, plus r / beta.",
    partial(tilt, logits=lambda probs, rewards, beta: probs + rewards / beta),
    partial(tilt, logits=lambda probs, rewards, beta: probs * rewards / beta),
    partial(tilt, logits=lambda probs, rewards, beta: probs * (rewards / beta).exp()),
)
tilted.mistake(
    "The sign is wrong: a completion with a larger reward becomes more probable.",
    partial(tilt, logits=lambda probs, rewards, beta: probs.log() - rewards / beta),
    lambda probs, rewards, beta: divided(probs * (-rewards / beta).exp()),
)
tilted.mistake(
    "The completion with the largest reward may have the probability 0. Once you have subtracted "
    "this reward, all other numerators are 0 as floats. Compute ln p + r/β first: it is −∞ where p "
    "is 0.",
    lambda probs, rewards, beta: divided(probs * ((rewards - rewards.max()) / beta).exp()),
    lambda probs, rewards, beta: divided(probs * (rewards / beta).softmax(0)),
)
tilted.mistake(
    "With large or very negative rewards, e^(r/β) is too large or too small for a float. Add "
    "before you take the power: p · e^(r/β) is e^(ln p + r/β), and `softmax` takes such sums.",
    lambda probs, rewards, beta: divided(probs * (rewards / beta).exp()),
)
tilted.mistake(
    "You add a small number to the probabilities, so a completion that has the probability 0 can "
    "win. ln 0 is −∞, which is what `softmax` needs here.",
    partial(tilt, logits=lambda probs, rewards, beta: (probs + 1e-8).log() + rewards / beta),
    partial(tilt, logits=lambda probs, rewards, beta: probs.clamp(1e-9).log() + rewards / beta),
)
tilted.mistake(
    "You multiply by the reward. Multiply by a power of e: e^(r/β).",
    lambda probs, rewards, beta: divided(probs * rewards / beta),
    lambda probs, rewards, beta: probs * rewards / beta,
    lambda probs, rewards, beta: divided(probs * rewards),
)
tilted.mistake(
    "Everything is on one completion. That is what comes out as beta goes to 0; for this beta, the "
    "others keep a part.",
    lambda probs, rewards, beta: F.one_hot(rewards.argmax(), len(rewards)).float(),
)


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
    return dpo(right, wrong, ref_right, ref_wrong, beta)


def dpo(
    right,
    wrong,
    ref_right,
    ref_wrong,
    beta,
    margin=lambda right, wrong, ref_right, ref_wrong: (right - ref_right) - (wrong - ref_wrong),
    loss=lambda margin, beta: -F.logsigmoid(beta * margin).mean(),
):
    """The right answer, or with one part of it changed."""
    return loss(margin(right, wrong, ref_right, ref_wrong), beta)


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


preference_loss.mistake(
    "The pair is the wrong way round. The margin is the difference for the preferred completion "
    "minus that for the rejected one.",
    partial(
        dpo,
        margin=lambda right, wrong, ref_right, ref_wrong: (wrong - ref_wrong) - (right - ref_right),
    ),
)
preference_loss.mistake(
    "The reference policy is missing: subtract its log-probabilities from those of the policy.",
    partial(dpo, margin=lambda right, wrong, ref_right, ref_wrong: right - wrong),
)
preference_loss.mistake(
    "The reference policy's log-probabilities have the wrong sign. They are subtracted: "
    "(right − ref_right) − (wrong − ref_wrong).",
    partial(
        dpo,
        margin=lambda right, wrong, ref_right, ref_wrong: (right - wrong) + (ref_right - ref_wrong),
    ),
    partial(
        dpo, margin=lambda right, wrong, ref_right, ref_wrong: right - ref_right - wrong - ref_wrong
    ),
)
preference_loss.mistake(
    "beta is missing: multiply the margin by it.",
    partial(dpo, loss=lambda margin, beta: -F.logsigmoid(margin).mean()),
)
preference_loss.mistake(
    "You divide the margin by beta. Multiply it by beta.",
    partial(dpo, loss=lambda margin, beta: -F.logsigmoid(margin / beta).mean()),
)
preference_loss.mistake(
    "You multiply the loss by beta. The factor belongs inside the sigmoid, with the margin.",
    partial(dpo, loss=lambda margin, beta: -beta * F.logsigmoid(margin).mean()),
)
preference_loss.mistake(
    "Return the mean over the pairs. You return their sum, or the loss of each pair.",
    partial(dpo, loss=lambda margin, beta: -F.logsigmoid(beta * margin).sum()),
    partial(dpo, loss=lambda margin, beta: -F.logsigmoid(beta * margin)),
)
preference_loss.mistake(
    "For a very negative margin the sigmoid is 0 as a float, and its logarithm −∞. Use "
    "`F.logsigmoid`, which computes the logarithm directly.",
    partial(dpo, loss=lambda margin, beta: -(beta * margin).sigmoid().log().mean()),
    partial(dpo, loss=lambda margin, beta: (1 + (-beta * margin).exp()).log().mean()),
)
preference_loss.mistake(
    "A minus sign is missing: the loss is −ln σ, which is never negative.",
    partial(dpo, loss=lambda margin, beta: F.logsigmoid(beta * margin).mean()),
)
preference_loss.mistake(
    "You take the mean of the margins. Take the mean of the losses: each pair goes through the "
    "sigmoid by itself.",
    partial(dpo, loss=lambda margin, beta: -F.logsigmoid(beta * margin.mean())),
)


# --- 20.5: cheat the reward -----------------------------------------------------------------------

SUMS = range(20, 199)  # from 10 + 10 to 99 + 99
MOST = 1000


@checked
def cheat(answer):
    """cheat: one completion that gets the careless reward for every problem"""
    expect(
        not callable(answer),
        "Set `cheat` to one text, not to a function. The policy writes the same text for every "
        "problem.",
    )
    joined = ': join its parts, `" ".join(…)`' * isinstance(answer, (list, tuple, range))
    kind = f"{'an' if type(answer).__name__[0] in 'aeiou' else 'a'} {type(answer).__name__}"
    expect(isinstance(answer, str), f"`cheat` should be a text, but is {kind}{joined}.")
    expect(bool(answer.strip()), "Your text is empty, so no number occurs in it.")
    expect(
        len(answer) <= MOST,
        f"Your text has {len(answer):,} characters, and at most 1,000 characters are allowed. "
        "Leave out the numbers that are no sum of two numbers from 10 to 99.",
    )
    missing = [n for n in SUMS if str(n) not in answer]
    expect(
        missing != [198],
        "Nearly: the largest sum, 99 + 99 = 198, is missing. `range` stops before its second "
        "number.",
    )
    expect(
        not missing or missing[0] != 100 or len(missing) < 99,
        "The sums from 100 on are missing. The largest is 99 + 99.",
    )
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
    return rewarded(dot and answer == str(a + b))


def rewarded(condition):
    return 1.0 if condition else 0.0


def digits(text):
    """The runs of digits."""
    return "".join(c if c.isdigit() else " " for c in text).split()


def number(text):
    """The whole number, as int reads it; None if it is none."""
    try:
        return int(text)
    except ValueError:
        return None


def before(completion):
    return completion.partition(".")[0]


strict_reward.mistake(
    "You split at the last dot. The answer is before the first dot, and what comes after the first "
    "dot does not count.",
    lambda a, b, completion: rewarded(
        "." in completion and completion.rpartition(".")[0] == str(a + b)
    ),
)
strict_reward.mistake(
    "You compare the whole completion. What comes after the first dot does not count.",
    lambda a, b, completion: rewarded(completion == f"{a + b}."),
)
strict_reward.mistake(
    "You accept an answer without a dot. The completion was cut off before it ended.",
    lambda a, b, completion: rewarded(before(completion) == str(a + b)),
)
strict_reward.mistake(
    "You remove a space before you compare. An answer with a space in it is not the sum alone.",
    lambda a, b, completion: rewarded(
        "." in completion and before(completion).strip() == str(a + b)
    ),
    lambda a, b, completion: rewarded(
        "." in completion and before(completion.strip()) == str(a + b)
    ),
)
strict_reward.mistake(
    "You compare numbers, and `int` also reads a space, a sign and a 0 in front. Compare texts.",
    lambda a, b, completion: rewarded("." in completion and number(before(completion)) == a + b),
    lambda a, b, completion: rewarded(number(before(completion)) == a + b),
)
strict_reward.mistake(
    "You accept every text that begins with the sum, for example 850 for 85.",
    lambda a, b, completion: rewarded(completion.startswith(str(a + b))),
)
strict_reward.mistake(
    "You look only at the first number. There may be other characters before and after it.",
    lambda a, b, completion: rewarded(digits(completion)[:1] == [str(a + b)]),
    lambda a, b, completion: rewarded([int(n) for n in digits(completion)[:1]] == [a + b]),
)
strict_reward.mistake(
    "You look only at the last number. A list that ends with the sum still wins.",
    lambda a, b, completion: rewarded(digits(completion)[-1:] == [str(a + b)]),
    lambda a, b, completion: rewarded([int(n) for n in digits(completion)[-1:]] == [a + b]),
)
strict_reward.mistake(
    "You accept the sum anywhere before a dot, for example at the end of 285 or of a list. Nothing "
    "else may be before the first dot.",
    lambda a, b, completion: rewarded(f"{a + b}." in completion),
    lambda a, b, completion: rewarded(str(a + b) in before(completion)),
    lambda a, b, completion: rewarded(before(completion).endswith(str(a + b))),
    lambda a, b, completion: rewarded(str(a + b) in digits(before(completion))),
)
strict_reward.mistake(
    "This is the careless reward again: the sum may occur anywhere, and your cheat wins.",
    lambda a, b, completion: rewarded(str(a + b) in completion),
    lambda a, b, completion: rewarded(str(a + b) in digits(completion)),
)
