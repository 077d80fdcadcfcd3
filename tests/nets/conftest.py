import pytest
import torch
from torch import Tensor

from onesided.nets import convolution


@pytest.fixture
def in_winograds_form(monkeypatch: pytest.MonkeyPatch) -> list[torch.Size]:
    """Return a list that notes the maps of every convolution computed in Winograd's form."""
    noted: list[torch.Size] = []
    winograd = convolution.winograd

    def noting(maps: Tensor, kernel: Tensor) -> Tensor:
        noted.append(maps.shape)
        return winograd(maps, kernel)

    monkeypatch.setattr(convolution, "winograd", noting)
    return noted
