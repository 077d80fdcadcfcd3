"""Libraries that are imported on use; if one is missing, the error names its extra."""

import importlib
import sys
from types import ModuleType

from onesided.core.errors import MissingLibrary

EXTRAS = {
    "huggingface_hub": "timm",
    "onnx": "export",
    "onnxruntime": "onnx",
    "onnxscript": "export",
    "prometheus_client": "serve",
    "pyarrow": "parquet",
    "pyogrio": "geo",
    "pyproj": "geo",
    "rasterio": "geo",
    "ray": "ray",
    "shapely": "geo",
    "starlette": "review",
    "tensorboard": "tensorboard",
    "tifffile": "geo",
    "timm": "timm",
    "transformers": "hf",
    "uvicorn": "review",
}
"""Library to the extra of this package that installs it; others belong to every installation."""


def library(name: str, purpose: str, *, extra: str | None = None) -> ModuleType:
    """Return an optional library such as `rasterio.warp`, or raise how to install it.

    `purpose` starts that sentence, for example `Reading a GeoTIFF`. `extra` is named where several
    extras install the library, and this purpose needs all of one.
    """
    loaded = sys.modules.get(name)
    if loaded is not None and not getattr(loaded.__spec__, "_initializing", False):
        return loaded  # asked for several times for each of a million buildings
    package = name.partition(".")[0]
    try:
        found = importlib.import_module(name)
        if found.__spec__ is None or found.__spec__.origin is None:
            # A folder of this name where Python looks, with nothing to import from.
            del sys.modules[name]
            raise ModuleNotFoundError(name=name)
        return found
    except ImportError as error:
        missing = isinstance(error, ModuleNotFoundError) and error.name in (name, package)
        problem = "is not installed" if missing else f"cannot be loaded ({error})"
        raise MissingLibrary(
            f"{purpose} takes the library {package}, which {problem}.", extra or EXTRAS.get(package)
        ) from error
