"""The exercises on fine-tuning: masks, adapters, a template, and the loss of the learned tokens."""

import re
from functools import partial

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
    return marked(ids, header, end)


def answers(ids, header, end):
    """(first, stop) of each answer: the end token is at stop − 1, unless the answer is cut off."""
    n = len(header)
    firsts = [i + n for i in range(len(ids) - n + 1) if ids[i : i + n] == header]
    return [(i, ids.index(end, i) + 1 if end in ids[i:] else len(ids)) for i in firsts]


def marked(ids, header, end, change=lambda first, stop, ids, n: (first, stop), chosen=slice(None)):
    """The mask of the answers, or of other positions in their place."""
    mask = [False] * len(ids)
    for first, stop in answers(ids, header, end)[chosen]:
        a, b = change(first, stop, ids, len(header))
        for i in range(max(0, a), min(b, len(ids))):
            mask[i] = True
    return mask


def before_the_end(first, stop, ids, n):
    ended = stop > first and ids[stop - 1] in (2, 4)
    return first, stop - ended


dialogue_mask.mistake(
    "The end token is missing. It belongs to the answer that it ends: a model that never learns "
    "it never stops.",
    partial(marked, change=before_the_end),
)
dialogue_mask.mistake(
    "You mark the header itself, too. The program writes it, so the model need not learn it.",
    partial(marked, change=lambda first, stop, ids, n: (first - n, stop)),
    partial(marked, change=lambda first, stop, ids, n: (first - n + 1, stop)),
    partial(
        marked,
        change=lambda first, stop, ids, n: (first - n, before_the_end(first, stop, ids, n)[1]),
    ),
)
dialogue_mask.mistake(
    "You mark the line break after the end token, too. The answer is over by then.",
    partial(marked, change=lambda first, stop, ids, n: (first, stop + (ids[stop - 1] in (2, 4)))),
)
dialogue_mask.mistake(
    "All is marked one position too early, at the tokens that *predict* the answer. The mask "
    "belongs to the tokens that are learned.",
    lambda ids, header, end: [*marked(ids, header, end)[1:], False],
    partial(marked, change=lambda first, stop, ids, n: (first - 1, stop - 1)),
)
dialogue_mask.mistake(
    "All is marked one position too late. An answer begins right after its header.",
    lambda ids, header, end: [False, *marked(ids, header, end)[:-1]],
    partial(marked, change=lambda first, stop, ids, n: (first + 1, stop + 1)),
    partial(marked, change=lambda first, stop, ids, n: (first + 1, stop)),
)
dialogue_mask.mistake(
    "You mark only the first answer. A dialogue may have several, and all are learned.",
    partial(marked, chosen=slice(1)),
)
dialogue_mask.mistake(
    "You mark only the last answer. A dialogue may have several, and all are learned.",
    partial(marked, chosen=slice(-1, None)),
)
dialogue_mask.mistake(
    "An answer of yours does not end: what the user says after it is marked, too. Leave the answer "
    "after its end token.",
    partial(marked, change=lambda first, stop, ids, n: (first, len(ids))),
)
dialogue_mask.mistake(
    "You look for a part of the header. The user may write the same words, and every message "
    "begins with the same special token: compare with the whole header.",
    lambda ids, header, end: marked(ids, header[1:], end),
    lambda ids, header, end: marked(ids, header[:1], end),
    lambda ids, header, end: marked(ids, header[-1:], end),
    lambda ids, header, end: marked(ids, header[1:2], end),
)
dialogue_mask.mistake(
    "You mark every end token. Those of the user and of the system are not learned.",
    lambda ids, header, end: [
        is_learned or token == end
        for is_learned, token in zip(marked(ids, header, end), ids, strict=True)
    ],
)


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
    return two_paths(x, W, A, B, alpha)


def two_paths(
    x,
    W,
    A,
    B,
    alpha,
    scale=lambda alpha, A, B: alpha / A.shape[0],
    output=lambda x, W, adapted, scale: x @ W.T + scale * adapted,
    adapt=lambda x, W, A, B: x @ A.T @ B.T,
):
    """The right answer, or with one part of it changed."""
    return output(x, W, adapt(x, W, A, B), scale(alpha, A, B))


MISSING_SCALE = "The factor alpha / r is missing: the adapter's part is multiplied by it."
ALPHA_ALONE = "You multiply by alpha alone. Divide alpha by the rank, `A.shape[0]`."
WRONG_RANK = (
    "The rank is the number of rows of A, and of columns of B: `A.shape[0]`. You divide by another "
    "number."
)
UPSIDE_DOWN = "Your factor is upside down: it is alpha / r, not r / alpha."
NOT_BY_RANK = (
    lambda alpha, A, B: alpha / A.shape[1],
    lambda alpha, A, B: alpha / B.shape[0],
    lambda alpha, A, B: alpha / A.numel(),
)


def times_alpha(alpha, A, B):
    return alpha


def without_factor(alpha, A, B):
    return 1


def inverse(alpha, A, B):
    return A.shape[0] / alpha


lora_forward.mistake(MISSING_SCALE, partial(two_paths, scale=without_factor))
lora_forward.mistake(ALPHA_ALONE, partial(two_paths, scale=times_alpha))
lora_forward.mistake(UPSIDE_DOWN, partial(two_paths, scale=inverse))
lora_forward.mistake(WRONG_RANK, *(partial(two_paths, scale=one) for one in NOT_BY_RANK))
lora_forward.mistake(
    "You multiply by alpha times r. The factor is alpha / r.",
    partial(two_paths, scale=lambda alpha, A, B: alpha * A.shape[0]),
)
lora_forward.mistake(
    "The factor alpha / r belongs to the adapter. You multiply the layer's output by it, too, "
    "but it scales only the adapter.",
    partial(two_paths, output=lambda x, W, adapted, scale: scale * (x @ W.T + adapted)),
)
lora_forward.mistake(
    "This is the adapter alone. Add what the layer gives, x @ W.T.",
    partial(two_paths, output=lambda x, W, adapted, scale: scale * adapted),
)
lora_forward.mistake(
    "This is the layer alone. Add what the adapter gives.",
    partial(two_paths, output=lambda x, W, adapted, scale: x @ W.T),
)
lora_forward.mistake(
    "Your adapter gets the output of the layer. It is beside the layer, so it gets the same input "
    "x.",
    partial(two_paths, adapt=lambda x, W, A, B: x @ W.T @ A.T @ B.T),
)


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
    return merged(W, A, B, alpha)


def merged(
    W,
    A,
    B,
    alpha,
    scale=lambda alpha, A, B: alpha / A.shape[0],
    join=lambda W, product: W + product,
    product=lambda A, B: B @ A,
    count=lambda W, A, B: A.numel() + B.numel(),
):
    """The right answer, or with one part of it changed."""
    # The number as a tensor: `difference` compares tuples of tensors.
    return join(W, scale(alpha, A, B) * product(A, B)), torch.tensor(count(W, A, B))


merge_and_count.mistake(MISSING_SCALE, partial(merged, scale=without_factor))
merge_and_count.mistake(ALPHA_ALONE, partial(merged, scale=times_alpha))
merge_and_count.mistake(UPSIDE_DOWN, partial(merged, scale=inverse))
merge_and_count.mistake(WRONG_RANK, *(partial(merged, scale=one) for one in NOT_BY_RANK))
merge_and_count.mistake(
    "This is what the adapter adds. Add it to W.", partial(merged, join=lambda W, product: product)
)
merge_and_count.mistake(
    "Your product is transposed, or A and B are in the wrong order. x @ A.T @ B.T is "
    "x @ (B @ A).T, so the product is B @ A.",
    partial(merged, product=lambda A, B: A.T @ B.T),
    partial(merged, product=lambda A, B: A @ B),
)
merge_and_count.mistake(
    "This is only one of the two. Return the merged weights and the number of parameters.",
    lambda *given: merged(*given)[0],
    lambda *given: merged(*given)[1],
)
merge_and_count.mistake(
    "The matrix is right. As the number, you return the parameters of the matrix W: count the "
    "entries of A and of B.",
    partial(merged, count=lambda W, A, B: W.numel()),
)
merge_and_count.mistake(
    "The matrix is right. Your number counts the weights W, too, but they belong to the layer, "
    "and the adapter does not train them.",
    partial(merged, count=lambda W, A, B: W.numel() + A.numel() + B.numel()),
)
merge_and_count.mistake(
    "The matrix is right. Your number is not r · (in + out): A has r · in entries and B has "
    "out · r, and both are counted.",
    partial(merged, count=lambda W, A, B: A.shape[0] * W.numel()),
    partial(merged, count=lambda W, A, B: A.numel() * B.numel()),
    partial(merged, count=lambda W, A, B: A.numel()),
    partial(merged, count=lambda W, A, B: B.numel()),
    partial(merged, count=lambda W, A, B: 2 * A.numel()),
    partial(merged, count=lambda W, A, B: sum(W.shape)),
)


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
    return fits(prompt)


TEXT = r"(?:(?!<\|im_start\|>|<\|im_end\|>)[\s\S])+"
TURNS = "{system}?(?:{user}{assistant})*{user}"


def fits(prompt, text=TEXT, messages=TURNS, ends=r"\Z"):
    """The right answer, or with one part of it changed."""
    roles = {
        role: rf"(?:<\|im_start\|>{role}\n{text}<\|im_end\|>\n)"
        for role in ("system", "user", "assistant")
    }
    pattern = messages.format_map(roles) + re.escape(HEAD) + ends
    return re.match(pattern, prompt) is not None


def counts(prompt):
    return prompt.count("<|im_start|>") == prompt.count("<|im_end|>") + 1


fits_template.mistake(
    "You test only how the prompt ends. Look at its messages, too.",
    lambda prompt: prompt.endswith(HEAD),
    lambda prompt: prompt.endswith(HEAD.strip()),
    lambda prompt: prompt.endswith(f"<|im_end|>\n{HEAD}"),
)
fits_template.mistake(
    "You test only how the prompt begins. Look at its end, and at each message.",
    lambda prompt: prompt.startswith(("<|im_start|>user\n", "<|im_start|>system\n")),
    lambda prompt: prompt.startswith("<|im_start|>"),
    lambda prompt: prompt.startswith("<|im_start|>user\n"),
)
fits_template.mistake(
    "You test only the beginning and the end of the prompt. Look at each message between.",
    lambda prompt: prompt.endswith(HEAD) and prompt.startswith("<|im_start|>"),
    lambda prompt: (
        prompt.endswith(HEAD) and prompt.startswith(("<|im_start|>user\n", "<|im_start|>system\n"))
    ),
)
fits_template.mistake(
    "You count the special tokens. Their number can be right although they are in the wrong order, "
    "or although a role or a line break is wrong.",
    counts,
    lambda prompt: counts(prompt) and prompt.endswith(HEAD),
    lambda prompt: counts(prompt) and prompt.startswith("<|im_start|>") and prompt.endswith(HEAD),
)
fits_template.mistake(
    "You do not test the order of the roles: at most one system message, at the beginning, and "
    "then the user and the assistant in turn, from the user to the user.",
    partial(fits, messages="(?:{system}|{user}|{assistant})+"),
    partial(fits, messages="(?:{system}|{user}|{assistant})*"),
    partial(fits, messages="{system}?(?:{user}|{assistant})+"),
    partial(fits, messages="{system}?(?:{user}|{assistant})*"),
    partial(fits, messages="{system}?(?:{user}{assistant}?)+"),
)
fits_template.mistake(
    "A text may contain a line break. In a regular expression, the dot matches none unless you "
    "pass `re.DOTALL`.",
    partial(fits, text=".+"),
    partial(fits, text=r"[^\n]+"),
    partial(fits, text=".+?"),
    partial(fits, text="[^<]+"),
    partial(fits, text=r"(?:(?!<\|im_start\|>|<\|im_end\|>).)+"),
)
fits_template.mistake(
    "Your pattern may end before the prompt does. Nothing comes after the last header: use "
    "`re.fullmatch`.",
    partial(fits, ends=""),
    partial(fits, ends="$"),
)
fits_template.mistake(
    "You strip the prompt before you test it. A space or a line break too many is a fault, too.",
    lambda prompt: fits(prompt.strip() + "\n"),
    lambda prompt: fits(prompt.rstrip() + "\n"),
    lambda prompt: fits(prompt.lstrip()),
)
fits_template.mistake(
    "A dialogue may have more than one turn, and a message of the system may come before the "
    "first.",
    partial(fits, messages="{user}"),
    partial(fits, messages="{system}?{user}"),
    partial(fits, messages="(?:{user}{assistant})*{user}"),
    partial(fits, messages="{system}(?:{user}{assistant})*{user}"),
)
fits_template.mistake(
    "Your answers are the other way round: `True` means the prompt has the format of training.",
    lambda prompt: not fits(prompt),
)


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
    return losses_of(logits, ids, mask)


def by_token(logits, ids):
    return F.cross_entropy(logits.transpose(1, 2), ids, reduction="none")


def row_means(losses, mask):
    return (losses * mask).sum(1) / mask.sum(1).clamp(min=1)


def losses_of(
    logits,
    ids,
    mask,
    predictions=slice(None, -1),
    targets=slice(1, None),
    learned=slice(1, None),
    before=lambda logits: logits,
    reduce=row_means,
):
    """The right answer, or with one part of it changed."""
    return reduce(by_token(before(logits)[:, predictions], ids[:, targets]), mask[:, learned])


ALL = slice(None)
dialogue_losses.mistake(
    "The logits are not shifted: those at position t predict the token at t + 1.",
    partial(losses_of, predictions=ALL, targets=ALL, learned=ALL),
    partial(losses_of, predictions=slice(1, None)),
)
dialogue_losses.mistake(
    "You shift in the wrong direction: your logits at position t are compared with the token at "
    "t − 1. They predict the token at t + 1.",
    partial(losses_of, predictions=slice(1, None), targets=slice(None, -1)),
    partial(
        losses_of, predictions=slice(1, None), targets=slice(None, -1), learned=slice(None, -1)
    ),
)
dialogue_losses.mistake(
    "The mask belongs to the targets, not to the tokens that predict them. Cut off its first "
    "position, as you do with the ids.",
    partial(losses_of, learned=slice(None, -1)),
)
dialogue_losses.mistake(
    "The mask is not used: this is the mean over all tokens of a row.",
    partial(losses_of, reduce=lambda losses, mask: losses.mean(1)),
)
dialogue_losses.mistake(
    "You divide by the number of all tokens in the row. Divide by its number of learned tokens.",
    partial(losses_of, reduce=lambda losses, mask: (losses * mask).mean(1)),
    partial(losses_of, reduce=lambda losses, mask: (losses * mask).sum(1) / (losses.shape[1] + 1)),
)
dialogue_losses.mistake(
    "This is the sum of the losses in each row. Divide it by the number of learned tokens in that "
    "row.",
    partial(losses_of, reduce=lambda losses, mask: (losses * mask).sum(1)),
)
dialogue_losses.mistake(
    "This is one number for the whole batch. Return one for each dialogue.",
    partial(losses_of, reduce=lambda losses, mask: losses[mask].mean()),
    partial(losses_of, reduce=lambda losses, mask: row_means(losses, mask).mean()),
    partial(losses_of, reduce=lambda losses, mask: losses.mean()),
)
dialogue_losses.mistake(
    "A row without learned tokens gives 0 / 0. Its loss should be 0.",
    partial(losses_of, reduce=lambda losses, mask: (losses * mask).sum(1) / mask.sum(1)),
)
dialogue_losses.mistake(
    "`F.cross_entropy` takes logits and applies softmax itself. You give it what has been through "
    "a softmax already.",
    partial(losses_of, before=lambda logits: logits.softmax(-1)),
)
dialogue_losses.mistake(
    "Where logits are far apart a softmax is 0, and its logarithm −∞, even at tokens that do not "
    "count. `F.cross_entropy` and `log_softmax` do both at once.",
    *(
        partial(losses_of, before=lambda z, least=least: z.softmax(-1).clamp(min=least).log())
        for least in (0, 1e-9)
    ),
)
dialogue_losses.mistake(
    "Your losses are negative: a minus sign is missing. The loss is −ln p.",
    lambda logits, ids, mask: -losses_of(logits, ids, mask),
)
