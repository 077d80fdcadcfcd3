// The item on the stage: pictures that zoom and move together, a text, or the cells of a row.

const MOST_ZOOM = 40;
const STEP = 1.3;

class Viewer {
  constructor() {
    this.view = byId("view");
    this.places = byId("pictures");
    this.mode = "both";
    this.pointers = new Map();
    this.fit();
    byId("zoom-in").addEventListener("click", () => this.zoom(STEP));
    byId("zoom-out").addEventListener("click", () => this.zoom(1 / STEP));
    byId("zoom-fit").addEventListener("click", () => this.fit());
    for (const button of byId("pair").children) button.addEventListener("click", () => this.show(button.dataset.mode));
    this.view.addEventListener("wheel", (event) => {
      if (!this.item?.pictures.length) return;
      event.preventDefault();
      this.zoom(STEP ** (-event.deltaY / 100), event);
    }, { passive: false });
    this.places.addEventListener("pointerdown", (event) => {
      this.places.setPointerCapture(event.pointerId);
      this.pointers.set(event.pointerId, event);
    });
    this.places.addEventListener("pointermove", (event) => this.drag(event));
    for (const end of ["pointerup", "pointercancel"]) {
      this.places.addEventListener(end, ({ pointerId }) => this.pointers.delete(pointerId));
    }
  }

  drag(event) {
    const before = this.pointers.get(event.pointerId);
    if (!before) return;
    const [one, other] = [...this.pointers.values()];
    if (other) {
      const fixed = one.pointerId === event.pointerId ? other : one;
      const apart = (place) => Math.hypot(place.clientX - fixed.clientX, place.clientY - fixed.clientY) || 1;
      this.zoom(apart(event) / apart(before), event);
    } else {
      this.move(event.clientX - before.clientX, event.clientY - before.clientY);
    }
    this.pointers.set(event.pointerId, event);
  }

  fit() {
    [this.scale, this.x, this.y] = [1, 0, 0];
    this.place();
  }

  move(x, y) {
    this.x += x;
    this.y += y;
    this.place();
  }

  // What is under the pointer stays under it; without one, the middle does.
  zoom(factor, event) {
    const scale = Math.min(MOST_ZOOM, Math.max(1, this.scale * factor));
    const box = (event?.target.closest?.("figure") ?? this.view).getBoundingClientRect();
    const [x, y] = event ? [event.clientX - box.x - box.width / 2, event.clientY - box.y - box.height / 2] : [0, 0];
    this.x = x - ((x - this.x) * scale) / this.scale;
    this.y = y - ((y - this.y) * scale) / this.scale;
    this.scale = scale;
    if (scale === 1) [this.x, this.y] = [0, 0];
    this.place();
  }

  place() {
    const limit = (part, length) => Math.min(length / 2, Math.max(-length / 2, part));
    const { width, height } = this.view.getBoundingClientRect();
    this.x = limit(this.x, width * this.scale);
    this.y = limit(this.y, height * this.scale);
    for (const picture of this.places.querySelectorAll("img")) {
      picture.style.transform = `translate(${this.x}px, ${this.y}px) scale(${this.scale})`;
    }
    byId("zoom-out").disabled = byId("zoom-fit").disabled = this.scale === 1 && !this.x && !this.y;
  }

  // Before, after, or both; all pictures keep their zoom.
  show(mode) {
    this.mode = mode;
    for (const button of byId("pair").children) button.setAttribute("aria-pressed", button.dataset.mode === mode);
    [...this.places.children].forEach((figure, place) => {
      figure.hidden = this.places.children.length > 1 && mode !== "both" && mode !== String(place);
    });
  }

  turn() {
    if (byId("pair").hidden) return;
    const modes = ["both", "0", "1"];
    this.show(modes[(modes.indexOf(this.mode) + 1) % modes.length]);
  }

  set(item, message = "") {
    this.item = item;
    const [pictures, text, cells] = [item?.pictures ?? [], item?.text ?? "", item?.cells ?? []];
    this.places.replaceChildren(...pictures.map((caption, place) => pictureOf(item, caption, place)));
    this.places.hidden = byId("zoom").hidden = !pictures.length;
    byId("pair").hidden = pictures.length < 2;
    this.show(this.mode);
    this.fit();
    byId("reading").hidden = !text && !cells.length;
    byId("reading").scrollTop = 0;
    byId("text").textContent = text;
    byId("text").hidden = !text;
    byId("cells").hidden = !cells.length;
    byId("cells").tBodies[0].replaceChildren(...cells.map(([name, value]) => {
      const row = document.createElement("tr");
      const head = Object.assign(textElement("th", name), { scope: "row" });
      row.append(head, textElement("td", value));
      return row;
    }));
    const why = item ? item.missing && `This item cannot be shown. ${item.missing}` : message;
    byId("empty").textContent = why;
    byId("empty").hidden = !why;
  }
}

const addressOf = (row, place) => `picture/${row}/${place}`;

function pictureOf(item, caption, place) {
  const figure = document.createElement("figure");
  const image = Object.assign(document.createElement("img"), {
    alt: `${caption || "Picture"} of ${item.item}`,
    draggable: false,
  });
  image.addEventListener("error", () => figure.replaceChildren(textElement("p", "This picture cannot be read any more.", "empty")));
  image.src = addressOf(item.row, place);
  figure.append(image);
  if (caption) figure.append(textElement("figcaption", caption));
  return figure;
}
