"""train.py and sample.py: a text of one's own becomes a model that writes."""

import sys

import pytest

import sample
import train

SMALL = ["--n_layer=1", "--n_head=2", "--n_embd=16", "--block_size=16", "--batch_size=4"]


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.txt").write_text("Grüße an alle, die dies lesen!\n" * 100, "utf-8")

    def run(program, *arguments):
        monkeypatch.setattr(sys, "argv", [program.__name__, *arguments])
        program.main()
        return capsys.readouterr().out

    return run


def test_a_text_becomes_a_model_that_writes(run, tmp_path):
    said = run(train, "mine.txt", "--steps=12", "--accumulation_steps=2", *SMALL)
    assert "Run(12 steps" in said and said.count("\n---") == 7  # one before the first step
    best = tmp_path / "runs" / "mine" / "best"
    files = {"config.json", "model.safetensors", "tokenizer.json"}
    assert {file.name for file in best.iterdir()} == files
    assert (best.parent / "loss.png").read_bytes().startswith(b"\x89PNG")
    text = run(sample, "runs/mine", "--prompt=Grüße", "--tokens=30", "--samples=2", "--seed=1")
    assert text.count("Grüße") == 2 and len(text) > 2 * 35
    assert run(sample, "runs/mine/best", "--tokens=30", "--seed=1") != text


def test_a_model_of_byte_pairs_writes(run):
    run(train, "mine.txt", "--steps=1", "--vocab_size=260", *SMALL)
    assert run(sample, "runs/mine", "--prompt=Grüße", "--temperature=0").startswith("\nGrüße")


def test_a_run_goes_on_no_other_is_overwritten_and_what_cannot_be_written_is_said(run):
    for _ in range(2):
        assert "Run(1 steps" in run(train, "mine.txt", "--steps=1", *SMALL)
    with pytest.raises(SystemExit, match=r"block_size was 16, is 8.* another folder"):
        run(train, "mine.txt", "--steps=1", *SMALL, "--block_size=8")
    with pytest.raises(SystemExit, match=r"batch_size .* at least 1"):
        run(train, "mine.txt", *SMALL, "--batch_size=0")
    for arguments in (["nothing"], ["runs/mine", "--prompt=Ω"]):
        with pytest.raises(SystemExit, match=r"nothing|Ω"):
            run(sample, *arguments)


@pytest.mark.parametrize(
    ("content", "said"),
    [(b"", "more than 640"), (b"To be.", "more than 640"), (b"Gr\xfc\xdfe", "--encoding"),
     (b"\x89PNG\r\n\x1a\n", "--encoding"), (bytes(9000), "bytes of zero"), (None, "No such file")],
)  # fmt: skip
def test_what_is_no_text_gets_a_sentence(run, tmp_path, content, said):
    if content is not None:
        (tmp_path / "it.txt").write_bytes(content)
    with pytest.raises(SystemExit, match=said):
        run(train, "it.txt")
    assert not (tmp_path / "runs").exists()
