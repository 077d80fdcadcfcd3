// What a person saw, kept in this window and saved as labels.

const LABELS = { damaged: "positive", "not damaged": "negative", unsure: "unlabelled" };
const MARKS = Object.keys(LABELS);

class Review {
  constructor(items, changed) {
    this.items = items;
    this.changed = changed;
    this.marks = new Map();
    this.unsaved = false;
    byId("export").addEventListener("click", () => this.save());
    window.addEventListener("beforeunload", (event) => {
      if (this.unsaved) event.preventDefault();
    });
    this.show();
  }

  // The same mark again takes it back.
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
      ? `${counted(this.marks.size)} checked: ${parts.join(", ")}. They live in this window until you save them.`
      : "None yet. Open a building and say what you see; save your checks as labels for the next training.";
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
}

// A cell that starts with = + - @ is a formula to a spreadsheet; an apostrophe makes it text.
function cell(text) {
  const safe = /^'*[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
