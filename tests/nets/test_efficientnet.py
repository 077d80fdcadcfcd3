import importlib
import math
from collections.abc import Mapping

import pytest
import torch
from torch import Tensor

from onesided.nets.efficientnet import (
    EfficientNetLite0,
    SameConvolution,
    from_published,
    our_name,
    resize,
    same_padding,
    stem_for_channels,
    working_size,
)
from onesided.nets.pretrained import published_file, read_weights
from onesided.nets.standardise import Standardise


def network(channels: int = 3, size: tuple[int, int] = (32, 32)) -> EfficientNetLite0:
    torch.manual_seed(0)
    numbers = [0.5] * channels
    return EfficientNetLite0(Standardise(numbers, numbers), size=size).eval()


def picture(side: int) -> Tensor:
    """An image that is the same in every version of torch."""
    place = torch.arange(3 * side * side, dtype=torch.float64).reshape(1, 3, side, side)
    return (0.5 + 0.5 * torch.sin(0.37 * place)).float()


@pytest.fixture(scope="module")
def published() -> Mapping[str, Tensor]:
    return read_weights(published_file())


def test_it_has_the_published_number_of_weights() -> None:
    # 4,652,008 are published, of which the layer of the 1000 classes has 1281 for each.
    count = sum(parameter.numel() for parameter in network().parameters())
    assert count + 1281 * 1000 == 4_652_008


def test_features_lie_between_zero_and_six() -> None:
    features = network()(torch.rand(3, 3, 8, 8))
    assert features.shape == (3, 1280)
    assert features.min() >= 0
    assert features.max() <= 6


@torch.no_grad()
def test_several_layers_add_mean_and_deviation_of_three_middle_stages() -> None:
    last = network()
    several = EfficientNetLite0(last.standardise, size=last.size, layers="several").eval()
    several.load_state_dict(last.state_dict())
    images = torch.rand(3, 3, 32, 32)
    expected, maps = [last(images)], last.stem(last.standardise(images))
    for number, block in enumerate(last.blocks):
        maps = block(maps)
        if number in (7, 10, 14):  # the last blocks with 80, 112 and 192 channels
            pixels = maps.flatten(2)
            expected += [pixels.mean(2), pixels.std(2, correction=0)]
    assert several.width == 1280 + 2 * (80 + 112 + 192)
    torch.testing.assert_close(several(images), torch.cat(expected, 1), rtol=1e-4, atol=1e-5)
    assert several.identity() != last.identity()


@pytest.mark.parametrize(
    ("size", "kernel", "stride", "expected"),
    [(224, 3, 2, (0, 1)), (7, 5, 1, (2, 2)), (15, 3, 2, (1, 1)), (14, 5, 2, (1, 2))],
)
def test_an_odd_zero_goes_to_the_far_side(
    size: int, kernel: int, stride: int, expected: tuple[int, int]
) -> None:
    assert same_padding(size, kernel, stride) == expected


@pytest.mark.parametrize(("size", "kernel", "stride"), [(6, 3, 2), (7, 5, 2), (5, 5, 2)])
def test_same_convolution_is_a_sum_over_neighbours(size: int, kernel: int, stride: int) -> None:
    layer = SameConvolution(1, 1, kernel, stride=stride, bias=False)
    maps = torch.rand(1, 1, size, size)
    found = layer(maps)
    places = math.ceil(size / stride)
    before = max((places - 1) * stride + kernel - size, 0) // 2
    expected = torch.zeros(places, places)
    for row in range(places):
        for column in range(places):
            for down in range(kernel):
                for across in range(kernel):
                    y = row * stride + down - before
                    x = column * stride + across - before
                    if 0 <= y < size and 0 <= x < size:
                        expected[row, column] += layer.weight[0, 0, down, across] * maps[0, 0, y, x]
    assert torch.allclose(found[0, 0], expected, atol=1e-6)


@pytest.mark.parametrize(
    ("height", "width", "expected"),
    [
        (8, 8, (96, 96)),
        (28, 28, (96, 96)),
        (32, 32, (96, 96)),
        (64, 64, (128, 128)),
        (128, 128, (128, 128)),
        (160, 160, (160, 160)),
        (500, 500, (224, 224)),
        (50, 100, (128, 256)),
    ],
)
def test_small_images_are_enlarged_and_large_ones_left(
    height: int, width: int, expected: tuple[int, int]
) -> None:
    assert working_size(height, width) == expected


def test_a_chosen_size_is_taken_and_keeps_the_proportions() -> None:
    assert working_size(32, 64, 48) == (48, 96)


def test_an_image_of_the_right_size_is_not_touched() -> None:
    image = torch.rand(1, 3, 16, 16)
    assert resize(image, (16, 16)) is image


def test_shrinking_averages_all_pixels() -> None:
    stripes = torch.zeros(1, 1, 16, 16)
    stripes[..., ::2] = 1.0
    inner = resize(stripes, (4, 4))[..., 1:-1]
    assert torch.allclose(inner, torch.full_like(inner, 0.5), atol=1e-5)


def test_one_grey_channel_gives_what_three_equal_ones_give() -> None:
    colour = network()
    grey = network(channels=1)
    state = dict(colour.state_dict())
    state["stem.0.weight"] = stem_for_channels(state["stem.0.weight"], 1)
    state |= {f"standardise.{name}": torch.full((1,), 0.5) for name in ("mean", "std")}
    grey.load_state_dict(state)
    image = torch.rand(2, 1, 16, 16)
    assert torch.allclose(grey(image), colour(image.repeat(1, 3, 1, 1)), atol=1e-5)


@pytest.mark.parametrize("channels", [3, 6, 9])
def test_the_same_image_twice_gives_what_it_gave_once(channels: int) -> None:
    weight = torch.rand(4, 3, 3, 3)
    image = torch.rand(1, 3, 8, 8)
    once = torch.conv2d(image, weight)
    wide = stem_for_channels(weight, channels)
    again = torch.conv2d(image.repeat(1, channels // 3, 1, 1), wide)
    assert torch.allclose(again, once, atol=1e-5)


def test_channels_without_colours_count_as_shades_of_grey() -> None:
    weight = torch.rand(4, 3, 3, 3)
    wide = stem_for_channels(weight, 4)
    assert wide.shape == (4, 4, 3, 3)
    assert torch.allclose(wide.sum(dim=1), weight.sum(dim=1), atol=1e-6)
    assert torch.equal(wide[:, 0], wide[:, 3])


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("_conv_stem.weight", "stem.0.weight"),
        ("_bn0.running_mean", "stem.1.running_mean"),
        ("_blocks.3._expand_conv.weight", "blocks.3.expand.0.weight"),
        ("_blocks.3._bn0.bias", "blocks.3.expand.1.bias"),
        ("_blocks.0._bn1.weight", "blocks.0.depthwise.1.weight"),
        ("_blocks.15._bn2.running_var", "blocks.15.project.1.running_var"),
        ("_bn1.weight", "head.1.weight"),
        ("something.else", "something.else"),
    ],
)
def test_published_names_have_ours(theirs: str, ours: str) -> None:
    assert our_name(theirs) == ours


def test_published_weights_fill_the_network_and_bring_their_preprocessing(
    published: Mapping[str, Tensor],
) -> None:
    ours = network()
    ours.load_state_dict(from_published(published, 3))
    black, white = (
        ours.standardise(torch.zeros(1, 3, 2, 2)),
        ours.standardise(torch.ones(1, 3, 2, 2)),
    )
    assert black.flatten()[0].item() == pytest.approx(-127 / 128)
    assert white.flatten()[0].item() == pytest.approx(1.0)


def test_published_weights_give_the_published_answers(published: Mapping[str, Tensor]) -> None:
    ours = network(size=(224, 224))
    ours.load_state_dict(from_published(published, 3))
    with torch.no_grad():
        features = ours(picture(224))
        logits = features @ published["_fc.weight"].T + published["_fc.bias"]
    # Computed with the network of the package efficientnet_lite_pytorch 0.1.0.
    assert features.sum().item() == pytest.approx(146.40756, rel=1e-4)
    facts = {0: -0.9551083, 1: 0.4349045, 985: -0.1394442, 999: 1.5260344, 905: 5.1361642}
    for place, fact in facts.items():
        assert logits[0, place].item() == pytest.approx(fact, abs=1e-3)
    assert logits.argmax().item() == 905


@pytest.mark.parametrize("side", [96, 224])
def test_features_are_those_of_the_converters_own_network(
    side: int, published: Mapping[str, Tensor]
) -> None:
    pytest.importorskip(
        "efficientnet_lite_pytorch",
        reason="the network to compare with is not there; pip install efficientnet-lite-pytorch",
    )
    theirs = importlib.import_module("efficientnet_lite_pytorch").EfficientNet.from_name(
        "efficientnet-lite0", image_size=side
    )
    theirs.load_state_dict(published)
    theirs.eval()
    ours = network(size=(side, side))
    ours.load_state_dict(from_published(published, 3))
    image = torch.rand(1, 3, side, side, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        expected = theirs.extract_features((255 * image - 127) / 128).mean(dim=(2, 3))
        assert torch.allclose(ours(image), expected, atol=1e-4)
