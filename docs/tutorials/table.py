# ---
# jupyter:
#   jupytext:
#     formats: py:percent
#   kernelspec:
#     name: python3
#     display_name: Python 3
# ---

# %% [markdown]
# # A table, as scikit-learn knows it
#
# `PUClassifier` takes arrays and data frames. The labels are 1 for positive and 0 for unlabelled. Here: tumours
# of scikit-learn's breast cancer table. Suppose that only some malignant ones were ever diagnosed.

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split

from onesided import PUClassifier

table = load_breast_cancer(as_frame=True)
malignant = (table.target == 0).to_numpy()
X, X_new, truth, truth_new = train_test_split(
    table.data, malignant, random_state=0, stratify=malignant
)
random = np.random.default_rng(0)
y = (truth & (random.random(len(truth)) < 0.4)).astype(int)  # four of ten are diagnosed
print(
    f"{y.sum()} labelled, {len(y) - y.sum()} unlabelled; of these {truth[y == 0].sum()} are malignant, which nobody knows"
)

# %%
model = PUClassifier("linear", random_state=0).fit(X, y)
scores = model.predict_proba(X_new)[:, 1]
print(f"AUC on new patients: {roc_auc_score(truth_new, scores):.3f}")

# %% [markdown]
# ## Figures without negatives, beside the truth
#
# The estimates used P and U only. The truth of the new patients is only for this picture.

# %%
found = model.evaluation_.figures
shown = [
    name for name in ("recall", "precision", "prior", "proxy_auc") if found[name].value is not None
]
decided = model.predict(X_new) == 1
true = {
    "recall": decided[truth_new].mean(),
    "precision": truth_new[decided].mean(),
    "prior": truth[y == 0].mean(),
}
plt.figure(figsize=(7, 2.6))
for place, name in enumerate(shown):
    one = found[name]
    plt.plot([one.low, one.high], [place, place], color="#8a8f94", lw=4, solid_capstyle="round")
    plt.plot(one.value, place, "o", color="#0b6e63", label="estimate" if place == 0 else None)
    if name in true:
        plt.plot(true[name], place, "x", color="#c4572e", label="truth" if place == 0 else None)
plt.yticks(range(len(shown)), shown)
plt.xlim(0, 1.05)
plt.legend(loc="lower left")
plt.tight_layout()

# %% [markdown]
# ## The usual first attempt
#
# Taking the unlabelled as negative teaches that most malignant tumours are "unlabelled". A simple model may still
# rank well; look at its *decisions*.

# %%
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

naive = make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000)).fit(X, y)
print(f"AUC of the first attempt: {roc_auc_score(truth_new, naive.predict_proba(X_new)[:, 1]):.3f}")
for name, chosen in (
    ("unlabelled = negative", naive.predict(X_new) == 1),
    ("PUClassifier", decided),
):
    print(
        f"{name}: finds {chosen[truth_new].mean():.0%} of malignant tumours, {(~truth_new[chosen]).sum()} false alarms"
    )

# %% [markdown]
# ## Which columns matter

# %%
order = np.argsort(model.feature_importances_)[-8:]
plt.figure(figsize=(7, 2.6))
plt.barh(table.data.columns[order], model.feature_importances_[order], color="#0b6e63")
plt.xlabel("proxy AUC lost where the column is shuffled")
plt.tight_layout()
