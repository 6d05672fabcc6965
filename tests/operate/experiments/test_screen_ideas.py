"""`ideas.toml`: what is read of it, and what is wrong with it by its key, its file and the remedy."""

from __future__ import annotations

from pathlib import Path

import pytest

from plumbline.core.errors import PlumblineError
from plumbline.operate.experiments import screen_ideas
from plumbline.operate.experiments.screen_ideas import IdeasFile, list_flags

TWO = '[ideas]\na = { flags = "--x 1" }\n'


def read(folder: Path, text: str) -> IdeasFile:
    path = folder / "ideas.toml"
    path.write_text(text)
    return screen_ideas.load(path)


def test_ideas_are_flags_patches_and_branches(tmp_path: Path) -> None:
    text = (
        'never_together = [["c", "a", "b"]]\n[ideas]\na = { flags = "--x \'1 2\'" }\n'
        'b = { patch = "p/b.patch", flags = "--x=2 --y -3" }\nc = { branch = "muon" }\n'
    )
    file = read(tmp_path, text)
    assert [(name, idea.words, idea.text) for name, idea in file.ideas.items()] == [
        ("a", ("--x", "1 2"), "--x '1 2'"),
        ("b", ("--x=2", "--y", "-3"), "p/b.patch, --x=2 --y -3"),
        ("c", (), "branch muon"),
    ]
    assert file.excluded == [("a", "b"), ("a", "c"), ("b", "c")]
    assert file.of_one_flag == [("a", "b", "--x")]


def test_what_sets_a_flag() -> None:
    assert list_flags(("--lr", "-3", "--lr=1", "model.layers=2", "-v", "word", "-1.5")) == [
        "--lr",
        "model.layers",
        "-v",
    ]


@pytest.mark.parametrize(
    ("text", "key", "remedy"),
    [
        ("[ideas\n", "", "is not TOML"),
        ("[idea]\n", "'idea'", "did you mean 'ideas'"),
        ("", "'ideas'", "add it"),
        (TWO, "ideas: 1 of them", "plumbline try -m"),
        (f'{TWO}b = {{ ptch = "p" }}\n', "ideas.b: unknown key 'ptch'", "did you mean 'patch'"),
        (f"{TWO}b = {{}}\n", "ideas.b: is empty", "write flags"),
        (f'{TWO}baseline = {{ flags = "--y" }}\n', "ideas.baseline", "another name"),
        (f'{TWO}b = {{ flags = " " }}\n', "ideas.b: is empty", "write flags"),
        (f'{TWO}b = "--y"\n', "ideas.b", "{ flags = '--y' }"),
        (f"{TWO}b = {{ flags = 3 }}\n", "ideas.b.flags", "is not a text"),
        (f'{TWO}b = {{ flags = "\'" }}\n', "ideas.b.flags", "close the quotes"),
        (f'{TWO}b = {{ flags = "\\u0000" }}\n', "ideas.b", "null character"),
        (f'{TWO}b = {{ patch = "p", branch = "q" }}\n', "ideas.b", "make two ideas"),
        (f'{TWO}"b c" = {{ flags = "--y" }}\n', "'b c'", "at most 40 letters"),
        (f'{TWO}a = {{ flags = "--y" }}\n', "", "is not TOML"),
        (f'{TWO}clip-0.3 = {{ flags = "--y" }}\n', "ideas.clip-0.3", '"clip-0.3" = ...'),
        (f'{TWO}b = {{ flags = "--y" }}\ntogether = [["a", "b"]]\n', "ideas.together", "above [ideas]"),
        (f'never_together = [["a"]]\n{TWO}b = {{ flags = "--y" }}\n', "never_together.0", "name two or more"),
        (f'never_together = [["a", "a"]]\n{TWO}b = {{ flags = "--y" }}\n', "never_together.0", "name two or more"),
        (f'never_together = [["a", "bb"]]\n{TWO}b1 = {{ flags = "--y" }}\n', "never_together.0", "no idea 'bb'"),
        (f'never_together = ["a", "b"]\n{TWO}b = {{ flags = "--y" }}\n', "never_together.0", "is not a list"),
        ("[ideas]\n" + "".join(f'i{n} = {{ flags = "--f{n}" }}\n' for n in range(501)), "ideas: 501", "2 to 500"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, text: str, key: str, remedy: str) -> None:
    with pytest.raises(PlumblineError) as error:
        read(tmp_path, text)
    message = str(error.value)
    assert message.startswith(str(tmp_path / "ideas.toml")) and key in message and remedy in message


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    for path in (tmp_path / "no.toml", tmp_path):
        with pytest.raises(PlumblineError, match=r"cannot be read.+\[ideas\]"):
            screen_ideas.load(path)
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(PlumblineError, match=r"bytes.toml is not TOML"):
        screen_ideas.load(tmp_path / "bytes.toml")
