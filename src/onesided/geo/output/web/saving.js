// Files for other programs: answers, and decisions at the threshold as it is now.

const DECISION_COLUMNS = ["id", "score", "decision", "threshold", "answer", "reviewer", "time"];
const FEATURES_IN_PART = 5000; // a text for each part: one of a million features is too long

class Saving {
  constructor(items, decision, review, additions) {
    Object.assign(this, { items, decision, review, additions });
    byId("export").addEventListener("click", () => {
      download("review.csv", "text/csv;charset=utf-8", [review.csv()]);
      review.unsaved = false;
    });
    byId("save-decisions").addEventListener("click", () => {
      download("decisions.csv", "text/csv;charset=utf-8", [this.csv()]);
    });
    byId("save-geojson").addEventListener("click", () => {
      download("decisions.geojson", "application/geo+json", this.geojson());
      review.unsaved = false;
    });
  }

  word(item) {
    if (!this.items.scored(item)) return null;
    return this.decision.called(item) ? "positive" : "negative";
  }

  answer(item) {
    const mark = this.review.marks.get(item);
    if (!mark) return { answer: null, reviewer: null, time: null };
    const { reviewer, time } = this.review.notes.get(item);
    return { answer: ANSWERS[mark], reviewer, time };
  }

  csv() {
    const { items, decision } = this;
    const rows = items.names.map((name, item) => {
      const { answer, reviewer, time } = this.answer(item);
      const score = items.scored(item) ? items.scores[item] : "";
      return [name, score, this.word(item), decision.threshold, answer, reviewer, time];
    });
    return csvText(DECISION_COLUMNS, rows);
  }

  // RFC 7946, in parts.
  geojson() {
    const head = { threshold: this.decision.threshold, model_threshold: this.decision.own };
    const parts = [`{"type":"FeatureCollection",${JSON.stringify(head).slice(1, -1)},"features":[\n`];
    const features = [];
    const flush = (last) => {
      if (features.length) parts.push(features.join(",\n"), last ? "\n" : ",\n");
      features.length = 0;
    };
    const { items, additions } = this;
    const total = items.size + additions.buildings.size;
    const add = (feature, count) => {
      features.push(JSON.stringify(feature));
      if (features.length === FEATURES_IN_PART && count < total) flush(false);
    };
    for (let item = 0; item < items.size; item++) add(this.feature(item), item + 1);
    [...additions.buildings].forEach(([name, building], place) => add(addedFeature(name, building), items.size + place + 1));
    flush(true);
    return [...parts, "]}\n"];
  }

  feature(item) {
    const { items } = this;
    const properties = {
      id: items.names[item],
      score: items.scored(item) ? items.scores[item] : null,
      decision: this.word(item),
      role: items.role(item),
      ...this.answer(item),
    };
    return { type: "Feature", id: items.names[item], geometry: geometryOf(items, item), properties };
  }
}

function addedFeature(name, { corners, mark, reviewer, time }) {
  const places = corners.map(([x, y]) => degreesOf(x, y));
  const geometry = places.length === 1
    ? { type: "Point", coordinates: places[0] }
    : { type: "Polygon", coordinates: [closedRing(corners, true)] };
  const properties = { id: name, score: null, decision: null, role: "drawn", answer: ANSWERS[mark], reviewer, time };
  return { type: "Feature", id: name, geometry, properties };
}

const degreesOf = (x, y) => [Number((x * 360).toFixed(7)), Number(latitudeOf(y).toFixed(7))];

// Closed, counter-clockwise for an outer ring (y grows to the south) and clockwise for a courtyard.
function closedRing(corners, outer) {
  const area = corners.reduce((twice, [x, y], place) => {
    const [nextX, nextY] = corners[(place + 1) % corners.length];
    const [firstX, firstY] = corners[0];
    return twice + (x - firstX) * (nextY - firstY) - (nextX - firstX) * (y - firstY);
  }, 0);
  const turned = area < 0 === outer ? corners : [...corners].reverse();
  return [...turned, turned[0]].map(([x, y]) => degreesOf(x, y));
}

function geometryOf(items, item) {
  if (!items.placed(item)) return null;
  const rings = [];
  for (let ring = items.firstRing[item]; ring < items.firstRing[item + 1]; ring++) {
    const corners = [];
    for (let corner = items.firstCorner[ring]; corner < items.firstCorner[ring + 1]; corner++) {
      corners.push([items.x[corner], items.y[corner]]);
    }
    rings.push({ ring, corners, outer: ringSign(items, item, ring) > 0 });
  }
  if (rings[0].corners.length === 1) return { type: "Point", coordinates: degreesOf(...rings[0].corners[0]) };
  const parts = rings.filter(({ outer }) => outer).map(({ ring, corners }) => ({ ring, rings: [closedRing(corners, true)] }));
  for (const { corners, outer } of rings) {
    if (outer) continue;
    const around = parts.filter(({ ring }) => inRing(items, ring, ...corners[0]));
    around.sort((one, other) => Math.abs(ringArea(items, one.ring)) - Math.abs(ringArea(items, other.ring)));
    around[0]?.rings.push(closedRing(corners, false));
  }
  const polygons = parts.map((part) => part.rings);
  return polygons.length === 1
    ? { type: "Polygon", coordinates: polygons[0] }
    : { type: "MultiPolygon", coordinates: polygons };
}

function download(name, type, parts) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob(parts, { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}
