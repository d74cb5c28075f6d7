"""Questions for paper, Canvas and Moodle: docs/teaching/questions."""

import zipfile
from xml.etree import ElementTree

import teach
from conftest import CHAPTERS

TOY = """\
Quiz title: Signs & <tags>

1.  Is `a < b & c` in $\\frac{a}{b} < 1$?
*a) `x]]>y`
b)  *no*
... Is it?

2.  Which?
[*] a
[ ] b
"""


def test_questions_survive_their_way_into_canvas_and_moodle(tmp_path):
    own, qti, moodle = tmp_path / "own.md", tmp_path / "q.zip", tmp_path / "q.xml"
    own.write_text(TOY)
    sheets = [tmp_path / "sheet.html", tmp_path / "answers.html"]
    names = ["before", *(path.stem[:2] for path in CHAPTERS), str(own)]
    outs = ["--qti", qti, "--moodle", moodle, "--sheet", sheets[0], "--answers", sheets[1]]
    assert teach.main(["questions", *names, *map(str, outs)]) == 0
    (asked,) = [n for n in zipfile.ZipFile(qti).namelist() if "/text2qti_assessment" in n]
    canvas = ElementTree.fromstring(zipfile.ZipFile(qti).read(asked))
    count = len([element for element in canvas.iter() if element.tag.endswith("}item")])
    found = [q for q in ElementTree.parse(moodle).getroot() if q.get("type") != "category"]
    assert count == len(found) == 15 + 2 * len(CHAPTERS) + 2
    first = found[-2].find("questiontext/text").text
    assert r"<code>a &lt; b &amp; c</code>" in first and r"\(\frac{a}{b} &lt; 1\)" in first
    texts = [text.text for text in canvas.iter() if text.tag.endswith("}mattext")]
    assert any("x]]&gt;y" in t for t in texts) and not any("1 point:" in t for t in texts)
    fractions = [[a.get("fraction") for a in q.findall("answer")] for q in found[-2:]]
    assert fractions == [["100", "0"], ["100", "-100"]]
    assert [s.read_text("utf-8").count("3 points:</strong>") > 9 for s in sheets] == [False, True]
