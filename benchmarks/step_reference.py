"""A training step of NcPU, written plainly and not optimised.

It is the same mathematics as `onesided.methods.ncpu` with the paper's settings. `benchmarks.step`
compares its speed with ours, and its test compares the results. Single precision, torch's default
memory format, one operation after the other. Pillow makes the views, image by image. Prototypes
and the target network are updated in Python loops.

Symbols are those of `onesided.methods.ncpu`.
"""

import math
import random
from collections.abc import Mapping, Sequence
from copy import deepcopy

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image, ImageEnhance
from torch import Tensor, nn

from onesided.core.labels import NEGATIVE, POSITIVE
from onesided.engine.train_config import TrainConfig
from onesided.methods.ncpu import NcPU
from onesided.nets.convolution import Convolution3x3

SIDES = (3 / 4, 4 / 3)
AREA = (0.2, 1.0)
FACTOR = (0.6, 1.4)
MARGIN = 1e-4


def weak_view(image: Image.Image, chance: random.Random) -> Image.Image:
    """Return a random window of the image, resized to the image's size, mirrored half the time."""
    left, top, width, height = window(image.width, image.height, chance)
    box = (left, top, left + width, top + height)
    view = image.resize(image.size, Image.Resampling.BILINEAR, box=box)
    mirrored = chance.random() < 0.5
    return view.transpose(Image.Transpose.FLIP_LEFT_RIGHT) if mirrored else view


def strong_view(image: Image.Image, chance: random.Random) -> Image.Image:
    """Return a weak view with jittered colours, at times in grey."""
    view = weak_view(image, chance)
    if chance.random() < 0.8:
        for change in chance.sample(("brightness", "contrast", "saturation", "hue"), 4):
            view = recoloured(view, change, chance)
    return view.convert("L").convert("RGB") if chance.random() < 0.2 else view


def window(width: int, height: int, chance: random.Random) -> tuple[int, int, int, int]:
    """Return left, top, width and height: RandomResizedCrop as torchvision documents it."""
    for _ in range(10):
        area = width * height * chance.uniform(*AREA)
        ratio = math.exp(chance.uniform(math.log(SIDES[0]), math.log(SIDES[1])))
        across, down = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
        if 0 < across <= width and 0 < down <= height:
            left, top = chance.randint(0, width - across), chance.randint(0, height - down)
            return left, top, across, down
    return 0, 0, width, height


def recoloured(view: Image.Image, change: str, chance: random.Random) -> Image.Image:
    """Return the view after one of the four changes of ColorJitter(.4, .4, .4, .1)."""
    match change:
        case "brightness":
            return ImageEnhance.Brightness(view).enhance(chance.uniform(*FACTOR))
        case "contrast":
            return ImageEnhance.Contrast(view).enhance(chance.uniform(*FACTOR))
        case "saturation":
            return ImageEnhance.Color(view).enhance(chance.uniform(*FACTOR))
        case _:
            hue, saturation, value = view.convert("HSV").split()
            turn = round(chance.uniform(-0.1, 0.1) * 255)
            turned = (np.asarray(hue, dtype=np.int16) + turn) % 256
            hue = Image.fromarray(turned.astype(np.uint8))
            return Image.merge("HSV", (hue, saturation, value)).convert("RGB")


def as_tensor(image: Image.Image) -> Tensor:
    """Return the image as (C, H, W) numbers from 0 to 1."""
    return torch.from_numpy(np.array(image)).permute(2, 0, 1).contiguous().float() / 255


def plain_views(images: Sequence[Image.Image], chance: random.Random) -> dict[str, Tensor]:
    """Return NcPU's three views of a batch."""
    return {
        "classify": torch.stack([as_tensor(weak_view(one, chance)) for one in images]),
        "query": torch.stack([as_tensor(strong_view(one, chance)) for one in images]),
        "key": torch.stack([as_tensor(strong_view(one, chance)) for one in images]),
    }


def with_torchs_convolutions(network: nn.Module) -> nn.Module:
    """Return a copy of a network with torch's own convolutions."""
    copy = deepcopy(network)
    for layer in copy.modules():
        if isinstance(layer, Convolution3x3):
            # The parent class of ours: the same parameters, another `forward`.
            layer.__class__ = nn.Conv2d  # type: ignore[assignment]
    return copy


class PlainNcPU:
    """NcPU's networks, buffers and optimizer, copied from an untrained `NcPU`."""

    def __init__(self, method: NcPU, train: TrainConfig) -> None:
        self.config, self.clip = method.config, train.clip
        self.backbone = with_torchs_convolutions(method.backbone).train()
        self.classifier = deepcopy(method.classifier)
        self.projector = deepcopy(method.branch.projector).train()
        self.predictor = deepcopy(method.branch.predictor).train()
        self.target = nn.Sequential(deepcopy(self.backbone), deepcopy(self.projector))
        self.phantom = method.targets.phantom.clone()
        self.certain = torch.eye(2, dtype=self.phantom.dtype)
        self.prototypes = method.prototypes.vectors.clone()
        self.confidence, self.class_share = 0.5, [0.5, 0.5]
        online = (self.backbone, self.classifier, self.projector, self.predictor)
        for part in (*online, self.target):
            part.to(memory_format=torch.contiguous_format)  # type: ignore[call-overload]
        self.parameters = [parameter for part in online for parameter in part.parameters()]
        self.optimizer = torch.optim.SGD(
            self.parameters,
            lr=train.learning_rate,
            momentum=train.momentum,
            weight_decay=train.weight_decay,
            foreach=False,
        )

    def step(
        self, views: Mapping[str, Tensor], rows: Tensor, labelled: Tensor, epoch: int
    ) -> float:
        """Take one step, and return the loss before it."""
        total = self.loss(*self.forward(views), rows, labelled, epoch)
        self.optimizer.zero_grad()
        total.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(self.parameters, self.clip, foreach=False)
        self.optimizer.step()
        return total.item()

    def forward(self, views: Mapping[str, Tensor]) -> tuple[Tensor, Tensor, Tensor]:
        """Update the target network; return logits, queries and keys."""
        logits = self.classifier(self.backbone(views["classify"]))
        query = self.predictor(self.projector(self.backbone(views["query"])))
        self.follow()
        with torch.no_grad():
            key = self.target(views["key"])
        return logits, F.normalize(query, dim=1), F.normalize(key, dim=1)

    @torch.no_grad()
    def follow(self) -> None:
        """Move the target network a little towards the online one, tensor by tensor."""
        eta = self.config.encoder_momentum
        online = [*self.backbone.parameters(), *self.projector.parameters()]
        for slow, fast in zip(self.target.parameters(), online, strict=True):
            slow.copy_(eta * slow + (1 - eta) * fast)

    def loss(
        self,
        logits: Tensor,
        query: Tensor,
        key: Tensor,
        rows: Tensor,
        labelled: Tensor,
        epoch: int,
    ) -> Tensor:
        """Return Eq. 14 with the entropy term, after moving prototypes, gate and targets."""
        settled = epoch >= self.config.warmup_epochs
        f = logits.detach().softmax(dim=1)
        votes = self.move_prototypes_and_vote(query.detach(), f, labelled)
        threshold = self.move_threshold(f)
        target = self.move_targets(rows, labelled, votes, settled)
        if settled:
            gated = ~labelled & (f[:, NEGATIVE] >= threshold)
            target[gated] = self.certain[NEGATIVE]
        cost = -(target * logits.log_softmax(dim=1)).sum(dim=1)
        positive = cost[labelled].mean() if labelled.any() else cost.sum() * 0
        unlabelled = cost[~labelled].mean() if not labelled.all() else cost.sum() * 0
        ramp = min(epoch / self.config.warmup_epochs, 1.0) if self.config.warmup_epochs else 1.0
        entropy = -(logits.softmax(dim=1) * logits.log_softmax(dim=1)).sum(dim=1).mean()
        alignment = self.align(query, key, f, settled)
        return (
            positive
            + unlabelled
            + self.config.alignment_weight * alignment
            + ramp * self.config.entropy_weight * entropy
        )

    def move_prototypes_and_vote(self, query: Tensor, f: Tensor, labelled: Tensor) -> Tensor:
        """Move mu_c sample by sample (Eq. 9), then let every sample vote (Eq. 10)."""
        alpha = self.config.prototype_momentum
        predicted = f.argmax(dim=1)
        for q, label in zip(query, predicted.tolist(), strict=True):
            moved = alpha * self.prototypes[label] + (1 - alpha) * q
            self.prototypes[label] = F.normalize(moved, dim=0)
        votes = (query @ self.prototypes.T).argmax(dim=1)
        votes[labelled] = POSITIVE
        return votes

    def move_threshold(self, f: Tensor) -> float:
        """Move confidence and class shares (Eq. 12); return the threshold (Eq. 13)."""
        gamma = self.config.threshold_momentum
        surest = f.max(dim=1).values.mean().item()
        self.confidence = gamma * self.confidence + (1 - gamma) * surest
        shares = zip(self.class_share, f.mean(dim=0).tolist(), strict=True)
        self.class_share = [gamma * share + (1 - gamma) * now for share, now in shares]
        return self.class_share[NEGATIVE] / max(self.class_share) * self.confidence

    def move_targets(self, rows: Tensor, labelled: Tensor, votes: Tensor, settled: bool) -> Tensor:
        """Move the phantom targets towards the votes (Eq. 10); return them."""
        if settled:
            beta = self.config.target_momentum
            self.phantom[rows] = beta * self.phantom[rows] + (1 - beta) * self.certain[votes]
        self.phantom[rows[labelled]] = self.certain[POSITIVE]
        return self.phantom[rows]

    def align(self, query: Tensor, key: Tensor, f: Tensor, settled: bool) -> Tensor:
        """Return the mean of 2 sqrt(1 - q.k) over each sample's pairs (Eq. 7)."""
        pairs = torch.eye(len(query), dtype=torch.bool)
        if settled:
            predicted = f.argmax(dim=1)
            pairs = predicted[:, None] == predicted
        cosine = (query @ key.T).clamp(MARGIN, 1 - MARGIN)
        distance = 2 * (1 - cosine).sqrt()
        return ((distance * pairs).sum(dim=1) / pairs.sum(dim=1)).mean()


def plain_scores(
    images: Sequence[Image.Image], backbone: nn.Module, classifier: nn.Module
) -> list[float]:
    """Return the score of every image, computed one by one."""
    scores = []
    with torch.no_grad():
        for image in images:
            logits = classifier(backbone(as_tensor(image)[None]))
            scores.append(logits.softmax(dim=1)[0, POSITIVE].item())
    return scores
