// One item after the other. An answer is saved before the next item appears.

const FACTS = JSON.parse(byId("facts").textContent);
const BATCH = 10;
const AHEAD = 3; // pictures that are fetched before they are needed
const WORDS = { mixed: "a mix", likely: "likely positives", uncertain: "uncertain ones", diverse: "likely and unlike each other", random: "random ones" };
const COUNTED = { positive: "positive", negative: "negative", unsure: "unsure", skip: "skipped" };
const WAIT = 1500; // milliseconds between two looks at a training

class Review {
  constructor() {
    this.viewer = new Viewer();
    this.queue = [];
    this.current = null;
    this.pending = 0; // things to do
    this.last = Promise.resolve(); // the last of them
    this.turn = 0; // of choices: an answer to an older question is dropped
    byId("reviewer").value = FACTS.reviewer;
    byId("strategy").append(...FACTS.strategies.map((name) => Object.assign(textElement("option", WORDS[name] ?? name), { value: name })));
    byId("choose").hidden = FACTS.audit;
    for (const id of ["strategy", "words", "low", "high", "answered", "second", "reviewer"]) {
      byId(id).addEventListener("change", () => this.choose());
    }
    byId("clear").addEventListener("click", () => this.clear());
    for (const button of document.querySelectorAll("[data-answer]")) {
      button.addEventListener("click", () => this.answer(button.dataset.answer));
    }
    byId("undo").addEventListener("click", () => this.undo());
    byId("open-help").addEventListener("click", () => byId("help").showModal());
    byId("close-help").addEventListener("click", () => byId("help").close());
    byId("apply").addEventListener("click", () => byId("sure").showModal());
    byId("not-sure").addEventListener("click", () => byId("sure").close());
    byId("is-sure").addEventListener("click", () => this.apply());
    document.addEventListener("keydown", (event) => this.key(event));
  }

  get reviewer() {
    return byId("reviewer").value.trim() || FACTS.reviewer;
  }

  start() {
    return this.guarded(async () => {
      this.progress(await read("state", { reviewer: this.reviewer }));
      await this.refill();
      this.advance();
    });
  }

  // Runs one thing after the other, and says so where it fails. A second answer while the first is
  // being saved is dropped: it was meant for an item that is gone then. A choice waits.
  guarded(work, { waits = false } = {}) {
    if (this.pending && !waits) return this.last;
    this.pending++;
    document.body.classList.add("busy");
    this.last = this.last.then(async () => {
      try {
        await work();
        byId("failed").hidden = true;
      } catch (error) {
        if (!(error instanceof Refused)) console.error(error);
        byId("failed").textContent = error.message;
        byId("failed").hidden = false;
      } finally {
        if (!--this.pending) document.body.classList.remove("busy");
      }
    });
    return this.last;
  }

  question() {
    const given = { count: BATCH, strategy: byId("strategy").value, reviewer: this.reviewer, answered: byId("answered").value, text: byId("words").value };
    if (byId("low").value) given.low = byId("low").value;
    if (byId("high").value) given.high = byId("high").value;
    if (byId("second").checked) given.second = "yes";
    return given;
  }

  async refill() {
    const turn = this.turn;
    const { items } = await read("next", this.question());
    if (turn !== this.turn) return;
    const here = new Set([...this.queue, this.current].map((item) => item?.row));
    this.queue.push(...items.filter(({ row }) => !here.has(row)));
  }

  choose() {
    const differs = ["words", "low", "high"].some((id) => byId(id).value) || byId("answered").value !== "open" || byId("second").checked;
    byId("clear").hidden = !differs;
    this.turn++;
    return this.guarded(async () => {
      this.current = null;
      this.queue = [];
      await this.refill();
      this.advance();
    }, { waits: true });
  }

  clear() {
    for (const id of ["words", "low", "high"]) byId(id).value = "";
    byId("answered").value = "open";
    byId("second").checked = false;
    return this.choose();
  }

  advance() {
    this.show(this.queue.shift() ?? null);
    for (const { row, pictures } of this.queue.slice(0, AHEAD)) {
      pictures.forEach((_, place) => Object.assign(new Image(), { src: addressOf(row, place) }));
    }
  }

  show(item, was = "") {
    this.current = item;
    this.viewer.set(item, byId("clear").hidden ? FACTS.at_the_end : "No item fits what you chose.");
    byId("name").textContent = item?.item ?? "";
    byId("why").textContent = item?.why ?? "";
    const facts = item && item.score !== null
      ? [["score", item.score.toPrecision(3)], ["threshold", FACTS.threshold.toPrecision(3)], ["place", counted(item.row + 1)]]
      : [];
    showFacts(byId("facts-list"), facts);
    const said = was ? `Undone; you had said ${COUNTED[was]}.` : item?.own ? `You said ${COUNTED[item.own]} before.` : "";
    byId("before").textContent = said;
    byId("before").hidden = !said;
    for (const button of document.querySelectorAll("[data-answer]")) {
      button.disabled = !item;
      button.setAttribute("aria-pressed", item?.own === button.dataset.answer && !was);
    }
    this.showAlike(item?.alike ?? []);
    byId("status").textContent = item ? `${item.item}. ${item.why}` : "";
  }

  showAlike(items) {
    byId("alike-part").hidden = !items.length;
    byId("alike").replaceChildren(...items.map((each) => {
      const [line, button] = [document.createElement("li"), document.createElement("button")];
      button.type = "button";
      button.title = each.item;
      button.append(each.picture
        ? Object.assign(document.createElement("img"), { src: addressOf(each.row, 0), alt: each.item, loading: "lazy" })
        : textElement("span", each.text || each.item, "words"));
      if (each.answer) button.append(textElement("span", COUNTED[each.answer], "chip"));
      button.addEventListener("click", () => this.open(each.row));
      line.append(button);
      return line;
    }));
  }

  // An item that the person chose; the one that was shown comes after it.
  open(row) {
    return this.guarded(async () => {
      const { item } = await read("item", { row, reviewer: this.reviewer });
      if (this.current) this.queue.unshift(this.current);
      this.queue = this.queue.filter((each) => each.row !== row);
      this.show(item);
    });
  }

  answer(word) {
    const item = this.current;
    if (!item) return;
    return this.guarded(async () => {
      const body = { row: item.row, answer: word, strategy: item.strategy, reviewer: this.reviewer };
      this.progress(await send("answer", body));
      if (!this.queue.length) {
        this.current = null;
        await this.refill();
      }
      this.advance();
    });
  }

  undo() {
    return this.guarded(async () => {
      const found = await send("undo", { reviewer: this.reviewer });
      this.progress(found);
      if (!found.item) {
        byId("status").textContent = "There is no answer of yours to undo.";
        byId("before").textContent = "There is no answer of yours to undo.";
        byId("before").hidden = false;
        return;
      }
      if (this.current && this.current.row !== found.item.row) this.queue.unshift(this.current);
      this.queue = this.queue.filter(({ row }) => row !== found.item.row);
      this.show(found.item, found.was);
    });
  }

  progress({ items, answered, counts, contested, per_hour: perHour, recent, agreement, applying }) {
    const what = FACTS.audit ? "drawn items" : "items";
    byId("done").textContent = `${counted(answered)} of ${counted(items)} ${what} answered`;
    byId("bar").value = items ? answered / items : 0;
    const lines = Object.entries(counts).map(([word, count]) => `${counted(count)} ${COUNTED[word]}`);
    if (contested) lines.push(`${several(contested, "item")} contested`);
    const [found, latest] = recent;
    if (latest >= 20) lines.push(`${found} of the last ${latest} positive`);
    if (perHour !== null) lines.push(`${counted(Math.round(perHour))} positives per hour`);
    byId("counts").replaceChildren(...lines.map((line) => textElement("li", line)));
    byId("agreement").replaceChildren(...agreement.map((line) => textElement("li", line)));
    byId("round").hidden = !FACTS.may_train || FACTS.audit || !(counts.positive + counts.negative || applying.running || applying.sentence);
    this.training(applying);
  }

  training({ running, sentence, error, done, warnings }) {
    byId("apply").disabled = running;
    byId("training").hidden = !running;
    byId("training").value = done;
    byId("trained").textContent = [error || sentence, ...warnings].filter(Boolean).join(" ");
    clearTimeout(this.timer);
    if (running) {
      this.timer = setTimeout(async () => {
        // A failure is told by the next answer; meanwhile this looks again.
        const state = await read("state", { reviewer: this.reviewer }).catch(() => null);
        if (state) this.progress(state);
      }, WAIT);
    }
  }

  apply() {
    byId("sure").close();
    return this.guarded(async () => this.progress(await send("apply", {})));
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    if (event.target.matches("input:not([type=checkbox]), select, textarea")) {
      if (event.key === "Escape" || event.key === "Enter") {
        event.preventDefault(); // Escape would empty a field for searching
        event.target.blur();
      }
      return;
    }
    const answers = { 1: "positive", 2: "negative", 3: "unsure", 4: "skip" };
    const pixels = 60;
    const verbs = {
      u: () => this.undo(),
      b: () => this.viewer.turn(),
      "?": () => byId("help").showModal(),
      "/": () => byId("words").focus(),
      "+": () => this.viewer.zoom(STEP),
      "=": () => this.viewer.zoom(STEP),
      "-": () => this.viewer.zoom(1 / STEP),
      0: () => this.viewer.fit(),
      ArrowLeft: () => this.viewer.move(pixels, 0),
      ArrowRight: () => this.viewer.move(-pixels, 0),
      ArrowUp: () => this.viewer.move(0, pixels),
      ArrowDown: () => this.viewer.move(0, -pixels),
    };
    const name = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    const isArrow = name.startsWith("Arrow");
    if (isArrow && (!this.current?.pictures.length || event.target.closest(".panel"))) return; // it scrolls
    const verb = Object.hasOwn(answers, name) ? () => this.answer(answers[name]) : Object.hasOwn(verbs, name) && verbs[name];
    if (!verb || (event.repeat && !isArrow)) return; // a key that is held down answers once
    event.preventDefault();
    verb();
  }
}

const review = new Review();
review.start();
