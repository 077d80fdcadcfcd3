# ---
# jupyter:
#   jupytext:
#     formats: py:percent
#   kernelspec:
#     name: python3
#     display_name: Python 3
# ---

# %% [markdown]
# # The paper's ablation, small
#
# NcPU (Zhao et al., ICLR 2026) has two parts: an *alignment* loss that pulls representations together, and
# *disambiguation* by prototypes, which decides what unlabelled samples are. Its second table leaves them out one
# by one. Here the same rows run on 8x8 digits for a few epochs: this shows how an ablation is done. The paper's
# budget is 1300 epochs on photographs, and numbers of minutes say little about it; `onesided bench run ncpu/table2`
# measures the table itself.

# %%
import matplotlib.pyplot as plt
import numpy as np

import onesided

ROWS = {
    "neither": {"alignment": "none", "disambiguation": "none"},
    "alignment": {"alignment": "robust", "disambiguation": "none"},
    "disambiguation": {"alignment": "none", "disambiguation": "phantom"},
    "both (NcPU)": {"alignment": "robust", "disambiguation": "phantom"},
}
SEEDS, EPOCHS = (0, 1), 6

# %%
results = {
    name: [
        onesided.fit(
            data="digits", method="ncpu", epochs=EPOCHS, seed=seed, output=f"runs/{number}-{seed}",
            settings={"method": switches, "backbone": {"width": 0.25}}, overwrite=True,
        ).result
        for seed in SEEDS
    ]
    for number, (name, switches) in enumerate(ROWS.items())
}  # fmt: skip

# %% [markdown]
# The mean over seeds, and each seed as a point. The last epoch counts; nothing was chosen by these numbers.
# Do not be surprised if the plain row wins. These runs do not tell why: they are short, small, and of two
# seeds, and nothing here separates one reason from another. Results of longer trainings are on the page
# of the [tables](../results.md).

# %%
figure, places = plt.subplots(1, 2, figsize=(9, 3), sharey=True, layout="constrained")
for axes, key, title in zip(places, ("oa", "auc"), ("accuracy", "AUC"), strict=True):
    values = [[one["test"][key] for one in runs] for runs in results.values()]
    axes.barh(list(results), [np.mean(row) for row in values], color="#0b6e63", alpha=0.8)
    for place, row in enumerate(values):
        axes.plot(row, [place] * len(row), "o", color="#111", ms=4)
    axes.set(xlabel=f"{title} on the test part", xlim=(0.3, 1))

# %%
for name, runs in results.items():
    degenerate = sum(bool((one["pu"] or {}).get("degenerate")) for one in runs)
    accuracy = [one["test"]["oa"] for one in runs]
    print(
        f"{name:16} accuracy {np.mean(accuracy):.3f} ± {np.std(accuracy, ddof=1):.3f}, degenerate runs {degenerate}"
    )
