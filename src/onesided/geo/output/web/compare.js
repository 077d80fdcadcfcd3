// What lies under the buildings: the image after the event, the one before it, both side by side
// with a curtain between them, a map from the network, or nothing.

const CURTAIN_STEP = 0.02;
const CURTAIN_PIXELS = 48; // what takes the finger
// Shares of the map's width at which the curtain may start. On a phone the middle is where the list
// puts a building; on wider screens the card shifts that place to the right and covers the left.
const [CURTAIN_STARTS, CURTAIN_STARTS_NARROW] = [[0.5, 0.75], [0.25, 0.75]];
const MOST_BASEMAP_TILES = 200;

class Ground {
  constructor(camera, changed) {
    Object.assign(this, { camera, changed });
    this.mode = "after";
    this.split = 0.5;
    this.moved = false; // the curtain, by a person
    this.selectedSpan = () => null; // of the map's width, in pixels
    this.visible = true;
    this.basemap = null;
    const files = data.files && new Files(data.files.folder, () => this.tellMissing());
    const tiles = (name) => {
      const layer = data.files?.layers[name];
      return layer ? new Tiles(name, layer, files, changed) : null;
    };
    this.files = files;
    this.images = {
      after: data.bounds || data.files?.layers.after ? new GroundImage(data.bounds, tiles("after")) : null,
      before: data.bounds_before || data.files?.layers.before ? new GroundImage(data.bounds_before, tiles("before")) : null,
    };
    this.listen();
  }

  async read() {
    for (const [name, id] of [["after", "base"], ["before", "base-before"]]) {
      const bitmap = await readBase(id);
      if (bitmap && this.images[name]) this.images[name].bitmap = bitmap;
    }
    this.changed();
  }

  // If no tile ever came, the whole folder is missing, and nothing more is asked for.
  tellMissing() {
    byId("files-missing").hidden = false;
    const layers = Object.values(this.images).flatMap((image) => image?.tiles ?? []);
    if (layers.every((tiles) => tiles.loaded.size === 0)) for (const tiles of layers) tiles.giveUp();
  }

  shown() {
    return this.visible && this.images.after !== null;
  }

  box() {
    const image = this.images.after;
    return image?.box ?? image?.tiles?.box ?? null;
  }

  // False where nothing was drawn.
  paint(context, camera, ratio) {
    const start = camera.worldAt(0, 0);
    const end = camera.worldAt(camera.width, camera.height);
    const view = { west: start.x, north: start.y, east: end.x, south: end.y };
    const place = (x, y) => [camera.screenX(x), camera.screenY(y)];
    if (this.basemap) this.basemap.paint(context, camera, view);
    if (!this.shown()) return this.basemap !== null;
    const { before, after } = this.images;
    const scale = camera.scale * ratio;
    if (this.mode === "before" && before) before.paint(context, view, place, scale);
    else after.paint(context, view, place, scale);
    if (this.mode === "swipe" && before) {
      context.save();
      context.beginPath();
      context.rect(0, 0, this.split * camera.width, camera.height);
      context.clip();
      context.fillRect(0, 0, camera.width, camera.height);
      before.paint(context, view, place, scale);
      context.restore();
    }
    return true;
  }

  paintCurtain(context, camera, colours) {
    if (this.mode !== "swipe" || !this.shown()) return;
    const x = Math.round(this.split * camera.width);
    context.beginPath();
    context.moveTo(x, 0);
    context.lineTo(x, camera.height);
    strokeTwice(context, [[colours.sign, 4], [colours.halo, 2]]);
  }

  listen() {
    const both = this.images.before !== null && this.images.after !== null;
    byId("compare").hidden = !both;
    for (const button of byId("compare").children) {
      button.addEventListener("click", () => this.setMode(button.dataset.mode));
    }
    byId("image-field").hidden = this.images.after === null;
    byId("image").addEventListener("change", (event) => {
      this.visible = event.target.checked;
      this.showMode();
    });
    this.listenToCurtain();
    this.offerBasemap();
    this.showMode();
  }

  listenToCurtain() {
    const handle = byId("curtain");
    handle.addEventListener("pointerdown", (event) => handle.setPointerCapture(event.pointerId));
    handle.addEventListener("pointermove", (event) => {
      if (!handle.hasPointerCapture(event.pointerId)) return;
      const frame = byId("map").getBoundingClientRect();
      this.setSplit((event.clientX - frame.left) / frame.width);
    });
    handle.addEventListener("keydown", (event) => {
      const steps = { ArrowLeft: -1, ArrowRight: 1, PageDown: -10, PageUp: 10, Home: -Infinity, End: Infinity };
      if (!Object.hasOwn(steps, event.key)) return;
      event.preventDefault();
      this.setSplit(this.split + steps[event.key] * CURTAIN_STEP);
    });
  }

  setSplit(share) {
    this.moved = true;
    this.split = Math.max(0, Math.min(1, share));
    this.showMode();
  }

  setMode(mode) {
    if (byId("compare").hidden) return;
    this.mode = mode;
    if (mode === "swipe" && !this.moved) this.split = this.curtainStart();
    this.showMode();
    byId("status").textContent = { after: "After the event", before: "Before the event", swipe: "Before on the left, after on the right" }[mode];
  }

  // Where the curtain leaves the selected building in sight, if there is such a place.
  curtainStart() {
    const { width } = this.camera;
    const starts = width > 700 ? CURTAIN_STARTS : CURTAIN_STARTS_NARROW;
    const [left, right] = this.selectedSpan() ?? [Infinity, -Infinity];
    const clear = (share) => Math.max(left - share * width, share * width - right) > CURTAIN_PIXELS / 2;
    return starts.find(clear) ?? starts[0];
  }

  // Before and after in turn.
  flip() {
    this.setMode(this.mode === "before" ? "after" : "before");
  }

  showMode() {
    for (const button of byId("compare").children) {
      button.setAttribute("aria-pressed", String(button.dataset.mode === this.mode));
    }
    const handle = byId("curtain");
    handle.hidden = this.mode !== "swipe" || !this.shown();
    handle.style.left = `${100 * this.split}%`;
    handle.setAttribute("aria-valuenow", String(Math.round(100 * this.split)));
    this.changed();
  }

  offerBasemap() {
    byId("basemap-field").hidden = data.basemap === null;
    if (!data.basemap) return;
    byId("basemap-host").textContent = `Online map (asks ${data.basemap.host} for the places you look at)`;
    byId("basemap").addEventListener("change", (event) => {
      this.basemap = event.target.checked ? new OnlineMap(data.basemap.template, this.changed) : null;
      byId("credit").hidden = !this.basemap;
      byId("credit").textContent = data.basemap.credit;
      this.changed();
    });
  }
}

// Tiles of a server, in the usual square of Web Mercator.
class OnlineMap {
  constructor(template, changed) {
    Object.assign(this, { template, changed });
    this.pictures = new Map();
  }

  paint(context, camera, view) {
    const level = Math.max(0, Math.min(19, Math.round(Math.log2(camera.scale / 256))));
    const count = 2 ** level;
    for (let row = Math.floor((view.north + 0.5) * count); row <= (view.south + 0.5) * count; row++) {
      for (let column = Math.floor((view.west + 0.5) * count); column <= (view.east + 0.5) * count; column++) {
        const picture = this.picture(level, ((column % count) + count) % count, row);
        if (!picture?.complete || !picture.naturalWidth) continue;
        const [x, y] = [camera.screenX(column / count - 0.5), camera.screenY(row / count - 0.5)];
        context.imageSmoothingEnabled = true;
        context.drawImage(picture, x, y, camera.scale / count + 0.5, camera.scale / count + 0.5);
      }
    }
  }

  picture(level, column, row) {
    if (row < 0 || row >= 2 ** level) return null;
    const address = this.template.replace("{z}", level).replace("{x}", column).replace("{y}", row);
    if (!this.pictures.has(address)) {
      const picture = new Image();
      picture.addEventListener("load", this.changed);
      picture.src = address;
      this.pictures.set(address, picture);
      const [oldest] = this.pictures.keys();
      if (this.pictures.size > MOST_BASEMAP_TILES) this.pictures.delete(oldest);
    }
    return this.pictures.get(address);
  }
}
