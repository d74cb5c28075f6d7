"""The exercises on fine-tuning: masks, adapters, a template, and the loss of the learned tokens."""

import re

import torch
import torch.nn.functional as F

from exercises.check import exercise, generator, normal

# --- 19.1: the mask of a dialogue -----------------------------------------------------------------

HEADER, STOP = [1, 8, 9], 2


def said(role, *tokens, ends=True):
    """The ids of a message: header, text, end token, line break."""
    return [1, role, 9, *tokens, *([STOP, 9] if ends else [])]


USER, ASSISTANT, SYSTEM = 7, 8, 6


def chat(rng):
    """The ids of a dialogue of some turns, and what else `dialogue_mask` is given."""
    ids = []
    for _ in range(rng.randint(1, 3)):
        for role in (USER, ASSISTANT):
            ids += said(role, *rng.choices(range(10, 99), k=rng.randint(1, 4)))
    return ids, HEADER, STOP


@exercise(
    inputs=lambda draw: [
        (said(USER, 20, 21) + said(ASSISTANT, 30, 31), HEADER, STOP),
        (
            said(USER, 20) + said(ASSISTANT, 30, 31, 32) + said(USER, 21, 22, 23)
            # an answer may say the role's name and a line break
            + said(ASSISTANT, 33, 8, 9, 34) + said(USER, 24) + said(ASSISTANT, 35),
            HEADER,
            STOP,
        ),
        # the system and the user say the role's name, with a line break after it
        (said(SYSTEM, 40, 8, 9, 41) + said(USER, 8, 9, 20) + said(ASSISTANT, 30), HEADER, STOP),
        # an empty answer, and one that is cut off
        (said(USER, 20) + said(ASSISTANT) + said(USER, 21) + said(ASSISTANT, 30, 31, ends=False),
         HEADER, STOP),
        # a prompt: there is nothing to learn
        (said(USER, 20, 21) + said(ASSISTANT, ends=False), HEADER, STOP),
        ([3, 5, 50, 4, 3, 6, 51, 52, 4, 3, 5, 6, 53, 4, 3, 6, 54, 4], [3, 6], 4),
        ([1, 520, 9531, 198, 43, 44, 2, 198, 1, 4093, 198, 520, 9531, 198, 45, 2, 198, 1, 520, 9531,
          198, 46, 2, 198], [1, 520, 9531, 198], 2),
        ([8, 9], HEADER, STOP),
        *(chat(draw) for _ in range(3)),
    ],
    example=(said(USER, 20) + said(ASSISTANT, 30, 31), HEADER, STOP),
    error_hints={
        "not in list": "If the list stops before the answer has ended, there is no end token to "
        "find.",
        "out of range": "A header or an answer may be at the very end of the list.",
    },
    on_success="The answers and their end tokens are learned, and nothing else.",
)  # fmt: skip
def dialogue_mask(ids, header, end):
    """dialogue_mask(ids, header, end): for each id, True if it belongs to an answer or ends it."""
    n, mask = len(header), [False] * len(ids)
    for i in range(n, len(ids) + 1):
        if ids[i - n : i] == header:
            stop = ids.index(end, i) + 1 if end in ids[i:] else len(ids)
            mask[i:stop] = [True] * (stop - i)
    return mask


dialogue_mask.slips("""
    The end token is missing. It belongs to the answer that it ends: a model that never learns it
    never stops.
        + 1 if end → if end
    You mark the header itself, too. The program writes it, so the model need not learn it.
        mask[i:stop] = [True] * (stop - i) → mask[i - n : stop] = [True] * (stop - i + n)
        mask[i:stop] = [True] * (stop - i) → mask[i - n + 1 : stop] = [True] * (stop - i + n - 1)
        mask[i:stop] = [True] * (stop - i) → mask[i - n : stop] = [True] * (stop - i + n)
        ; + 1 if end → if end
    You mark the line break after the end token, too. The answer is over by then.
        + 1 if end → + 2 if end ; return mask → return mask[:len(ids)]
    All is marked one position too early, at the tokens that *predict* the answer. The mask belongs
    to the tokens that are learned.
        return mask → return [*mask[1:], False]
        mask[i:stop] → mask[i - 1 : stop - 1]
    All is marked one position too late. An answer begins right after its header.
        return mask → return [False, *mask[:-1]]
        mask[i:stop] → mask[i + 1 : stop + 1] ; return mask → return mask[:len(ids)]
        mask[i:stop] = [True] * (stop - i) → mask[i + 1 : stop] = [True] * (stop - i - 1)
    You mark only the first answer. A dialogue may have several, and all are learned.
        == header: → == header and not any(mask):
    You mark only the last answer. A dialogue may have several, and all are learned.
        mask[i:stop] = → mask = [False] * len(ids); mask[i:stop] =
    An answer of yours does not end: what the user says after it is marked, too. Leave the answer
    after its end token.
        ids.index(end, i) + 1 if end in ids[i:] else len(ids) → len(ids)
    You look for a part of the header. The user may write the same words, and every message begins
    with the same special token: compare with the whole header.
        right(ids, header[1:], end)
        right(ids, header[:1], end)
        right(ids, header[-1:], end)
        right(ids, header[1:2], end)
    You mark every end token. Those of the user and of the system are not learned.
        return mask → return [m or token == end for m, token in zip(mask, ids)]
""")


# --- 19.2: a layer with an adapter ----------------------------------------------------------------


def layer(n_in, n_out, r, seed):
    return (
        normal(n_out, n_in, seed=seed),
        normal(r, n_in, seed=seed + 1),
        normal(n_out, r, seed=seed + 2),
    )


def through(shape, n_in, n_out, r, alpha, seed):
    return (normal(*shape, n_in, seed=seed + 3), *layer(n_in, n_out, r, seed), alpha)


@exercise(
    inputs=lambda draw: [
        through((3,), 5, 4, 2, 8.0, seed=10),
        through((2, 3), 4, 6, 1, 3.0, seed=20),
        through((2, 2), 4, 4, 4, 1.0, seed=30),
        through((3,), 3, 3, 2, 5.0, seed=40),
        through((), 6, 2, 3, 0.5, seed=50),
        through((1, 2, 3), 2, 5, 4, 16.0, seed=60),
    ],
    example=(
        torch.tensor([1.0, 2.0]),
        torch.tensor([[3.0, 0.0]]),
        torch.tensor([[1.0, 1.0]]),
        torch.tensor([[2.0]]),
        1.0,
    ),
    on_shape_error="W is (out, in), A is (r, in) and B is (out, r), so each is transposed: "
    "x @ W.T, and x @ A.T @ B.T.",
    on_success="Both paths get the same input, and their outputs are added.",
    backward=True,
)
def lora_forward(x, W, A, B, alpha):
    """lora_forward(x, W, A, B, alpha): the output of a layer with an adapter beside it."""
    layer, adapter = x @ W.T, x @ A.T @ B.T
    scale = alpha / A.shape[0]
    return layer + scale * adapter


SCALES = """
    The factor alpha / r is missing: the adapter's part is multiplied by it.
        alpha / A.shape[0] → 1
    You multiply by alpha alone. Divide alpha by the rank, `A.shape[0]`.
        / A.shape[0] →
    Your factor is upside down: it is alpha / r, not r / alpha.
        alpha / A.shape[0] → A.shape[0] / alpha
    The rank is the number of rows of A, and of columns of B: `A.shape[0]`. You divide by another
    number.
        A.shape[0] → A.shape[1]
        A.shape[0] → B.shape[0]
        A.shape[0] → A.numel()
"""
lora_forward.slips(SCALES)
lora_forward.slips("""
    You multiply by alpha times r. The factor is alpha / r.
        alpha / A.shape[0] → alpha * A.shape[0]
    The factor alpha / r belongs to the adapter. You multiply the layer's output by it, too, but it
    scales only the adapter.
        layer + scale * adapter → scale * (layer + adapter)
    This is the adapter alone. Add what the layer gives, x @ W.T.
        layer + →
    This is the layer alone. Add what the adapter gives.
        + scale * adapter →
    Your adapter gets the output of the layer. It is beside the layer, so it gets the same input x.
        x @ A.T → x @ W.T @ A.T
""")


# --- 19.3: merge and count ------------------------------------------------------------------------


@exercise(
    inputs=lambda draw: [
        (*layer(5, 4, 2, seed=110), 8.0),
        (*layer(4, 6, 1, seed=120), 3.0),
        (*layer(4, 4, 3, seed=130), 1.0),
        (*layer(3, 3, 3, seed=140), 5.0),
        (*layer(2, 7, 4, seed=150), 16.0),
        (*layer(16, 16, 2, seed=160), 0.5),
    ],
    example=(
        torch.zeros(3, 2),
        torch.tensor([[1.0, 2.0]]),
        torch.tensor([[1.0], [0.0], [3.0]]),
        2.0,
    ),
    on_shape_error="W is (out, in), A is (r, in) and B is (out, r), so only B @ A has the shape of "
    "W.",
    on_success="One matrix does the work of three, and the adapter was small.",
)
def merge_and_count(W, A, B, alpha):
    """merge_and_count(W, A, B, alpha): the merged weights, and the adapter's parameters."""
    scale = alpha / A.shape[0]
    merged = W + scale * B @ A
    # The number as a tensor: `difference` compares tuples of tensors.
    return merged, torch.tensor(A.numel() + B.numel())


merge_and_count.slips(SCALES)
merge_and_count.slips("""
    This is what the adapter adds. Add it to W.
        W + →
    Your product is transposed, or A and B are in the wrong order. x @ A.T @ B.T is x @ (B @ A).T,
    so the product is B @ A.
        B @ A → A.T @ B.T
        B @ A → A @ B
    This is only one of the two. Return the merged weights and the number of parameters.
        right(W, A, B, alpha)[0]
        right(W, A, B, alpha)[1]
    The matrix is right. As the number, you return the parameters of the matrix W: count the entries
    of A and of B.
        A.numel() + B.numel() → W.numel()
    The matrix is right. Your number counts the weights W, too, but they belong to the layer, and
    the adapter does not train them.
        A.numel() + B.numel() → W.numel() + A.numel() + B.numel()
    The matrix is right. Your number is not r · (in + out): A has r · in entries and B has out · r,
    and both are counted.
        A.numel() + B.numel() → A.shape[0] * W.numel()
        A.numel() + B.numel() → A.numel() * B.numel()
        + B.numel() →
        A.numel() + →
        A.numel() + B.numel() → 2 * A.numel()
        A.numel() + B.numel() → sum(W.shape)
""")


# --- 19.4: the broken template --------------------------------------------------------------------

HEAD = "<|im_start|>assistant\n"


def message(role, text):
    return f"<|im_start|>{role}\n{text}<|im_end|>\n"


ASKED = message("user", "Capital of Italy?")
TWO_TURNS = ASKED + message("assistant", "Rome") + message("user", "And of Peru?")
LINES = message("user", "Who is the user?\nassistant\nOr system?")

PROMPTS = [  # each with what to say if it is judged wrongly and no mistake explains it
    (ASKED + HEAD, "This is a single question, in the format of training."),
    (TWO_TURNS + HEAD, "A dialogue may have more than one turn."),
    (message("system", "Be brief.") + ASKED + HEAD, "A message of the system may come first."),
    (LINES + HEAD, "A text may contain a line break and the names of roles."),
    (
        message("system", "Be brief.\nBe kind.") + TWO_TURNS + message("assistant", "Lima.")
        + message("user", "a < b | c > d?") + HEAD,
        "It has a message of the system and three questions, and all is in the format of training.",
    ),
    (message("user", " ") + HEAD, "The text is a single space, which is a character."),
    (ASKED, "The header of the answer is missing at its end."),
    (ASKED + HEAD.strip(), "The line break after the last header is missing."),
    (ASKED + HEAD + " ", "There is a space after the last header."),
    (ASKED + HEAD + "\n", "There is a second line break after the last header."),
    (ASKED + HEAD + "The capital", "The answer has begun already: nothing comes after the header."),
    (ASKED + message("assistant", "Rome"), "It ends with an answer, not with its header."),
    (ASKED + HEAD + HEAD, "There are two headers at its end."),
    ("\n" + ASKED + HEAD, "There is a line break before the first message."),
    (" " + ASKED + HEAD, "There is a space before the first message."),
    (ASKED.replace("user\n", "user ") + HEAD, "After `user`, there is a space, not a line break."),
    (ASKED.replace("user\n", "user") + HEAD, "The line break after `user` is missing."),
    (ASKED.replace("user", "User") + HEAD, "The role is written with a capital letter."),
    (ASKED.replace("user", "human") + HEAD, "There is no role `human`."),
    (ASKED.replace("<|im_end|>", "") + HEAD, "The question has no end token."),
    (ASKED.replace("<|im_end|>", "<|im_end>") + HEAD, "`<|im_end>` is not the end token."),
    (ASKED.replace("<|im_end|>", "<|im_end|>" * 2) + HEAD, "The question has two end tokens."),
    (ASKED.strip() + HEAD, "The line break after the question's end token is missing."),
    (ASKED.strip() + " " + HEAD, "After the question's end token, there is no line break."),
    (ASKED.replace("<|im_start|>", "") + HEAD, "The question does not begin with <|im_start|>."),
    (message("user", "") + HEAD, "The question is empty."),
    (ASKED + ASKED + HEAD, "The user speaks twice in a row."),
    (ASKED + message("assistant", "Rome") + HEAD, "The last message is not the user's."),
    (message("assistant", "Hello.") + ASKED + HEAD, "The first message is the assistant's."),
    (ASKED + message("system", "Be brief.") + HEAD, "The system speaks after the user."),
    (message("system", "Be brief.") * 2 + ASKED + HEAD, "The system speaks twice."),
    (message("system", "Be brief.") + HEAD, "The user has asked nothing."),
    (HEAD, "The user has asked nothing."),
    ("User: Capital of Italy?\nAssistant:", "This is another template."),
    ("Capital of Italy?", "There is no template at all."),
    ("", "The prompt is empty."),
]  # fmt: skip


def prompts(rng):
    """A prompt in the format of training, and others that are nearly so."""
    one, other = (message("user", f"Add {rng.randrange(10**6)}.") for _ in range(2))
    turn = one + message("assistant", f"It is\n{rng.randrange(10**6)}.")
    yield from (turn + other + HEAD, message("system", "Help.") + one + HEAD)
    yield from (one + other + HEAD, turn + HEAD, turn + other, other + HEAD + "Yes")
    yield from (one.replace("user\n", "user") + HEAD, turn.replace("<|im_end|>", "") + other + HEAD)


@exercise(
    inputs=lambda draw: [*((prompt,) for prompt, _ in PROMPTS), *zip(prompts(draw))],
    example=(ASKED + HEAD,),
    why=[why for _, why in PROMPTS],
    in_words=lambda given: f"`fits_template({given[0]!r})`",
    error_hints={
        "returned None": "Or do you return what `re.fullmatch` gives? It is a match or None:"
        " compare it, `is not None`.",
    },
    on_success="No prompt in another form gets past you.",
)
def fits_template(prompt):
    """fits_template(prompt): True if the prompt has the format of training."""
    text = r"(?:(?!<\|im_start\|>|<\|im_end\|>)[\s\S])+"
    system, user, assistant = (
        rf"(?:<\|im_start\|>{role}\n{text}<\|im_end\|>\n)"
        for role in ("system", "user", "assistant")
    )
    pattern = rf"{system}?(?:{user}{assistant})*{user}" + re.escape(HEAD) + r"\Z"
    return re.match(pattern, prompt) is not None


def counts(prompt):
    return prompt.count("<|im_start|>") == prompt.count("<|im_end|>") + 1


fits_template.slips(r"""
    You test only how the prompt ends. Look at its messages, too.
        prompt.endswith(HEAD)
        prompt.endswith(HEAD.strip())
        prompt.endswith(f"<|im_end|>\n{HEAD}")
    You test only how the prompt begins. Look at its end, and at each message.
        prompt.startswith(("<|im_start|>user\n", "<|im_start|>system\n"))
        prompt.startswith("<|im_start|>")
        prompt.startswith("<|im_start|>user\n")
    You test only the beginning and the end of the prompt. Look at each message between.
        prompt.endswith(HEAD) and prompt.startswith("<|im_start|>")
        prompt.endswith(HEAD) and prompt.startswith(("<|im_start|>user\n", "<|im_start|>system\n"))
    You count the special tokens. Their number can be right although they are in the wrong order, or
    although a role or a line break is wrong.
        counts(prompt)
        counts(prompt) and prompt.endswith(HEAD)
        counts(prompt) and prompt.startswith("<|im_start|>") and prompt.endswith(HEAD)
    You do not test the order of the roles: at most one system message, at the beginning, and then
    the user and the assistant in turn, from the user to the user.
        {system}?(?:{user}{assistant})*{user} → (?:{system}|{user}|{assistant})+
        {system}?(?:{user}{assistant})*{user} → (?:{system}|{user}|{assistant})*
        (?:{user}{assistant})*{user} → (?:{user}|{assistant})+
        (?:{user}{assistant})*{user} → (?:{user}|{assistant})*
        {assistant})*{user} → {assistant}?)+
    A text may contain a line break. In a regular expression, the dot matches none unless you pass
    `re.DOTALL`.
        (?:(?!<\|im_start\|>|<\|im_end\|>)[\s\S])+ → .+
        (?:(?!<\|im_start\|>|<\|im_end\|>)[\s\S])+ → [^\n]+
        (?:(?!<\|im_start\|>|<\|im_end\|>)[\s\S])+ → .+?
        (?:(?!<\|im_start\|>|<\|im_end\|>)[\s\S])+ → [^<]+
        [\s\S] → .
    Your pattern may end before the prompt does. Nothing comes after the last header: use
    `re.fullmatch`.
        + r"\Z" →
        \Z → $
    You strip the prompt before you test it. A space or a line break too many is a fault, too.
        right(prompt.strip() + "\n")
        right(prompt.rstrip() + "\n")
        right(prompt.lstrip())
    A dialogue may have more than one turn, and a message of the system may come before the first.
        {system}?(?:{user}{assistant})* →
        (?:{user}{assistant})* →
        {system}? →
        {system}? → {system}
    Your answers are the other way round: `True` means the prompt has the format of training.
        not right(prompt)
""")


# --- 19.5: the loss of each dialogue --------------------------------------------------------------


def batch(B, T, V, seed, empty=(), size=1.0):
    """Logits, ids and a mask, in which about half of the tokens are learned; empty: not in these
    rows."""
    g = generator(seed)
    ids = torch.randint(V, (B, T), generator=g)
    mask = torch.rand((B, T), generator=g) < 0.5
    mask[:, 0] = False
    mask[:, -1] = True  # a shift the wrong way loses it
    mask[list(empty)] = False
    return size * normal(B, T, V, seed=seed), ids, mask


@exercise(
    inputs=lambda draw: [
        batch(2, 6, 11, seed=1),
        batch(3, 9, 5, seed=2, empty=[1]),
        batch(1, 4, 4, seed=3, size=3.0),
        batch(4, 5, 5, seed=4),
        batch(2, 12, 3, seed=5, empty=[0], size=2.0),
        batch(3, 2, 7, seed=6),
        batch(3, 7, 5, seed=7, size=200.0),
    ],
    example=(
        torch.zeros(2, 3, 4),
        torch.tensor([[0, 1, 2], [3, 2, 1]]),
        torch.tensor([[False, True, True], [False, False, True]]),
    ),
    error_hints={
        "Expected target size|Expected input batch_size": "`F.cross_entropy` needs the vocabulary "
        "as the second dimension of the logits: `logits.transpose(1, 2)`.",
    },
    on_shape_error="Cut off the last position of the logits, and the first of the ids and of the "
    "mask: then all three have T − 1 positions.",
    on_success="Each dialogue is judged by its own answers.",
    backward=True,
)
def dialogue_losses(logits, ids, mask):
    """dialogue_losses(logits, ids, mask): for each row, the mean loss of its learned tokens."""
    losses = F.cross_entropy(logits[:, :-1].transpose(1, 2), ids[:, 1:], reduction="none")
    learned = mask[:, 1:]
    return (losses * learned).sum(1) / learned.sum(1).clamp(min=1)


dialogue_losses.slips("""
    The logits are not shifted: those at position t predict the token at t + 1.
        logits[:, :-1] → logits ; ids[:, 1:] → ids ; mask[:, 1:] → mask
        logits[:, :-1] → logits[:, 1:]
    You shift in the wrong direction: your logits at position t are compared with the token at
    t − 1. They predict the token at t + 1.
        logits[:, :-1] → logits[:, 1:] ; ids[:, 1:] → ids[:, :-1]
        logits[:, :-1] → logits[:, 1:] ; ids[:, 1:] → ids[:, :-1] ; mask[:, 1:] → mask[:, :-1]
    The mask belongs to the targets, not to the tokens that predict them. Cut off its first
    position, as you do with the ids.
        mask[:, 1:] → mask[:, :-1]
    The mask is not used: this is the mean over all tokens of a row.
        (losses * learned).sum(1) / learned.sum(1).clamp(min=1) → losses.mean(1)
    You divide by the number of all tokens in the row. Divide by its number of learned tokens.
        sum(1) / learned.sum(1).clamp(min=1) → mean(1)
        learned.sum(1).clamp(min=1) → ids.shape[1]
    This is the sum of the losses in each row. Divide it by the number of learned tokens in that
    row.
        / learned.sum(1).clamp(min=1) →
    This is one number for the whole batch. Return one for each dialogue.
        (losses * learned).sum(1) / learned.sum(1).clamp(min=1) → losses[learned].mean()
        right(logits, ids, mask).mean()
        (losses * learned).sum(1) / learned.sum(1).clamp(min=1) → losses.mean()
    A row without learned tokens gives 0 / 0. Its loss should be 0.
        .clamp(min=1) →
    `F.cross_entropy` takes logits and applies softmax itself. You give it what has been through a
    softmax already.
        right(logits.softmax(-1), ids, mask)
    Where logits are far apart a softmax is 0, and its logarithm −∞, even at tokens that do not
    count. `F.cross_entropy` and `log_softmax` do both at once.
        right(logits.softmax(-1).log(), ids, mask)
        right(logits.softmax(-1).clamp(min=1e-9).log(), ids, mask)
    Your losses are negative: a minus sign is missing. The loss is −ln p.
        -right(logits, ids, mask)
""")
