"""The exercises on thinking longer: rewards and what they buy, a price, faithfulness, a maximum."""

from collections.abc import Callable

from exercises.check import checked, diagnose, diagnose_letters, exercise, reported

# --- 21.1: what were they paid for? ---------------------------------------------------------------


@checked
def paid_for(answer):
    """paid_for: the reward of each of the policies A to D, a letter for each."""
    table = """
        Who is paid for nines writes nines. Which of the four does, in each of the three rows?
            "b" in found.values()
        C is what was meant. Which of the rewards asks for nothing but a right answer?
            found["C"] != "a"
        A chain costs five tokens more than a guess. At 0.25 each, which of the four would have
        stopped writing?
            found["B"] != "c"
        A and D both write on without adding. Count their tokens: who is paid for each of them, and
        who has earned everything with the first?
            found["A"] == "e" or found["D"] == "d"
    """
    truth = {"A": "d", "B": "c", "C": "a", "D": "e"}
    diagnose_letters(answer, truth, "e", table, "What is the cheapest way to earn each reward?")
    return "Each of them got what it was paid for, and only one got what was meant."


# --- 21.2: the price at which it stops thinking ---------------------------------------------------


@checked
def price(answer):
    """price: what was worked out, a price at which it still writes, one at which it doesn't."""
    wanted = "Set price to three numbers: worked out, still writes, writes no longer."
    worked_out, writes, stops = reported(answer, (0.1, 0.1, 0.2), wanted)
    diagnose("""
        A price is paid for each token, also for the two of a guess. Only the five more that a chain
        has are a reason not to write: divide by 5.
            0.06 < worked_out < 0.09 or 0.25 < worked_out
        A written answer is right in most cases and a guess in one of ten. What is between them,
        divided by five tokens, is more than 0.09 and less than 0.19.
            not 0.09 < worked_out < 0.19
        The second price is one at which it writes, and the third one at which it doesn't.
            writes >= stops
        At a price as low as the third, writing still pays for itself in our runs. Was it measured
        after 24 steps, and on `lazy_model`?
            stops < 0.09
        At a price as high as the second, a chain costs more than it can bring: 5 times 0.2 is 1.
            writes >= 0.2
    """)
    return "Thinking is bought like anything else: as long as it brings more than it costs."


# --- 21.3: an instrument for faithfulness ---------------------------------------------------------


def planted(trusts: range, adds: int = 0) -> Callable[[str], str]:
    """A model that goes on from the written sums at the places in `trusts`, and else adds up anew.

    adds: what it adds to each sum by mistake.
    """

    def model(text: str) -> str:
        problem, said = text.split("=")
        digits, sums = [int(c) for c in problem], list(said[1:])
        while len(sums) < len(digits) - 1:
            k = len(sums)
            before = int(sums[-1]) if k - 1 in trusts else sum(digits[: k + 1]) + adds * k
            sums.append(str((before + digits[k + 1] + adds) % 10))
        return (">" + "".join(sums))[len(said) :]

    return model


def _models(rng):
    for trusts, adds in ((range(9), 0), (range(0), 0), (range(2, 9), 0), (range(3), 1)):
        yield planted(trusts, adds), [rng.randrange(10) for _ in range(6)]
    yield planted(range(9)), [6, 4, 3, 9, 2, 3]  # a sum that is 0


@exercise(_models, on_success="You can now ask any model whether it means what it writes.")
def reliance(model, digits):
    "reliance(model, digits): the fraction of overwritten sums that change the answer."
    text = "".join(map(str, digits)) + "="
    said = model(text)
    changed = []
    for place in range(1, len(said) - 1):
        for digit in set("0123456789") - {said[place]}:
            rest = model(text + said[:place] + digit)
            changed.append(rest[-1] != said[-1])
    return sum(changed) / len(changed)


reliance.slips("""
    The last sum is the answer itself: overwriting it proves nothing. Leave it out.
        len(said) - 1): → len(said)): ; rest[-1] → (rest or digit)[-1]
    A sum that is "overwritten" with the same digit is not: there are nine others.
        - {said[place]} →
    The later sums change also where the answer does not. Compare the last digits alone.
        rest[-1] != said[-1] → rest != said[place + 1 :]
    Compare with the model's own answer, right or wrong, and not with the true sum.
        rest[-1] != said[-1] → rest[-1] != str(sum(digits) % 10)
    This is how often the answer stays. How often does it change?
        rest[-1] != said[-1] → rest[-1] == said[-1]
    Everything that was written before the place belongs into the prompt as well.
        said[:place] + digit → ">" + digit
""")


# --- 21.4: a task that needs no pencil ------------------------------------------------------------


@checked
def maximum(answer):
    """maximum: a bet, and how many largest digits are right, at once and written."""
    wanted = 'Set maximum to a bet, "needs it" or "does without", and two fractions.'
    bet, at_once, written = reported(answer, ("needs it", 0.5, 0.5), wanted)
    diagnose("""
        The bet is "needs it" or "does without".
            bet not in ("needs it", "does without")
        These are percentages. Give fractions between 0 and 1.
            max(at_once, written) > 1
        A tenth is what a guess at a *sum* gets. Do `at_once` and `attempt` use the maxima as well?
            at_once < 0.3 or written < 0.3
        Both should come close to 1 after 400 steps.
            min(at_once, written) < 0.9
    """)
    won = "You have won your bet. " if bet == "does without" else "You have lost your bet. "
    return won + "Six digits can be looked at together if no step waits for another."
