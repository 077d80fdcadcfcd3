// Finds buildings by place, and knows for every neighbourhood the highest score in it. Buildings
// lie along Morton's curve. A node holds those of one square, a larger node those of four squares,
// and so on. A node that is as small as a dot is drawn as one, so the work of a frame depends on
// the screen and not on the number of buildings.

const MORTON_BITS = 15; // of each direction
const MORTON_STEPS = 1 << MORTON_BITS;
const NO_SCORE = -Number.MAX_VALUE; // below every score, above buildings that are not shown

class Tree {
  constructor(items) {
    this.items = items;
    const { sorted, codes } = alongMortonCurve(items);
    this.sorted = sorted;
    const count = sorted.length;
    this.levels = [{ count, codes, first: null, boxes: this.leafBoxes(), peaks: new Float64Array(count) }];
    for (let bits = 2; bits <= 2 * MORTON_BITS && this.levels.at(-1).count > 1; bits += 2) {
      const first = firstOfEach(this.levels.at(-1).codes, bits);
      const nodes = first.length - 1;
      // A level that joins hardly anything would only be in the way.
      if (2 * nodes <= this.levels.at(-1).count || bits === 2 * MORTON_BITS) this.levels.push(above(this.levels.at(-1), first));
    }
    this.show(null);
  }

  leafBoxes() {
    const boxes = new Float64Array(4 * this.sorted.length);
    this.sorted.forEach((item, place) => {
      for (let side = 0; side < 4; side++) boxes[4 * place + side] = this.items.boxes[4 * item + side];
    });
    return boxes;
  }

  // `shown` has a 1 for each building to be found and drawn; null means all.
  show(shown) {
    const { scores } = this.items;
    const leaves = this.levels[0].peaks;
    for (let place = 0; place < leaves.length; place++) {
      const item = this.sorted[place];
      const value = Number.isNaN(scores[item]) ? NO_SCORE : scores[item];
      leaves[place] = shown && !shown[item] ? -Infinity : value;
    }
    for (let level = 1; level < this.levels.length; level++) {
      const below = this.levels[level - 1].peaks;
      const { peaks, first, count } = this.levels[level];
      for (let node = 0; node < count; node++) {
        let peak = -Infinity;
        for (let child = first[node]; child < first[node + 1]; child++) if (below[child] > peak) peak = below[child];
        peaks[node] = peak;
      }
    }
  }

  // Box of all placed buildings, shown or not; null if there is none.
  box() {
    const top = this.levels.at(-1);
    if (!top.count) return null;
    const [west, north, east, south] = top.boxes;
    return { west, north, east, south };
  }

  // Calls `visit(item)` for every shown building whose box touches this one, until it returns
  // false.
  search(box, visit) {
    const down = (level, node) => {
      const { boxes, peaks, first } = this.levels[level];
      if (peaks[node] === -Infinity) return true;
      const at = 4 * node;
      if (boxes[at] > box.east || boxes[at + 2] < box.west) return true;
      if (boxes[at + 1] > box.south || boxes[at + 3] < box.north) return true;
      if (level === 0) return visit(this.sorted[node]) !== false;
      for (let child = first[node]; child < first[node + 1]; child++) {
        if (!down(level - 1, child)) return false;
      }
      return true;
    };
    if (this.sorted.length) down(this.levels.length - 1, 0);
  }

  // The shown buildings in a box, or null if there are more than so many.
  few(box, most) {
    const found = new Uint32Array(most);
    let count = 0;
    this.search(box, (item) => {
      if (count < most) found[count] = item;
      return ++count <= most;
    });
    return count > most ? null : found.subarray(0, count);
  }
}

// Where the next square starts, for each square of so many bits, and at last the end.
function firstOfEach(codes, bits) {
  const first = [];
  for (let place = 0; place < codes.length; place++) {
    if (place === 0 || codes[place] >>> bits !== codes[place - 1] >>> bits) first.push(place);
  }
  first.push(codes.length);
  return Uint32Array.from(first);
}

function above({ codes, boxes }, first) {
  const count = first.length - 1;
  const around = new Float64Array(4 * count);
  for (let node = 0; node < count; node++) {
    let [west, north, east, south] = [Infinity, Infinity, -Infinity, -Infinity];
    for (let child = first[node]; child < first[node + 1]; child++) {
      west = Math.min(west, boxes[4 * child]);
      north = Math.min(north, boxes[4 * child + 1]);
      east = Math.max(east, boxes[4 * child + 2]);
      south = Math.max(south, boxes[4 * child + 3]);
    }
    around[4 * node] = west;
    around[4 * node + 1] = north;
    around[4 * node + 2] = east;
    around[4 * node + 3] = south;
  }
  const own = Uint32Array.from({ length: count }, (_, node) => codes[first[node]]);
  return { count, codes: own, first, boxes: around, peaks: new Float64Array(count) };
}

function alongMortonCurve(items) {
  const { boxes, size } = items;
  let [west, north, east, south] = [Infinity, Infinity, -Infinity, -Infinity];
  for (let item = 0; item < size; item++) {
    if (!items.placed(item)) continue;
    west = Math.min(west, boxes[4 * item]);
    north = Math.min(north, boxes[4 * item + 1]);
    east = Math.max(east, boxes[4 * item + 2]);
    south = Math.max(south, boxes[4 * item + 3]);
  }
  const side = Math.max(east - west, south - north) || 1;
  const keys = new Float64Array(size);
  let count = 0;
  for (let item = 0; item < size; item++) {
    if (!items.placed(item)) continue;
    const x = (((boxes[4 * item] + boxes[4 * item + 2]) / 2 - west) / side) * (MORTON_STEPS - 1);
    const y = (((boxes[4 * item + 1] + boxes[4 * item + 3]) / 2 - north) / side) * (MORTON_STEPS - 1);
    // Code and number in one key: numbers sort faster than pairs, and 2^53 holds both.
    keys[count++] = (spread(x) + 2 * spread(y)) * size + item;
  }
  const order = keys.subarray(0, count).sort();
  return {
    sorted: Uint32Array.from(order, (key) => key % size),
    codes: Uint32Array.from(order, (key) => Math.floor(key / size)),
  };
}

// The bits of a number of 15 bits, with a gap after each.
function spread(value) {
  let bits = value & 0x7fff;
  bits = (bits | (bits << 8)) & 0x00ff00ff;
  bits = (bits | (bits << 4)) & 0x0f0f0f0f;
  bits = (bits | (bits << 2)) & 0x33333333;
  return (bits | (bits << 1)) & 0x55555555;
}
