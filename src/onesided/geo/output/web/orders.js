// Orders of buildings for the list. None copies: of a million buildings ten are shown.

// A part of the buildings that are sorted by score, from its end.
class Falling {
  constructor(sorted, start, end) {
    Object.assign(this, { sorted, start, end, length: end - start });
  }

  at(place) {
    return this.sorted.items[this.end - 1 - place];
  }

  indexOf(item) {
    const place = this.sorted.placeOf(item);
    return place >= this.start && place < this.end ? this.end - 1 - place : -1;
  }
}

// Nearest the threshold first; merged as far as somebody looks.
class Outward {
  constructor(sorted, first, threshold) {
    Object.assign(this, { sorted, threshold, up: first, down: first - 1, found: [], length: sorted.items.length });
  }

  at(place) {
    while (this.found.length <= place) this.extend();
    return this.found[place];
  }

  extend() {
    const { items, scores } = this.sorted;
    const far = (place) => Math.abs(scores[place] - this.threshold);
    const takeAbove = this.down < 0 || (this.up < items.length && far(this.up) < far(this.down));
    this.found.push(takeAbove ? items[this.up++] : items[this.down--]);
  }

  indexOf(item) {
    if (this.sorted.placeOf(item) < 0) return -1;
    let place = this.found.indexOf(item);
    while (place < 0) {
      this.extend();
      if (this.found.at(-1) === item) place = this.found.length - 1;
    }
    return place;
  }
}

// Buildings by score, lowest first, and by number where scores are equal.
class Sorted {
  constructor(items, scores) {
    this.items = items;
    this.all = scores;
    this.scores = new Float64Array(items.length);
    for (let place = 0; place < items.length; place++) this.scores[place] = scores[items[place]];
  }

  // Where a building is, -1 if it is not among them.
  placeOf(item) {
    let [start, end] = [0, this.items.length];
    while (start < end) {
      const middle = (start + end) >> 1;
      const before = this.scores[middle] - this.all[item] || this.items[middle] - item;
      if (before < 0) start = middle + 1;
      else end = middle;
    }
    return this.items[start] === item ? start : -1;
  }
}
