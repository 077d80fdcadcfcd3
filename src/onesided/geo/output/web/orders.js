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
    const { items } = this.sorted;
    const far = (place) => Math.abs(this.sorted.scoreAt(place) - this.threshold);
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

// One order after the other.
class Joined {
  constructor(parts) {
    this.parts = parts;
    this.length = parts.reduce((total, part) => total + part.length, 0);
  }

  at(place) {
    let within = place;
    for (const part of this.parts) {
      if (within < part.length) return part.at(within);
      within -= part.length;
    }
    return undefined;
  }

  indexOf(item) {
    let start = 0;
    for (const part of this.parts) {
      const place = part.indexOf(item);
      if (place >= 0) return start + place;
      start += part.length;
    }
    return -1;
  }
}

// An order without a few of its buildings.
class Without {
  constructor(order, few) {
    this.order = order;
    this.gaps = few.map((item) => order.indexOf(item)).sort((one, other) => one - other);
    this.length = order.length - this.gaps.length;
  }

  at(place) {
    let within = place;
    for (const gap of this.gaps) {
      if (gap > within) break;
      within++;
    }
    return this.order.at(within);
  }

  indexOf(item) {
    const place = this.order.indexOf(item);
    if (place < 0 || this.gaps.includes(place)) return -1;
    return place - firstPlace(this.gaps.length, (gap) => this.gaps[gap] > place);
  }
}

// Buildings by score, lowest first, and by number where scores are equal.
class Sorted {
  constructor(items, scores) {
    Object.assign(this, { items, scores });
  }

  scoreAt(place) {
    return this.scores[this.items[place]];
  }

  firstAbove(threshold) {
    return firstPlace(this.items.length, (place) => this.scoreAt(place) > threshold);
  }

  highestFirst() {
    return new Falling(this, 0, this.items.length);
  }

  // Where a building is, -1 if it is not among them.
  placeOf(item) {
    const before = (place) => this.scoreAt(place) - this.scores[item] || this.items[place] - item;
    const place = firstPlace(this.items.length, (each) => before(each) >= 0);
    return this.items[place] === item ? place : -1;
  }
}

// The first of so many places where a test holds, as it does for all that follow.
function firstPlace(count, test) {
  let [start, end] = [0, count];
  while (start < end) {
    const middle = (start + end) >> 1;
    if (test(middle)) end = middle;
    else start = middle + 1;
  }
  return start;
}
