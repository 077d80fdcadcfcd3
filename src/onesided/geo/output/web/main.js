// Connects all parts of the page.

const data = JSON.parse(byId("data").textContent);
const items = readItems(data);
const canvas = byId("map");

let framed = false;
function redraw() {
  if (framed) return;
  framed = true;
  requestAnimationFrame((now) => {
    framed = false;
    if (camera.advance(now)) redraw();
    painter.paint();
    showScale(byId("scale-bar"), camera);
  });
}

const camera = new Camera(redraw);
const painter = new Painter(canvas, items, camera);
const scored = painter.order.subarray(painter.firstScored);
const review = new Review(items, refresh);
// Built after the decision, which reports its first threshold while it is built.
let list = null;
let card = null;
const decision = new Decision(items, scored, data.threshold, thresholdChanged);
painter.setRange(decision.low, decision.high);
painter.marks = review.marks;
list = new BuildingList(items, decision, review, pick);
card = new Card(items, decision, review);
thresholdChanged();

function thresholdChanged() {
  if (!list) return;
  painter.firstCalled = painter.firstScored + decision.firstCalled();
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
  const box = boxOfAll(items) ?? painter.base?.box;
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
  const place = camera.worldAt(x, y);
  open(itemAt(items, place.x, place.y, reach / camera.scale));
}

function hover(x, y) {
  const place = camera.worldAt(x, y);
  const item = itemAt(items, place.x, place.y, 3 / camera.scale);
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
  byId("image").addEventListener("change", (event) => {
    painter.image = event.target.checked;
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
      j: () => pick(list.neighbour(1)),
      k: () => pick(list.neighbour(-1)),
      "/": () => byId("search").focus(),
      Escape: close,
    };
    const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    if (!Object.hasOwn(actions, key)) return;
    event.preventDefault();
    if (event.repeat && "123".includes(key)) return; // a key held down would mark and unmark
    actions[key]();
  });
}

function showTexts() {
  const marked = items.open.filter((open) => !open).length;
  const skipped = items.size - scored.length;
  const parts = [`${counted(items.size)} buildings`, `${counted(marked)} marked`];
  if (skipped) parts.push(`${counted(skipped)} skipped`);
  byId("summary").textContent = parts.join(" · ");
  byId("ramp").style.background = `linear-gradient(90deg, ${VIRIDIS.map((rgb) => `rgb(${rgb.join(" ")})`).join(", ")})`;
  byId("warnings").hidden = data.warnings.length === 0;
  byId("warnings").querySelector("ul").replaceChildren(...data.warnings.map((text) => textElement("li", text)));
  byId("about").hidden = data.facts.length === 0;
  showFacts(byId("facts"), data.facts);
  byId("legend").open = window.innerWidth > 832; // where there is room beside the map
  byId("image-field").hidden = data.bounds === null;
}

async function showBase() {
  const bitmap = await readBase();
  if (!bitmap) return;
  const [west, south, east, north] = data.bounds;
  painter.base = {
    bitmap,
    box: { west: worldX(west), north: worldY(north), east: worldX(east), south: worldY(south) },
  };
  if (!boxOfAll(items)) fitAll();
  redraw();
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
listenToMap(canvas, camera, { opened: openAt, hovered: hover, fitAll });
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
