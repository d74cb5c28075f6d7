"""Questions with marks, for paper, Canvas and Moodle: docs/teaching/questions.

text2qti reads them, and makes the zip for Canvas; Moodle's XML and the sheets are made here.
"""

import re
from collections.abc import Iterable, Sequence
from functools import partial
from html import escape
from pathlib import Path
from xml.etree.ElementTree import Element, SubElement, tostring

import clean
from markdown_it import MarkdownIt
from mdit_py_plugins.dollarmath import dollarmath_plugin
from text2qti.config import Config
from text2qti.qti import QTI
from text2qti.quiz import Question, Quiz

from helpers.formats.files import write_whole
from teaching.exercises_of import NOTEBOOKS, chapter

FOLDER = NOTEBOOKS.parent / "docs" / "teaching" / "questions"
_STYLE = """\
body { font: 11pt/1.5 Georgia, serif; max-width: 42rem; margin: 2rem auto; padding: 0 1rem; }
section { break-inside: avoid; margin-top: 1.5rem; } pre, code { font: 0.9em/1.4 monospace; }
.marking { border-left: 3px solid; padding-left: 0.8rem; }
.write { height: 2rem; border-bottom: 1px solid; } .essay_question .write { height: 16rem; }"""
_for_moodle = MarkdownIt("commonmark").enable("table")
_for_moodle.use(
    dollarmath_plugin, allow_digits=False, renderer=lambda latex, _: rf"\({escape(latex)}\)"
)
_MOODLE = {"essay": "essay", "numerical": "numerical", "short_answer": "shortanswer"}
_MOODLE |= {"multiple_choice": "multichoice", "true_false": "multichoice"}


quiz = partial(Quiz, config=Config())  # raises Text2qtiError, with the line, if a text is none


def read(names: Iterable[str]) -> list[str]:
    """The texts of chapters, given by number, of `before`, or of files of your own. 4.2 is the
    second question of chapter 04. Raises ValueError if there is none."""
    return [_text_of(name) for name in names]


def _text_of(name: str) -> str:
    number, _, one = name.partition(".") if name.replace(".", "", 1).isdigit() else (name, "", "")
    own = Path(name) if name.endswith(".md") else None
    file = own or FOLDER / f"{name if name == 'before' else chapter(number).stem}.md"
    head, *asked = re.split(r"(?m)^(?=Points: )", text := file.read_text("utf-8"))
    if not one:
        return text
    if int(one) not in range(1, len(asked) + 1):
        raise ValueError(f"chapter {number} has {len(asked)} questions, and no question {one}")
    return head + re.sub(r"(?m)^\d+\.", "1.", asked[int(one) - 1], count=1)


def questions(one: Quiz) -> list[Question]:
    return [part for part in one.questions_and_delims if isinstance(part, Question)]


def write_qti(texts: Sequence[str], path: Path) -> None:
    """One quiz of all texts, for Canvas. Marking that stands after `!` is not in it."""
    titles = [quiz(text).title_raw or "Questions" for text in texts]
    title = ", ".join(t.split(" · ")[0] if len(titles) > 1 else t for t in titles)
    whole = "\n".join(re.sub(r"(?m)^Quiz (title|description):.*\n", "", text) for text in texts)
    write_whole(path, QTI(quiz(f"Quiz title: {title}\n\n{whole}")).zip_bytes())


def write_moodle(texts: Sequence[str], path: Path) -> None:
    """A category of questions for each text."""
    root = Element("quiz")
    for one in map(quiz, texts):
        category = SubElement(root, "question", type="category")
        _text(category, "category", f"$course$/top/{(one.title_raw or '').replace('/', '//')}")
        for number, asked in enumerate(questions(one), 1):
            _add(root, f"{one.title_raw}, {number}", asked)
    xml = tostring(root, "utf-8", xml_declaration=True)
    write_whole(path, re.sub(rb"(?<!\]\])&gt;", b">", xml))  # Moodle drops spaces between entities


def _add(root: Element, name: str, asked: Question) -> None:
    kind = asked.type.removesuffix("_question")
    if kind not in _MOODLE:
        raise ValueError(f"{name}: a question of the kind {kind!r} is for Canvas alone")
    into = SubElement(root, "question", type=_MOODLE[kind])
    _text(into, "name", name)
    _text(into, "questiontext", asked.question_raw, True)
    _text(into, "generalfeedback", asked.feedback_raw or "", True)
    SubElement(into, "defaultgrade").text = str(asked.points_possible)
    if kind == "essay":
        _text(into, "graderinfo", asked.solution or "", True)
        SubElement(into, "responseformat").text = "editor"
    if kind == "numerical":
        low, high = asked.numerical_min, asked.numerical_max
        answer = _text(into, "answer", f"{(low + high) / 2:.6g}", fraction="100")
        SubElement(answer, "tolerance").text = f"{(high - low) / 2:.6g}"
    for choice in asked.choices:
        worth = "100" if choice.correct else "0"
        answer = _text(into, "answer", choice.choice_raw, not choice.shortans, fraction=worth)
        _text(answer, "feedback", choice.feedback_raw or "", True)
    said = {"correct": asked.correct_feedback_raw, "incorrect": asked.incorrect_feedback_raw}
    if _MOODLE[kind] == "multichoice":
        for which in filter(said.get, said):
            _text(into, f"{which}feedback", said[which] or "", True)
    elif said["incorrect"]:
        answer = _text(into, "answer", "*", fraction="0")
        _text(answer, "feedback", said["incorrect"], True)


def _text(into: Element, tag: str, text: str, markdown: bool = False, **more: str) -> Element:
    made = SubElement(into, tag, {**more, **({"format": "html"} if markdown else {})})
    SubElement(made, "text").text = _for_moodle.render(text) if markdown else text
    return made


def write_sheet(texts: Sequence[str], path: Path) -> None:
    """A page to print, with space to write, and beside it one with the answers."""
    quizzes = [quiz(text) for text in texts]
    title = escape(", ".join(one.title_raw or "" for one in quizzes))
    head = f"<!doctype html><meta charset=utf-8><title>{title}</title><style>{_STYLE}</style>"
    space = "<div class=write></div>"
    sheet, answers = [head, f"<h1>{title}</h1>Name{space}"], [head, f"<h1>{title}</h1>"]
    for one in quizzes:
        sheet.append(_html(one.description_raw or ""))
        for number, asked in enumerate(questions(one), 1):
            top = f"<section class={asked.type}><b>{number}</b> ({asked.points_possible})"
            boxes = [_html(f"☐ {c.choice_raw}") for c in asked.choices if not c.shortans]
            sheet += [top, _html(asked.question_raw), *(boxes or [space]), "</section>"]
            right = [choice.choice_raw for choice in asked.choices if choice.correct]
            said = [asked.numerical_raw or " or ".join(right), asked.solution, asked.feedback_raw]
            told = "".join(_html(s) for s in [*said, asked.incorrect_feedback_raw] if s)
            told = f"<div class=marking>{told}</div></section>"
            answers += [top, _html(asked.question_raw), told]
    write_whole(path, "\n".join(sheet).encode())
    write_whole(path.with_stem(f"{path.stem}-answers"), "\n".join(answers).encode())


def _html(text: str) -> str:
    return str(clean.output({"text/markdown": text})["text/html"])
