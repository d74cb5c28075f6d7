"""formats.huggingface: what `transformers` opens computes and encodes the same as our own model."""

import re
from types import SimpleNamespace

import pytest
import torch
from conftest import ROOT, generator, parsed, visible
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from helpers.finetuning import add_lora, merge_lora
from helpers.formats.checkpoints import save_checkpoint
from helpers.formats.gguf import gguf, to_gguf
from helpers.formats.huggingface import gpt2, llama, to_huggingface
from helpers.gpt import GPT, GPTConfig
from helpers.sampling import generate
from helpers.text import BPETokenizer, CharTokenizer
from helpers.text.bpe import END

LLAMA = {"norm": "RMSNorm", "mlp": "SwiGLU", "position": "Rotary"}
PLAIN = {**LLAMA, "bias": False}
FILES = {"config.json", "generation_config.json", "model.safetensors", "tokenizer.json"}
FILES |= {"tokenizer_config.json"}
TEXT = "the cat and the hat, 12 345; naïve 日本 🦉\n"
TEXTS = [
    "",
    " ",
    "\n",
    "the hat",
    "  the\n\n\tcat \r\n",
    "naïve 日本語 🦉e\u0301",
    "12 345 \u00a0x",
    "'s",
]
CHARACTERS = CharTokenizer.from_text(TEXT + "".join(TEXTS))
PAIRS = BPETokenizer.train(TEXT * 9, 290, special=[END, "<|pad|>"])
DIGITS = BPETokenizer(PAIRS.merges, [END], special_first=True, single_digits=True)


@pytest.fixture(scope="module")
def theirs(transformers):
    """Opens a folder with `transformers`: the model and its tokenizer."""

    def opened(folder):
        model, about = transformers.AutoModelForCausalLM.from_pretrained(
            folder, output_loading_info=True
        )
        assert not any(about.values()), about  # no weight is missing, too many or of another shape
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        return SimpleNamespace(model=model, tokenizer=tokenizer)

    return opened


def made(tokenizer, *, seed=0, **changes):
    sizes = {"block_size": 24, "n_layer": 2, "n_head": 4, "n_embd": 24, **changes}
    return visible(lambda: GPT(GPTConfig(tokenizer.vocab_size, **sizes)).eval(), seed)


@torch.no_grad()
def farthest(ours, theirs):
    """The greatest difference of two models' logits."""
    V, T = ours.config.vocab_size, min(ours.block_size, 24)
    ids = torch.randint(V, (2, T), generator=generator(1))
    want, got = ours(ids), theirs(ids)
    got = getattr(got, "logits", got)
    assert want.std() > 0.05 and got.dtype == torch.float32  # large enough to compare
    return (want - got).abs().max().item()


def expect_the_same(model, tokenizer, theirs, texts=TEXTS):
    assert farthest(model, theirs.model) < 1e-4
    for text in texts:
        ids = tokenizer.encode(text)
        assert theirs.tokenizer.encode(text) == theirs.tokenizer(text)["input_ids"] == ids, text
        assert theirs.tokenizer.decode(ids) == tokenizer.decode(ids)
    ids = torch.tensor([tokenizer.encode("the")])
    want = generate(model, ids, 20, temperature=0)
    got = theirs.model.generate(
        ids, max_new_tokens=20, do_sample=False, eos_token_id=[], pad_token_id=0
    )
    assert torch.equal(got, want)


SETTINGS = [
    {},
    {"bias": False, "tied": False},
    {"dropout": 0.25, "hidden": 7, "n_head": 3, "norm_eps": 0.1},
    LLAMA,
    {**LLAMA, "bias": False, "n_kv_head": 2, "tied": False, "hidden": 33},
    {**LLAMA, "head_size": 10, "n_kv_head": 1, "rotary_base": 50.0, "norm_eps": 0.01},
    {**LLAMA, "n_layer": 11, "n_embd": 12, "n_head": 2, "block_size": 23},
]


@pytest.mark.parametrize(
    ("tokenizer", "settings"),
    [*((CHARACTERS, settings) for settings in SETTINGS), (PAIRS, {}), (DIGITS, LLAMA)],
)
def test_transformers_opens_the_same_model(theirs, tmp_path, tokenizer, settings):
    model = made(tokenizer, **settings)
    to_huggingface(model, tokenizer, tmp_path / "out")
    assert {path.name for path in (tmp_path / "out").iterdir()} == FILES
    opened = theirs(tmp_path / "out")
    assert opened.tokenizer.model_max_length == model.block_size
    kind = "llama" if "norm" in settings else "gpt2"
    assert opened.model.config.model_type == kind
    expect_the_same(model, tokenizer, opened)
    back = {"llama": llama, "gpt2": gpt2}[kind](tmp_path / "out")
    assert farthest(model, back) < 1e-5


@given(text=st.text(max_size=30))
def test_any_text_has_the_same_ids(theirs_of_pairs, text):
    ids = PAIRS.encode(text)
    assert theirs_of_pairs.encode(text) == ids
    assert theirs_of_pairs.decode(ids) == text


@pytest.fixture(scope="module")
def theirs_of_pairs(theirs, tmp_path_factory):
    folder = tmp_path_factory.mktemp("pairs") / "out"
    to_huggingface(made(PAIRS), PAIRS, folder)
    return theirs(folder).tokenizer


def test_the_end_of_a_text_is_known_and_no_other_token_is_taken_for_it(theirs, tmp_path):
    to_huggingface(made(PAIRS), PAIRS, tmp_path / "pairs")
    opened, end = theirs(tmp_path / "pairs"), PAIRS.special[END]
    assert opened.model.generation_config.eos_token_id == opened.tokenizer.eos_token_id == end
    assert opened.tokenizer.bos_token == END
    text = f"the{END}cat"
    assert opened.tokenizer.encode(text) == PAIRS.encode(text, special=[END])
    for parts in ({}, LLAMA):
        to_huggingface(made(CHARACTERS, **parts), CHARACTERS, tmp_path / "characters")
        opened = theirs(tmp_path / "characters")
        assert opened.model.config.eos_token_id is None
        assert opened.model.generation_config.eos_token_id is None


def test_a_chat_model_stops_after_its_message(theirs, tmp_path):
    special = [END, "<|im_start|>", "<|im_end|>"]
    tokenizer = BPETokenizer(PAIRS.merges, special)
    to_huggingface(made(tokenizer, **LLAMA), tokenizer, tmp_path / "out")
    opened, ends = theirs(tmp_path / "out"), [tokenizer.special[special[i]] for i in (0, 2)]
    assert opened.model.generation_config.eos_token_id == opened.model.config.eos_token_id == ends


def test_the_numbers_are_in_float32_and_the_model_stays_as_it_is(theirs, tmp_path):
    model = made(CHARACTERS, **LLAMA).bfloat16().train()
    to_huggingface(model, CHARACTERS, tmp_path / "out")
    assert model.token.weight.dtype == torch.bfloat16 and model.training
    assert farthest(model.float().eval(), theirs(tmp_path / "out").model) < 1e-4


def test_merged_adapters_leave_with_the_model(theirs, tmp_path):
    model = made(CHARACTERS, **LLAMA)
    for p in add_lora(model, rank=2, alpha=4):
        nn.init.normal_(p, std=0.1)
    with pytest.raises(ValueError, match=r"the model lacks .*attention"):
        to_huggingface(model, CHARACTERS, tmp_path / "out")
    to_huggingface(merge_lora(model), CHARACTERS, tmp_path / "out")
    assert farthest(model, theirs(tmp_path / "out").model) < 1e-4


# --- GGUF -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("tokenizer", [PAIRS, DIGITS])
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"n_kv_head": 2, "tied": False, "rotary_base": 50.0, "norm_eps": 0.01},
        {"head_size": 10, "n_kv_head": 1, "hidden": 7, "rotary_base": 500},
    ],
)
def test_a_gguf_file_is_the_model_and_its_tokenizer(tmp_path, tokenizer, settings):
    model = made(tokenizer, **PLAIN, **settings)
    to_gguf(model, tokenizer, tmp_path / "a.gguf")
    read = gguf(tmp_path / "a.gguf")
    assert farthest(model, read.model) == 0 and read.tokenizer == tokenizer
    assert read.notes["tokenizer.ggml.eos_token_id"] == tokenizer.special[END]


# --- what has no counterpart ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "settings",
    [
        {"mlp": "SquaredReLU"},
        {"position": "SinusoidalPosition"},
        {"n_kv_head": 2},
        {"qk_norm": True},
        {**LLAMA, "convolution": 4},
        {**LLAMA, "norm": "LayerNorm"},
    ],
)
def test_a_part_without_a_counterpart_is_refused(tmp_path, settings):
    with pytest.raises(ValueError, match="neither layout has all parts"):
        to_huggingface(made(CHARACTERS, **settings), CHARACTERS, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_head_that_was_untied_is_not_left_behind(tmp_path):
    model = made(CHARACTERS, **LLAMA)
    model.lm_head.weight = nn.Parameter(model.lm_head.weight.detach().clone())
    with pytest.raises(ValueError, match=r"has 1 weights too many: \['lm_head.weight'\]"):
        to_huggingface(model, CHARACTERS, tmp_path / "out")


# --- the folder -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json"])
@pytest.mark.parametrize("save", [to_huggingface, lambda m, t, f: save_checkpoint(f, m, t)])
def test_a_folder_of_others_is_left_alone(tmp_path, name, save):
    (tmp_path / name).write_text("{}")
    with pytest.raises(FileExistsError, match=f"{name} in .* is not of this course"):
        save(made(CHARACTERS), CHARACTERS, tmp_path)
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [(name, "{}")]


def test_what_the_page_on_export_says_runs_from_top_to_bottom(tmp_path, monkeypatch):
    """In a folder with the program of the chapter on GPT, whose model leaves, too."""
    chapter = parsed(ROOT / "notebooks" / "09_gpt.ipynb")
    (program,) = (c.source for c in chapter.cells if c.source.startswith("%%writefile gpt.py"))
    (tmp_path / "gpt.py").write_text(program.partition("\n")[2], "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    page = (ROOT / "docs" / "EXPORT.md").read_text("utf-8")
    ran = {}
    for code in re.findall(r"```python\n(.+?)```", page, re.S):
        exec(code.replace("steps=100", "steps=2"), ran)
    assert farthest(ran["again"].model, ran["mine"]) < 1e-5
    made = {"my-gpt", "my-llama", "my-gpt.gguf", "my-own-gpt", "my-checkpoint"}
    assert {path.name for path in tmp_path.glob("my-*")} == made
