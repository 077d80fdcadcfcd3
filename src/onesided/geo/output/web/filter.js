// Which buildings are shown, on the map and in the list: by words, answer, score, area, place
// and attribute. A million buildings are looked at in slices, so that no frame has to wait.

const SLICE_MILLISECONDS = 12;
const CHECK_EVERY = 512; // buildings between two looks at the clock
const MOST_CHOICES = 100; // different texts of an attribute that are offered as a list

class Filter {
  // `order`: all buildings, those without a score first, then the lowest first.
  constructor(items, order, review, camera, changed) {
    Object.assign(this, { items, order, review, camera, changed });
    this.matches = null; // null: all
    this.found = null; // the same in the orders of the list
    this.count = items.size;
    this.fields = ["filter-answer", "score-from", "score-to", "area-from", "area-to", "in-view", "attribute", "attribute-text", "attribute-from", "attribute-to"].map(byId);
    for (const field of this.fields) field.addEventListener("input", () => this.apply());
    byId("attribute").addEventListener("input", () => this.offerValues());
    byId("search").addEventListener("input", () => this.apply());
    byId("filter-clear").addEventListener("click", () => this.clear());
    byId("attribute-fields").hidden = data.attributes.length === 0;
    byId("attribute").append(...data.attributes.map(({ name }, place) => new Option(name, String(place))));
    this.offerValues();
  }

  clear() {
    for (const field of [...this.fields, byId("search")]) {
      if (field.type === "checkbox") field.checked = false;
      else field.value = "";
    }
    this.offerValues();
    this.apply();
  }

  column() {
    const chosen = byId("attribute").value;
    return chosen === "" ? null : data.attributes[Number(chosen)];
  }

  offerValues() {
    const column = this.column();
    byId("attribute-words").hidden = !column || Boolean(column.numbers);
    byId("attribute-range").hidden = !column?.numbers;
    const few = column?.texts && column.texts.length <= MOST_CHOICES ? column.texts : [];
    byId("attribute-choices").replaceChildren(...few.map((text) => Object.assign(document.createElement("option"), { value: text })));
  }

  words() {
    return byId("search").value.trim().toLowerCase();
  }

  // Tests that a building has to pass, cheap ones first.
  tests() {
    const { items, review } = this;
    const tests = [];
    const range = (from, to, value) => {
      const [low, high] = [byId(from).valueAsNumber, byId(to).valueAsNumber];
      if (!Number.isNaN(low)) tests.push((item) => value(item) >= low);
      if (!Number.isNaN(high)) tests.push((item) => value(item) <= high);
    };
    const answer = byId("filter-answer").value;
    if (answer === "none") tests.push((item) => !review.marks.has(item));
    else if (answer === "any") tests.push((item) => review.marks.has(item));
    else if (answer) tests.push((item) => review.marks.get(item) === answer);
    range("score-from", "score-to", (item) => items.scores[item]);
    if (byId("in-view").checked) tests.push(this.inView());
    const column = this.column();
    if (column?.numbers) range("attribute-from", "attribute-to", (item) => column.numbers[item] ?? NaN);
    const wanted = byId("attribute-text").value.trim().toLowerCase();
    if (column?.texts && wanted) tests.push(textTest(column, wanted));
    range("area-from", "area-to", (item) => areaOf(items, item));
    const words = this.words();
    if (words) tests.push(this.wordTest(words));
    return tests;
  }

  inView() {
    const { boxes } = this.items;
    const start = this.camera.worldAt(0, 0);
    const end = this.camera.worldAt(this.camera.width, this.camera.height);
    return (item) =>
      boxes[4 * item] <= end.x && boxes[4 * item + 2] >= start.x && boxes[4 * item + 1] <= end.y && boxes[4 * item + 3] >= start.y;
  }

  // In the name, or in the text of any attribute.
  wordTest(words) {
    const columns = data.attributes.filter(({ texts }) => texts).map((column) => textTest(column, words));
    return (item) => this.items.names[item].toLowerCase().includes(words) || columns.some((test) => test(item));
  }

  apply() {
    const tests = this.tests();
    const all = tests.length === 0;
    const search = {
      tests,
      next: 0,
      count: 0,
      matches: all ? null : new Uint8Array(this.items.size),
      found: all ? null : { scored: [], open: [], marked: [], unscored: [] },
    };
    this.search = search; // an older one that still runs stops itself
    if (all) return this.finish(search);
    return this.slice(search);
  }

  // By score, so that what is found need not be sorted.
  slice(search) {
    if (this.search !== search) return;
    const end = performance.now() + SLICE_MILLISECONDS;
    for (let place = search.next; place < this.order.length; place++) {
      const item = this.order[place];
      if (search.tests.every((test) => test(item))) this.add(item, search);
      if (place % CHECK_EVERY === 0 && performance.now() > end) {
        search.next = place + 1;
        setTimeout(() => this.slice(search));
        return;
      }
    }
    this.finish(search);
  }

  add(item, search) {
    const { scored, open, marked, unscored } = search.found;
    search.matches[item] = 1;
    search.count++;
    if (!this.items.scored(item)) return unscored.push(item);
    scored.push(item);
    return (this.items.open[item] ? open : marked).push(item);
  }

  finish({ matches, found, count }) {
    this.matches = matches;
    this.found = found;
    this.count = matches ? count : this.items.size;
    byId("filtered").hidden = !matches;
    byId("filter-count").textContent = `${counted(this.count)} of ${counted(this.items.size)} buildings shown`;
    this.changed();
  }

  // Called when the map or an answer changed.
  follow(what) {
    const asked = what === "view" ? byId("in-view").checked : byId("filter-answer").value !== "";
    if (!asked) return;
    clearTimeout(this.later);
    this.later = setTimeout(() => this.apply(), 150);
  }
}

function textTest({ texts, place }, wanted) {
  const has = Uint8Array.from(texts, (text) => text.toLowerCase().includes(wanted));
  return (item) => place[item] >= 0 && has[place[item]] === 1;
}
