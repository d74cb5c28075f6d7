"""Questions for paper, Canvas and Moodle: docs/teaching/questions."""

import zipfile
from xml.etree import ElementTree

import sources
import teach
from conftest import CHAPTERS
from teaching import questions

TOY = """\
Quiz title: Signs & <tags>

1.  Is `a < b & c` in $\\frac{a}{b} < 1$?
*a) `x]]>y`
b)  *no*
"""


def test_questions_survive_their_way_to_paper_canvas_and_moodle(tmp_path):
    assert not [path for path in sources.DOCUMENTS.values() if "questions" in path.parts]
    (tmp_path / "own.md").write_text(TOY)
    names = ["before", *(path.stem[:2] for path in CHAPTERS), str(tmp_path / "own.md")]
    outs = {kind: tmp_path / kind for kind in teach.KINDS}
    teach.main(["questions", *names, *(f"--{kind}={out}" for kind, out in outs.items())])
    packed = zipfile.ZipFile(outs["qti"])
    canvas = list(ElementTree.fromstring(packed.read(packed.namelist()[-1])).iter())
    moodle = ElementTree.parse(outs["moodle"]).findall("question/questiontext/..")
    count = sum(element.tag.endswith("}item") for element in canvas)
    assert count == len(moodle) == 15 + 2 * len(CHAPTERS) + 1
    text = moodle[-1].findtext("questiontext/text")
    assert r"<code>a &lt; b &amp; c</code> in " in text and r"\(\frac{a}{b} &lt; 1\)" in text
    assert [a.get("fraction") for a in moodle[-1].findall("answer")] == ["100", "0"]
    assert b"&gt; &lt;" not in outs["moodle"].read_bytes()  # Moodle would drop the space
    texts = [element.text for element in canvas if element.tag.endswith("}mattext")]
    assert any("x]]&gt;y" in t for t in texts) and not any("1 point:" in t for t in texts)
    (second,) = questions.read(["4.2"])
    assert len(questions.questions(questions.quiz(second))) == 1 and "Anna met Tom" in second
    assert "1 point:" not in outs["sheet"].read_text("utf-8")
    assert "1 point:" in (tmp_path / "sheet-answers").read_text("utf-8")
