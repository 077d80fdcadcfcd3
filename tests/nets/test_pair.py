"""Pairs of images before and after as features of both and of how much they differ."""

import pytest
import torch

from onesided.core.errors import ConfigError
from onesided.nets.build import BackboneConfig, build_backbone, load_initial_weights
from onesided.nets.standardise import Backbone

SETTINGS = BackboneConfig(name="efficientnet_lite0", freeze=True, resize=32, pair=True)


def built(settings: BackboneConfig, channels: int) -> Backbone:
    backbone = build_backbone(settings, (channels, 16, 16), [0.5] * channels, [0.2] * channels)
    load_initial_weights(settings, backbone)
    return backbone.requires_grad_(False).eval()


def test_features_are_those_of_each_image_and_their_absolute_difference() -> None:
    images = torch.rand(3, 6, 16, 16, generator=torch.Generator().manual_seed(0))
    single = built(SETTINGS.model_copy(update={"pair": False}), 3)
    before, after = single(images[:, :3]), single(images[:, 3:])
    pair = built(SETTINGS, 6)
    expected = torch.cat([before, after, (after - before).abs()], dim=1)
    torch.testing.assert_close(pair(images), expected)
    torch.testing.assert_close(pair.inference().features(images), expected, atol=1e-3, rtol=1e-3)
    assert pair.width == 3 * single.width


def test_the_same_image_twice_has_no_difference() -> None:
    image = torch.rand(2, 3, 16, 16, generator=torch.Generator().manual_seed(1))
    features = built(SETTINGS, 6)(torch.cat([image, image], dim=1))
    assert (features[:, 2560:] == 0).all()


def test_pairs_are_even_and_frozen() -> None:
    with pytest.raises(ConfigError, match="5 together"):
        built(SETTINGS, 5)
    with pytest.raises(ConfigError, match="pair is for a frozen backbone"):
        BackboneConfig.from_settings({"name": "small", "pair": True})


def test_a_pair_is_told_from_a_single_image_in_identity_and_words() -> None:
    single = SETTINGS.model_copy(update={"pair": False})
    assert built(SETTINGS, 6).identity() != built(single, 6).identity()
    assert "pair" not in single.identity()
    assert SETTINGS.identity()["pair"] is True
    assert "before and after one by one" in SETTINGS.in_words((6, 16, 16))
    assert "stacked" not in SETTINGS.in_words((6, 16, 16))
