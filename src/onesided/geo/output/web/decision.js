// The threshold, and which buildings are called damaged.

const BARS = 50;

class Decision {
  // `order`: scored buildings, lowest first.
  constructor(items, order, threshold, kept, changed) {
    this.items = items;
    this.kept = kept;
    this.order = order;
    this.own = threshold;
    this.changed = changed;
    this.open = order.filter((item) => items.open[item]);
    this.openScores = Float64Array.from(this.open, (item) => items.scores[item]);
    const scores = Float64Array.from(order, (item) => items.scores[item]);
    this.scores = scores;
    this.low = Math.min(0, scores[0] ?? 0, threshold);
    this.high = Math.max(1, scores.at(-1) ?? 1, threshold);
    this.build();
    const [[, moved] = []] = kept.entries("threshold");
    this.set(typeof moved === "number" ? moved : threshold);
  }

  build() {
    this.slider = byId("threshold");
    this.number = byId("threshold-number");
    this.top = byId("top");
    Object.assign(this.slider, { min: this.low, max: this.high });
    Object.assign(this.number, { min: this.low, max: this.high });
    this.top.max = this.open.length;
    byId("low-end").textContent = this.low;
    byId("high-end").textContent = this.high;
    this.slider.addEventListener("input", () => this.set(Number(this.slider.value)));
    this.number.addEventListener("change", () => this.set(Number(this.number.value)));
    this.top.addEventListener("change", () => this.takeTop(Number(this.top.value)));
    byId("reset").addEventListener("click", () => this.set(this.own));
    this.buildHistogram();
  }

  // Heights by the square root: one tall bar must not flatten the rest.
  buildHistogram() {
    const counts = new Array(BARS).fill(0);
    for (const score of this.openScores) {
      const bar = Math.floor(((score - this.low) / (this.high - this.low)) * BARS);
      counts[Math.min(BARS - 1, bar)]++;
    }
    const most = Math.sqrt(Math.max(1, ...counts));
    this.bars = counts.map((count, bar) => {
      const element = document.createElement("i");
      element.style.height = `${count ? Math.max(4, (100 * Math.sqrt(count)) / most) : 0}%`;
      const middle = this.low + ((bar + 0.5) / BARS) * (this.high - this.low);
      element.style.background = shadeColours[shadeOf(middle)];
      return element;
    });
    byId("histogram").replaceChildren(...this.bars);
  }

  set(threshold) {
    const number = Number.isFinite(threshold) ? threshold : this.own;
    this.threshold = Math.max(this.low, Math.min(this.high, number));
    if (this.threshold === this.own) this.kept.remove("threshold");
    else this.kept.put("threshold", this.threshold);
    this.slider.value = this.threshold;
    this.number.value = Number(this.threshold.toFixed(4));
    this.show();
    this.changed();
  }

  // Calls this many of the highest; fewer where equal scores would be split.
  takeTop(count) {
    const place = this.open.length - Math.max(0, Math.round(count || 0)) - 1;
    this.set(place < 0 ? this.low : this.openScores[place]);
  }

  firstCalled() {
    return firstPlace(this.scores.length, (place) => this.scores[place] > this.threshold);
  }

  firstOpenCalled() {
    return firstPlace(this.openScores.length, (place) => this.openScores[place] > this.threshold);
  }

  called(item) {
    return this.items.scores[item] > this.threshold;
  }

  show() {
    const total = this.open.length;
    const called = total - this.firstOpenCalled();
    const share = total ? ((100 * called) / total).toFixed(1) : "0.0";
    byId("count").textContent = counted(called);
    byId("count-rest").textContent = `of ${counted(total)} unmarked buildings (${share}%)`;
    this.top.value = called;
    this.slider.setAttribute(
      "aria-valuetext",
      `${this.threshold.toFixed(3)}: ${called} of ${total} buildings called damaged`,
    );
    const edge = ((this.threshold - this.low) / (this.high - this.low)) * BARS;
    this.bars.forEach((bar, place) => bar.classList.toggle("quiet", place + 0.5 < edge));
  }
}
