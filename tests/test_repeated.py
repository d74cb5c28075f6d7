"""README and the teachers' pages say what the chapters say."""

import repeated


def test_readme_and_the_pages_of_teachers_repeat_the_chapters():
    for path, text in repeated.repeated().items():
        assert path.read_text(encoding="utf-8") == text, "run: .venv/bin/python tools/repeated.py"
