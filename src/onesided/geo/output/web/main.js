// Connects all parts of the page.

const items = readItems(data);
const tree = new Tree(items);
const canvas = byId("map");
const frames = []; // milliseconds of script in each of the last frames

let framed = false;
function redraw() {
  if (framed) return;
  framed = true;
  requestAnimationFrame((time) => {
    const start = performance.now();
    framed = false;
    if (camera.advance(time)) redraw();
    painter.paint();
    showScale(byId("scale-bar"), camera);
    frames.push(performance.now() - start);
    if (frames.length > 1000) frames.shift();
  });
}

const camera = new Camera(() => {
  filter?.follow("view");
  redraw();
});
const kept = new Kept(data.key);
// Built one after the other; until all are there, a change has nothing to refresh.
let [filter, list, card] = [null, null, null];
let painter = null;
const ground = new Ground(camera, () => painter && redraw());
painter = new Painter(canvas, items, tree, camera, ground);
ground.selectedSpan = () => (painter.selected < 0 ? null : painter.span(painter.selected));
const scored = painter.order.subarray(painter.firstScored);
const review = new Review(items, kept, answersChanged);
painter.marks = review.marks;
const decision = new Decision(items, scored, data.threshold, kept, thresholdChanged);
const additions = new Additions(camera, kept, review, redraw);
painter.additions = additions;
const pictures = new Pictures(items, ground);
filter = new Filter(items, painter.order, review, camera, filterChanged);
list = new BuildingList(items, decision, review, filter, pictures, pick);
card = new Card(items, decision, review, pictures);
const saving = new Saving(items, decision, review, additions);
review.restore();
additions.restore();
thresholdChanged();

function thresholdChanged() {
  if (!card) return;
  painter.threshold = decision.threshold;
  painter.firstCalled = painter.firstScored + decision.firstCalled();
  refresh();
}

function answersChanged() {
  if (!card) return;
  filter.follow("answers");
  refresh();
}

function filterChanged() {
  if (!card) return;
  tree.show(filter.matches);
  list.filtered();
  list.page = 0;
  refresh();
}

function refresh() {
  list.refresh();
  card.refresh();
  offerNeighbours();
  redraw();
}

function offerNeighbours() {
  byId("next").disabled = list.neighbour(1) < 0;
  byId("previous").disabled = list.neighbour(-1) < 0;
}

function fitAll() {
  const box = tree.box() ?? ground.box();
  if (box) camera.fit(box);
}

function open(item) {
  painter.selected = item;
  card.open(item);
  list.select(item);
  offerNeighbours();
  redraw();
  if (item < 0) return;
  byId("status").textContent = `${items.names[item]}: ${card.verdict()}`;
}

// From the list: also move the map there.
function pick(item) {
  if (item < 0) return;
  open(item);
  if (!items.placed(item)) return;
  const { x, y } = centreOf(items, item);
  const close = camera.scaleFor(boxOf(items, item), 90, 90);
  const wanted = Math.min(close, scaleAt(y, CLOSE_UP_METRES_PER_PIXEL));
  const covered = canvas.clientWidth > 700 ? card.element.offsetWidth : 0;
  camera.fly(x, y, Math.max(camera.scale, wanted), covered);
}

function openAt(x, y, reach) {
  if (additions.corners) return additions.addCorner(x, y);
  const place = camera.worldAt(x, y);
  return open(itemAt(items, tree, place.x, place.y, reach / camera.scale));
}

function openCentre() {
  openAt(camera.width / 2, camera.height / 2, Math.max(camera.width, camera.height));
}

function hover(x, y) {
  const place = camera.worldAt(x, y);
  const item = Number.isNaN(x) || additions.corners ? -1 : itemAt(items, tree, place.x, place.y, 3 / camera.scale);
  const tip = byId("tip");
  canvas.classList.toggle("pointing", item >= 0);
  tip.hidden = item < 0;
  if (item >= 0) {
    const score = items.scored(item) ? items.scores[item].toFixed(3) : "skipped";
    tip.textContent = `${items.names[item].slice(0, 60)} · ${score}`;
    tip.style.transform = `translate(${Math.min(x + 14, camera.width - tip.offsetWidth - 6)}px, ${y + 16}px)`;
  }
  if (item !== painter.hovered) {
    painter.hovered = item;
    redraw();
  }
}

function listenToButtons() {
  byId("zoom-in").addEventListener("click", () => camera.zoom(KEY_ZOOM));
  byId("zoom-out").addEventListener("click", () => camera.zoom(1 / KEY_ZOOM));
  byId("fit").addEventListener("click", fitAll);
  byId("card-close").addEventListener("click", close);
  byId("next").addEventListener("click", () => pick(list.neighbour(1)));
  byId("previous").addEventListener("click", () => pick(list.neighbour(-1)));
  byId("open-help").addEventListener("click", () => byId("help").showModal());
  byId("close-help").addEventListener("click", () => byId("help").close());
  byId("fill").addEventListener("input", (event) => {
    painter.fill = Number(event.target.value);
    redraw();
  });
}

function close() {
  open(-1);
  canvas.focus({ preventScroll: true });
}

function listenToKeys() {
  window.addEventListener("keydown", (event) => {
    const typing = event.target.matches("input:not([type=range], [type=checkbox]), select, textarea");
    if (typing || event.ctrlKey || event.metaKey || event.altKey || byId("help").open) return;
    const actions = {
      1: () => card.mark("damaged"),
      2: () => card.mark("not damaged"),
      3: () => card.mark("unsure"),
      4: () => card.mark("skip"),
      j: () => pick(list.neighbour(1)),
      k: () => pick(list.neighbour(-1)),
      "/": () => byId("search").focus(),
      b: () => ground.flip(),
      s: () => ground.setMode(ground.mode === "swipe" ? "after" : "swipe"),
      n: () => additions.start(),
      f: () => additions.finish(),
      Escape: () => (additions.corners ? additions.stop() : close()),
    };
    const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    if (!Object.hasOwn(actions, key)) return;
    event.preventDefault();
    if (event.repeat && "1234".includes(key)) return; // a key held down would mark and unmark
    actions[key]();
  });
}

function showTexts() {
  const marked = items.open.filter((open) => !open).length;
  const skipped = items.size - scored.length;
  const parts = [`${counted(items.size)} buildings`, `${counted(marked)} marked`];
  if (skipped) parts.push(`${counted(skipped)} skipped`);
  byId("summary").textContent = parts.join(" · ");
  byId("ramp").replaceChildren(...shadeColours.map((colour) => {
    const step = document.createElement("b");
    step.style.background = colour;
    return step;
  }));
  byId("warnings").hidden = data.warnings.length === 0;
  byId("warnings").querySelector("ul").replaceChildren(...data.warnings.map((text) => textElement("li", text)));
  byId("about").hidden = data.facts.length === 0;
  showFacts(byId("facts"), data.facts);
  byId("legend").open = window.innerWidth > 832; // where there is room below the map
}

async function showBase() {
  await ground.read();
  if (!tree.box()) fitAll();
}

function watchSize() {
  let fitted = false;
  new ResizeObserver(() => {
    const { clientWidth, clientHeight } = canvas;
    if (!clientWidth || !clientHeight) return;
    painter.resize(clientWidth, clientHeight);
    camera.resize(clientWidth, clientHeight);
    if (!fitted) fitAll();
    fitted = true;
    painter.paint(); // at once: a canvas that was resized is empty until it is painted
  }).observe(canvas);
}

showTexts();
listenToMap(canvas, camera, { opened: openAt, hovered: hover, fitAll, centred: openCentre });
listenToButtons();
listenToKeys();
watchSize();
canvas.addEventListener("focus", () => {
  painter.crosshair = canvas.matches(":focus-visible");
  redraw();
});
canvas.addEventListener("blur", () => {
  painter.crosshair = false;
  redraw();
});
window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  painter.colours = themeColours();
  redraw();
});
showBase().catch((error) => {
  byId("status").textContent = "The image under the map cannot be shown.";
  console.error(error);
});

// For the browser's console, and for tests.
window.onesidedMap = {
  project(longitude, latitude) {
    const frame = canvas.getBoundingClientRect();
    // Longitudes repeat; take the turn that the map shows.
    const x = worldX(longitude) + Math.round(camera.x - worldX(longitude));
    return { x: frame.left + camera.screenX(x), y: frame.top + camera.screenY(worldY(latitude)) };
  },
  view: () => ({ longitude: longitudeOf(camera.x), latitude: latitudeOf(camera.y), scale: camera.scale, flying: camera.flight !== null }),
  selected: () => (card.item < 0 ? null : items.names[card.item]),
  csv: () => review.csv(),
  geojson: () => saving.geojson().join(""),
  decisions: () => saving.csv(),
  moveTo(longitude, latitude, metresPerPixel) {
    const y = worldY(latitude);
    camera.place(worldX(longitude), y, scaleAt(y, metresPerPixel));
  },
  // Tiles under way, and those that are there.
  tiles: () => Object.values(ground.images).flatMap((image) => (image?.tiles ? [image.tiles.loading.size, image.tiles.loaded.size] : [])),
  frames,
  paintMilliseconds(count) {
    const times = [];
    for (let time = 0; time < count; time++) {
      const start = performance.now();
      painter.paint();
      painter.context.getImageData(0, 0, 1, 1); // waits until the pixels are there
      times.push(performance.now() - start);
    }
    return times;
  },
};
