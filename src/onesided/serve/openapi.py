"""What the server offers, as an OpenAPI document."""

from typing import Any

from onesided.data.columns.cells import ISO, LARGEST, Column
from onesided.run.opened import Opened
from onesided.serve.samples import IMAGE_TYPES, JSON, MOST_ROWS

TEXT = r"^[^\u0000]*$"
"""Text has no zero bytes."""

ERRORS = {
    "400": "The body is no sample that this model takes.",
    "401": "The bearer token is missing or wrong.",
    "408": "The body came too slowly.",
    "413": "The body is too large.",
    "415": "The body is of another type.",
    "503": "Too many requests are waiting; try again in a second.",
    "504": "Scoring took too long.",
}
"""What POST /score may answer, and what it means."""
_OTHERS = {
    "404": "There is no such path; /openapi.json lists those that there are.",
    "405": "This path takes another method; /openapi.json says which.",
    "500": "The server failed; its log says why.",
}


def sentence_for(code: int) -> str:
    """Return what an error means."""
    return (ERRORS | _OTHERS).get(str(code), "The request cannot be answered.")


def document(model: Opened, version: str, *, token: bool) -> dict[str, Any]:
    """Return the OpenAPI document of a server for this model."""
    is_image = len(model.sample_shape) == 3
    binary = {"schema": {"type": "string", "format": "binary"}}
    content: dict[str, Any] = {JSON: {"schema": _rows(model)}}
    if is_image:
        content = dict.fromkeys(IMAGE_TYPES, binary)
    post = {
        "operationId": "score",
        "summary": "Score one image." if is_image else "Score rows.",
        "requestBody": {"required": True, "content": content},
        "responses": {"200": _answer("Scores.", _scores(model)), **_errors(token=token)},
    }
    about: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {"title": "onesided", "version": version, "description": model.called},
        "paths": {
            "/score": {"post": post},
            "/health": {"get": {"operationId": "health", "responses": {"200": _answer("Up.", {})}}},
            "/metrics": {"get": _metrics(token=token)},
        },
    }
    if token:
        about["components"] = {"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}}
        about["security"] = [{"token": []}]
        about["paths"]["/health"]["get"]["security"] = []
    return about


def _scores(model: Opened) -> dict[str, Any]:
    share = {"type": "number", "minimum": 0, "maximum": 1}
    each: dict[str, Any] = {"score": share, "decision": {"enum": ["positive", "negative"]}}
    if model.calibration is not None:
        each["probability"] = share
    item = _object(each)
    properties = {"model_id": {"type": "string"}, "threshold": {"type": "number"}}
    return _object(properties | {"results": {"type": "array", "items": item}})


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of an object that has exactly these properties."""
    return {
        "type": "object",
        "required": list(properties),
        "properties": properties,
        "additionalProperties": False,
    }


def _cell(column: Column) -> dict[str, Any]:
    """Return the schema of a cell; null is a gap."""
    match column.kind:
        case "number":
            return {"type": ["number", "null"], "minimum": -LARGEST, "maximum": LARGEST}
        case "boolean":
            return {"type": ["boolean", "null"]}
        case "date":
            iso = column.form in ("", ISO)
            words = {"format": "date"} if iso else {"description": f"A date as {column.form}"}
            return {"type": ["string", "null"], **words}
        case "category":
            return {"type": ["string", "number", "null"], "pattern": TEXT}
        case "text":
            return {"type": ["string", "null"], "pattern": TEXT}


def _rows(model: Opened) -> dict[str, Any]:
    if model.columns:
        return _many(_object({column.name: _cell(column) for column in model.columns}))
    width, names = model.sample_shape[0], list(model.feature_names)
    number = {"type": "number", "minimum": -LARGEST, "maximum": LARGEST}
    row: dict[str, Any] = {
        "type": "array",
        "items": number,
        "minItems": width,
        "maxItems": width,
    }
    if names:
        row = {"anyOf": [row, _object(dict.fromkeys(names, number))]}
    return _many(row)


def _many(row: dict[str, Any]) -> dict[str, Any]:
    rows = {"type": "array", "items": row, "minItems": 1, "maxItems": MOST_ROWS}
    return _object({"rows": rows})


def _answer(words: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"description": words, "content": {JSON: {"schema": schema or {"type": "object"}}}}


def _errors(*, token: bool) -> dict[str, Any]:
    schema = {"type": "object", "required": ["error"], "properties": {"error": {"type": "string"}}}
    return {
        code: _answer(words, schema) for code, words in ERRORS.items() if token or code != "401"
    }


def _metrics(*, token: bool) -> dict[str, Any]:
    text = {"description": "Prometheus text.", "content": {"text/plain": {}}}
    responses = {"200": text} | ({"401": _errors(token=True)["401"]} if token else {})
    return {"operationId": "metrics", "responses": responses}
