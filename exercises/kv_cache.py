"""The exercises on the KV cache: broken caches, bytes, a cached step, a window."""

import math

import torch

from exercises.check import checked, diagnose, diagnose_letters, exercise, normal, reported

# --- 13.1: which cache is broken? -----------------------------------------------------------------

BROKEN = {"A": "a", "B": "b", "C": "d", "D": "c"}


@checked
def broken(answer):
    """broken: what is wrong with the caches A to D, a letter for each."""
    table = """
        No later token asks for an old query (section 2), so nobody has to store it: e is no fault,
        and each of the four runs has one.
            set(found.values()) & set("ef")
        B is right if each call has one token, which may attend to everything before it. Would it
        be right with wrong positions, or with another text in the cache?
            found["B"] in "acd"
        A is wrong from the second call on, wherever that begins. What starts anew with each call?
            found["A"] != "a"
        Nothing is wrong with C before token 40, however the text is cut into calls. What fills up?
            found["C"] != "d"
        D is wrong at token 0, before which this text has nothing. What else can a token have seen?
            found["D"] != "c"
    """
    diagnose_letters(answer, BROKEN, "f", table)
    return "Cutting the text in two ways told apart what one way would have confused."


# --- 13.2: how many chats fit ---------------------------------------------------------------------

GB = 10**9


def card(rng):
    """A card that has memory for the weights and for between 2 and 50 chats."""
    n_layer, shared, n_kv_head, size = (rng.randint(2, 9) for _ in range(4))
    length, weight_bytes = rng.randint(100, 999), rng.randint(10**5, 10**8)
    chat = 4 * n_layer * n_kv_head * size * length
    memory = weight_bytes + rng.randint(2, 49) * chat + rng.randrange(1, chat)
    n_head = shared * n_kv_head
    return memory, weight_bytes, n_layer, n_head, n_kv_head, n_head * size, length


@exercise(
    inputs=lambda draw: [
        (GB, 269_030_016, 30, 9, 3, 576, 8192),
        (80 * GB, 16 * GB, 32, 32, 8, 4096, 8192),
        (24 * GB, 14 * GB, 32, 32, 32, 4096, 4096),
        (8 * GB, 3 * GB, 28, 24, 8, 3072, 1000),
        (GB, 2 * GB, 30, 9, 3, 576, 8192),
        (100_000, 1_000, 3, 6, 2, 24, 50),
        (49_100 + 7, 100, 5, 7, 1, 49, 350),
        *(card(draw) for _ in range(3)),
    ],
    example=(GB, 269_030_016, 30, 9, 3, 576, 8192),
    on_success="The weights count once, and each chat has a cache of its own.",
    tolerance=0,
)
def chats_that_fit(memory, weight_bytes, n_layer, n_head, n_kv_head, n_embd, length):
    """chats_that_fit(memory, weight_bytes, n_layer, n_head, n_kv_head, n_embd, length): how many"""
    head_size = n_embd // n_head
    chat = 2 * 2 * n_layer * n_kv_head * head_size * length  # keys and values, of two bytes each
    return max(0, memory - weight_bytes) // chat


chats_that_fit.slips("""
    You count n_embd numbers for a key, as if all heads were stored. Only n_kv_head heads are, and
    each has n_embd // n_head numbers.
        n_kv_head * head_size → n_head * head_size
        n_embd // n_head → n_embd // n_kv_head
    You count n_embd numbers for each head of keys. A head has n_embd // n_head numbers.
        n_embd // n_head → n_embd
    A factor of 2 is missing. A token stores a key *and* a value, and each number takes 2 bytes.
        2 * 2 → 2
    Both factors of 2 are missing: one for key and value, and one for the bytes of a number.
        2 * 2 → 1
    You took 4 or 16 bytes for each number. A number of 16 bits takes 2 bytes.
        2 * 2 → 2 * 4
        2 * 2 → 2 * 16
    You forgot that the weights need memory, too: subtract `weight_bytes` first.
        - weight_bytes →
    That is the cache of one block. All n_layer blocks store keys and values.
        n_layer * →
    Your number is negative where not even the weights fit. The answer is 0 then.
        max(0, memory - weight_bytes) → (memory - weight_bytes)
    You did not round down. A chat that fits only in part does not fit: use `//`.
        max → math.ceil(max ; // chat → / chat)
        max → round(max ; // chat → / chat)
        // chat → / chat
""")


# --- 13.3: one cached step ------------------------------------------------------------------------


def step_inputs(B, H, n_kv_head, T, S, hs, seed):
    new, old = (B, n_kv_head, T, hs), (B, n_kv_head, S, hs)
    return (
        normal(B, H, T, hs, seed=seed),
        *(2 * normal(*shape, seed=seed + i) for i, shape in enumerate((new, new, old, old), 1)),
    )


@exercise(
    inputs=lambda draw: [
        step_inputs(2, 4, 2, 1, 5, 3, seed=10),
        step_inputs(1, 6, 2, 3, 4, 5, seed=20),
        step_inputs(3, 4, 4, 2, 2, 4, seed=30),
        step_inputs(1, 4, 1, 4, 3, 2, seed=40),
        step_inputs(2, 4, 2, 3, 0, 4, seed=50),
        step_inputs(1, 2, 2, 1, 0, 3, seed=60),
        step_inputs(2, 6, 3, 2, 1, 8, seed=70),
    ],
    example=step_inputs(1, 2, 2, 1, 0, 3, seed=60),
    on_shape_error="The keys and values are (B, n, S + T, hs): repeat their heads until there are "
    "as many as query heads. The scores are (B, H, T, S + T).",
    on_success="The old tokens were not processed again.",
    backward=True,
)
def cached_step(q, k, v, old_k, old_v):
    """cached_step(q, k, v, old_k, old_v): the output (B, H, T, hs) of attention with a cache."""
    S, T, n = old_k.shape[2], q.shape[2], q.shape[1] // k.shape[1]
    keys = torch.cat([old_k, k], 2).repeat_interleave(n, dim=1)
    values = torch.cat([old_v, v], 2).repeat_interleave(n, dim=1)
    scores = q @ keys.mT / math.sqrt(q.shape[-1])
    allowed = torch.arange(S + T) <= S + torch.arange(T)[:, None]
    return scores.masked_fill(~allowed, -math.inf).softmax(-1) @ values


cached_step.slips("""
    The heads are in the wrong order: `repeat` gives 0, 1, 0, 1, but heads 0 and 1 share the first
    head of keys and values. Use `repeat_interleave`.
        k], 2).repeat_interleave(n, dim=1) → k], 2).repeat(1, n, 1, 1)
        ; v], 2).repeat_interleave(n, dim=1) → v], 2).repeat(1, n, 1, 1)
        v], 2).repeat_interleave(n, dim=1) → v], 2).repeat(1, n, 1, 1)
        k], 2).repeat_interleave(n, dim=1) → k], 2).repeat(1, n, 1, 1)
    Your mask starts at the upper left, so new token t attends to t + 1 tokens. It is token S + t of
    the text, and may attend to S + t + 1 of them.
        <= S + → <=
    There is no mask: a new token attends to new tokens that come after it.
        .masked_fill(~allowed, -math.inf) →
    A new token does not attend to itself. It may attend to everything up to *and* including itself.
        <= → <
    The scale is missing: divide the scores by √hs.
        / math.sqrt(q.shape[-1]) →
    You divide the scores by hs. The scale is 1/√hs.
        math.sqrt(q.shape[-1]) → q.shape[-1]
    You put the new keys and values before the old ones, so the mask hides the wrong tokens.
        [old_k, k] → [k, old_k] ; [old_v, v] → [v, old_v]
    You ignore the cache: the new tokens attend to each other, but not to the old tokens.
        right(q, k, v, old_k[:, :, :0], old_v[:, :, :0])
""")


# --- 13.4: an experiment of the reader's own ------------------------------------------------------


@checked
def my_window(answer):
    """my_window: the smallest window that costs less than 0.02 nats, and what it costs."""
    window, cost = reported(
        answer,
        (64, 0.01),
        "Set my_window to a pair: the window, and what it costs in nats, (128, 0.015).",
    )
    diagnose("""
        These are the numbers of the example. Run the loop.
            window == 128 and cost == 0.015
        The window is one of 8, 16, 32, 64 and 128.
            window not in (8, 16, 32, 64, 128)
        That is a loss, not what the window costs. Subtract the mean of `rolling`.
            cost > 1
        That window costs more than 0.02: take the mean over all 24 texts, and the next larger one.
            window < 64
        That window is cheap enough, but it is not the smallest.
            window == 128
        The window is right, but it costs a little less than a hundredth of a nat. Do you compare
        the same 24 texts, and only tokens 257 to 512?
            not 0.002 <= cost < 0.015
    """)
    return "A quarter of the window, and hardly a loss. Why does half of that hurt so much more?"
