// Draws the map on a canvas. One call per building is slow, and so is one path of a thousand
// buildings; a few dozen in a path are fastest, and plain rectangles are faster still. Where a
// view holds more than `DETAILED` buildings, all of that is too slow, and `Splat` draws them.

const DETAILED = 3000;

const BATCH = 32; // buildings in a path
const TINY = 6; // pixels; a smaller building looks like its box
const SMALLEST = 2.5; // pixels; a smaller building would vanish in the overview
const SMALLEST_CALLED = 3.5;
const EDGE_FROM = 14; // pixels of a house; around smaller ones, edges darken everything
const HOUSE_METRES = 12;
const SIGN_FROM = 9; // pixels; on smaller buildings a dot would hide the colour
const QUIET_ALPHA = 0.55; // of the fill, for buildings that are not called
// Pixels of a house between which the fill fades: at building zoom the roof is looked at, not the
// colour, and frame and tint still tell the score.
const [FADES_FROM, FADED_AT, FADED] = [30, 90, 0.25];

class Painter {
  constructor(canvas, items, tree, camera, ground) {
    Object.assign(this, { canvas, items, tree, camera, ground });
    this.context = canvas.getContext("2d", { alpha: false });
    this.fill = 0.85;
    this.selected = -1;
    this.hovered = -1;
    this.crosshair = false;
    this.marks = new Map();
    this.colours = themeColours();
    const keys = items.scores.map((score) => (Number.isNaN(score) ? NO_SCORE : score));
    // Lowest first, so that the highest are drawn above the others; skipped ones below all.
    this.order = Uint32Array.from(keys, (_, item) => item).sort((one, other) => keys[one] - keys[other] || one - other);
    this.firstScored = this.order.findIndex((item) => items.scored(item));
    if (this.firstScored < 0) this.firstScored = items.size;
    this.firstCalled = items.size;
    this.placeOf = new Uint32Array(items.size);
    this.order.forEach((item, place) => {
      this.placeOf[item] = place;
    });
    this.splat = new Splat(tree);
  }

  resize(width, height) {
    const ratio = window.devicePixelRatio || 1;
    this.canvas.width = Math.max(1, Math.round(width * ratio));
    this.canvas.height = Math.max(1, Math.round(height * ratio));
    this.ratio = ratio;
  }

  paint() {
    const { context, camera } = this;
    context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    context.globalAlpha = 1;
    context.fillStyle = this.colours.ground;
    context.fillRect(0, 0, camera.width, camera.height);
    if (!this.ground.paint(context, camera, this.ratio)) paintGraticule(context, camera, this.colours);
    this.house = HOUSE_METRES / camera.metresPerPixel();
    // Points have no size: about that of a house, but neither invisible nor a blot.
    this.pointSize = Math.max(SMALLEST_CALLED, Math.min(18, this.house));
    this.paintBuildings();
    this.ground.paintCurtain(context, camera, this.colours);
    if (this.additions) this.additions.paint(this);
    if (this.hovered >= 0) paintRing(this, this.hovered, 2);
    if (this.selected >= 0) paintRing(this, this.selected, 3);
    if (this.crosshair) paintCrosshair(this);
  }

  paintBuildings() {
    const few = this.tree.few(this.viewBox(), DETAILED);
    if (few) return this.paintPlaces(this.placesOf(few));
    this.splat.resize(this.camera, this.ratio);
    this.splat.setColours(this.fill, this.colours);
    const large = this.splat.paint(this.context, this.camera, this.threshold);
    return this.paintPlaces(this.placesOf(large));
  }

  // With places in drawing order, lowest first.
  paintPlaces(places) {
    this.paintSkipped(places.filter((place) => place < this.firstScored));
    // The selected building gets no fill: the image below it must be seen.
    const bare = this.ground.shown() ? this.selected : -1;
    const filled = places.filter((place) => place >= this.firstScored && this.order[place] !== bare);
    const called = filled.filter((place) => place >= this.firstCalled);
    this.paintScored(filled.subarray(0, filled.length - called.length));
    this.paintOutlines(called); // below the fill, so that they frame the colour
    this.paintScored(called);
    paintSigns(this, places);
  }

  placesOf(found) {
    return Uint32Array.from(found, (item) => this.placeOf[item]).sort();
  }

  viewBox() {
    const { x: west, y: north } = this.camera.worldAt(-12, -12);
    const { x: east, y: south } = this.camera.worldAt(this.camera.width + 12, this.camera.height + 12);
    return { west, north, east, south };
  }

  // The box of a building on the screen, not smaller than `least`, with `more` around it.
  square(item, least, more = 0) {
    const { camera, items } = this;
    const [west, north] = [items.boxes[4 * item], items.boxes[4 * item + 1]];
    const [east, south] = [items.boxes[4 * item + 2], items.boxes[4 * item + 3]];
    const size = west === east && north === south ? Math.max(least, this.pointSize) : least;
    const width = Math.max(size, (east - west) * camera.scale) + 2 * more;
    const height = Math.max(size, (south - north) * camera.scale) + 2 * more;
    const x = camera.screenX((west + east) / 2) - width / 2;
    return [x, camera.screenY((north + south) / 2) - height / 2, width, height];
  }

  // From where to where a building is across the screen.
  span(item) {
    const [x, , width] = this.square(item, SMALLEST);
    return [x, x + width];
  }

  sizeOnScreen(item) {
    const { boxes } = this.items;
    const box = 4 * item;
    const side = Math.max(boxes[box + 2] - boxes[box], boxes[box + 3] - boxes[box + 1]);
    return side === 0 ? this.pointSize : side * this.camera.scale;
  }

  // Adds a building to the path.
  trace(item) {
    const { items, camera, context } = this;
    const start = items.firstRing[item];
    if (items.firstCorner[start + 1] - items.firstCorner[start] === 1) {
      const { x, y } = centreOf(items, item);
      const [across, down, radius] = [camera.screenX(x), camera.screenY(y), this.pointSize / 2];
      context.moveTo(across + radius, down);
      return context.arc(across, down, radius, 0, 2 * Math.PI);
    }
    for (let ring = start; ring < items.firstRing[item + 1]; ring++) {
      this.traceRing(items.firstCorner[ring], items.firstCorner[ring + 1]);
    }
    return undefined;
  }

  traceRing(start, end) {
    const { context, camera, items } = this;
    const right = camera.width / 2 - camera.x * camera.scale;
    const down = camera.height / 2 - camera.y * camera.scale;
    context.moveTo(items.x[start] * camera.scale + right, items.y[start] * camera.scale + down);
    for (let corner = start + 1; corner < end; corner++) {
      context.lineTo(items.x[corner] * camera.scale + right, items.y[corner] * camera.scale + down);
    }
    context.closePath();
  }

  // Tiny buildings go to `tiny` one by one; for the others `finish` paints the path so far.
  inBatches(places, tiny, finish) {
    const { context, items } = this;
    let waiting = 0;
    const flush = (rule) => {
      if (waiting) finish(rule);
      context.beginPath();
      waiting = 0;
    };
    context.beginPath();
    for (const place of places) {
      const item = this.order[place];
      if (this.sizeOnScreen(item) < TINY) {
        tiny(item);
        continue;
      }
      // Courtyards need the odd-even rule, which would punch holes where two buildings of
      // one path overlap; such buildings go alone.
      const alone = items.firstRing[item + 1] - items.firstRing[item] > 1;
      if (alone || waiting === BATCH) flush("nonzero");
      this.trace(item);
      waiting++;
      if (alone) flush("evenodd");
    }
    flush("nonzero");
  }

  paintScored(places) {
    const { context } = this;
    const called = places[0] >= this.firstCalled;
    const least = called ? SMALLEST_CALLED : SMALLEST;
    const alpha = this.fill * (called ? 1 : QUIET_ALPHA) * this.clearness();
    // Their own edge keeps buildings visible where the fill is weak; called ones have a frame.
    const edge = !called && this.house >= EDGE_FROM;
    context.lineWidth = 1.25;
    for (let start = 0, end = 0; start < places.length; start = end) {
      const shade = shadeOf(this.items.scores[this.order[places[start]]]);
      while (end < places.length && shadeOf(this.items.scores[this.order[places[end]]]) === shade) end++;
      context.fillStyle = context.strokeStyle = shadeColours[shade];
      context.globalAlpha = alpha;
      this.inBatches(
        places.subarray(start, end),
        (item) => context.fillRect(...this.square(item, least)),
        (rule) => {
          context.fill(rule);
          context.globalAlpha = 1;
          if (edge) context.stroke();
          context.globalAlpha = alpha;
        },
      );
    }
    context.globalAlpha = 1;
  }

  // What is left of the fill where an image is below it.
  clearness() {
    if (!this.ground.shown()) return 1;
    const gone = Math.max(0, Math.min(1, (this.house - FADES_FROM) / (FADED_AT - FADES_FROM)));
    return 1 - (1 - FADED) * gone;
  }

  paintSkipped(places) {
    const { context } = this;
    context.fillStyle = context.strokeStyle = this.colours.skipped;
    context.lineWidth = 1;
    context.globalAlpha = 0.5;
    context.setLineDash([3, 2]);
    this.inBatches(
      places,
      (item) => context.fillRect(...this.square(item, SMALLEST)),
      (rule) => {
        context.globalAlpha = 0.35;
        context.fill(rule);
        context.globalAlpha = 1;
        context.stroke();
        context.globalAlpha = 0.5;
      },
    );
    context.setLineDash([]);
    context.globalAlpha = 1;
  }

  paintOutlines(places) {
    const { context } = this;
    // Thin in the overview, where a frame as wide as a house would hide its neighbours.
    const width = Math.max(1, Math.min(2.5, this.house / 12));
    context.lineJoin = "round";
    context.strokeStyle = this.colours.called;
    context.lineWidth = 1;
    this.inBatches(
      places,
      (item) => this.house > 3 && context.strokeRect(...this.square(item, SMALLEST_CALLED, 0.5)),
      () => {
        strokeTwice(context, [[this.colours.casing, 3 * width], [this.colours.called, 2 * width]]);
        context.lineWidth = 1;
      },
    );
  }
}

// A dot on buildings that were marked before, a larger one on those that were checked here.
function paintSigns(painter, places) {
  for (const place of places) {
    const item = painter.order[place];
    const known = !painter.items.open[item] && !painter.marks.has(item);
    if (known && painter.sizeOnScreen(item) >= SIGN_FROM) {
      paintDisc(painter, item, 3, painter.colours.halo, painter.colours.sign);
    }
  }
  const { west, north, east, south } = painter.viewBox();
  for (const [item, mark] of painter.marks) {
    const { x, y } = centreOf(painter.items, item);
    if (x >= west && x <= east && y >= north && y <= south) paintMark(painter, item, mark);
  }
}

function paintMark(painter, item, mark) {
  const { context, camera, colours } = painter;
  const [fill, edge] =
    mark === "damaged" ? [colours.damaged, colours.halo] : [colours.halo, colours.sign];
  paintDisc(painter, item, 6, fill, edge);
  const letter = { unsure: "?", skip: "–" }[mark];
  if (!letter) return;
  const { x, y } = centreOf(painter.items, item);
  context.fillStyle = colours.sign;
  context.font = "bold 10px system-ui, sans-serif";
  context.textAlign = "center";
  context.textBaseline = "middle";
  context.fillText(letter, camera.screenX(x), camera.screenY(y) + 0.5);
}

function paintDisc({ context, camera, items }, item, radius, fill, edge) {
  const { x, y } = centreOf(items, item);
  context.beginPath();
  context.arc(camera.screenX(x), camera.screenY(y), radius, 0, 2 * Math.PI);
  context.fillStyle = fill;
  context.strokeStyle = edge;
  context.lineWidth = 1.5;
  context.fill();
  context.stroke();
}

// Dark and light together stand out on any ground.
function strokeTwice(context, lines) {
  for (const [colour, width] of lines) {
    context.strokeStyle = colour;
    context.lineWidth = width;
    context.stroke();
  }
}

function paintRing(painter, item, width) {
  const { context, colours } = painter;
  context.beginPath();
  if (painter.sizeOnScreen(item) < 12) context.rect(...painter.square(item, 12));
  else painter.trace(item);
  strokeTwice(context, [[colours.sign, width + 3], [colours.halo, width]]);
}

function paintCrosshair({ context, camera, colours }) {
  const [x, y] = [camera.width / 2, camera.height / 2];
  context.beginPath();
  for (const [right, down] of [[1, 0], [-1, 0], [0, 1], [0, -1]]) {
    context.moveTo(x + 4 * right, y + 4 * down);
    context.lineTo(x + 12 * right, y + 12 * down);
  }
  strokeTwice(context, [[colours.halo, 4], [colours.sign, 1.5]]);
}
