# ---
# jupyter:
#   jupytext:
#     formats: py:percent
#   kernelspec:
#     name: python3
#     display_name: Python 3
# ---

# %% [markdown]
# # A damage map from a few marked buildings
#
# A place is drawn first, so that this runs anywhere: roofs on a meadow, some of them broken. With your own image
# and footprints, skip the first cell. It takes the extra `geo`: `pip install 'onesided[geo]'`.

# %%
import json
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import rasterio
from rasterio.transform import from_origin

random = np.random.default_rng(0)
SIDE, STEP, METRES = 960, 60, 0.5
WEST, NORTH = 500_000, 1_590_000  # in UTM zone 15, so that the place is somewhere
image = random.normal([70, 105, 60], 12, (SIDE, SIDE, 3))
features, damaged = [], {}
for number, (row, column) in enumerate(
    (r, c) for r in range(10, SIDE - 50, STEP) for c in range(10, SIDE - 50, STEP)
):
    name, (height, width) = f"b{number:03}", random.integers(22, 38, 2)
    row, column = row + random.integers(0, 10), column + random.integers(0, 10)
    damaged[name] = bool(random.random() < 0.3)
    roof = np.full((height, width, 3), random.uniform([120, 70, 60], [200, 150, 140]))
    if damaged[name]:  # rubble: no plane, no colour
        rubble = random.normal(135, 45, (height, width, 1)).repeat(3, axis=2)
        torn = random.random((height, width, 1)) < random.uniform(0.5, 0.95)
        roof = np.where(torn, rubble, roof)
    image[row : row + height, column : column + width] = roof + random.normal(0, 6, roof.shape)
    left, top = WEST + column * METRES, NORTH - row * METRES
    right, bottom = left + width * METRES, top - height * METRES
    ring = [[left, top], [right, top], [right, bottom], [left, bottom], [left, top]]
    features.append(
        {
            "type": "Feature",
            "properties": {"id": name},
            "geometry": {"type": "Polygon", "coordinates": [ring]},
        }
    )
bands = image.clip(0, 255).astype(np.uint8).transpose(2, 0, 1)
with rasterio.open(
    "post.tif", "w", driver="GTiff", height=SIDE, width=SIDE, count=3, dtype="uint8",
    crs="EPSG:32615", transform=from_origin(WEST, NORTH, METRES, METRES),
) as file:  # fmt: skip
    file.write(bands)
crs = {"type": "name", "properties": {"name": "urn:ogc:def:crs:EPSG::32615"}}
Path("buildings.geojson").write_text(
    json.dumps({"type": "FeatureCollection", "crs": crs, "features": features})
)
marked = random.permutation([name for name, broken in damaged.items() if broken])[:30]
Path("marked.csv").write_text("id\n" + "\n".join(marked))
print(len(damaged), "buildings,", sum(damaged.values()), "damaged, of these", len(marked), "marked")

# %% [markdown]
# ## Score every building
#
# The command is `onesided map --image post.tif --footprints buildings.geojson --positives marked.csv -o
# damage.gpkg`. A building is scored by models that saw none of its neighbours.

# %%
import onesided

found = onesided.map_buildings(
    image="post.tif", footprints="buildings.geojson", positives="marked.csv", id_column="id",
    output="damage.gpkg", overwrite=True,
)  # fmt: skip
print([path.name for path in found.files])

# %% [markdown]
# ## Look at it
#
# `map.html` opens in a browser and needs no network; `damage.gpkg` opens coloured in QGIS. Here the same as a
# picture: the image, the scores, and, because this place was drawn, the truth.

# %%
layer = json.loads(Path("damage.geojson").read_text())
score = {one["properties"]["id"]: one["properties"]["score"] for one in layer["features"]}
figure, places = plt.subplots(1, 3, figsize=(11, 4), layout="constrained")
for axes, title in zip(places, ("after the event", "score", "truth"), strict=True):
    axes.set_title(title)
    axes.axis("off")
places[0].imshow(image.clip(0, 255).astype(np.uint8))
for one in features:
    name = one["properties"]["id"]
    xs, ys = np.array(one["geometry"]["coordinates"][0]).T
    places[1].fill(xs, ys, color=plt.cm.YlOrRd(score[name]))
    places[2].fill(xs, ys, color="#c4572e" if damaged[name] else "#d8dcdf")
    if name in set(marked):
        places[1].plot(xs, ys, color="#111", lw=1)
for axes in places[1:]:
    axes.set_aspect("equal")
colours = figure.colorbar(plt.cm.ScalarMappable(cmap="YlOrRd"), ax=places[1], shrink=0.6)

# %%
unmarked = [name for name in damaged if name not in set(marked)]
order = sorted(unmarked, key=lambda name: -score[name])
broken = np.array([damaged[name] for name in order])
print(
    f"Of the 20 buildings to check first {broken[:20].sum()} are damaged; at random it would be {20 * broken.mean():.0f}."
)
