// Where the map looks: the place in the middle, and pixels per turn of longitude.

const FLIGHT_MILLISECONDS = 450;
const CLOSEST_METRES_PER_PIXEL = 0.01;
const CLOSE_UP_METRES_PER_PIXEL = 0.25; // a house and its neighbours

const scaleAt = (y, metresPerPixel) =>
  (EARTH_AROUND_METRES * Math.cos((latitudeOf(y) * Math.PI) / 180)) / metresPerPixel;

class Camera {
  constructor(changed) {
    this.changed = changed;
    this.x = 0;
    this.y = 0;
    this.scale = 1e6;
    this.width = 1;
    this.height = 1;
    this.least = 256;
    this.flight = null;
    this.still = window.matchMedia("(prefers-reduced-motion: reduce)");
  }

  screenX(x) {
    return (x - this.x) * this.scale + this.width / 2;
  }

  screenY(y) {
    return (y - this.y) * this.scale + this.height / 2;
  }

  worldAt(screenX, screenY) {
    return {
      x: this.x + (screenX - this.width / 2) / this.scale,
      y: this.y + (screenY - this.height / 2) / this.scale,
    };
  }

  metresPerPixel() {
    return scaleAt(this.y, 1) / this.scale;
  }

  resize(width, height) {
    this.width = width;
    this.height = height;
    this.changed();
  }

  place(x, y, scale) {
    this.flight = null;
    this.x = x;
    this.y = y;
    this.scale = this.allowed(scale);
    this.changed();
  }

  allowed(scale) {
    const most = EARTH_AROUND_METRES / CLOSEST_METRES_PER_PIXEL;
    return Math.max(this.least, Math.min(most, scale));
  }

  pan(right, down) {
    this.place(this.x - right / this.scale, this.y - down / this.scale, this.scale);
  }

  // The place under the pointer stays under it.
  zoom(factor, screenX = this.width / 2, screenY = this.height / 2) {
    const { x, y } = this.worldAt(screenX, screenY);
    const scale = this.allowed(this.scale * factor);
    const keep = this.scale / scale;
    this.place(x + (this.x - x) * keep, y + (this.y - y) * keep, scale);
  }

  scaleFor({ west, north, east, south }, width, height) {
    return Math.min(width / (east - west), height / (south - north));
  }

  fit(box, margin = 28) {
    const [x, y] = [(box.west + box.east) / 2, (box.north + box.south) / 2];
    const buttons = this.width > 700 ? 80 : margin; // on the right and, to stay central, left
    const wanted = this.scaleFor(box, this.width - 2 * buttons, this.height - 2 * margin);
    // One house, or one point without any size, is shown with its surroundings.
    const scale = Math.min(wanted, scaleAt(y, CLOSE_UP_METRES_PER_PIXEL));
    this.least = Math.min(this.least, scale / 4);
    this.place(x, y, scale);
  }

  // Smoothly, unless the person asked their system for stillness. `aside` pixels on the
  // left are covered by something else.
  fly(x, y, scale, aside = 0) {
    const target = { x: x - aside / 2 / this.allowed(scale), y, scale: this.allowed(scale) };
    if (this.still.matches) return this.place(target.x, target.y, target.scale);
    this.flight = { from: { x: this.x, y: this.y, scale: this.scale }, target, start: null };
    return this.changed();
  }

  // Called before every frame; true while there is more to come.
  advance(now) {
    if (!this.flight) return false;
    const { from, target } = this.flight;
    this.flight.start ??= now;
    const share = Math.min(1, (now - this.flight.start) / FLIGHT_MILLISECONDS);
    const eased = share * share * (3 - 2 * share);
    const ratio = target.scale / from.scale;
    this.scale = from.scale * ratio ** eased;
    // So that the target moves straight while the scale grows by a constant factor.
    const path = ratio === 1 ? eased : (1 - ratio ** -eased) / (1 - 1 / ratio);
    this.x = from.x + (target.x - from.x) * path;
    this.y = from.y + (target.y - from.y) * path;
    if (share === 1) {
      Object.assign(this, target);
      this.flight = null;
    }
    return this.flight !== null;
  }
}
