// Reads the buildings from the page into flat arrays: thousands of small objects would cost
// more time and memory than the drawing.

const QUANTA_PER_DEGREE = 1e7;
// Mercator's square ends at 85 degrees by convention only; only the pole is infinite.
const HIGHEST_LATITUDE = 89.99;
const EARTH_AROUND_METRES = 40075016.68557849;

// World coordinates: one turn of longitude is 1, x to the east, y to the south.
const worldX = (longitude) => longitude / 360;
const longitudeOf = (x) => ((((x + 0.5) % 1) + 1) % 1) * 360 - 180;
const latitudeOf = (y) => (Math.atan(Math.sinh(-2 * Math.PI * y)) * 180) / Math.PI;

function worldY(latitude) {
  const within = Math.max(-HIGHEST_LATITUDE, Math.min(HIGHEST_LATITUDE, latitude));
  return -Math.asinh(Math.tan((within * Math.PI) / 180)) / (2 * Math.PI);
}

const data = JSON.parse(byId("data").textContent);

function readItems(data) {
  const size = data.names.length;
  const items = {
    size,
    names: data.names,
    scores: Float64Array.from(data.scores, (score) => score ?? NaN),
    ranks: data.ranks,
    role: (item) => data.roles[data.role[item]],
    reason: (item) => data.reasons[data.reason[item]],
    // Unmarked buildings: the model decides about these.
    open: Uint8Array.from(data.role, (role) => data.roles[role].includes("unlabelled")),
    picture: pictureReader(data.pictures),
    ...readShapes(data, size),
  };
  items.scored = (item) => !Number.isNaN(items.scores[item]);
  items.placed = (item) => items.firstRing[item + 1] > items.firstRing[item];
  return items;
}

function readShapes({ rings, steps }, size) {
  const corners = steps.length / 2;
  const x = new Float64Array(corners);
  const y = new Float64Array(corners);
  for (let corner = 0, across = 0, up = 0; corner < corners; corner++) {
    across += steps[2 * corner];
    up += steps[2 * corner + 1];
    x[corner] = worldX(across / QUANTA_PER_DEGREE);
    y[corner] = worldY(up / QUANTA_PER_DEGREE);
  }
  const firstRing = new Uint32Array(size + 1);
  const firstCorner = [0];
  for (let item = 0, place = 0; item < size; item++) {
    const count = rings[place++];
    if (count > 0) firstCorner.push(firstCorner.at(-1) + count);
    for (let ring = 0; ring < -count; ring++) {
      firstCorner.push(firstCorner.at(-1) + rings[place++]);
    }
    firstRing[item + 1] = firstCorner.length - 1;
  }
  const shapes = { x, y, firstRing, firstCorner: Uint32Array.from(firstCorner) };
  return { ...shapes, boxes: boxesOf(shapes, size) };
}

// West, north, east, south of every item; empty boxes are nowhere (NaN loses comparisons).
function boxesOf({ x, y, firstRing, firstCorner }, size) {
  const boxes = new Float64Array(4 * size).fill(NaN);
  for (let item = 0; item < size; item++) {
    const start = firstCorner[firstRing[item]];
    const end = firstCorner[firstRing[item + 1]];
    if (start === end) continue;
    let [west, north, east, south] = [Infinity, Infinity, -Infinity, -Infinity];
    for (let corner = start; corner < end; corner++) {
      west = Math.min(west, x[corner]);
      east = Math.max(east, x[corner]);
      north = Math.min(north, y[corner]);
      south = Math.max(south, y[corner]);
    }
    boxes.set([west, north, east, south], 4 * item);
  }
  return boxes;
}

function boxOf(items, item) {
  const [west, north, east, south] = items.boxes.subarray(4 * item, 4 * item + 4);
  return { west, north, east, south };
}

function centreOf(items, item) {
  const { west, north, east, south } = boxOf(items, item);
  return { x: (west + east) / 2, y: (north + south) / 2 };
}

// Inside an odd number of rings.
function inside(items, item, x, y) {
  let within = false;
  for (let ring = items.firstRing[item]; ring < items.firstRing[item + 1]; ring++) {
    if (inRing(items, ring, x, y)) within = !within;
  }
  return within;
}

function inRing(items, ring, x, y) {
  let within = false;
  const end = items.firstCorner[ring + 1];
  for (let corner = items.firstCorner[ring], last = end - 1; corner < end; last = corner++) {
    const above = items.y[corner] > y;
    if (above === items.y[last] > y) continue;
    const share = (y - items.y[corner]) / (items.y[last] - items.y[corner]);
    if (x < items.x[corner] + share * (items.x[last] - items.x[corner])) within = !within;
  }
  return within;
}

// The smallest shown building under a place, else the one whose box is nearest within reach.
function itemAt(items, tree, x, y, reach) {
  const found = { item: -1, area: Infinity };
  const near = { item: -1, distance: reach };
  const around = { west: x - reach, north: y - reach, east: x + reach, south: y + reach };
  tree.search(around, (item) => {
    const { west, north, east, south } = boxOf(items, item);
    const distance = Math.hypot(Math.max(west - x, 0, x - east), Math.max(north - y, 0, y - south));
    const area = (east - west) * (south - north);
    if (distance === 0 && area < found.area && inside(items, item, x, y)) {
      Object.assign(found, { item, area });
    }
    if (distance < near.distance) Object.assign(near, { item, distance });
  });
  return found.item >= 0 ? found.item : near.item;
}

// Square metres of a building. Mercator enlarges both directions alike.
function areaOf(items, item) {
  let twice = 0;
  for (let ring = items.firstRing[item]; ring < items.firstRing[item + 1]; ring++) {
    twice += Math.abs(ringArea(items, ring)) * (ring === items.firstRing[item] ? 1 : ringSign(items, item, ring));
  }
  const metres = EARTH_AROUND_METRES * Math.cos((latitudeOf(items.boxes[4 * item + 1]) * Math.PI) / 180);
  return (twice / 2) * metres * metres;
}

// Twice the area of a ring, in world units.
function ringArea(items, ring) {
  const [start, end] = [items.firstCorner[ring], items.firstCorner[ring + 1]];
  let twice = 0;
  // From the first corner: world units of a house are too small for products of places.
  const [x, y] = [items.x[start], items.y[start]];
  for (let corner = start + 1; corner + 1 < end; corner++) {
    twice += (items.x[corner] - x) * (items.y[corner + 1] - y) - (items.x[corner + 1] - x) * (items.y[corner] - y);
  }
  return twice;
}

// A courtyard lies in an odd number of the other rings and counts less.
function ringSign(items, item, ring) {
  let around = 0;
  const corner = items.firstCorner[ring];
  for (let other = items.firstRing[item]; other < items.firstRing[item + 1]; other++) {
    if (other !== ring && inRing(items, other, items.x[corner], items.y[corner])) around++;
  }
  return around % 2 ? -1 : 1;
}

const PICTURE_TYPES = { "/": "image/jpeg", i: "image/png", U: "image/webp" };

function pictureReader(lengths) {
  const ends = Float64Array.from(lengths);
  for (let place = 1; place < ends.length; place++) ends[place] += ends[place - 1];
  let text = null;
  // Before and after take turns; side is 0 or 1. The text is fetched once, when first needed.
  return (item, side) => {
    const place = 2 * item + side;
    if (!lengths[place]) return null;
    text ??= byId("pictures").textContent;
    const content = text.slice(ends[place] - lengths[place], ends[place]);
    return `data:${PICTURE_TYPES[content[0]]};base64,${content}`;
  };
}

// A blob, because some browsers refuse data addresses as long as a whole image.
async function readBase(id) {
  const text = byId(id).textContent;
  if (!text) return null;
  const bytes = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  return createImageBitmap(new Blob([bytes], { type: PICTURE_TYPES[text[0]] }));
}
