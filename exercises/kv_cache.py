"""The exercises on the KV cache: prompts of any length, bytes, a cached step, accept or refuse."""

import math

import torch
from torch import nn

from exercises.check import exercise, generator, normal

# --- 13.1: a writer for all prompts ---------------------------------------------------------------


class Reader(nn.Module):
    """A fixed model of 11 tokens; its logits depend on all tokens that it gets, and on their order.

    It accepts `most` tokens: a longer text is an error, as in a GPT.
    """

    __name__ = "model"  # in what a check says

    def __init__(self, most, seed):
        super().__init__()
        self.most = most
        self.table = normal(11, 11, seed=seed + 100)

    def forward(self, ids):
        if ids.dim() != 2:
            raise ValueError(
                f"you gave the model ids of shape {tuple(ids.shape)}, and it needs (B, T): one "
                "text is (1, T)"
            )
        T = ids.shape[1]
        if T > self.most:
            raise ValueError(
                f"you gave the model {T} tokens, and it accepts {self.most} at most. Crop to the "
                "last block_size, in each step"
            )
        # Early tokens count, too: a weight for each position, counted from the left.
        positions = torch.arange(1, T + 1, dtype=torch.float32)
        return (self.table[ids] * (positions.sin() + 1.5)[:, None]).cumsum(1)


def to_write(lengths, n, window, stop, seed):
    g = generator(seed)
    prompts = [torch.randint(11, (length,), generator=g).tolist() for length in lengths]
    return Reader(window, seed), prompts, n, window, stop


@exercise(
    inputs=lambda draw: [
        to_write((3, 5), 9, 6, 4, seed=1),
        to_write((9, 2, 9), 4, 5, 0, seed=2),
        to_write((1,), 5, 8, 7, seed=3),
        to_write((4, 4), 6, 4, 2, seed=4),
        to_write((3, 1), 0, 8, 1, seed=5),
        to_write((2, 6), 3, 1, 10, seed=6),
        to_write((5, 1, 3), 12, 5, 3, seed=7),
        to_write((2, 7, 4, 2), 12, 7, 6, seed=8),
    ],
    example=to_write((3, 5), 0, 6, 4, seed=1),
    on_success="Each text is exactly what its prompt would give alone.",
    error_hints={
        "expected sequence of length": "Prompts of different lengths make no tensor: write "
        "each alone, or those of one length together."
    },
)
def write_all(model, prompts, n_tokens, block_size, stop):
    """write_all(model, prompts, n_tokens, block_size, stop): lists of ids, each continued."""
    texts = []
    for prompt in prompts:
        ids = list(prompt)
        for _ in range(n_tokens):
            logits = model(torch.tensor([ids[-block_size:]]))
            ids.append(int(logits[0, -1].argmax()))
            if ids[-1] == stop:
                break
        texts.append(ids)
    return texts


write_all.slips("""
    You return the new tokens without the prompts.
        append(ids) → append(ids[len(prompt) :])
    You cropped the text itself, so its beginning is lost. Crop what the model gets, and keep the
    text whole.
        append(ids) → append(ids[-block_size:])
        append(ids) → append(ids[-block_size - 1 :])
        append(ids) → append(prompt[-block_size:] + ids[len(prompt) :])
    You padded the short prompts on the right, and the model continued the padding.
        list(prompt) → list(prompt) + [0] * (max(map(len, prompts)) - len(prompt))
        ; append(ids) → append(prompt + ids[max(map(len, prompts)) :])
    You padded the short prompts on the left, and the model took the padding for text.
        list(prompt) → [0] * (max(map(len, prompts)) - len(prompt)) + list(prompt)
        ; append(ids) → append(prompt + ids[max(map(len, prompts)) :])
    Texts go on after `stop`: each ends with it.
        ids[-1] == stop → False
    All texts end when the first one has written `stop`. The others go on.
        append(ids) → append(ids); n_tokens = min(n_tokens, len(ids) - len(prompt))
        ; return texts → return [ids[: len(p) + n_tokens] for ids, p in zip(texts, prompts)]
    `stop` belongs to the text that it ends: append it before you leave the loop.
        break → ids.pop(); break
    You cropped the wrong end: the model always gets the first tokens. Take the last,
    `ids[-block_size:]`.
        ids[-block_size:] → ids[:block_size]
    You gave the model only the last token. There is no cache here, so it needs the tokens before
    it, too.
        ids[-block_size:] → ids[-1:]
""")


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


# --- 13.4: accept or refuse -----------------------------------------------------------------------


def proposed(V, token, u, v, seed):
    p, q = (2 * normal(2, V, seed=seed)).double().softmax(-1)
    return p, q, token, u, v


def by_hand(token, u, v):
    p = torch.tensor([0.5, 0.3, 0.2], dtype=torch.double)
    q = torch.tensor([0.2, 0.7, 0.1], dtype=torch.double)
    return p, q, token, u, v


BORDERS = [  # u = p/q = 0; v = 0; v is a running sum; u = p/q
    (torch.tensor(p) / 8, torch.tensor(q) / 8, 0, u, v)
    for p, q, u, v in [
        ((0, 4, 4), (4, 2, 2), 0.0, 0.3),
        ((2, 4, 2), (6, 1, 1), 0.9, 0.0),
        ((2, 4, 2), (6, 1, 1), 0.9, 0.75),
        ((2, 3, 3), (4, 2, 2), 0.5, 0.1),
    ]
]


@exercise(
    inputs=lambda draw: [
        by_hand(1, 0.4, 0.8),
        by_hand(1, 0.5, 0.8),
        by_hand(1, 0.99, 0.6),
        by_hand(1, 0.45, 0.0),
        by_hand(0, 0.99, 0.3),
        by_hand(2, 0.6, 0.1),
        *BORDERS,
        *(
            proposed(V, token, u, v, seed)
            for seed, (V, token, u, v) in enumerate(
                [(5, token, u, v) for token in range(5) for u in (0.1, 0.9) for v in (0.3, 0.95)]
                + [(8, token, 0.8, v) for token in range(8) for v in (0.05, 0.5)]
            )
        ),
        by_hand(1, draw.uniform(0.1, 0.25), draw.random()),
        *(proposed(30, token, 0.97, draw.random(), draw.randrange(10**6)) for token in range(12)),
    ],
    example=by_hand(1, 0.5, 0.8),
    on_success="What comes out has exactly the probabilities of the target.",
    tolerance=0,
)
def verify(p, q, token, u, v):
    """verify(p, q, token, u, v): the proposed token, or one from what p has more than q."""
    if u < p[token] / q[token]:
        return int(token)
    rest = (p - q).clamp(min=0)
    sums = (rest / rest.sum()).cumsum(0)
    return min(int((sums <= v).sum()), len(p) - 1)


verify.slips("""
    You accept every token.
        token
    You are wrong at a border: u has to be *below* p / q, and the running sum *above* v. Otherwise a
    u or a v of 0 can bring out a token that it should not.
        u < → u <=
        sums <= v → sums < v
        u < → u <= ; sums <= v → sums < v
    Your ratio is upside down. A token is accepted with probability p / q: the target's probability
    is on top.
        p[token] / q[token] → q[token] / p[token]
    You accept a token with probability p(token), as if the draft had proposed it for certain.
    Divide by q(token).
        / q[token] →
    You accept only tokens for which p is at least q. For the others, u decides.
        u < p[token] / q[token] → p[token] >= q[token]
    You accept exactly where you should refuse: a *small* u accepts.
        u < → u >=
    You only removed the refused token from p. Draw from max(0, p − q), over all tokens.
        (p - q).clamp(min=0) → p * (torch.arange(len(p)) != token)
    After a refusal, you draw from p itself. Draw from what p has more than q, or tokens that the
    draft likes come too often.
        (p - q).clamp(min=0) → p
    After a refusal, you draw from q. Draw from what p has more than q.
        (p - q).clamp(min=0) → q
    You took q − p. What p has more than q is p − q, with 0 where it is negative.
        p - q → q - p
    You did not divide max(0, p − q) by its sum, so the running sum may end below v.
        / rest.sum() →
""")
