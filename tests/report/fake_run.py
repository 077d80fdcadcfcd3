"""Writes a believable run folder, as a fit on post-disaster building chips would leave it."""

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

Array = NDArray[Any]

N_POSITIVE, N_UNLABELLED, EPOCHS = 480, 6_000, 60
THRESHOLD = 0.5

HOSTILE = (
    "\"><script>alert(1)</script>\n\u202e<img src=http://evil.example/x onerror='a'>"
    "\udcff,'quote\" $title ${style} &amp; \x00 {{x}}.png"
)


def write_fake_run(run: Path, *, seed: int = 0, side: int = 48) -> Path:
    """Fill the folder with every file a report can use and return it."""
    run.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(seed)
    truth = rng.random(N_UNLABELLED) < 0.09
    scores = np.where(truth, rng.beta(5, 1, N_UNLABELLED), rng.beta(0.5, 9, N_UNLABELLED))
    write_scores(run / "scores.csv", scores)
    write_json(run / "result.json", fake_result(float((scores > THRESHOLD).mean())))
    write_json(run / "manifest.json", fake_manifest())
    write_json(run / "compare.json", fake_comparison())
    write_log(run / "log.jsonl", rng)
    np.savez(run / "report.npz", **fake_arrays(rng, scores, truth, side))  # type: ignore[arg-type]
    return run


def write_json(path: Path, content: object) -> None:
    path.write_text(json.dumps(content), encoding="utf-8")


def change_json(path: Path, change: Callable[[Any], object]) -> None:
    content = json.loads(path.read_text())
    change(content)
    write_json(path, content)


def write_scores(path: Path, scores: Array) -> None:
    order = np.argsort(-scores, kind="stable")
    with path.open("w", encoding="utf-8", errors="surrogateescape", newline="") as file:
        table = csv.writer(file)
        table.writerow(["item", "score", "rank", "decision"])
        for rank, row in enumerate(order, start=1):
            decision = "positive" if scores[row] > THRESHOLD else "negative"
            table.writerow([f"buildings/{row:05d}.png", f"{scores[row]:.6f}", rank, decision])


def figure(label: str, value: float, assumes: str, spread: float | None = None) -> dict[str, Any]:
    low, high = (None, None) if spread is None else (value - spread, min(1.0, value + spread))
    return {"label": label, "value": value, "low": low, "high": high, "assumes": assumes}


def fake_figures(share: float) -> dict[str, Any]:
    random = "The held-out items are a random part of the data and were not trained on."
    typical = f"{random} The labelled positives are typical of all positives (SCAR)."
    prior = f"{typical} Exactly 0.094 of the unlabelled items are positive."
    return {
        "recall": figure("Recall: share of positives that were found", 0.917, typical, 0.041),
        "share_positive": figure("Share of items called positive", share, random, 0.008),
        "precision": figure("Precision: share of true positives", 0.873, prior, 0.06),
        "f1": figure("F1 on the unlabelled items", 0.894, prior, 0.04),
        "proxy_accuracy": figure("Accuracy, estimated without negatives", 0.974, prior),
        "proxy_auc": figure("Proxy AUC: a positive outscores an unlabelled", 0.941, random, 0.012),
        "auc": figure("AUC: how often a positive outscores a negative", 0.985, prior),
        "lee_liu": figure("Lee-Liu criterion: recall squared over share", 9.71, typical),
    }


def fake_result(share: float) -> dict[str, Any]:
    return {
        "method": "ncpu",
        "variant": "paper",
        "logs": {"threshold": {"title": "Threshold τ", "note": "How sure the model must be."}},
        "data": "folder",
        "seed": 0,
        "epochs": EPOCHS,
        "seconds": 1432.7,
        "device": "cpu",
        "precision": "fp32",
        "n_positive": N_POSITIVE,
        "n_unlabelled": N_UNLABELLED,
        "prior": {"value": 0.094, "low": 0.081, "high": 0.112, "origin": "km2"},
        "test": {"oa": 0.971, "f1": 0.886, "precision": 0.861, "recall": 0.912, "auc": 0.988},
        "pu": {"figures": fake_figures(share), "degenerate": None},
        "warnings": [
            "3 files appear in both folders; they are kept as positives.",
            "The prior was estimated from few items.",
        ],
        "skipped": [["buildings/04411.png", "is truncated"], ["buildings/05002.png", "is empty"]],
        "known_negatives": None,
        "threshold": THRESHOLD,
    }


def fake_manifest() -> dict[str, Any]:
    return {
        "versions": {"onesided": "0.1.0", "torch": "2.13.0", "numpy": "2.4.6", "python": "3.11.7"},
        "platform": "Linux-6.1-x86_64",
        "command": "onesided fit -p damaged/ -u buildings/ --test labelled/ -o runs/quake",
        "seed": 0,
        "data_hash": "9c1185a5c5e9fc54612808977ee8f548b2258d31",
        "split_hash": "d033e22ae348aeb5660fc2140aec35850c4da997",
        "commit": "2fd4e1c67a2d28fced849ee1bb76e7391b93eb12",
    }


def fake_comparison() -> list[dict[str, Any]]:
    rows = {"ncpu": 0.971, "nnpu": 0.948, "vpu": 0.952, "ce": 0.931, "upu": 0.094}
    return [
        {
            "method": method,
            "seed": 0,
            "test": {"oa": oa, "f1": oa - 0.08, "precision": oa - 0.1, "recall": 0.9, "auc": oa},
            "pu": {
                "figures": fake_figures(0.09 if oa > 0.5 else 1.0),
                "degenerate": None if oa > 0.5 else "All unlabelled items are called positive.",
            },
        }
        for method, oa in rows.items()
    ]


def write_log(path: Path, rng: Generator) -> None:
    with path.open("w", encoding="utf-8") as file:
        for epoch in range(EPOCHS):
            warm = epoch < 10
            fade = float(np.exp(-epoch / 15)) + 0.02 * float(rng.normal())
            row = {
                "stage": "warm-up" if warm else "train",
                "epoch": epoch if warm else epoch - 10,
                "lr": 0.001,
                "seconds": 23.9,
                "loss": {
                    "total": 18 + 30 * fade,
                    "classification": 0.2 + 0.5 * fade,
                    "alignment": 0.35 + 0.6 * fade,
                    "entropy": -0.4 + 0.3 * fade,
                },
                "watched": {
                    "threshold": 0.95 - 0.4 * fade,
                    "positive_votes": 0.1 + 0.3 * fade,
                    "prototype_cosine": -0.6 + 1.4 * fade,
                },
                "share_positive": max(0.0, 0.09 + 0.4 * fade),
                "proxy_auc": None if epoch % 2 else 0.945 - 0.3 * max(0.0, fade),
            }
            file.write(json.dumps(row) + "\n")


def chip(rng: Generator, side: int, damage: float) -> Array:
    """Draw a roof from above; damage is the share of it that has become rubble."""
    ground = rng.choice([[96, 108, 78], [140, 128, 108], [118, 120, 112]])
    image = ground + rng.normal(0, 9, (side, side, 1))
    top, left = rng.integers(side // 8, side // 4, 2)
    bottom, right = rng.integers(side * 3 // 4, side * 7 // 8, 2)
    roof = rng.choice([[158, 82, 66], [176, 170, 160], [90, 100, 118], [198, 186, 158]])
    image[top:bottom, left:right] = roof + rng.normal(0, 4, (bottom - top, right - left, 1))
    image[top : (top + bottom) // 2, left:right] *= 0.86
    rubble = rng.random((side // 3 + 1, side // 3 + 1)).repeat(3, 0).repeat(3, 1)[:side, :side]
    image[rubble < damage] = rng.choice([60, 105, 190], ((rubble < damage).sum(), 1))
    pixels: Array = image.clip(0, 255).astype(np.uint8)
    return pixels


def fake_arrays(rng: Generator, scores: Array, truth: Array, side: int) -> dict[str, Array]:
    order = np.argsort(-scores)
    fence = np.argsort(np.abs(scores - THRESHOLD))
    arrays: dict[str, Array] = {"positive_scores": rng.beta(5, 1, 160)}
    groups = {"top": order[:16], "threshold": fence[:16], "bottom": order[:-17:-1]}
    for group, rows in groups.items():
        arrays[f"{group}_scores"] = scores[rows]
        arrays[f"{group}_names"] = np.array([f"buildings/{row:05d}.png" for row in rows])
    doubted = np.sort(rng.beta(1, 3, 12))
    arrays["doubted_scores"] = doubted
    arrays["doubted_names"] = np.array([f"damaged/chip_{place:03d}.png" for place in range(12)])
    for group in (*groups, "doubted"):
        damage = 0.55 * arrays[f"{group}_scores"] ** 0.7
        arrays[f"{group}_images"] = np.stack([chip(rng, side, float(share)) for share in damage])
    arrays["embedding_role"] = rng.choice([0, 0, 0, 0, 0, 0, 1, 2], 1500)
    centre = np.where(arrays["embedding_role"][:, None] > 0, [9.0, 4.0], [-3.0, 0.0])
    arrays["embedding"] = centre + rng.normal(0, 3.5, (1500, 2))
    return arrays


def make_hostile(run: Path) -> None:
    """Put an attack on the page wherever a file of the run holds text."""

    def spoil(result: dict[str, Any]) -> None:
        for key in ("method", "variant", "data", "device", "precision"):
            result[key] = HOSTILE
        result["skipped"] = [[HOSTILE, HOSTILE], [HOSTILE]]
        result["logs"] = {HOSTILE: {"title": HOSTILE, "note": HOSTILE}}
        result["warnings"] = [HOSTILE, f"{HOSTILE}: {HOSTILE}"]
        result["prior"]["origin"] = HOSTILE
        result["pu"]["degenerate"] = HOSTILE
        result["pu"]["figures"]["recall"] |= {"label": HOSTILE, "assumes": HOSTILE}
        result["pu"]["figures"][HOSTILE] = {"label": HOSTILE, "value": 0.5, "assumes": HOSTILE}

    change_json(run / "result.json", spoil)
    rows = [{"method": HOSTILE, "seed": HOSTILE, "test": {"oa": 0.5, HOSTILE: 1.0}, "pu": None}]
    write_json(run / "compare.json", rows)
    write_json(run / "manifest.json", {HOSTILE: {HOSTILE: HOSTILE}, "command": [HOSTILE, HOSTILE]})
    row = {"stage": HOSTILE, "epoch": 0, "loss": {HOSTILE: 1.0}, "watched": {HOSTILE: 2.0}}
    lines = [json.dumps(row), json.dumps(row | {"stage": "next"})]
    (run / "log.jsonl").write_text("\n".join(lines))
    with np.load(run / "report.npz") as archive:
        arrays: dict[str, Any] = dict(archive)
    for group in ("top", "threshold", "bottom", "doubted"):
        arrays[f"{group}_names"] = np.array([HOSTILE] * len(arrays[f"{group}_names"]))
    np.savez(run / "report.npz", **arrays)
