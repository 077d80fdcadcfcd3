"""How QGIS draws the layer: from pale to dark red by score, grey where there is none."""

# ColorBrewer's YlOrRd in five classes: readable in print and by the colour-blind.
COLOURS = ("255,255,178", "254,204,92", "253,141,60", "240,59,32", "189,0,38")
NO_SCORE = "150,150,150"
# A graduated style leaves out what has no number, and nobody would know of these buildings.
GRADED_BY = "coalesce(&quot;score&quot;, -1)"


def style_text(*, is_point: bool) -> str:
    """Return a QML file that grades the column `score` in five classes, and grey for none."""
    steps = len(COLOURS)
    classes = [(-1.0, -0.5, "no score, see the column reason")]
    for step in range(steps):
        low, high = step / steps, (step + 1) / steps
        classes.append((low, high, f"{low:.1f} to {high:.1f}"))
    ranges = "\n".join(
        f'      <range lower="{low:.6f}" upper="{high:.6f}" symbol="{number}" label="{label}" '
        'render="true"/>'
        for number, (low, high, label) in enumerate(classes)
    )
    symbols = "\n".join(
        _symbol(number, colour, is_point=is_point)
        for number, colour in enumerate((NO_SCORE, *COLOURS))
    )
    return (
        "<!DOCTYPE qgis PUBLIC 'http://mrcc.com/qgis.dtd' 'SYSTEM'>\n"
        '<qgis version="3.22" styleCategories="Symbology">\n'
        f'  <renderer-v2 type="graduatedSymbol" attr="{GRADED_BY}" '
        'graduatedMethod="GraduatedColor" symbollevels="0" forceraster="0" enableorderby="0">\n'
        f"    <ranges>\n{ranges}\n    </ranges>\n"
        f"    <symbols>\n{symbols}\n    </symbols>\n"
        "  </renderer-v2>\n"
        f"  <layerGeometryType>{0 if is_point else 2}</layerGeometryType>\n"
        "</qgis>\n"
    )


def _symbol(number: int, colour: str, *, is_point: bool) -> str:
    kind, drawn = ("marker", "SimpleMarker") if is_point else ("fill", "SimpleFill")
    further = '<Option name="size" type="QString" value="2"/>' if is_point else ""
    return (
        f'      <symbol name="{number}" type="{kind}" alpha="0.8" clip_to_extent="1">\n'
        f'        <layer class="{drawn}" enabled="1" locked="0" pass="0"><Option type="Map">'
        f'<Option name="color" type="QString" value="{colour},255"/>'
        '<Option name="outline_color" type="QString" value="60,60,60,255"/>'
        '<Option name="outline_width" type="QString" value="0.1"/>'
        f"{further}</Option></layer>\n"
        "      </symbol>"
    )
