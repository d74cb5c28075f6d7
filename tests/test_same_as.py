"""What a chapter of the third edition defines does the same as the helper of that name.

The tag `same-as:module.name` is on the cell that defines it. Its definitions, and what they need of
the cells above, are taken from the notebook and compared with the helper on random inputs.
"""

import ast
import math

import figures
import nbformat
import pytest
import torch
from conftest import CHAPTERS
from nbformat import v4
from torch.testing import assert_close

from helpers import (
    attention,
    evaluation,
    finetuning,
    gpt,
    hooks,
    kernels,
    optimizers,
    positions,
    quantization,
    rewards,
    sampling,
    seq2seq,
    training,
)
from helpers.text import BPETokenizer, CharTokenizer, NGramModel, encode_documents
from helpers.text import split_words as helpers_split_words
from studies._seq2seq import pairs_to_ids
from tests.solutions import names, needed


def same_causal_mask(causal_mask):
    for T in (1, 4, 50):
        assert torch.equal(causal_mask(T), attention.causal_mask(T))


def same_attention(mine):
    for shape in [(5, 4), (3, 5, 4), (2, 3, 16, 8)]:
        q, k, v = torch.randn(3, *shape)
        for mask in (None, attention.causal_mask(shape[-2])):
            assert_close(mine(q, k, v, mask), attention.attention(q, k, v, mask))


def same_head(Head):
    x = torch.randn(2, 5, 50)
    for causal in (True, False):
        mine = Head(50, 16, causal=causal)
        ours = attention.Head(50, 16, causal=causal)
        ours.load_state_dict(mine.state_dict())
        assert_close(mine(x), ours(x))
        mask = attention.causal_mask(5) if causal else None
        _, weights = attention.attention(mine.query(x), mine.key(x), mine.value(x), mask)
        assert_close(ours.weights(x)[:, 0], weights)


def same_multi_head(MultiHeadAttention):
    x = torch.randn(2, 5, 12)
    for n_head in (1, 3, 12):
        mine, ours = MultiHeadAttention(12, n_head), attention.MultiHeadAttention(12, n_head)
        ours.load_state_dict(mine.state_dict())
        assert_close(mine(x), ours(x))
        assert_close(mine.weights(x), ours.weights(x))
        assert_close(mine.merge(mine.split(x)), x)
    for layer in (MultiHeadAttention, attention.MultiHeadAttention):
        with pytest.raises(ValueError, match=r"30.* 4 heads"):
            layer(30, 4)


@torch.no_grad()
def same_gpt(GPT, n_parameters):
    for V, T, L, H, C in [(5, 4, 1, 2, 6), (69, 16, 2, 4, 32), (100, 7, 3, 2, 10)]:
        mine, ours = same_parameters(GPT(V, T, L, H, C), gpt.GPT(gpt.GPTConfig(V, T, L, H, C)))
        ids = torch.randint(V, (3, T))
        assert_close(mine(ids), ours(ids), atol=1e-4, rtol=1e-4)
        assert ours.n_parameters() == n_parameters(V, T, L, C)


@torch.no_grad()
def same_learned_position(LearnedPosition):
    for T, C in [(5, 4), (8, 6)]:
        mine, ours = same_parameters(LearnedPosition(8, C), positions.LearnedPosition(8, C))
        x = torch.randn(2, T, C)
        assert_close(ours(x), mine(x))


def same_rotary_angles(rotary_angles):
    for T, size, base in [(5, 6, 100.0), (40, 64, 10_000.0), (300, 2, 10.0)]:
        assert_close(rotary_angles(T, size, base), positions.rotary_angles(T, size, base))


def same_sinusoidal(sinusoidal):
    for T, C, base in [(5, 6, 100.0), (40, 64, 10_000.0), (300, 2, 10.0)]:
        assert_close(sinusoidal(T, C, base), positions.sinusoidal(T, C, base))
        x = torch.randn(2, T, C)
        assert_close(x + sinusoidal(T, C, base), positions.SinusoidalPosition(C, base)(x))


def same_rotary(rotate):
    for T, hs, base in [(7, 8, 100.0), (10, 16, 10_000.0), (1, 2, 10.0)]:
        x = torch.randn(2, 4, T, hs)
        for start in (0, 5):
            ours = positions.Rotary(hs, base)(x, start=start)
            assert_close(rotate(x, base, start), ours, atol=1e-5, rtol=1e-4)


def same_half_split(half_split):
    for H, hs, C in [(1, 4, 3), (2, 8, 12), (3, 6, 5)]:
        weight = torch.randn(H * hs, C)
        assert_close(half_split(weight, H), positions.half_split(weight, H))


def same_tokenizer(decode, encode):
    tokenizer = CharTokenizer.from_text("abracadabra")  # the chapter's word
    for _ in range(20):
        ids = torch.randint(5, (9,)).tolist()
        text = tokenizer.decode(ids)
        assert decode(ids) == text and encode(text) == ids


def same_batches(get_batch):
    ids = torch.randint(69, (500,))
    for seed, (T, B) in enumerate([(6, 4), (1, 1), (64, 32), (499, 2)]):
        mine = get_batch(ids, T, B, torch.Generator().manual_seed(seed))
        ours = training.get_batch(ids, T, B, torch.Generator().manual_seed(seed))
        assert all(map(torch.equal, mine, ours))
        assert torch.equal(mine[0][:, 1:], mine[1][:, :-1])
    _, y = get_batch(torch.arange(10), 4, 1000, torch.Generator().manual_seed(0))
    assert y.max() == 9  # the last token is a target, too


def same_loss(language_model_loss):
    for V, B, T in [(5, 2, 3), (69, 4, 16)]:
        model = torch.nn.Embedding(V, V)
        x, y = torch.randint(V, (2, B, T))
        assert_close(language_model_loss(model, x, y), training.language_model_loss(model, x, y))


def same_training(train):
    ids, losses = torch.randint(7, (300,)), []
    for function in (train, training.train):
        torch.manual_seed(0)
        model = torch.nn.Embedding(7, 7)
        found = function(
            model, ids, steps=20, block_size=8, batch_size=4,
            optimizer=torch.optim.Adam(model.parameters(), lr=0.1),
            generator=torch.Generator().manual_seed(1),
        )  # fmt: skip
        losses.append([*found, model.weight.sum().item()])
    assert_close(torch.tensor(losses[0]), torch.tensor(losses[1]))


def same_cosine(cosine_schedule):
    for steps, warmup, final in [(250, 0, 0.1), (250, 40, 0.1), (90, 25, 0.0), (90, 25, 1.0)]:
        for n in range(steps):
            mine = cosine_schedule(n, steps, warmup, final)
            assert math.isclose(mine, training.cosine_schedule(n, steps, warmup, final))


def same_adamw(adamw):
    model = gpt.GPT(gpt.GPTConfig(5, 4, 1, 2, 6))
    mine, ours = adamw(model, 0.01, 0.5), optimizers.adamw(model, 0.01, 0.5)
    for a, b in zip(mine.param_groups, ours.param_groups, strict=True):
        assert [id(p) for p in a["params"]] == [id(p) for p in b["params"]]
        for name in ("lr", "betas", "weight_decay", "eps"):
            assert a[name] == b[name]
    assert adamw(model, 0.01).defaults["lr"] == optimizers.adamw(model, 0.01).defaults["lr"]


def same_ngrams(interpolated):
    symbols, held = "abcdr", "abracadabrabarda"
    tokenizer = CharTokenizer(symbols)
    model = NGramModel(torch.tensor(tokenizer.encode("abracadabra")), 5, max_context=3)
    nll = model.nll(torch.tensor(tokenizer.encode(held)))
    for i, character in enumerate(held):
        for k in range(4):
            probs = interpolated("abracadabra", held[max(0, i - k) : i], symbols)
            mine = probs[symbols.index(character)]
            assert_close(-math.log(mine), nll[k, i].item(), rtol=1e-6, atol=1e-6)


def same_parameters(mine, ours):
    """Give both modules the same random parameters, under the same names in the same order."""
    with torch.no_grad():
        for p in mine.parameters():  # so that none is 0 or 1
            p.normal_(std=0.3)
    assert [*mine.state_dict()] == [*ours.state_dict()]
    ours.load_state_dict(mine.state_dict())
    return mine, ours


def same_feed_forward(FeedForward):
    for C in (6, 48):
        mine, ours = same_parameters(FeedForward(C), gpt.FeedForward(C))
        x = torch.randn(2, 9, C)
        assert_close(mine(x), ours(x), atol=1e-4, rtol=1e-4)


def same_swiglu(SwiGLU):
    for C in (6, 48):
        mine, ours = same_parameters(SwiGLU(C, 8 * C // 3), gpt.SwiGLU(C))
        x = torch.randn(2, 9, C)
        assert_close(mine(x), ours(x), atol=1e-4, rtol=1e-4)


def same_block(Block):
    for C, H in ((6, 2), (48, 4)):
        ours = gpt.Block(attention.MultiHeadAttention(C, H), gpt.FeedForward(C))
        mine, ours = same_parameters(Block(C, H), ours)
        x = torch.randn(2, 9, C)
        assert_close(mine(x), ours(x), atol=1e-4, rtol=1e-4)


def same_dropout(dropout):
    x = torch.randn(100_000) + 3
    for p in (0.1, 0.25, 0.5):
        ours = kernels.Dropout(p)
        for y in (dropout(x, p, training=True), ours(x)):
            assert_close((y == 0).float().mean().item(), p, atol=0.01, rtol=0)
            assert_close(y[y != 0], x[y != 0] / (1 - p), atol=1e-3, rtol=1e-4)
        assert dropout(x, p, training=False) is x
        assert torch.equal(ours.eval()(x), x)


def same_orthogonal(newton_schulz):
    for shape in [(2, 2), (5, 30), (30, 5), (20, 20)]:
        for matrix in (torch.randn(shape), torch.zeros(shape)):
            assert_close(newton_schulz(matrix), optimizers.newton_schulz(matrix), atol=0.04, rtol=0)


def same_muon(muon_step):
    for shape in [(12, 12), (48, 12), (12, 48)]:
        p, average = torch.randn(shape), torch.zeros(shape)
        parameter = torch.nn.Parameter(p.clone())
        optimizer = optimizers.Muon([parameter])
        for size in (0, 1, 1, 0):  # a gradient of zeros, too
            parameter.grad = size * torch.randn(shape)
            muon_step(p, parameter.grad, average)
            optimizer.step()
        assert_close(p, parameter.detach(), atol=0.01, rtol=0)


def same_wsd(wsd_schedule):
    for steps, options in [(300, {}), (72, {"warmup": 1, "decay_frac": 0.8})]:
        for step in range(steps):
            assert wsd_schedule(step, steps, **options) == training.wsd_schedule(
                step, steps, **options
            )


@torch.no_grad()
def same_short_convolution(short_convolution):
    layer, x = gpt.ShortConvolution(6), torch.randn(2, 9, 6)
    assert torch.equal(layer(x), x)  # its weights start at 0
    layer.weight.normal_()
    weights = layer.weight[:, 0, 0].T.flip(0)  # the chapter counts from this token backwards
    assert_close(short_convolution(x, weights), layer(x))
    changed = x.clone()
    changed[:, 4] += 1
    reached = (layer(changed) - layer(x)).abs().amax((0, 2)) > 1e-6
    assert reached.nonzero().flatten().tolist() == [4, 5, 6, 7]


def same_fast_gpt(fast_gpt):
    for sizes in [(69, 16, 2, 4, 32), (10, 5, 1, 1, 8)]:
        models = []
        for make in (fast_gpt, gpt.fast_gpt):
            torch.manual_seed(0)
            models.append(make(*sizes))
        mine, ours = models
        assert mine.config == ours.config
        for p, q in zip(mine.parameters(), ours.parameters(), strict=True):
            assert torch.equal(p, q)


def same_fast_optimizers(fast_optimizers):
    model = gpt.fast_gpt(69, 16, 2, 4, 32)
    kept = {"lr", "momentum", "betas", "weight_decay"}
    both = fast_optimizers(model), optimizers.fast_optimizers(model)
    for mine, ours in zip(*both, strict=True):
        assert type(mine) is type(ours)
        for a, b in zip(mine.param_groups, ours.param_groups, strict=True):
            assert {id(p) for p in a["params"]} == {id(p) for p in b["params"]}
            assert {k: a[k] for k in kept & a.keys()} == {k: b[k] for k in kept & b.keys()}


DECODING = (
    {"temperature": 0},
    {"temperature": 0.7, "top_k": 5},
    {"temperature": 1.5, "top_p": 0.9},
    {"top_k": 20, "top_p": 0.5},
    {"top_p": 1.0},
    {"temperature": 2.0, "min_p": 0.1},
    {"top_k": 20, "top_p": 0.9, "min_p": 0.05},
)


def same_probabilities(next_token_probabilities):
    rows = 3 * torch.randn(300, 50)
    for settings in DECODING:
        mine = torch.stack([next_token_probabilities(row, **settings) for row in rows])
        assert_close(mine, sampling.next_token_probabilities(rows, **settings), atol=1e-6, rtol=0)


def same_penalty(apply_repetition_penalty):
    logits, ids = 3 * torch.randn(300, 50), torch.randint(50, (300, 7))
    seen = torch.zeros_like(logits, dtype=torch.bool).scatter(1, ids, True)
    ours = sampling.apply_repetition_penalty(logits, ids, 1.2)
    assert torch.equal(apply_repetition_penalty(logits, seen, 1.2), ours)


def same_generate(generate):
    torch.manual_seed(0)
    model = gpt.GPT(gpt.GPTConfig(20, 32, 2, 2, 16)).eval()
    for seed, settings in enumerate(DECODING):
        ids = torch.randint(20, (1, 4))
        torch.manual_seed(seed)
        mine = generate(model, ids, 20, **settings)
        torch.manual_seed(seed)
        assert torch.equal(mine, sampling.generate(model, ids, 20, **settings))


ODD_TEXTS = [
    "The owls didn't sleep.\n\n  In 1969, she'd won 12 prizes.\t \r\n",
    "naïve café DON'T don’t 人人生而自由 🦉 \x00\xa0\u2028 ½ ∀",
    "".join(map(chr, range(0x300))),
    "",
]


def same_split_words(split_words):
    for text in ODD_TEXTS:
        assert split_words(text) == helpers_split_words(text)


def same_bpe(Tokenizer):
    learned_from = ["low lower lowest: the newer the slower. An owl 🦉 isn't low.\n" * 3]
    for text in [*learned_from, "ba dc", "dc ba", "aaaa aaaa" + " bc" * 5]:
        mine, ours = Tokenizer(text, 300), BPETokenizer.train(text, 300)
        assert list(mine.rank) == ours.merges
        assert mine.vocabulary == [ours.piece(i) for i in range(ours.vocab_size)]
        for odd in [*ODD_TEXTS, text]:
            ids = mine.encode(odd)
            assert ids == ours.encode(odd) and mine.decode(ids) == odd
        assert mine.decode(ids[:-1]) == ours.decode(ids[:-1])


def same_stream(mine):
    documents = ["A cat sat.", "", "It spells <|endoftext|>, an end that is none."]
    tokenizer = BPETokenizer.train(documents, vocab_size=270, special=["<|endoftext|>"])
    assert mine(tokenizer, documents).tolist() == encode_documents(tokenizer, documents)


def quantised_matrix():
    matrix = torch.randn(48, 96)
    matrix[3, 32:64], matrix[4] = 0.7, 0  # groups of equal numbers
    return matrix


def same_quantize(quantize):
    matrix = quantised_matrix()
    for bits in (1, 2, 3, 4, 8):
        mine, ours = quantize(matrix, bits), quantization.quantize(matrix, bits)
        assert torch.equal(mine.codes, ours.codes)
        assert torch.equal(mine.matrix(), ours.matrix())


def same_quantised_tensor(QuantizedTensor):
    ours = quantization.quantize(quantised_matrix(), 4)
    mine = QuantizedTensor(ours.codes, ours.scale, ours.minimum)
    assert torch.equal(mine.matrix(), ours.matrix())


def same_quantised_linear(QuantizedLinear):
    blocks = quantization.quantize(quantised_matrix(), 4)
    mine, ours = QuantizedLinear(blocks), quantization.QuantizedLinear(blocks, fast=False)
    for shape in ((5, 96), (2, 3, 96), (96,)):
        x = torch.randn(shape)
        assert_close(mine(x), ours(x))


def small_model():
    config = gpt.GPTConfig(vocab_size=2048, block_size=16, n_layer=1, n_head=2, n_embd=8)
    return gpt.GPT(config).eval()


def same_token_nll(token_nll):
    model, ids = small_model(), torch.randint(2048, (50,))
    for n in (2, 16, 17, 18, 33, 50):
        assert_close(token_nll(model, ids[:n]), evaluation.token_nll(model, ids[:n]))


def same_bits(bits_per_character):
    nll = torch.rand(5)
    assert bits_per_character(nll, "abc") == evaluation.bits_per_character(nll, "abc")


def same_bootstrap(bootstrap_means):
    values = torch.rand(10).tolist()
    generator = torch.Generator().manual_seed(0)
    ours = evaluation.bootstrap_means(torch.tensor(values), 500, generator)
    assert_close(bootstrap_means(values, 500), ours)


def same_choice(most_likely):
    model, tokenizer = small_model(), most_likely.__globals__["tokenizer"]

    def nll(ids):
        return evaluation.token_nll(model, torch.tensor(ids))

    options = [" is", " are", " was", " will be"]
    for before, after in [("The cities", ""), ("A river", " long and"), ("In", " the")]:
        ours = evaluation.most_likely(model, tokenizer, before, options, after)
        assert most_likely(nll, before, options, after) == ours


def same_cache(Cache):
    k, v = torch.randn(2, 2, 3, 6, 4)
    mine, ours = Cache(), attention.KVCache(max_tokens=6)
    assert len(mine) == len(ours) == 0
    for start, end in ((0, 3), (3, 4), (4, 6)):
        new = k[:, :, start:end], v[:, :, start:end]
        for one, other in zip(mine.append(*new), ours.append(*new), strict=True):
            assert torch.equal(one, other)
        assert len(mine) == len(ours) == end
    assert torch.equal(mine.keys, ours.keys) and torch.equal(mine.values, ours.values)


def same_ablate_heads(ablate_heads):
    model = gpt.GPT(gpt.GPTConfig(50, 16, n_layer=3, n_head=4, n_embd=32, n_kv_head=2)).eval()
    ids, heads = torch.arange(12)[None], [(0, 1), (2, 3), (2, 0)]
    with torch.no_grad():
        whole = model(ids)
        with ablate_heads(model, heads):
            mine = model(ids)
        with hooks.ablate_heads(model, heads):
            assert_close(mine, model(ids))
        assert not torch.allclose(mine, whole) and torch.equal(model(ids), whole)
        with pytest.raises(KeyError), ablate_heads(model, heads):
            raise KeyError
        assert torch.equal(model(ids), whole)


PAIRS = [("abc", "cba"), ("3 May 1979", "1979-05-03")]


def same_recurrent(RNNSeq2Seq, OneVector):
    source, decoder_input, _ = pairs_to_ids(PAIRS)
    for C in (6, 32):
        for mine, score in ((OneVector(C), None), (RNNSeq2Seq(C), "dot")):
            ours = seq2seq.RNNSeq2Seq(C, score)
            ours.load_state_dict(mine.state_dict())
            assert_close(mine(source, decoder_input), ours(source, decoder_input))


def same_transformer(Transformer):
    source, decoder_input, _ = pairs_to_ids(PAIRS)
    for sizes in ((8, 2, 1), (32, 4, 2)):
        mine, ours = Transformer(*sizes), seq2seq.Transformer(*sizes)
        ours.load_state_dict(mine.state_dict())
        found = mine(source, decoder_input), ours(source, decoder_input)
        assert_close(*found, atol=1e-5, rtol=1e-5)


def completions(end=3):
    """Prompts of 5 tokens with completions of 4, of a vocabulary of 6."""
    return torch.cat([torch.randint(6, (20, 5)), torch.randint(end + 1, (20, 4))], 1)


def a_policy():
    return gpt.GPT(gpt.GPTConfig(6, 16, n_layer=1, n_head=2, n_embd=8))


def same_completion_mask(completion_mask):
    for end in (0, 3, 5):  # 5 never occurs
        ids = completions()[:, -4:]
        assert torch.equal(completion_mask(ids, end), rewards.completion_mask(ids, end))


def same_completion_log_probs(completion_log_probs):
    model, ids = a_policy(), completions()
    for n in (1, 4):
        assert_close(completion_log_probs(model, ids, n),
                     rewards.completion_log_probs(model, ids, n))  # fmt: skip


def same_chosen_log_probs(chosen_log_probs):
    ids, log_probs = completions(), torch.randn(20, 4, 6).log_softmax(-1)
    assert_close(chosen_log_probs(log_probs, ids), rewards.chosen_log_probs(log_probs, ids))


def same_group_advantages(group_advantages):
    for group in (1, 4, 12):
        given = torch.randn(12)
        assert_close(group_advantages(given, group), rewards.group_advantages(given, group))


def same_policy_gradient_loss(policy_gradient_loss):
    given = torch.randn(7, 4), torch.rand(7, 4) > 0.3, torch.randn(7)
    assert_close(policy_gradient_loss(*given), rewards.policy_gradient_loss(*given))


def same_kl_penalty(kl_penalty):
    log_probs, reference = torch.randn(2, 7, 4, 6).log_softmax(-1)
    mask = torch.rand(7, 4) > 0.3
    found = kl_penalty(log_probs, reference, mask)
    assert_close(found, rewards.kl_penalty(log_probs, reference, mask))


def same_dpo_loss(dpo_loss):
    for beta in (0.1, 3.0):
        right, wrong = torch.randn(2, 9)
        assert_close(dpo_loss(right, wrong, beta), rewards.dpo_loss(right, wrong, beta))


def same_pass_at_k(pass_at_k):
    for n, correct, k in [(1, 0, 1), (8, 3, 2), (64, 1, 64), (64, 60, 16), (5, 5, 1)]:
        assert math.isclose(pass_at_k(n, correct, k), rewards.pass_at_k(n, correct, k))


# Tag → how to compare what its cell defines, and the names of what else is compared.
TALKS = [
    [("user", "hot?")],
    [("system", "brief"), ("user", "hot?"), ("assistant", "cold"), ("user", "up<|im_end|>")],
    [("user", "hot?"), ("assistant", "cold"), ("user", "up?"), ("assistant", "down")],
]


def same_chat_text(chat_text):
    for talk in TALKS:
        assert chat_text(talk) == finetuning.chat_text(talk)


def same_encode_chat(encode_chat):
    tokenizer = BPETokenizer.train(
        "user assistant system hot cold", vocab_size=290, special=["<|im_start|>", "<|im_end|>"]
    )
    for talk in TALKS:
        assert encode_chat(tokenizer, talk) == finetuning.encode_chat(tokenizer, talk)


def same_completion_loss(completion_loss):
    model = torch.nn.Embedding(20, 20)
    for _ in range(5):
        ids, mask = torch.randint(20, (3, 7)), torch.rand(3, 7) < 0.5
        mask[:, 0], mask[0, 3] = False, True
        ours = finetuning.completion_loss(model, ids, mask)
        assert_close(completion_loss(model, ids, mask), ours)


def same_lora(LoRA):
    for n_in, n_out, rank in [(2, 3, 1), (8, 5, 4)]:
        linear, x = torch.nn.Linear(n_in, n_out), torch.randn(4, n_in)
        mine, ours = LoRA(linear, rank), finetuning.LoRA(linear, rank)
        assert_close(mine(x), linear(x))
        torch.nn.init.normal_(mine.B)
        ours.load_state_dict(mine.state_dict())
        assert_close(mine(x), ours(x))
        beside = mine(x)
        assert_close(mine.merged()(x), beside)


def small_llama():
    torch.manual_seed(0)
    return gpt.GPT(gpt.GPTConfig(20, 8, 2, 2, 12, mlp="SwiGLU", position="Rotary"))


def same_add_lora(add_lora):
    mine, ours = small_llama(), small_llama()
    shapes = [[p.shape for p in add(model, 3)]
              for add, model in ((add_lora, mine), (finetuning.add_lora, ours))]  # fmt: skip
    assert shapes[0] == shapes[1]
    for model in (mine, ours):
        assert sum(p.requires_grad for p in model.parameters()) == len(shapes[0])
    assert [*mine.state_dict()] == [*ours.state_dict()]


def same_merge_lora(merge_lora):
    LoRA = merge_lora.__globals__["LoRA"]  # the class that it looks for
    ids = torch.randint(20, (2, 8))
    model = small_llama()
    names = [*model.state_dict()]
    linear = model.blocks[1].mlp.up
    model.blocks[1].mlp.up = LoRA(linear, 2)
    torch.nn.init.normal_(model.blocks[1].mlp.up.B)
    beside = model(ids)
    assert [*merge_lora(model).state_dict()] == names
    assert_close(model(ids), beside, atol=1e-4, rtol=1e-4)


SAME_AS = {
    "text.CharTokenizer": (same_tokenizer, ["encode"]),
    "training.get_batch": (same_batches, []),
    "training.language_model_loss": (same_loss, []),
    "training.train": (same_training, []),
    "training.cosine_schedule": (same_cosine, []),
    "optimizers.adamw": (same_adamw, []),
    "text.NGramModel": (same_ngrams, []),
    "text.split_words": (same_split_words, []),
    "text.BPETokenizer": (same_bpe, []),
    "attention.causal_mask": (same_causal_mask, []),
    "attention.attention": (same_attention, []),
    "attention.Head": (same_head, []),
    "attention.MultiHeadAttention": (same_multi_head, []),
    "attention.KVCache": (same_cache, []),
    "gpt.FeedForward": (same_feed_forward, []),
    "gpt.SwiGLU": (same_swiglu, []),
    "gpt.Block": (same_block, []),
    "kernels.Dropout": (same_dropout, []),
    "sampling.next_token_probabilities": (same_probabilities, []),
    "sampling.apply_repetition_penalty": (same_penalty, []),
    "sampling.generate": (same_generate, []),
    "gpt.GPT": (same_gpt, ["n_parameters"]),
    "gpt.GPTConfig": (same_gpt, ["n_parameters"]),
    "evaluation.token_nll": (same_token_nll, []),
    "evaluation.bits_per_character": (same_bits, []),
    "evaluation.bootstrap_means": (same_bootstrap, []),
    "evaluation.most_likely": (same_choice, []),
    "positions.LearnedPosition": (same_learned_position, []),
    "positions.rotary_angles": (same_rotary_angles, []),
    "positions.sinusoidal": (same_sinusoidal, []),
    "positions.SinusoidalPosition": (same_sinusoidal, []),
    "positions.Rotary": (same_rotary, []),
    "positions.half_split": (same_half_split, []),
    "optimizers.newton_schulz": (same_orthogonal, []),
    "optimizers.Muon": (same_muon, []),
    "training.wsd_schedule": (same_wsd, []),
    "gpt.ShortConvolution": (same_short_convolution, []),
    "gpt.fast_gpt": (same_fast_gpt, []),
    "optimizers.fast_optimizers": (same_fast_optimizers, []),
    "text.encode_documents": (same_stream, []),
    "quantization.quantize": (same_quantize, []),
    "quantization.QuantizedTensor": (same_quantised_tensor, []),
    "quantization.QuantizedLinear": (same_quantised_linear, []),
    "hooks.ablate_heads": (same_ablate_heads, []),
    "finetuning.chat_text": (same_chat_text, []),
    "finetuning.encode_chat": (same_encode_chat, []),
    "finetuning.completion_loss": (same_completion_loss, []),
    "finetuning.LoRA": (same_lora, []),
    "finetuning.add_lora": (same_add_lora, []),
    "finetuning.merge_lora": (same_merge_lora, []),
    "rewards.completion_mask": (same_completion_mask, []),
    "rewards.completion_log_probs": (same_completion_log_probs, []),
    "rewards.chosen_log_probs": (same_chosen_log_probs, []),
    "rewards.group_advantages": (same_group_advantages, []),
    "rewards.policy_gradient_loss": (same_policy_gradient_loss, []),
    "rewards.kl_penalty": (same_kl_penalty, []),
    "rewards.dpo_loss": (same_dpo_loss, []),
    "rewards.pass_at_k": (same_pass_at_k, []),
    "seq2seq.RNNSeq2Seq": (same_recurrent, ["OneVector"]),
    "seq2seq.Transformer": (same_transformer, []),
}


# What has another name in its chapter: a function where the helper is a class, the model without
# its settings, and the class that stands beside the helper's.
OTHER_NAMES = {
    "text.CharTokenizer": "decode",
    "text.NGramModel": "interpolated",
    "text.BPETokenizer": "Tokenizer",
    "kernels.Dropout": "dropout",
    "gpt.GPTConfig": "GPT",
    "gpt.ShortConvolution": "short_convolution",
    "positions.SinusoidalPosition": "sinusoidal",
    "positions.Rotary": "rotate",
    "optimizers.Muon": "muon_step",
}


def definitions(cell):
    """{name: code} of the functions and classes that a code cell defines."""
    if cell.cell_type != "code" or cell.source.startswith("%%"):
        return {}
    found = ast.parse(cell.source).body
    kinds = (ast.FunctionDef, ast.ClassDef)
    return {node.name: ast.unparse(node) for node in found if isinstance(node, kinds)}


def defined(notebook, at, name):
    """The function or class `name` of a cell, made of its code and of what this reads: from the
    cells above, or, if it stands only beside or below it, from there."""
    cells, code = notebook.cells, definitions(notebook.cells[at])[name]
    above = {other for cell in cells[:at] for other in definitions(cell)}
    read = names(ast.parse(code))[1] - above - {name}
    below = [definitions(c)[other] for c in cells[at:] for other in definitions(c) if other in read]
    codes = [cell for cell in cells[:at] if not cell.source.startswith("%%")]
    codes += [v4.new_code_cell(source) for source in (*below, code)]
    namespace = {}
    exec(f"{needed(v4.new_notebook(cells=codes), len(codes) - 1)}\n{code}", namespace)
    return namespace[name]


@pytest.mark.parametrize("what", SAME_AS)
def test_what_a_chapter_defines_does_the_same_as_the_helper(what):
    read = [nbformat.read(path, as_version=4) for path in CHAPTERS]
    tagged = [(n, i) for n in read for i, c in enumerate(n.cells) if tagged_as(what, c)]
    compare, others = SAME_AS[what]
    for notebook, at in tagged:
        *_, name = definitions(notebook.cells[at])  # the last one, which may use the others
        assert name == OTHER_NAMES.get(what, what.partition(".")[2])
        places = [next(i for i, c in enumerate(notebook.cells) if n in definitions(c))
                  for n in others]  # fmt: skip
        beside = [defined(notebook, i, n) for i, n in zip(places, others, strict=True)]
        torch.manual_seed(0)
        compare(defined(notebook, at, name), *beside)


@torch.no_grad()
def test_the_llama_of_a_chapter_is_the_gpt_with_its_switches():
    """The same names for the same weights, and the same logits."""
    (path,) = (path for path in CHAPTERS if path.stem.endswith("real_weights"))
    notebook = nbformat.read(path, as_version=4)
    (at,) = (i for i, cell in enumerate(notebook.cells) if "Llama" in definitions(cell))
    switches = {"norm": "RMSNorm", "norm_eps": 1e-5, "mlp": "SwiGLU", "hidden": 24, "bias": False,
                "position": "Rotary", "rotary_base": 100.0, "n_kv_head": 2}  # fmt: skip
    ours = gpt.GPT(gpt.GPTConfig(50, 16, n_layer=2, n_head=4, n_embd=32, **switches))
    mine = defined(notebook, at, "Llama")(50, 16, 2, 32, 4, 2, 24, 100.0)
    mine, ours = same_parameters(mine, ours)
    ids = torch.randint(50, (3, 16))
    assert_close(mine(ids), ours(ids), atol=1e-4, rtol=1e-4)


def tagged_as(what, cell):
    return figures.tagged(cell, f"same-as:{what}")
