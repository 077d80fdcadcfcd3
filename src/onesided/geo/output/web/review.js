// The person's answers: kept in this browser, saved as one row for each answer.

const ANSWERS = { damaged: "positive", "not damaged": "negative", unsure: "unsure", skip: "skip" };
const MARKS = Object.keys(ANSWERS);
const MARK_OF = {
  ...Object.fromEntries(MARKS.flatMap((mark) => [[ANSWERS[mark], mark], [mark, mark]])),
  unlabelled: "unsure",
};
const COUNTED = { damaged: "damaged", "not damaged": "not damaged", unsure: "unsure", skip: "skipped" };
const LARGEST_REVIEW = 1e8; // bytes: more than the buildings of a country, less than memory

class Review {
  constructor(items, kept, changed) {
    Object.assign(this, { items, kept, changed });
    this.marks = new Map();
    this.notes = new Map(); // reviewer, time and turn of each mark, and whether it is from a file
    this.turn = 0; // two answers of one second keep their order in the browser's storage
    this.unsaved = false;
    this.reviewer = byId("reviewer");
    byId("load").addEventListener("click", () => byId("review-file").click());
    byId("review-file").addEventListener("change", ({ target }) => {
      this.loadFiles([...target.files]);
      target.value = ""; // so that the same file can be chosen again
    });
    byId("forget").addEventListener("click", () => this.forget());
    this.reviewer.addEventListener("change", () => {
      kept.put("reviewer", this.reviewer.value);
      this.sign();
    });
    window.addEventListener("beforeunload", (event) => {
      if (!this.unsaved) return;
      event.preventDefault();
      event.returnValue = true; // browsers before 2023 ask for this one
    });
  }

  // What this browser kept from an earlier window.
  restore() {
    const [[, name] = []] = this.kept.entries("reviewer");
    if (typeof name === "string") this.reviewer.value = name;
    const rows = new Map(this.kept.entries("answer/"));
    if (rows.size) {
      const items = this.itemsByName();
      const found = [...rows].filter(([name, row]) => items.has(name) && Object.hasOwn(ANSWERS, row.mark));
      found.sort(([, one], [, other]) => (one.turn ?? 0) - (other.turn ?? 0));
      for (const [name, row] of found) this.set(items.get(name), row);
      byId("loaded").textContent = `${several(found.length, "answer")} of an earlier window restored from this browser.`;
    }
    this.show();
  }

  itemsByName() {
    return new Map(this.items.names.map((name, item) => [name, item]));
  }

  set(item, { mark, reviewer = "", time = "", loaded = false }) {
    this.marks.delete(item); // so that the newest is last
    this.marks.set(item, mark);
    this.notes.set(item, { reviewer, time, loaded, turn: ++this.turn });
  }

  // A name that is typed after the first answers is theirs too. Those of a file without names
  // may be somebody else's.
  sign() {
    const reviewer = this.reviewer.value.trim();
    const nameless = [...this.marks.keys()].filter((item) => !this.notes.get(item).reviewer && !this.notes.get(item).loaded);
    if (!reviewer || !nameless.length) return;
    for (const item of nameless) {
      this.notes.get(item).reviewer = reviewer;
      this.keep(item);
    }
    this.unsaved = true;
    byId("loaded").textContent = `This name is now on ${several(nameless.length, "answer")} given before.`;
  }

  keep(item) {
    const name = `answer/${this.items.names[item]}`;
    if (this.marks.has(item)) this.kept.put(name, { mark: this.marks.get(item), ...this.notes.get(item) });
    else this.kept.remove(name);
  }

  // The same mark again removes it.
  toggle(item, mark) {
    if (this.marks.get(item) === mark) this.marks.delete(item);
    else this.set(item, { mark, reviewer: this.reviewer.value.trim(), time: now() });
    this.keep(item);
    this.unsaved = this.marks.size > 0;
    this.show();
    this.changed();
  }

  forget() {
    const sure = window.confirm("Forget all answers of this map in this browser? Files that you saved stay.");
    if (!sure) return;
    for (const item of this.marks.keys()) this.kept.remove(`answer/${this.items.names[item]}`);
    this.marks.clear();
    this.unsaved = false;
    byId("loaded").textContent = "";
    this.show();
    this.changed();
  }

  show() {
    const counts = new Map(MARKS.map((mark) => [mark, 0]));
    for (const mark of this.marks.values()) counts.set(mark, counts.get(mark) + 1);
    const parts = MARKS.filter((mark) => mark !== "skip" || counts.get(mark))
      .map((mark) => `${counted(counts.get(mark))} ${COUNTED[mark]}`);
    const where = this.kept.works
      ? "This browser keeps them; save them to pass them on."
      : "This browser keeps nothing: save them before you close the window.";
    byId("review").textContent = this.marks.size
      ? `${counted(this.marks.size)} checked: ${parts.join(", ")}. ${where}`
      : "None yet. Open a building, choose what you see, and save your answers. The next training can use those you found damaged.";
    byId("export").disabled = this.marks.size === 0;
    byId("forget").hidden = this.marks.size === 0;
  }

  // Item, answer, reviewer and time of each answer, the newest last.
  rows() {
    return [...this.marks].map(([item, mark]) => {
      const { reviewer, time } = this.notes.get(item);
      return [this.items.names[item], ANSWERS[mark], reviewer, time];
    });
  }

  csv() {
    return csvText(["id", "answer", "reviewer", "time"], this.rows());
  }

  async loadFiles(files) {
    const messages = [];
    for (const file of files) messages.push(await this.loadFile(file));
    const named = files.length > 1 ? messages.map((text, place) => `${files[place].name}: ${text}`) : messages;
    if (named.length) byId("loaded").textContent = named.join(" ");
  }

  async loadFile(file) {
    if (file.size > LARGEST_REVIEW) return "This file is too large to hold answers.";
    return file.text().then(
      (text) => this.load(text.replace(/^\uFEFF/, "")),
      () => "This file cannot be read.",
    );
  }

  // Returns a message. What was checked in this window is newer, so it stays.
  load(text) {
    const found = readReview(text);
    if (!found) return "This file holds no answers: its first line must name the columns id and answer.";
    const items = this.itemsByName();
    const known = [...found.rows].flatMap(([name, row]) => (items.has(name) ? [[items.get(name), row]] : []));
    const here = [...this.marks].map(([item, mark]) => [item, { mark, ...this.notes.get(item) }]);
    const differing = known.filter(([item, { mark }]) => this.marks.has(item) && this.marks.get(item) !== mark);
    this.marks.clear(); // in place, because the map draws these
    const kept = new Set(here.map(([item]) => item));
    for (const [item, row] of known) if (!kept.has(item)) this.set(item, { ...row, loaded: true });
    for (const [item, row] of here) this.set(item, row);
    for (const item of this.marks.keys()) this.keep(item);
    this.unsaved = this.unsaved || here.length > 0;
    this.show();
    this.changed();
    return loadedText({
      loaded: known.length,
      unknown: found.rows.size - known.length,
      differing: differing.length,
      others: found.others,
      contested: found.contested,
    });
  }
}

const now = () => new Date().toISOString().replace(/\.\d+Z$/, "Z");

// The answer for every name, of which the last one counts; null if the text is no such table.
function readReview(text) {
  const rows = rowsOf(text);
  if (!rows?.length) return null;
  const heads = rows[0].map((head) => head.trim().toLowerCase());
  const at = (...names) => heads.findIndex((head) => names.includes(head));
  const [idAt, answerAt, reviewerAt, timeAt] = [at("id", "item"), at("answer", "label"), at("reviewer"), at("time")];
  if (idAt < 0 || answerAt < 0) return null;
  const [found, contested] = [new Map(), new Set()];
  let others = 0;
  for (const row of rows.slice(1)) {
    const word = (row[answerAt] ?? "").trim().toLowerCase();
    if (!Object.hasOwn(MARK_OF, word)) {
      others++;
      continue;
    }
    const name = nameInCell(row[idAt] ?? "");
    const reviewer = nameInCell(row[reviewerAt] ?? "");
    const before = found.get(name);
    const differs = before && before.reviewer !== reviewer && before.mark !== MARK_OF[word];
    if (differs && [before.mark, MARK_OF[word]].every((mark) => mark.endsWith("damaged"))) contested.add(name);
    found.set(name, { mark: MARK_OF[word], reviewer, time: row[timeAt] ?? "" });
  }
  return { rows: found, others, contested: contested.size };
}

function loadedText({ loaded, unknown, differing, others, contested }) {
  const parts = [`${several(loaded, "answer")} loaded`];
  if (unknown) parts.push(`${several(unknown, "unknown id")} left out`);
  if (differing) parts.push(`${several(differing, "building")} kept as checked here`);
  if (contested) parts.push(`on ${several(contested, "building")} reviewers disagree, and the last answer counts`);
  if (others) parts.push(`${several(others, "line")} with another answer left out`);
  return `${parts.join("; ")}.`;
}
