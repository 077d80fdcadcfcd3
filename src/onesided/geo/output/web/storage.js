// What the browser keeps against a crash: one entry for each answer, so that an answer costs
// the same whether it is the first or the ten-thousandth.

class Kept {
  constructor(key) {
    this.prefix = `onesided-map/${key}/`;
    this.works = true;
  }

  put(name, value) {
    this.attempt(() => localStorage.setItem(this.prefix + name, JSON.stringify(value)));
  }

  remove(name) {
    this.attempt(() => localStorage.removeItem(this.prefix + name));
  }

  // Name and value of every entry of a kind; what cannot be read is left out.
  entries(kind) {
    const found = [];
    const start = this.prefix + kind;
    this.attempt(() => {
      for (let place = 0; place < localStorage.length; place++) {
        const name = localStorage.key(place);
        if (!name.startsWith(start)) continue;
        const value = parsed(localStorage.getItem(name));
        if (value !== null) found.push([name.slice(start.length), value]);
      }
    });
    return found;
  }

  // A full or forbidden storage is told once, and the page goes on without it.
  attempt(action) {
    try {
      action();
    } catch (error) {
      if (this.works) console.info("This browser keeps nothing:", error.name);
      this.works = false;
    }
  }
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
