// The list of buildings to check next.

const ROWS = 10;

const EMPTY = {
  called: "No unmarked building is above the threshold.",
  borderline: "There is no unmarked building with a score.",
  below: "No unmarked building is below the threshold.",
  doubted: "No building with a score was marked before.",
  checked: "Nothing checked yet.",
  skipped: "No building was skipped.",
};

class BuildingList {
  constructor(items, decision, review, picked) {
    Object.assign(this, { items, decision, review, picked });
    this.page = 0;
    this.selected = -1;
    this.kind = byId("list-kind");
    this.search = byId("search");
    this.kind.addEventListener("change", () => {
      this.search.value = "";
      this.restart();
    });
    this.search.addEventListener("input", () => this.restart());
    this.search.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && this.found.length) this.picked(this.found[0]);
    });
    byId("page-back").addEventListener("click", () => this.turn(-1));
    byId("page-on").addEventListener("click", () => this.turn(1));
    this.restart();
  }

  restart() {
    this.page = 0;
    this.refresh();
  }

  turn(pages) {
    this.page += pages;
    this.show();
  }

  refresh() {
    const words = this.search.value.trim().toLowerCase();
    this.found = words ? this.matching(words) : this[this.kind.value]();
    this.show();
  }

  matching(words) {
    const { items } = this;
    const found = [];
    for (let item = 0; item < items.size; item++) if (items.lowered[item].includes(words)) found.push(item);
    return found;
  }

  called() {
    return Array.from(this.decision.open.subarray(this.decision.firstOpenCalled())).reverse();
  }

  below() {
    return Array.from(this.decision.open.subarray(0, this.decision.firstOpenCalled())).reverse();
  }

  borderline() {
    const { threshold } = this.decision;
    const above = Array.from(this.decision.open.subarray(this.decision.firstOpenCalled()));
    const below = this.below();
    const far = (item) => Math.abs(this.items.scores[item] - threshold);
    const found = [];
    for (let up = 0, down = 0; up < above.length || down < below.length; ) {
      const takeAbove = down === below.length || (up < above.length && far(above[up]) < far(below[down]));
      found.push(takeAbove ? above[up++] : below[down++]);
    }
    return found;
  }

  doubted() {
    return Array.from(this.decision.order.filter((item) => !this.items.open[item]));
  }

  checked() {
    return [...this.review.marks.keys()].reverse();
  }

  skipped() {
    return Array.from({ length: this.items.size }, (_, item) => item).filter((item) => !this.items.scored(item));
  }

  show() {
    const pages = Math.max(1, Math.ceil(this.found.length / ROWS));
    this.page = Math.max(0, Math.min(pages - 1, this.page));
    const start = this.page * ROWS;
    const focused = byId("list").contains(document.activeElement) && document.activeElement.dataset.item;
    byId("list").replaceChildren(...this.found.slice(start, start + ROWS).map((item) => this.row(item)));
    // The rows are new elements; keyboard focus stays on the same building.
    if (focused) byId("list").querySelector(`[data-item="${focused}"]`)?.focus();
    byId("list-count").textContent = counted(this.found.length);
    byId("list-empty").hidden = this.found.length > 0;
    byId("list-empty").textContent = this.search.value ? "No name contains this." : EMPTY[this.kind.value];
    byId("page-number").textContent = `Page ${counted(this.page + 1)} of ${counted(pages)}`;
    byId("page-back").disabled = this.page === 0;
    byId("page-on").disabled = this.page === pages - 1;
  }

  row(item) {
    const { items } = this;
    const button = document.createElement("button");
    button.type = "button";
    button.dataset.item = item;
    button.setAttribute("aria-current", String(item === this.selected));
    const source = items.picture(item, 1) ?? items.picture(item, 0);
    if (source) button.append(Object.assign(new Image(), { src: source, alt: "" }));
    else button.append(swatch(this.items, this.decision, item));
    button.append(textElement("bdi", items.names[item], "name"));
    const mark = this.review.marks.get(item);
    if (mark) button.append(textElement("span", mark, `chip ${mark === "damaged" ? "bad" : ""}`));
    const score = items.scored(item) ? items.scores[item].toFixed(3) : "skipped";
    button.append(textElement("span", score, "score"));
    button.addEventListener("click", () => this.picked(item));
    const line = document.createElement("li");
    line.append(button);
    return line;
  }

  // The next or previous building in the list; forward skips buildings that are checked.
  neighbour(step) {
    let place = this.found.indexOf(this.selected) + step;
    while (step > 0 && this.review.marks.has(this.found[place])) place++;
    if (place < 0 || place >= this.found.length) return -1;
    return this.found[place];
  }

  select(item) {
    this.selected = item;
    const place = this.found.indexOf(item);
    if (place >= 0) this.page = Math.floor(place / ROWS);
    this.show();
  }
}

function swatch(items, decision, item) {
  const element = textElement("i", "", "swatch");
  if (items.scored(item)) {
    const share = (items.scores[item] - decision.low) / (decision.high - decision.low);
    element.style.background = viridis(share);
    element.classList.toggle("called", decision.called(item));
  }
  return element;
}
