import re
from importlib.resources import files


def test_every_class_and_element_that_is_styled_exists() -> None:
    style = files("onesided.report").joinpath("web", "style.css").read_text("utf-8")
    rules = re.sub(r"\{[^{}]*\}", ",", style).replace("{", ",").replace("}", ",")
    classes = set(re.findall(r"\.([a-z]+)", rules))
    report = files("onesided.report")
    folders = (*report.iterdir(), *report.joinpath("web").iterdir())
    sources = [file for file in folders if file.name[-3:] in (".py", "tml")]
    sources.append(files("onesided.pages").joinpath("base.html"))
    code = "".join(file.read_text("utf-8") for file in sources)
    used = {word for names in re.findall(r'class="([^"]+)"', code) for word in names.split()}
    elements = set(re.findall(r"(?:^|[\s,>])([a-z][a-z0-9]*)(?=[\s,:.\[]|$)", rules, re.MULTILINE))
    assert classes == used
    words_of_media_queries, drawn_by_matplotlib = {"and", "print"}, {"text"}
    written = set(re.findall(r"<([a-z][a-z0-9]*)", code))
    assert elements <= written | words_of_media_queries | drawn_by_matplotlib
