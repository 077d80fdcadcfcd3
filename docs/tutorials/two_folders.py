# ---
# jupyter:
#   jupytext:
#     formats: py:percent
#   kernelspec:
#     name: python3
#     display_name: Python 3
# ---

# %% [markdown]
# # From two folders to a ranked pool
#
# You have a folder of images of what you look for, and a folder of everything else. Here both are
# made of scikit-learn's handwritten digits: we look for even ones, 60 are labelled, and 600 digits of all
# kinds are not. With your own folders, skip the first cell.

# %%
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from PIL import Image
from sklearn.datasets import load_digits

digits = load_digits()
order = np.random.default_rng(0).permutation(len(digits.target))
labelled = [row for row in order if digits.target[row] % 2 == 0][:60]
pool = [row for row in order if row not in set(labelled)][:600]
for folder, rows in (("positives", labelled), ("pool", pool)):
    Path(folder).mkdir(exist_ok=True)
    for row in rows:
        pixels = (digits.images[row] * 15.9).astype(np.uint8)
        Image.fromarray(pixels).save(f"{folder}/{row:04}.png")

# %% [markdown]
# ## Train
#
# `onesided.fit` is the command `onesided fit -p positives -u pool -o run`. Without a method it tries several
# models on the same folds and keeps the one that ranks labelled items highest among others. The budget is
# short here; minutes find more.

# %%
import onesided

found = onesided.fit("positives", "pool", budget="30s", output="run", overwrite=True)
print(found.result["words"], "was kept; report:", found.report)

# %% [markdown]
# ## What it tried
#
# Proxy AUC: how often a labelled positive, which the model did not see, scores above an item of the pool. Even
# a perfect model stays below 1, because the pool holds positives too.

# %%
tried = [row for row in found.result["leaderboard"] if "proxy_auc" in row][:8][::-1]
middle = np.array([row["proxy_auc"] for row in tried])
ends = np.array([[row["low"], row["high"]] for row in tried]).T
plt.figure(figsize=(7, 3))
plt.errorbar(
    middle, range(len(tried)), xerr=abs(ends - middle), fmt="o", color="#0b6e63", capsize=3
)
plt.yticks(range(len(tried)), [row["words"] for row in tried])
plt.xlabel("proxy AUC, 95 % interval")
plt.tight_layout()

# %% [markdown]
# ## How far to trust it
#
# Every figure has an interval and the assumptions it rests on. "At most" marks one that may be too high.

# %%
for name, figure in found.result["pu"]["figures"].items():
    if figure["value"] is not None and name in ("recall", "precision", "share_positive", "prior"):
        bias = f", biased {figure['bias']}" if figure["bias"] else ""
        print(
            f"{figure['label']}: {figure['value']:.2f} ({figure['low']:.2f} to {figure['high']:.2f}{bias})"
        )

# %% [markdown]
# ## The ranked pool
#
# `run/scores.csv` lists every item of the pool, the most likely positives first. These are the first 24, and the
# 24 nearest to the threshold, where a second look helps most.

# %%
import csv

rows = list(csv.DictReader(Path("run/scores.csv").read_text().splitlines()))
threshold = found.result["threshold"]
doubtful = sorted(rows, key=lambda row: abs(float(row["score"]) - threshold))[:24]
for title, shown in (("Most likely positive", rows[:24]), ("Nearest to the threshold", doubtful)):
    figure, places = plt.subplots(2, 12, figsize=(9, 2.1), layout="constrained")
    figure.suptitle(title)
    for axes, row in zip(places.flat, shown, strict=True):
        axes.imshow(Image.open(row["item"]), cmap="gray")
        axes.set_title(f"{float(row['score']):.2f}", fontsize=7)
        axes.axis("off")

# %% [markdown]
# ## Was it right?
#
# Only here, because the pool is made of digits, we know the truth. The model never saw it.

# %%
truth = np.array([digits.target[int(Path(row["item"]).stem)] % 2 == 0 for row in rows])
precision = truth.cumsum() / np.arange(1, len(truth) + 1)
plt.figure(figsize=(7, 2.8))
plt.plot(np.arange(1, len(truth) + 1), precision, color="#0b6e63", label="this ranking")
plt.axhline(truth.mean(), color="#8a8f94", ls="--", label="looking at random")
plt.xlabel("items looked at, best first")
plt.ylabel("share that is even")
plt.legend()
plt.tight_layout()
