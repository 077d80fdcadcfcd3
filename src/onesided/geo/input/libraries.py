"""The libraries of the extra `geo`, imported when they are needed and named when missing."""

import importlib
from types import ModuleType

from onesided.core.errors import OnesidedError


def library(name: str, purpose: str) -> ModuleType:
    """Return an optional library, or say what it would be needed for and how to get it.

    Args:
        name: Name to import, for example `rasterio.warp`.
        purpose: Starts the sentence, for example `Reading a GeoTIFF`.
    """
    try:
        return importlib.import_module(name)
    except ImportError:
        package = name.partition(".")[0]
        raise OnesidedError(
            f"{purpose} takes the library {package}, which is not installed. "
            "Install the extra `geo`: pip install onesided[geo]"
        ) from None
