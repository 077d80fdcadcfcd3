"""How the chips of a model were cut (`cutting.json`), so that other images are cut alike."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from pydantic import Field

from onesided.core.config import Config
from onesided.core.errors import DataError
from onesided.engine.model_file import ModelDescription
from onesided.geo.input.image import Stretch
from onesided.geo.scene.sources import MarkedScene
from onesided.storage.atomic import read_json, write_text

CUTTING = "cutting.json"


class Cutting(Config):
    """How the chips that a model was trained on were cut; stored beside the model."""

    format: Literal[1] = 1
    """Version of this description."""
    margin: float = Field(ge=0)
    """Surroundings of a building, in sizes of the building."""
    images: tuple[Stretch, ...] = ()
    """Before and after, or after alone; none where crops were files already."""


def write_cutting(run: Path, stretches: Sequence[Stretch], margin: float) -> None:
    """Store beside the model how its chips were cut."""
    cutting = Cutting(margin=margin, images=tuple(stretches))
    write_text(run / CUTTING, cutting.model_dump_json(indent=2))


def read_cutting(run: Path) -> Cutting | None:
    """Return how a model's chips were cut, None where onesided map did not cut them."""
    if not (run / CUTTING).exists():
        return None
    return Cutting.from_settings(read_json(run / CUTTING), str(run / CUTTING))


def check_images_fit(
    scene: MarkedScene, run: Path, model: ModelDescription, cutting: Cutting | None
) -> None:
    """Refuse images whose bands are not those the model was trained on."""
    if len(model.sample_shape) != 3:
        raise DataError(f"The model in {run} was trained on numbers, not on images.")
    wanted, given = model.sample_shape[0], scene.scene.channels
    if wanted != given:
        hint = " Is --pre missing?" if wanted == 2 * given else ""
        hint = " Leave --pre out?" if given == 2 * wanted else hint
        raise DataError(
            f"The model in {run} takes images of {wanted} bands, all images together; these have "
            f"{given}.{hint} Give the bands it was trained on, or train on these images."
        )
    trained = [len(image.low) for image in cutting.images] if cutting else []
    shown = [len(stretch.low) for stretch in scene.stretches]
    if trained and shown and trained != shown:
        raise DataError(
            f"The model in {run} was trained on images of {trained} bands, one after the other; "
            f"these have {shown}. Give them as they were given then."
        )
