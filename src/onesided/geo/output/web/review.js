// The person's checks, kept in this window and saved as labels.

const LABELS = { damaged: "positive", "not damaged": "negative", unsure: "unlabelled" };
const MARKS = Object.keys(LABELS);
const MARK_OF = Object.fromEntries(MARKS.flatMap((mark) => [[LABELS[mark], mark], [mark, mark]]));
const LARGEST_REVIEW = 1e8; // bytes: more than the buildings of a country, less than memory

class Review {
  constructor(items, changed) {
    this.items = items;
    this.changed = changed;
    this.marks = new Map();
    this.unsaved = false;
    byId("export").addEventListener("click", () => this.save());
    byId("load").addEventListener("click", () => byId("review-file").click());
    byId("review-file").addEventListener("change", ({ target }) => {
      if (target.files.length) this.loadFile(target.files[0]);
      target.value = ""; // so that the same file can be chosen again
    });
    window.addEventListener("beforeunload", (event) => {
      if (!this.unsaved) return;
      event.preventDefault();
      event.returnValue = true; // browsers before 2023 ask for this one
    });
    this.show();
  }

  // The same mark again removes it.
  toggle(item, mark) {
    const again = this.marks.get(item) === mark;
    this.marks.delete(item);
    if (!again) this.marks.set(item, mark);
    this.unsaved = this.marks.size > 0;
    this.show();
    this.changed();
  }

  show() {
    const counts = MARKS.map((mark) => [...this.marks.values()].filter((one) => one === mark).length);
    const parts = MARKS.map((mark, place) => `${counted(counts[place])} ${mark}`);
    byId("review").textContent = this.marks.size
      ? `${counted(this.marks.size)} checked: ${parts.join(", ")}. They are kept in this window only: save them before you close it.`
      : "None yet. Open a building, choose what you see, and save your checks. The next training can use those you found damaged.";
    byId("export").disabled = this.marks.size === 0;
  }

  csv() {
    const rows = [...this.marks].map(([item, mark]) => [this.items.names[item], LABELS[mark]]);
    return `id,label\n${rows.map(([name, label]) => `${cell(name)},${label}\n`).join("")}`;
  }

  save() {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([this.csv()], { type: "text/csv;charset=utf-8" }));
    link.download = "review.csv";
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
    this.unsaved = false;
  }

  async loadFile(file) {
    let message = "This file is too large to hold checks.";
    if (file.size <= LARGEST_REVIEW) {
      message = await file.text().then(
        (text) => this.load(text.replace(/^\uFEFF/, "")),
        () => "This file cannot be read.",
      );
    }
    byId("loaded").textContent = message;
  }

  // Returns a message. What was checked in this window is newer, so it stays.
  load(text) {
    const found = readReview(text);
    if (!found) return "This file holds no checks: its first line must name the columns id and label.";
    const items = new Map(this.items.names.map((name, item) => [name, item]));
    const known = [...found.marks].flatMap(([name, mark]) => (items.has(name) ? [[items.get(name), mark]] : []));
    const here = [...this.marks];
    const differing = known.filter(([item, mark]) => this.marks.has(item) && this.marks.get(item) !== mark);
    this.marks.clear(); // in place, because the map draws these
    const kept = new Set(here.map(([item]) => item));
    for (const [item, mark] of known) if (!kept.has(item)) this.marks.set(item, mark);
    for (const [item, mark] of here) this.marks.set(item, mark);
    this.unsaved = this.unsaved || here.length > 0;
    this.show();
    this.changed();
    return loadedText(known.length, found.marks.size - known.length, differing.length, found.others);
  }
}

// The mark of every name, the last one counts; null if the text is no table of checks.
function readReview(text) {
  const rows = rowsOf(text);
  if (!rows?.length) return null;
  const heads = rows[0].map((head) => head.trim().toLowerCase());
  const [idAt, labelAt] = [heads.indexOf("id"), heads.indexOf("label")];
  if (idAt < 0 || labelAt < 0) return null;
  const marks = new Map();
  let others = 0;
  for (const row of rows.slice(1)) {
    const word = (row[labelAt] ?? "").trim().toLowerCase();
    if (Object.hasOwn(MARK_OF, word)) marks.set(nameInCell(row[idAt] ?? ""), MARK_OF[word]);
    else others++;
  }
  return { marks, others };
}

function loadedText(loaded, unknown, differing, others) {
  const parts = [`${several(loaded, "check")} loaded`];
  if (unknown) parts.push(`${several(unknown, "unknown id")} left out`);
  if (differing) parts.push(`${several(differing, "building")} kept as checked here`);
  if (others) parts.push(`${several(others, "line")} with another label left out`);
  return `${parts.join("; ")}.`;
}

// CSV as spreadsheets read and write it.

// A cell that starts with = + - @ is a formula to a spreadsheet; an apostrophe makes it text.
function cell(text) {
  const safe = /^'*[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

const nameInCell = (text) => (/^'+[=+\-@\t\r]/.test(text) ? text.slice(1) : text);

// Spreadsheets in half of Europe separate CSV by semicolons.
function separatorOf(text) {
  const [first] = text.split(/\r?\n/, 1);
  return [",", ";", "\t"].find((mark) => first.includes(mark)) ?? ",";
}

// The rows of a table, each a list of cells; null if a quote does not close where it should.
function rowsOf(text) {
  const separator = separatorOf(text);
  const ending = new RegExp(`[${separator}\r\n]|$`, "g");
  const rows = [[]];
  for (let place = 0; place < text.length; ) {
    let found = quotedCell(text, place);
    if (found === null) return null;
    if (!found) {
      ending.lastIndex = place;
      const end = ending.exec(text).index;
      found = { value: text.slice(place, end), end };
    }
    rows.at(-1).push(found.value);
    place = found.end;
    if (text[place] === separator) {
      place++;
    } else if (place < text.length) {
      if (!/[\r\n]/.test(text[place])) return null;
      place += text.startsWith("\r\n", place) ? 2 : 1;
      rows.push([]);
    }
  }
  return rows.filter((cells) => cells.some((one) => one !== ""));
}

// The text between quotes and where it ends; false without quotes, null if they do not close.
function quotedCell(text, start) {
  if (text[start] !== '"') return false;
  let [value, end] = ["", start];
  do {
    if (end > start) value += '"'; // two quotes inside mean one
    const close = text.indexOf('"', end + 1);
    if (close < 0) return null;
    value += text.slice(end + 1, close);
    end = close + 1;
  } while (text[end] === '"');
  return { value, end };
}
