// The card of one building.

const ROLES = {
  positive: "marked as damaged, used for training",
  unlabelled: "not marked",
  "held-out positive": "marked as damaged, held out to test the model",
  "held-out unlabelled": "not marked, held out to test the model",
};

class Card {
  constructor(items, decision, review) {
    Object.assign(this, { items, decision, review });
    this.item = -1;
    this.element = byId("card");
    for (const button of byId("card-marks").children) {
      button.addEventListener("click", () => this.mark(button.dataset.mark));
    }
    byId("copy").addEventListener("click", () => this.copy());
  }

  mark(mark) {
    if (this.item >= 0) this.review.toggle(this.item, mark);
  }

  open(item) {
    this.item = item;
    this.element.hidden = item < 0;
    if (item < 0) return;
    byId("card-name").textContent = this.items.names[item];
    this.showPictures();
    this.refresh();
  }

  // The parts that the threshold and the person's checks change.
  refresh() {
    if (this.item < 0) return;
    const { items, item } = this;
    const verdict = byId("card-verdict");
    verdict.classList.toggle("bad", this.decision.called(item));
    verdict.textContent = this.verdict();
    const rows = [["Role", ROLES[items.role(item)] ?? items.role(item)]];
    if (items.scored(item)) rows.unshift(["Score", items.scores[item].toFixed(4)]);
    if (items.ranks[item] !== null) rows.splice(1, 0, ["Rank", `${counted(items.ranks[item])}`]);
    if (items.reason(item)) rows.push(["Skipped", items.reason(item)]);
    rows.push(["Position", this.positionInWords() ?? "no usable shape"]);
    showFacts(byId("card-facts"), rows);
    byId("copy").disabled = !items.placed(item);
    const mark = this.review.marks.get(item);
    for (const button of byId("card-marks").children) {
      button.setAttribute("aria-pressed", String(button.dataset.mark === mark));
    }
  }

  verdict() {
    if (!this.items.scored(this.item)) return "Skipped: no score";
    return this.decision.called(this.item) ? "Called damaged" : "Not called damaged";
  }

  showPictures() {
    const names = ["Before", "After"];
    const sources = names.map((_, side) => this.items.picture(this.item, side));
    const figures = names.flatMap((name, side) => {
      if (!sources[side]) return [];
      const figure = document.createElement("figure");
      const alt = `${this.items.names[this.item]}, ${name.toLowerCase()} the event`;
      figure.append(Object.assign(new Image(), { src: sources[side], alt }));
      // A single picture, after the event, needs no caption.
      if (sources[1 - side] || side === 0) figure.append(textElement("figcaption", name));
      return [figure];
    });
    byId("card-pictures").replaceChildren(...figures);
  }

  // Latitude and longitude of the centre, in degrees.
  position() {
    const { x, y } = centreOf(this.items, this.item);
    return [latitudeOf(y), longitudeOf(x)];
  }

  positionInWords() {
    if (!this.items.placed(this.item)) return null;
    const [latitude, longitude] = this.position();
    return `${degreesText(latitude, 6, "NS")}, ${degreesText(longitude, 6, "EW")}`;
  }

  async copy() {
    // Latitude first, and signs: so other maps take it.
    const text = this.position().map((degrees) => degrees.toFixed(6)).join(", ");
    const copied = await this.toClipboard(text);
    byId("status").textContent = copied ? `Copied ${text}` : "The browser does not allow copying";
    byId("copy").textContent = copied ? "Copied" : "Not allowed";
    setTimeout(() => {
      byId("copy").textContent = "Copy coordinates";
    }, 1500);
  }

  // Some browsers give pages from disk no clipboard; the older way still works there.
  async toClipboard(text) {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch {
      const field = Object.assign(document.createElement("textarea"), { value: text });
      this.element.append(field);
      field.select();
      const copied = document.execCommand("copy");
      field.remove();
      return copied;
    }
  }
}
