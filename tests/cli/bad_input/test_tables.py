"""Tables to learn from and to rank, as spreadsheets, scripts and accidents write them."""

from pathlib import Path

from tests.cli.bad_input.refusals import assert_refused_untouched, each, write
from tests.cli.pictures import draw

Content = str | bytes

HEAD = "path,label\n"
P, U = "a.png,positive\n", "b.png,unlabelled\n"
NUMBERS = "label,x\n" + "positive,1\n" * 12 + "unlabelled,2\n" * 12

TO_LEARN_FROM: dict[str, tuple[Content, str]] = {
    "empty": ("", "empty"),
    "an empty line": ("\n", "empty"),
    "only a heading": (HEAD, "no row is positive"),
    "no heading": (P + U, "no column 'label'"),
    "no positives": (HEAD + U, "no row is positive"),
    "no unlabelled": (HEAD + P, "no row is unlabelled"),
    "only negatives": (HEAD + "a.png,negative\n", "found negative"),
    "zero and one": (HEAD + "a.png,0\n", "Numbers are refused"),
    "minus one": (HEAD + "a.png,-1\n", "Numbers are refused"),
    "NaN": (HEAD + "a.png,nan\n", "line 2"),
    "an empty label": (HEAD + "a.png,\n", "line 2"),
    "a fourth label": (HEAD + P + U + "c.png,unsure\n", "line 4"),
    "an empty path": (HEAD + ",positive\n", "path is empty"),
    "a zero byte in a path": (HEAD + "a\0.png,positive\n" + U, "items.csv"),
    "a file twice": (HEAD + P + P + U, "listed already in line 2"),
    "a file in both roles": (HEAD + P + "a.png,unlabelled\n", "listed already"),
    "a file by another path": (HEAD + P + "./a.png,unlabelled\n", "listed already"),
    "missing files": (HEAD + "no.png,positive\n" + U, "no.png"),
    "a folder for a file": (HEAD + ".,positive\n" + U, "items.csv"),
    "a text for an image": (HEAD + "items.csv,positive\n" + U, "items.csv"),
    "too long a name": (HEAD + "x" * 300 + ".png,positive\n" + U, "items.csv"),
    "too few": (HEAD + P + U, "too few"),
    "a cell too many": (HEAD + "a.png,positive,more\n", "3 cells"),
    "a cell too few": (HEAD + "a.png\n", "1 cells"),
    "an open quote": (HEAD + '"a.png,positive\n', "items.csv"),
    "a cell without end": (HEAD + "x" * 200_000 + ",positive\n", "items.csv"),
    "two columns of one name": ("path,label,label\na,positive,positive\n", "two columns"),
    "not UTF-8": (HEAD.encode() + b"\xe9.png,positive\n", "UTF-8"),
    "UTF-16": ((HEAD + P + U).encode("utf-16"), "UTF-8"),
    "zero bytes": (bytes(100), "items.csv"),
    "a spreadsheet": (b"PK\x03\x04" + bytes(range(256)), "items.csv"),
    "a page": ("<html><body>404</body></html>\n", "no column 'label'"),
    "labels alone": ("label\npositive\n", "neither a column 'path'"),
    "labels and names alone": ("label,name,id\npositive,a,1\n", "neither a column 'path'"),
    "words for numbers": (NUMBERS + "unlabelled,high\n", "not a number"),
    "a gap in every row": ("label,x\n" + "positive,\n" * 12 + "unlabelled,\n" * 12, "empty"),
    "an infinity among numbers": (NUMBERS + "unlabelled,-inf\n", "finite"),
    "a number too large": (NUMBERS + "unlabelled,1e39\n", "finite"),
    "a number of 400 digits": (NUMBERS + f"unlabelled,{10**400}\n", "finite"),
    "a decimal comma": (NUMBERS + 'unlabelled,"1,5"\n', "decimals after a point"),
    "a formula": (NUMBERS + "unlabelled,=1+1\n", "not a number"),
    "a zero byte in a cell": (NUMBERS + "unlabelled,a\0b\n", "items.csv"),
    "nothing but an id": (
        "label,x\n" + "".join(f"{('positive', 'unlabelled')[n % 2]},r{n}\n" for n in range(40)),
        "names the rows",
    ),
    "a date or another": (
        "label,x\n" + "positive,03/04/2024\n" * 12 + "unlabelled,05/06/2024\n" * 12,
        "day or the month",
    ),
    "a name twice": (
        NUMBERS.replace("label,x", "label,name").replace("label,name", "label,name,x")
        + "positive,1,1\n",
        "items.csv",
    ),
}


@each(TO_LEARN_FROM)
def test_a_table_to_learn_from_is_refused(tmp_path: Path, case: tuple[Content, str]) -> None:
    content, said = case
    for number, name in enumerate("abc"):
        draw(tmp_path / f"{name}.png", number)
    write(content)(tmp_path / "items.csv")
    words = ("--table", tmp_path / "items.csv", "-o", tmp_path / "run", "--quiet")
    assert_refused_untouched(tmp_path, "fit", *words, said=said)


TO_RANK: dict[str, tuple[Content, str]] = {
    "empty": ("", "empty"),
    "no column of paths": ("file\na.png\n", "no column 'path'"),
    "only a heading": ("path\n", "items.csv"),
    "numbers for a model of images": ("x,y\n1,2\n", "trained on images"),
    "an empty path": ('path\n"" \n', "items.csv"),
    "a zero byte": ("path\na\0.png\n", "items.csv"),
    "missing files": ("path\nno.png\n", "none of 1"),
    "a folder": ("path\n.\n", "none of 1"),
    "a text": ("path\nitems.csv\n", "none of 1"),
    "half of them missing": ("path\na.png\nno.png\n", "1 of 2"),
    "a cell too many": ("path\na.png,b.png\n", "2 cells"),
    "not UTF-8": (b"path\n\xe9.png\n", "UTF-8"),
    "zero bytes": (bytes(100), "items.csv"),
    "an open quote": ('path\n"a.png\n', "items.csv"),
    "two columns of one name": ("path,path\na.png,a.png\n", "two columns"),
}


@each(TO_RANK)
def test_a_table_to_rank_is_refused(
    trained: Path, tmp_path: Path, case: tuple[Content, str]
) -> None:
    content, said = case
    place = draw(tmp_path / "pool" / "a.png", 0).parent
    write(content)(place / "items.csv")
    # Beside the ranking stays what was found out, for another --tolerate.
    words = ("rank", trained, place / "items.csv", "-o", tmp_path / "ranked.csv", "--quiet")
    assert_refused_untouched(place, *words, said=said)
    assert not (tmp_path / "ranked.csv").exists()
