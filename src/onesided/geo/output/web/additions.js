// Buildings that the footprints lack: marked by one point, or drawn by their corners.

class Additions {
  constructor(camera, kept, review, changed) {
    Object.assign(this, { camera, kept, review, changed });
    this.buildings = new Map(); // by name
    this.corners = null; // while one is drawn
    byId("add").addEventListener("click", () => (this.corners ? this.stop() : this.start()));
    byId("add-finish").addEventListener("click", () => this.finish());
    byId("add-cancel").addEventListener("click", () => this.stop());
    review.reviewer.addEventListener("change", () => this.sign());
    this.show();
  }

  restore() {
    for (const [name, building] of this.kept.entries("building/")) {
      if (Array.isArray(building?.corners) && building.corners.every(isPlace)) this.buildings.set(name, building);
    }
    this.show();
  }

  start() {
    this.corners = [];
    this.show();
    byId("status").textContent = "Add a building: click its corners, or press Enter for the place in the middle; F finishes.";
    byId("map").focus({ preventScroll: true });
  }

  stop() {
    this.corners = null;
    this.show();
  }

  // A place of the screen.
  addCorner(screenX, screenY) {
    const { x, y } = this.camera.worldAt(screenX, screenY);
    this.corners.push([x, y]);
    this.show();
  }

  finish() {
    if (!this.corners) return;
    if (this.corners.length === 0 || this.corners.length === 2) {
      byId("add-help").textContent = "One point marks a building, three corners or more draw it.";
      return;
    }
    let number = this.buildings.size + 1;
    while (this.buildings.has(`new-${number}`)) number++;
    const building = { corners: this.corners, mark: "damaged", reviewer: this.review.reviewer.value.trim(), time: now() };
    this.keep(`new-${number}`, building);
    byId("status").textContent = `new-${number} added as damaged`;
    this.stop();
  }

  change(name, mark) {
    this.keep(name, { ...this.buildings.get(name), mark, reviewer: this.review.reviewer.value.trim(), time: now() });
    this.show();
  }

  // A name that is typed after a building was added is put on it.
  sign() {
    const reviewer = this.review.reviewer.value.trim();
    for (const [name, building] of this.buildings) if (!building.reviewer) this.keep(name, { ...building, reviewer });
  }

  keep(name, building) {
    this.buildings.set(name, building);
    this.kept.put(`building/${name}`, building);
  }

  remove(name) {
    this.buildings.delete(name);
    this.kept.remove(`building/${name}`);
    this.show();
  }

  show() {
    const drawing = this.corners !== null;
    byId("add").setAttribute("aria-pressed", String(drawing));
    byId("add-bar").hidden = !drawing;
    byId("map").classList.toggle("drawing", drawing);
    const corners = this.corners?.length ?? 0;
    byId("add-help").textContent = corners
      ? `${several(corners, "corner")}. Finish a point at one, an outline from three on.`
      : "Click on the building, or on its corners one after the other.";
    byId("add-finish").disabled = corners === 0;
    byId("additions").hidden = this.buildings.size === 0;
    byId("additions").replaceChildren(...[...this.buildings].map(([name, building]) => this.row(name, building)));
    this.changed();
  }

  row(name, building) {
    const line = document.createElement("li");
    const place = textElement("button", name, "plain");
    place.addEventListener("click", () => {
      const [x, y] = middle(building.corners);
      this.camera.fly(x, y, Math.max(this.camera.scale, scaleAt(y, CLOSE_UP_METRES_PER_PIXEL)));
    });
    const choice = document.createElement("select");
    choice.setAttribute("aria-label", `What you see at ${name}`);
    choice.append(...MARKS.map((mark) => new Option(mark, mark, false, mark === building.mark)));
    choice.addEventListener("change", () => this.change(name, choice.value));
    const away = textElement("button", "Remove", "plain");
    away.addEventListener("click", () => this.remove(name));
    for (const button of [place, away]) button.type = "button";
    line.append(place, choice, away);
    return line;
  }

  paint(painter) {
    for (const { corners, mark } of this.buildings.values()) paintAddition(painter, corners, mark, true);
    if (this.corners?.length) paintAddition(painter, this.corners, null, false);
  }
}

const isPlace = (corner) => Array.isArray(corner) && corner.length === 2 && corner.every(Number.isFinite);

function middle(corners) {
  const sum = (side) => corners.reduce((total, corner) => total + corner[side], 0) / corners.length;
  return [sum(0), sum(1)];
}

function paintAddition({ context, camera, colours }, corners, mark, closed) {
  context.beginPath();
  corners.forEach(([x, y], place) => {
    if (place) context.lineTo(camera.screenX(x), camera.screenY(y));
    else context.moveTo(camera.screenX(x), camera.screenY(y));
  });
  if (closed) context.closePath();
  context.setLineDash([6, 3]);
  strokeTwice(context, [[colours.casing, 5], [colours.called, 2.5]]);
  context.setLineDash([]);
  const dots = mark === null ? corners : [middle(corners)];
  for (const [x, y] of dots) {
    context.beginPath();
    context.arc(camera.screenX(x), camera.screenY(y), mark === null ? 4 : 6, 0, 2 * Math.PI);
    context.fillStyle = mark === null || mark === "damaged" ? colours.damaged : colours.halo;
    context.fill();
    strokeTwice(context, [[mark === "damaged" ? colours.halo : colours.sign, 1.5]]);
  }
}
