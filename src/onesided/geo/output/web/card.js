// The card of one building.

const ROLES = {
  positive: "marked as damaged, used for training",
  unlabelled: "not marked",
  negative: "called undamaged by reviewers, used for training",
  "held-out positive": "marked as damaged, held out to test the model",
  "held-out unlabelled": "not marked, held out to test the model",
};

class Card {
  constructor(items, decision, review, pictures) {
    Object.assign(this, { items, decision, review, pictures });
    this.item = -1;
    this.element = byId("card");
    for (const button of byId("card-marks").children) {
      button.addEventListener("click", () => this.mark(button.dataset.mark));
    }
    byId("copy").addEventListener("click", () => this.copy());
    for (const button of byId("card-compare").children) {
      button.addEventListener("click", () => this.compare(button.dataset.compare));
    }
    this.swiping = false;
  }

  // Before and after side by side, or one above the other with a slider between them.
  compare(way) {
    this.swiping = way === "swipe";
    this.showPictures();
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
    const area = areaOf(items, item);
    if (area > 0) rows.push(["Area", `${counted(Math.round(area))} m²`]);
    showFacts(byId("card-facts"), rows);
    showFacts(byId("card-attributes"), attributesOf(item));
    byId("card-attributes").hidden = byId("card-attributes").children.length === 0;
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
    const found = names.flatMap((name, side) => {
      const alt = `${this.items.names[this.item]}, ${name.toLowerCase()} the event`;
      const picture = this.pictures.picture(this.item, side, alt);
      return picture ? [{ name, side, picture }] : [];
    });
    const both = found.length === 2;
    byId("card-compare").hidden = !both;
    for (const button of byId("card-compare").children) {
      button.setAttribute("aria-pressed", String((button.dataset.compare === "swipe") === this.swiping));
    }
    const area = byId("card-pictures");
    area.classList.toggle("swiped", both && this.swiping);
    area.replaceChildren(...found.map(({ name, side, picture }) => {
      const figure = document.createElement("figure");
      figure.append(picture);
      // A single picture, after the event, needs no caption.
      if (both || side === 0) figure.append(textElement("figcaption", name));
      return figure;
    }));
    if (both && this.swiping) area.append(swipeSlider(found[1].picture));
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

// The picture after the event is uncovered from the right.
function swipeSlider(after) {
  const slider = Object.assign(document.createElement("input"), { type: "range", min: 0, max: 100, value: 50 });
  slider.setAttribute("aria-label", "How much of the picture before the event is shown");
  const show = () => {
    after.style.clipPath = `inset(0 0 0 ${slider.value}%)`;
  };
  slider.addEventListener("input", show);
  show();
  return slider;
}

function attributesOf(item) {
  return data.attributes.flatMap(({ name, numbers, texts, place }) => {
    const value = numbers ? numbers[item] : texts[place[item]];
    return value === null || value === undefined ? [] : [[name, String(value)]];
  });
}
