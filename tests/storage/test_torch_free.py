"""Files are read and written without torch, which takes seconds to import."""

import pkgutil
import subprocess
import sys

import pytest

from onesided import storage


@pytest.mark.parametrize(
    "module", [module.name for module in pkgutil.iter_modules(storage.__path__)]
)
def test_storage_loads_no_torch(module: str) -> None:
    code = f"import sys, onesided.storage.{module}; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
