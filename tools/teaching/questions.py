"""Questions with marks, for paper, Canvas and Moodle: docs/teaching/questions.

text2qti reads them, and makes the zip for Canvas; Moodle's XML and the sheets are made here.
"""

import re
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from xml.etree.ElementTree import Element, SubElement, tostring

import clean
from markdown_it import MarkdownIt
from mdit_py_plugins.dollarmath import dollarmath_plugin
from text2qti.config import Config
from text2qti.err import Text2qtiError
from text2qti.qti import QTI
from text2qti.quiz import Question, Quiz

from helpers.formats.files import write_whole
from teaching.exercises_of import NOTEBOOKS, chapter

FOLDER = NOTEBOOKS.parent / "docs" / "teaching" / "questions"
_STYLE = """\
body { font: 11pt/1.5 Georgia, serif; max-width: 42rem; margin: 2rem auto; padding: 0 1rem; }
section { break-inside: avoid; margin-top: 1.5rem; } .quiet { color: #4b5563; }
pre, code { font: 0.9em/1.4 monospace; } .marking { border-left: 3px solid; padding-left: 0.8rem; }
.write { height: 2rem; border-bottom: 1px solid #9ca3af; } .essay .write { height: 16rem; }"""
_for_moodle = MarkdownIt("commonmark").enable("table")
_for_moodle.use(
    dollarmath_plugin, allow_digits=False, renderer=lambda latex, _: rf"\({escape(latex)}\)"
)
_MOODLE = {"essay": "essay", "numerical": "numerical", "short_answer": "shortanswer"}
_MOODLE |= dict.fromkeys(("multiple_choice", "true_false", "multiple_answers"), "multichoice")


def read(names: Iterable[str]) -> list[str]:
    """The texts of chapters, given by number, of `before`, or of files of your own."""
    files = []
    for name in names:
        stem = name if name == "before" or name.endswith(".md") else chapter(name).stem
        files.append(Path(name) if name.endswith(".md") else FOLDER / f"{stem}.md")
    return [file.read_text("utf-8") for file in files]


def quiz(text: str) -> Quiz:
    """Raises ValueError, with the line, if a text is none."""
    try:
        return Quiz(text, config=Config())
    except Text2qtiError as error:
        raise ValueError(str(error)) from None


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
        _text(category, "category", f"$course$/top/{one.title_raw}")
        for number, asked in enumerate(questions(one), 1):
            _add(root, f"{one.title_raw}, {number}", asked)
    write_whole(path, tostring(root, "utf-8", xml_declaration=True))


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
    several = kind == "multiple_answers"
    right, wrong = asked.correct_choices, len(asked.choices) - asked.correct_choices
    for choice in asked.choices:
        part = (100 / right if choice.correct else -100 / wrong) if several else 100
        worth = f"{part if several or choice.correct else 0:.7g}"
        answer = _text(into, "answer", choice.choice_raw, not choice.shortans, fraction=worth)
        _text(answer, "feedback", choice.feedback_raw or "", True)
    if _MOODLE[kind] == "multichoice":
        SubElement(into, "single").text = str(not several).lower()
    elif said := asked.incorrect_feedback_raw:
        _text(_text(into, "answer", "*", fraction="0"), "feedback", said, True)


def _text(into: Element, tag: str, text: str, markdown: bool = False, **more: str) -> Element:
    made = SubElement(into, tag, {**more, **({"format": "html"} if markdown else {})})
    SubElement(made, "text").text = _for_moodle.render(text) if markdown else text
    return made


def write_sheet(texts: Sequence[str], path: Path, answers: bool = False) -> None:
    """A page to print, with space to write, or with the answers."""
    quizzes = [quiz(text) for text in texts]
    title = escape(", ".join(one.title_raw or "" for one in quizzes))
    parts = [f"<!doctype html><meta charset=utf-8><title>{title}</title><style>{_STYLE}</style>"]
    parts += [f"<h1>{title}</h1>", "" if answers else "<div>Name</div><div class=write></div>"]
    for one in quizzes:
        parts += [_html(one.description_raw or "")]
        for number, asked in enumerate(questions(one), 1):
            points = f"{asked.points_possible} point{'s' * (asked.points_possible != 1)}"
            kind = asked.type.removesuffix("_question")
            parts += [f"<section class={kind}><b>{number}</b> <span class=quiet>({points})</span>"]
            parts += [_html(asked.question_raw)]
            choices = [choice for choice in asked.choices if not choice.shortans]
            for choice in choices:
                box = "☒" if answers and choice.correct else "☐"
                parts += [_html(f"{box} {choice.choice_raw}")]
            parts += [_marking(asked) if answers else "<div class=write></div>" * (not choices)]
            parts += ["</section>"]
    write_whole(path, "\n".join(parts).encode())


def _marking(asked: Question) -> str:
    short = " or ".join(choice.choice_raw for choice in asked.choices if choice.shortans)
    said = [asked.solution, asked.feedback_raw, asked.incorrect_feedback_raw]
    said += [f"{c.choice_raw}: {c.feedback_raw}" for c in asked.choices if c.feedback_raw]
    parts = [f"<b>{escape(asked.numerical_raw or short)}</b>", *(_html(s) for s in said if s)]
    return f"<div class=marking>{''.join(parts)}</div>"


def _html(text: str) -> str:
    return str(clean.output({"text/markdown": text})["text/html"])
