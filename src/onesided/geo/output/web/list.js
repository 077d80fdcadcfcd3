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
  constructor(items, decision, review, filter, pictures, picked) {
    Object.assign(this, { items, decision, review, filter, pictures, picked });
    const marked = decision.order.filter((item) => !items.open[item]);
    const unscored = items.names.flatMap((_, item) => (items.scored(item) ? [] : [item]));
    this.everything = { scored: decision.order, open: decision.open, marked, unscored };
    this.filtered();
    this.page = 0;
    this.selected = -1;
    this.kind = byId("list-kind");
    this.search = byId("search");
    this.kind.addEventListener("change", () => this.restart());
    this.search.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && this.found.length) this.picked(this.found.at(0));
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

  // The filter changed.
  filtered() {
    const { scored, open, marked, unscored } = this.filter.found ?? this.everything;
    this.scored = new Sorted(scored, this.items.scores);
    this.open = new Sorted(open, this.items.scores);
    Object.assign(this, { marked, unscored });
  }

  refresh() {
    this.found = this.filter.words() ? this.searched() : this[this.kind.value]();
    this.show();
  }

  // All that has the words: what the box names first, in its order, then the others.
  searched() {
    const { scored, open, marked, unscored } = this;
    const first = scored.firstAbove(this.decision.threshold);
    const parts = {
      called: () => [scored.highestFirst(), unscored],
      borderline: () => [new Outward(scored, first, this.decision.threshold), unscored],
      below: () => [new Falling(scored, 0, first), new Falling(scored, first, scored.items.length), unscored],
      doubted: () => [marked, open.highestFirst(), unscored],
      checked: () => [this.checked(), new Without(new Joined([scored.highestFirst(), unscored]), this.checked())],
      skipped: () => [unscored, scored.highestFirst()],
    };
    return new Joined(parts[this.kind.value]());
  }

  firstCalled() {
    return this.open.firstAbove(this.decision.threshold);
  }

  called() {
    return new Falling(this.open, this.firstCalled(), this.open.items.length);
  }

  below() {
    return new Falling(this.open, 0, this.firstCalled());
  }

  borderline() {
    return new Outward(this.open, this.firstCalled(), this.decision.threshold);
  }

  doubted() {
    return this.marked;
  }

  checked() {
    const { matches } = this.filter;
    return [...this.review.marks.keys()].filter((item) => !matches || matches[item]).reverse();
  }

  skipped() {
    return this.unscored;
  }

  show() {
    const pages = Math.max(1, Math.ceil(this.found.length / ROWS));
    this.page = Math.max(0, Math.min(pages - 1, this.page));
    const start = this.page * ROWS;
    const focused = byId("list").contains(document.activeElement) && document.activeElement.dataset.item;
    const rows = Array.from({ length: Math.min(ROWS, this.found.length - start) }, (_, row) => this.found.at(start + row));
    byId("list").replaceChildren(...rows.map((item) => this.row(item)));
    // The rows are new elements; keyboard focus stays on the same building.
    if (focused) byId("list").querySelector(`[data-item="${focused}"]`)?.focus();
    byId("list-count").textContent = counted(this.found.length);
    byId("list-empty").hidden = this.found.length > 0;
    const reason = this.search.value ? "No name and no attribute contains this." : "No such building passes the filter.";
    byId("list-empty").textContent = this.filter.matches ? reason : EMPTY[this.kind.value];
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
    const picture = this.pictures.thumbnail(item);
    button.append(picture ?? swatch(this.items, this.decision, item));
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
    while (step > 0 && place < this.found.length && this.review.marks.has(this.found.at(place))) place++;
    if (place < 0 || place >= this.found.length) return -1;
    return this.found.at(place);
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
    element.style.background = shadeColours[shadeOf(items.scores[item])];
    element.classList.toggle("called", decision.called(item));
  }
  return element;
}
